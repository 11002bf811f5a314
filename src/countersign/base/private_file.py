"""Files with keys, which only this user may read: written whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from countersign.base.errors import InvalidConfiguration
from countersign_evidence.files import draft, sync


def loose_mode(path: Path) -> int:
    """The mode of a file that others than its owner may read or change; 0 of any other."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0  # whatever needs the file says so
    return mode if mode & 0o077 else 0


def write_key_file(path: Path, text: str) -> None:
    """Write a new key file under another name, then link it in place: whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft(path, text.encode("ascii")) as new:
            try:
                os.link(new, path)
            except FileExistsError:
                return  # another `init` was first
            sync(path.parent)
    except OSError as error:
        raise InvalidConfiguration(
            f"The key file {path} cannot be written: {error.strerror}."
        ) from error
