"""Files that are written completely or not at all, and file locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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


@contextmanager
def locked(path: Path, *, waits: bool = False) -> Iterator[int]:
    """Hold the lock of a file, and give its descriptor. It dies with its process.

    `waits`: until another process lets go of it.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file cannot be made or opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield descriptor
    finally:
        os.close(descriptor)
