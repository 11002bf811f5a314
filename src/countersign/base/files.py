"""Files of a deployment: those with keys, and the lock on the data directory."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from countersign.base.errors import DataDirectoryLocked, InvalidConfiguration
from countersign_evidence.errors import files_refused_as
from countersign_evidence.files import draft, sync


def loose_mode(path: Path) -> int:
    """The mode of a file that others than its owner may read or change; 0 of any other."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0  # whatever needs the file says so
    return mode if mode & 0o077 else 0


def key_text(key: bytes) -> str:
    """A key as a line of a file."""
    return b64encode(key).decode("ascii") + "\n"


def write_key_file(path: Path, text: str) -> None:
    """Write a new key file under another name, then link it in place: whole, or not at all."""
    with files_refused_as(InvalidConfiguration, f"The key file {path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft(path, text.encode("ascii")) as new:
            try:
                os.link(new, path)
            except FileExistsError:
                return  # another `init` was first
            sync(path.parent)


_NAME: Final = "server.lock"
_COMMAND: Final = " command"
"""After the number of a process that only needs the directory for itself for a while."""
_ORPHANS_SECONDS: Final = 2.0
"""A lock may outlive its process for this long: workers end soon after their parent."""
_LOOK_SECONDS: Final = 0.02


@contextmanager
def only_server(data_dir: Path, *, serves: bool = False) -> Iterator[bool]:
    """Hold the lock while serving; yields whether the previous server ended uncleanly.

    A command only holds the lock meanwhile, and keeps that fact for the next server.

    Raises:
        DataDirectoryLocked: another server or command holds it.
        InvalidConfiguration: the directory cannot be written.
    """
    path = data_dir / _NAME
    with ExitStack() as stack:
        what = f"The data directory {data_dir} cannot be written"
        with files_refused_as(InvalidConfiguration, what):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, descriptor)
            is_ours = _taken(descriptor)
        if not is_ours:
            note = _noted(descriptor)
            what, to_do = (
                ("command", "Wait until it has ended")
                if note.endswith(_COMMAND)
                else ("server", "Stop it, or give this one another COUNTERSIGN_DATA_DIR")
            )
            raise DataDirectoryLocked(
                f"Another Countersign {what} (process {_process(note) or 'unknown'}) runs on "
                f"{data_dir.resolve()}. {to_do}."
            )
        before, own = _noted(descriptor), str(os.getpid())
        left = "" if serves else before
        _note(descriptor, own if serves else own + _COMMAND)
        try:
            yield bool(before)
        except SystemExit as ended:
            if not ended.code:
                _end(descriptor, own, left)
            raise
        _end(descriptor, own, left)


def _end(descriptor: int, own: str, left: str) -> None:
    """Note a clean end; no-op in a forked worker."""
    if own == str(os.getpid()):
        _note(descriptor, left)


def _note(descriptor: int, note: str) -> None:
    with suppress(OSError):  # the disk is full: the lock holds without the number in it
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode(), 0)


def holder_of(data_dir: Path) -> str:
    """The number of the process that serves from this directory; empty: none does."""
    with suppress(OSError):
        process = _process((data_dir / _NAME).read_text(encoding="ascii", errors="replace"))
        return process if process.isdigit() and _runs(process) else ""
    return ""


def _taken(descriptor: int) -> bool:
    """Take the lock; waits a moment for the workers of a server that was killed."""
    until = time.monotonic() + _ORPHANS_SECONDS
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if _runs(_process(_noted(descriptor))) or time.monotonic() >= until:
            return False
        time.sleep(_LOOK_SECONDS)


def _noted(descriptor: int) -> str:
    """The note of the process that took the lock: its id, and whether it is a command."""
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()


def _process(note: str) -> str:
    return note.removesuffix(_COMMAND).strip()


def _runs(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except (PermissionError, OverflowError):
        pass
    return True
