"""The logs: one for each mode and epoch, their keys, checkpoints and anchors."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Final, NamedTuple

from countersign.base.db.statements import statements_of
from countersign.base.values import Mode
from countersign_evidence.note import Checkpoint, Verifier

SQL: Final = statements_of(__package__)
"""The statements of the logs, by name."""
AUDIT_SUBJECT: Final = "log"
"""Subject of audit entries about the logs."""
WITNESS: Final = "witness"
TIMESTAMP: Final = "rfc3161"
"""The kinds of anchors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log. `size` and `root` are those of its head, `origin` is its permanent name."""

    id: int
    mode: Mode
    epoch: int
    origin: str
    size: int
    root: bytes
    at: datetime
    keys_revision: int


_verifier: Final = lru_cache(maxsize=256)(partial(Verifier.parse, any_kind=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKey:
    """A key that signs, or signed, a log's checkpoints.

    `seed` is its private key, sealed by the vault; or `token_id` its id on the PKCS#11 token.
    """

    log_id: int
    vkey: str
    seed: bytes | None = None
    token_id: bytes | None = None
    created_at: datetime
    retires_at: datetime | None = None

    @property
    def verifier(self) -> Verifier:
        """Its public half."""
        return _verifier(self.vkey)


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
    """A statement of a third party about a checkpoint.

    `kind` is `witness` (the body is a cosignature line, `name` the witness's and the id of its key)
    or `rfc3161` (the body is a time-stamp response, `name` the authority's address). A time-stamp
    covers the checkpoint, or `renews` the one with that digest. `ends_at` is when the first of its
    certificates ends.
    """

    log_id: int
    size: int
    kind: str
    name: str
    at: datetime
    body: bytes
    digest: str
    """Hexadecimal SHA-256 of the body."""
    renews: str | None = None
    ends_at: datetime | None = None


def cosignatures(anchors: Sequence[Anchor], *, newest: bool = False) -> list[Anchor]:
    """One of each witness, ordered by time: the first one, or the newest."""
    ordered = anchors if newest else reversed(anchors)
    return [*{a.name: a for a in ordered if a.kind == WITNESS}.values()]


def time_stamps(anchors: Sequence[Anchor]) -> dict[str, Anchor]:
    """The first time-stamp of each authority with its renewals, by their names in a dossier."""
    renewals = {anchor.renews: anchor for anchor in anchors if anchor.renews is not None}
    stamps = [a for a in anchors if a.kind == TIMESTAMP and a.renews is None]
    first = {stamp.name: stamp for stamp in reversed(stamps)}
    named: dict[str, Anchor] = {}
    for number, name in enumerate(sorted(first), 1):
        stamp, times = first[name], 0
        named[f"timestamps/{number}.tsr"] = stamp
        while stamp.digest in renewals:
            stamp, times = renewals[stamp.digest], times + 1
            named[f"timestamps/{number}.{times}.tsr"] = stamp
    return named


class LogState(NamedTuple):
    """The state of a log. `suspended` says why nothing is sealed; None: sealing runs."""

    log: Log
    suspended: str | None
    waiting: int
    oldest_at: datetime | None


class PublishedHead(NamedTuple):
    """A published checkpoint, and the signed note that contains it."""

    checkpoint: Checkpoint
    note: bytes
