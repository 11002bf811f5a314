"""Small files that say when the last backup was made, and when one was restored."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from countersign.instant import rfc3339
from countersign_evidence.files import replace_file

_MADE: Final = "last-backup.json"
_RESTORED: Final = "restored.json"


class BackupNote(NamedTuple):
    """The last backup of a data directory, and the last trial to restore one of them."""

    at: datetime | None
    directory: str
    restored_at: datetime | None


def note_backup(data_dir: Path, directory: Path, at: datetime) -> None:
    """Note a backup in the data directory. Raises OSError."""
    before = read_note(data_dir)
    note = {"at": rfc3339(at), "directory": str(directory)}
    if before is not None and before.restored_at is not None:
        note["restored_at"] = rfc3339(before.restored_at)
    replace_file(data_dir / _MADE, json.dumps(note).encode())


def note_restored(directory: Path, at: datetime) -> None:
    """Note in a backup that it was restored. Raises OSError."""
    replace_file(directory / _RESTORED, json.dumps({"restored_at": rfc3339(at)}).encode())


def read_note(data_dir: Path) -> BackupNote | None:
    """What is noted; None: nothing, or nothing that can be read."""
    made = _read(data_dir / _MADE)
    if not made:
        return None
    directory = made.get("directory", "")
    tried = _time(_read(Path(directory) / _RESTORED), "restored_at")
    return BackupNote(_time(made, "at"), directory, tried or _time(made, "restored_at"))


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _time(of: dict[str, str], name: str) -> datetime | None:
    try:
        return datetime.fromisoformat(of[name])
    except (KeyError, ValueError):
        return None
