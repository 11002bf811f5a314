"""Reserved disk space: a file that is deleted when the disk is full.

Accepted records are then still sealed and published, the server can stop cleanly, and a command
that frees space can run. Until there is space again, writes are refused.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from countersign.base.db.database import Database
from countersign.base.loops import forever

NAME: Final = "reserve"
RESERVE_BYTES: Final = 4 * 2**20
_FULL_BYTES: Final = 256 * 1024
"""With less than this the disk is full, although the database may find room in its own files."""
_log: Final = structlog.get_logger("countersign.storage")


@contextmanager
def lent_space(data_dir: Path) -> Iterator[None]:
    """Around a whole server: when it ends, commands have the space of its reserve.

    In a worker this does nothing: it has forked from the process that entered it, and others still
    serve.
    """
    server = os.getpid()
    _delete(data_dir.glob(f"{NAME}.[0-9]*"))  # a process was killed while it made one
    try:
        yield
    finally:
        if os.getpid() == server:
            _delete([data_dir / NAME])


def _delete(files: Iterable[Path]) -> None:
    with suppress(OSError):
        for file in files:
            file.unlink(missing_ok=True)


class Reserve:
    """The file in the data directory. It is there while a server runs; workers share it."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self._database = database
        self._file = data_dir / NAME
        self._full_at = 0.0

    async def run(self) -> None:
        """Keep it, give it up and make it again, until cancelled."""
        await forever("reserve", self.look, 1.0)

    async def look(self) -> None:
        """Look once whether the disk is full, and let the database accept or refuse."""
        before, self._full_at = self._full_at, self._database.full_at
        was_refused, free = self._full_at > before, shutil.disk_usage(self._file.parent).free
        is_kept = not was_refused and free >= _FULL_BYTES and self._file.exists()
        if not is_kept:
            is_kept = await asyncio.to_thread(self._keep, free, was_refused=was_refused)
        if is_kept is self._database.is_full:
            _log.warning("disk_has_space") if is_kept else _log.error("disk_full")
        self._database.is_full = not is_kept

    def _keep(self, free: int, *, was_refused: bool) -> bool:
        try:
            if was_refused or free < _FULL_BYTES:
                self._file.unlink(missing_ok=True)
            elif not self._file.exists() and free >= 3 * RESERVE_BYTES:
                self._make()
        except OSError as error:
            # If nothing can be written, the database reports the reason.
            return error.errno not in {errno.ENOSPC, errno.EDQUOT}
        return self._file.exists()

    def _make(self) -> None:
        draft = self._file.with_suffix(f".{os.getpid()}")
        try:
            # A file system may store zeros in no space at all.
            draft.write_bytes(os.urandom(RESERVE_BYTES))
            draft.replace(self._file)
        finally:
            draft.unlink(missing_ok=True)
