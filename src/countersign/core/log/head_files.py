"""The last published checkpoint of each mode, kept outside the database, and its last size.

A restored backup or a lost tail shows in the difference between them. The files are in the data
directory, or elsewhere, out of reach of a restore of the whole data directory. An object store is
the other place for them: `log.head_store`.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from countersign.base.errors import HeadUnavailable
from countersign.base.values import Mode
from countersign.core.log.model import PublishedHead
from countersign_evidence.errors import EvidenceError
from countersign_evidence.files import draft, replace_file
from countersign_evidence.note import checkpoint_of


class Heads(ABC):
    """The place of the last published checkpoints. HeadUnavailable: the place cannot be used."""

    @abstractmethod
    def read(self, mode: Mode) -> bytes | None:
        """The signed note; None if none was published from here yet."""

    @abstractmethod
    def advance(self, mode: Mode, note: bytes, over: bytes | None) -> bool:
        """Keep this checkpoint in the place of `over`; False if another one is stored meanwhile.

        The caller has compared `over` with the database. If another process has published since,
        the comparison has to be repeated. HeadUnavailable: the checkpoint must not leave.
        """

    @abstractmethod
    def replace(self, mode: Mode, note: bytes, over: PublishedHead | None) -> bool:
        """Keep this checkpoint, since the operator has decided so about `over` (see `published`).

        False if another one is stored meanwhile, which the operator did not decide about.
        """

    @abstractmethod
    def place(self) -> str | None:
        """The name of this place, equal for all servers that share it; None: it has none.

        Not remembered: the place may have changed.
        """

    @abstractmethod
    def named_place(self) -> str:
        """The same; a place without a name gets one."""

    @abstractmethod
    def check(self) -> None:
        """Find out whether a checkpoint could be kept."""

    def kept(self, mode: Mode) -> tuple[bytes | None, str | None]:
        """The head to compare the database with: its signed note, and the name of its place."""
        return self.read(mode), self.place()

    def published(self, mode: Mode) -> PublishedHead | None:
        """The last published checkpoint; None also if it is damaged.

        HeadUnavailable: it could not be read, and may be there.
        """
        try:
            note = self.read(mode)
        except HeadUnavailable as error:
            if isinstance(error.__cause__, EvidenceError):
                return None
            raise
        return None if note is None else PublishedHead(checkpoint_of(note), note)

    def accept(self, mode: Mode, log_id: int, size: int) -> None:  # noqa: B027 - see there
        """Store the number of entries of this mode's log, confirmed by a commit.

        Only for the embedded database, which may lose its end, and keeps its heads in files.
        """

    def accepted(self, mode: Mode) -> tuple[int, int] | None:  # noqa: ARG002 - as above
        """The id of the log of this mode, and how many entries it has had; None: not known."""
        return None


class HeadFiles(Heads):
    """Two files a mode: `live.checkpoint`, replaced whole, and `live.accepted`, a size."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, mode: Mode) -> Path:
        """The place of this mode's last published checkpoint."""
        return self._directory / f"{mode.value}.checkpoint"

    def read(self, mode: Mode) -> bytes | None:
        path = self.path(mode)
        try:
            note = path.read_bytes()
            checkpoint_of(note)
        except FileNotFoundError:
            return None
        except (OSError, EvidenceError) as error:
            raise HeadUnavailable(
                f"The file of the last published checkpoint, {path}, cannot be read: {error}."
            ) from error
        return note

    def advance(self, mode: Mode, note: bytes, over: bytes | None) -> bool:
        with self._locked():
            if self.read(mode) != over:
                return False
            self._put(self.path(mode), note)
            return True

    def replace(self, mode: Mode, note: bytes, over: PublishedHead | None) -> bool:
        with self._locked():
            if self.published(mode) != over:
                return False
            self._put(self.path(mode), note)
            self._accepted(mode).unlink(missing_ok=True)
            return True

    def place(self) -> str | None:
        try:
            return (self._directory / "place").read_text("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise HeadUnavailable(f"{self._directory}/place cannot be read: {error}.") from error

    def named_place(self) -> str:
        with self._locked():
            if self.place() is None:
                self._put(self._directory / "place", secrets.token_hex(8).encode())
        return self.place() or ""

    def accept(self, mode: Mode, log_id: int, size: int) -> None:
        """Note this size.

        It does not wait for the disk: a note survives a kill of the process.
        """
        accepted = self.accepted(mode)
        if accepted is not None and accepted >= (log_id, size):
            return  # another process has accepted more since
        with suppress(OSError):
            # Written over the old size, which `wb` of a descriptor does not truncate.
            descriptor = os.open(self._accepted(mode), os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(f"{log_id:20} {size:20}\n".encode())

    def accepted(self, mode: Mode) -> tuple[int, int] | None:
        try:
            log_id, size = self._accepted(mode).read_bytes().split()
            return int(log_id), int(size)
        except (OSError, ValueError):
            return None

    def _accepted(self, mode: Mode) -> Path:
        return self._directory / f"{mode.value}.accepted"

    def check(self) -> None:
        try:
            with self._locked(), draft(self._directory / ".probe", b"\n"):
                pass
        except OSError as error:
            raise self._unavailable(error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Among processes that share the directory, one at a time."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unavailable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _put(self, path: Path, content: bytes) -> None:
        try:
            replace_file(path, content)
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> HeadUnavailable:
        return HeadUnavailable(
            f"The last published checkpoint cannot be written to {self._directory}: "
            f"{error.strerror}. Make the directory writable, or set COUNTERSIGN_LOG_HEAD_DIR to "
            "another one."
        )
