"""Files with keys, which only this user may read: written whole, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countersign.errors import InvalidConfiguration


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


@contextmanager
def draft(path: Path, data: bytes) -> Iterator[Path]:
    """A file next to `path` with this content, on the disk; to be renamed in the block."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield new
    finally:
        new.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put this content in the place of a file: whole, and on the disk, or not at all.

    `mode` counts with any mask of the process. Raises OSError.
    """
    with draft(path, data) as new:
        new.chmod(mode)
        new.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
