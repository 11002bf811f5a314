"""The last published checkpoint of each mode, kept outside the database, and its last size.

A restored backup or a lost tail shows in the difference between them. The files are in the data
directory, or elsewhere, out of reach of a restore of the whole data directory. An object store is
the other place for them: `log.head_store`.
"""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from countersign.base.errors import EvidenceRefused, HeadUnavailable
from countersign.base.values import Mode
from countersign.core.log.model import PublishedHead
from countersign_evidence.errors import EvidenceError, refused_as
from countersign_evidence.files import draft, locked, replace_file
from countersign_evidence.note import Checkpoint, checkpoint_of

_PLACE: Final = "place"
_EPOCH_DIGITS_MAX: Final = 9


class Heads(ABC):
    """The place of the last published checkpoints, of which nothing is written but by `_swap`.

    `where`: the directory or URL. HeadUnavailable, of any method: the place cannot be used.
    """

    def __init__(self, where: str) -> None:
        self._where = where

    @abstractmethod
    def _get(self, name: str) -> bytes | None:
        """The content of this name; None: there is none."""

    @abstractmethod
    def _swap(self, name: str, content: bytes, over: bytes | None) -> bool:
        """Store this in the place of `over`, None: of nothing; False if something else is there."""

    @abstractmethod
    def check(self) -> None:
        """Find out whether a checkpoint could be kept."""

    def stored(self, mode: Mode) -> bytes | None:
        """The stored signed note, damaged or not; None: there is none."""
        return self._get(_name(mode))

    def read(self, mode: Mode) -> bytes | None:
        """The signed note; None if none was published from here yet."""
        note = self.stored(mode)
        what = f"The last published checkpoint, {self._where}/{_name(mode)}, cannot be read"
        with refused_as(HeadUnavailable, what):
            _ = None if note is None else checkpoint_of(note)
        return note

    def advance(self, mode: Mode, note: bytes, over: bytes | None) -> bool:
        """Keep this checkpoint in the place of `over`; False if another one is stored meanwhile.

        The caller has compared `over` with the database. If another process has published since,
        the comparison has to be repeated.

        Raises:
            EvidenceRefused: `over` is a later checkpoint, or a different one of this size.
        """
        refuse_backwards(mode, checkpoint_of(note), published_in(over))
        return self._swap(_name(mode), note, over)

    def place(self) -> str | None:
        """The name of this place, equal for all servers that share it; None: it has none.

        Not remembered: the place may have changed.
        """
        found = self._get(_PLACE)
        return None if found is None else found.decode("ascii", "replace")

    def named_place(self) -> str:
        """The same; a place without a name gets one."""
        name = self.place()
        if name is None:
            self._swap(_PLACE, secrets.token_hex(8).encode(), None)
            name = self.place()  # another server may have been first
        return name or ""

    def kept(self, mode: Mode) -> tuple[bytes | None, str | None]:
        """The head to compare the database with: its signed note, and the name of its place."""
        return self.read(mode), self.place()

    def accept(self, mode: Mode, log_id: int, size: int) -> None:  # noqa: B027 - see there
        """Store the number of entries of this mode's log, confirmed by a commit.

        Only for the embedded database, which may lose its end, and keeps its heads in files.
        """

    def accepted(self, mode: Mode) -> tuple[int, int] | None:  # noqa: ARG002 - as above
        """The id of the log of this mode, and how many entries it has had; None: not known."""
        return None

    def forget_accepted(self, mode: Mode) -> None:  # noqa: B027 - as above
        """Forget that number: the operator has decided how this mode goes on."""


def published_in(note: bytes | None) -> PublishedHead | None:
    """The checkpoint of a kept note; None: nothing is kept, or it is damaged."""
    with suppress(EvidenceError):
        return None if note is None else PublishedHead(checkpoint_of(note), note)
    return None


def refuse_backwards(mode: Mode, new: Checkpoint, kept: PublishedHead | None) -> None:
    """EvidenceRefused unless a checkpoint is of the same log and larger, or of a later epoch."""
    if kept is None:
        return
    old = kept.checkpoint
    if new.origin == old.origin:
        follows = new == old or new.size > old.size
    else:
        follows = epoch_of(mode, new.origin) > epoch_of(mode, old.origin)
    if not follows:
        raise EvidenceRefused(
            f"The kept last published checkpoint has the size {old.size} and belongs to "
            f"{old.origin}. The one of size {new.size} of {new.origin} does not follow it, and "
            "never takes its place: anyone who has the kept one could prove a fork. Recover the "
            "missing entries, or begin a new epoch. If the kept one is of another deployment, "
            "correct COUNTERSIGN_LOG_HEAD_DIR."
        )


def log_path(mode: Mode) -> str:
    """The part of a log's origin between its host and its epoch."""
    return f"/v1/log/{mode.value}/"


def epoch_of(mode: Mode, origin: str) -> int:
    """The epoch that an origin names; 0 if it is of no log of this mode."""
    host, _, last = origin.rpartition(log_path(mode))
    return int(last) if host and last.isdecimal() and len(last) <= _EPOCH_DIGITS_MAX else 0


class HeadFiles(Heads):
    """Two files a mode: `live.checkpoint`, replaced whole, and `live.accepted`, a size."""

    def __init__(self, directory: Path) -> None:
        super().__init__(str(directory))
        self._directory = directory
        self._accepted = {mode: directory / f"{mode.value}.accepted" for mode in Mode}

    def _get(self, name: str) -> bytes | None:
        path = self._directory / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HeadUnavailable(f"{path} cannot be read: {error.strerror}.") from error

    def _swap(self, name: str, content: bytes, over: bytes | None) -> bool:
        try:
            with self._locked():
                if self._get(name) != over:
                    return False
                replace_file(self._directory / name, content)
        except OSError as error:
            raise self._unavailable(error) from error
        return True

    def accept(self, mode: Mode, log_id: int, size: int) -> None:
        """Note this size.

        It does not wait for the disk: a note survives a kill of the process.
        """
        with suppress(OSError):
            # Opened once, not before each: another process may replace the directory.
            descriptor = os.open(self._accepted[mode], os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if (_size_in(os.read(descriptor, 64)) or (0, 0)) < (log_id, size):
                    os.pwrite(descriptor, f"{log_id:20} {size:20}\n".encode(), 0)
            finally:
                os.close(descriptor)

    def accepted(self, mode: Mode) -> tuple[int, int] | None:
        with suppress(OSError):
            return _size_in(self._accepted[mode].read_bytes())
        return None

    def forget_accepted(self, mode: Mode) -> None:
        self._accepted[mode].unlink(missing_ok=True)

    def check(self) -> None:
        try:
            with self._locked(), draft(self._directory / ".probe", b"\n"):
                pass
        except OSError as error:
            raise self._unavailable(error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Among processes that share the directory, one at a time."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._directory / ".lock", waits=True):
            yield

    def _unavailable(self, error: OSError) -> HeadUnavailable:
        return HeadUnavailable(
            f"The last published checkpoint cannot be written to {self._directory}: "
            f"{error.strerror}. Make the directory writable, or set COUNTERSIGN_LOG_HEAD_DIR to "
            "another one."
        )


def _size_in(noted: bytes) -> tuple[int, int] | None:
    with suppress(ValueError):
        log_id, size = noted.split()
        return int(log_id), int(size)
    return None


def _name(mode: Mode) -> str:
    return f"{mode.value}.checkpoint"
