"""Small files that say when the last backup was made, and when one was restored."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from countersign_evidence.files import replace_file

_MADE: Final = "last-backup.json"
_RESTORED: Final = "restored.json"


def note_backup(data_dir: Path, directory: Path) -> None:
    """Note in the data directory that a backup was made now. Raises OSError."""
    tried = read_note(data_dir).get("restored_at")
    note = {"at": time.time(), "directory": str(directory), "restored_at": tried}
    replace_file(data_dir / _MADE, json.dumps(note).encode())


def note_restored(directory: Path) -> None:
    """Note in a backup that it was restored now. Raises OSError."""
    replace_file(directory / _RESTORED, json.dumps({"restored_at": time.time()}).encode())


def read_note(data_dir: Path) -> Mapping[str, Any]:
    """`at` (Unix time) and `directory` of the last backup, and `restored_at` of the last trial.

    Empty: nothing is noted, or nothing that can be read.
    """
    note: dict[str, Any] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        note |= json.loads((data_dir / _MADE).read_text(encoding="utf-8"))
        note |= json.loads((Path(note["directory"]) / _RESTORED).read_text(encoding="utf-8"))
    return note
