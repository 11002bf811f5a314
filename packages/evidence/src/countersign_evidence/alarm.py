"""Alarms: findings of a person who watches a log, in one file that others can check.

An alarm is proved if the log's own signatures contradict each other, or contradict the rules for
its entries. It is an observation if it rests on its writer's word that the log served this.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from countersign_evidence.canonical import canonical_json
from countersign_evidence.errors import EvidenceError
from countersign_evidence.tree import HASH_BYTES

VERSION: Final = 1
ALARM_BYTES_MAX: Final = 32_000_000
EPOCH_RECORD: Final = "epoch"
"""The name, below the address of a log, of the record that begins it."""
ENTRY: Final = "entry"
"""The name of one entry in an alarm."""
RECEIPT: Final = "receipt"
"""The name of a receipt in an alarm."""
KEY_HISTORY: Final = "keys"
"""The name, below the address of a log, of the history of its keys."""


class AlarmKind(StrEnum):
    """The kind of failure of the log."""

    FORK = "fork"
    """Two signed checkpoints that do not belong to one tree."""
    SHRINK = "shrink"
    """A smaller checkpoint was served than before."""
    UNBACKED = "unbacked"
    """Served tiles or entries are not those of the signed checkpoint."""
    GAP = "gap"
    """Tiles or entries of a signed checkpoint were not served."""
    ENTRY = "entry"
    """The log holds something that is not an entry of it."""
    KEY = "key"
    """A checkpoint in the log's name has no good signature by its keys."""
    QUORUM = "quorum"
    """Too few witnesses of the policy cosigned the served checkpoint."""
    EPOCH = "epoch"
    """The next epoch of the log does not cite the published head of this one."""
    SUPPRESSED = "suppressed"
    """The log has not got a record that it had promised to have by now."""
    REPLACED = "replaced"
    """The address serves another log than before."""
    SILENCE = "silence"
    """For too long there was no usable response, or no growth."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm, not checked. The members in use depend on its kind (spec section 20)."""

    kind: AlarmKind
    url: str
    observed_at: str
    message: str
    checkpoints: tuple[bytes, ...] = ()
    before: tuple[bytes, ...] = ()
    """For a fork: subtrees of the smaller tree, as the larger one has them."""
    after: tuple[bytes, ...] = ()
    """Of a fork: the subtrees that make up the rest of the larger tree."""
    index: int | None = None
    path: tuple[bytes, ...] = ()
    """From the entry with this index to the root of the last checkpoint."""
    resources: Mapping[str, bytes | None] = field(default_factory=dict)
    """Responses below the address of the log, by path; None: not found."""


_Hash = Annotated[bytes, msgspec.Meta(min_length=HASH_BYTES, max_length=HASH_BYTES)]


class _File(msgspec.Struct, kw_only=True):
    """The file; bytes are base64 (RFC 4648 §4)."""

    v: int
    alarm: AlarmKind
    url: str
    observed_at: str
    message: str
    checkpoints: list[str]
    before: tuple[_Hash, ...]
    after: tuple[_Hash, ...]
    index: int | None
    path: tuple[_Hash, ...]
    resources: dict[str, bytes | None] = {}


_SAME: Final = ("url", "observed_at", "message", "before", "after", "index", "path", "resources")
"""The members of the file with the same names."""


def format_alarm(alarm: Alarm) -> bytes:
    """The file of an alarm: canonical JSON."""
    same = {name: getattr(alarm, name) for name in _SAME}
    notes = [note.decode() for note in alarm.checkpoints]
    return canonical_json({"v": VERSION, "alarm": alarm.kind, "checkpoints": notes, **same})


def parse_alarm(data: bytes) -> Alarm:
    """Read the file of an alarm. Raises EvidenceError if it has not the one form."""
    if len(data) > ALARM_BYTES_MAX:
        raise EvidenceError(f"an alarm has at most {ALARM_BYTES_MAX} bytes")
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvidenceError("not the file of an alarm, or of a kind that is not known") from error
    if file.v != VERSION:
        raise EvidenceError(f"the version of the alarm is {file.v}, not {VERSION}")
    same: dict[str, Any] = {name: getattr(file, name) for name in _SAME}
    notes = tuple(note.encode() for note in file.checkpoints)
    alarm = Alarm(file.alarm, checkpoints=notes, **same)
    if format_alarm(alarm) != data:
        raise EvidenceError("the file of the alarm is not canonical JSON")
    return alarm


def of_log(origin: str) -> str:
    """The name in an alarm of the key history that its writer knew for a log."""
    return f"{KEY_HISTORY}/{origin}"


def is_history(name: str) -> bool:
    """Whether this is the name of a history of keys in an alarm."""
    return name.partition("/")[0] == KEY_HISTORY
