"""The lock on the data directory: one server at a time. It dies with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from countersign.errors import DataDirectoryLocked, InvalidConfiguration

_NAME: Final = "server.lock"


@contextmanager
def only_server(data_dir: Path) -> Iterator[None]:
    """Hold the lock while serving.

    Raises:
        DataDirectoryLocked: another server holds it.
        InvalidConfiguration: the directory cannot be written.
    """
    try:
        descriptor = os.open(data_dir / _NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        msg = f"The data directory {data_dir} cannot be written: {error.strerror}."
        raise InvalidConfiguration(msg) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            msg = (
                f"Another Countersign server (process {holder or 'unknown'}) is running on "
                f"{data_dir.resolve()}. Stop it, or give this one another COUNTERSIGN_DATA_DIR."
            )
            raise DataDirectoryLocked(msg) from None
        with suppress(OSError):  # the disk is full: the lock holds without the number in it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
