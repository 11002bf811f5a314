"""The logs: one a mode and epoch, and what is kept of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from countersign.mode import Mode

WITNESS: Final = "witness"
TIMESTAMP: Final = "rfc3161"
"""The kinds of anchors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log. `size` and `root` are those of its head, `origin` is its name for ever."""

    id: int
    mode: Mode
    epoch: int
    origin: str
    created_at: datetime
    size: int
    root: bytes
    at: datetime
    keys_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """A key that signs, or signed, a log's checkpoints; `seed` is sealed by the vault."""

    log_id: int
    vkey: str
    seed: bytes
    created_at: datetime
    retires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCheckpoint:
    """A signed checkpoint, as it was written."""

    log_id: int
    size: int
    root: bytes
    note: bytes
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What someone else says of a checkpoint.

    `kind` is `witness` (the body is a cosignature line, `name` the witness's and the id of its
    key) or `rfc3161` (the body is a time-stamp response, `name` the authority's address).
    """

    log_id: int
    size: int
    kind: str
    name: str
    body: bytes
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What the fork guard says of a mode: the id of its newest log, and whether that may go on.

    `refusal` says why it does not go with the checkpoint that is kept outside the database; None:
    it does. `restored` says whether a restore has left the decision to the operator.
    """

    log_id: int | None
    refusal: str | None
    restored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What waits for sealing in one mode."""

    mode: Mode
    waiting: int
    oldest: str | None
    """The id of the oldest record that waits; it tells the time since when."""
