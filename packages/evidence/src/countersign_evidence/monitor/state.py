"""A monitor's state between its runs: for each log the last verified head.

Each file is replaced as a whole, so a killed monitor continues from the previous state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from countersign_evidence.alarm import Alarm, format_alarm, is_history
from countersign_evidence.errors import EvidenceError
from countersign_evidence.files import replace_file
from countersign_evidence.note import checkpoint_of
from countersign_evidence.tiles import GrowingTree


class DamagedState(Exception):
    """A file of the directory cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTree:
    """A tree that was read: its size, and the incomplete tiles at its right edge."""

    size: int = 0
    edge: tuple[tuple[bytes, ...], ...] = ()

    @classmethod
    def of(cls, tree: GrowingTree) -> ReadTree:
        return cls(size=tree.size, edge=tree.edge)

    def grown(self) -> GrowingTree:
        """The same, to append to."""
        return GrowingTree(self.size, self.edge)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The state of one log; times are Unix seconds."""

    origin: str
    url: str
    note: str | None = None
    """The last signed checkpoint that was found right; None: there was none yet."""
    keys: str | None = None
    """The newest history of the log's keys that was found right."""
    tree: ReadTree = ReadTree()
    """The tree of that checkpoint; all its entries were read."""
    reading: ReadTree | None = None
    """How far the entries after that were read, towards a later checkpoint."""
    checked_at: int = 0
    """The time of the last look without a problem: in this log, those read with it, and the
    receipts."""
    grown_at: int = 0
    again_at: int = 0
    """The time up to which earlier entries were read again; 0: not yet."""


class State:
    """The directory of a monitor."""

    def __init__(self, directory: Path) -> None:
        """Raises OSError if the directory cannot be made."""
        self.directory = directory
        for part in (directory, directory / "heads", directory / "alarms"):
            part.mkdir(parents=True, exist_ok=True, mode=0o700)

    def logs(self) -> list[Kept]:
        """The state of each log, sorted by address. Raises DamagedState."""
        found = [_read(path) for path in sorted(self.directory.glob("*.json"))]
        return sorted(found, key=lambda kept: (len(kept.url), kept.url))

    def keep(self, kept: Kept) -> None:
        """Replace the saved state of a log."""
        replace_file(
            self.directory / f"{_name(kept.origin)}.json",
            msgspec.json.format(msgspec.json.encode(kept), indent=1),
        )

    def keep_head(self, origin: str, note: bytes, at: datetime) -> None:
        """Keep the last checkpoint of each day (UTC)."""
        folder = self.directory / "heads" / _name(origin)
        folder.mkdir(exist_ok=True, mode=0o700)
        replace_file(folder / f"{at:%Y-%m-%d}.checkpoint", note)

    def write_alarm(self, alarm: Alarm) -> Path:
        """Write the file of an alarm; what contradicts in the same way has one file, the first."""
        resources = {k: v for k, v in alarm.resources.items() if not is_history(k)}
        shown = replace(alarm, observed_at="", message="", url="", resources=resources)
        name = f"{alarm.kind.value}-{sha256(format_alarm(shown)).hexdigest()[:16]}.alarm.json"
        path = self.directory / "alarms" / name
        if not path.exists():
            replace_file(path, format_alarm(alarm), 0o644)
        return path


def _name(origin: str) -> str:
    """The name of a log's files: readable, and no two logs have the same."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "_" for c in origin)
    return f"{readable[:100]}-{sha256(origin.encode()).hexdigest()[:8]}"


def _read(path: Path) -> Kept:
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Kept)
        root = kept.tree.grown().root()
        (kept.reading or ReadTree()).grown()
        head = None if kept.note is None else checkpoint_of(kept.note.encode())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, EvidenceError) as error:
        raise DamagedState(f"{path}: {error}") from error
    if head is not None and head.root != root:
        raise DamagedState(f"{path}: the tree is not that of the checkpoint")
    return kept
