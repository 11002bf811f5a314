"""The files of keys: made once, replaced whole, and changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from countersign.errors import InvalidConfiguration, KeyRotationFailed
from countersign.vault.key_encryption import key_id, key_source, key_text, parse_keys


class KeyFile:
    """A file of key-encryption keys; the first one wraps."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For the length of the block, no other process changes the file in this way.

        Raises:
            KeyRotationFailed: another one does, or the directory cannot be written.
        """
        # The key file itself is replaced, so the lock is a file next to it. It dies with its
        # process.
        lock = self._path.with_name(f"{self._path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                msg = f"Another command is replacing the key in {self._path}. Wait until it ends."
                raise KeyRotationFailed(msg) from None
            yield
        finally:
            os.close(descriptor)

    def read(self) -> Mapping[bytes, bytes]:
        """The keys by their ids, in order.

        Raises:
            InvalidConfiguration: the file cannot be read, or holds something else.
            WrongKeyEncryptionKey: it is missing.
        """
        return {key_id(key): key for key in parse_keys(key_source(f"file:{self._path}")())}

    def replace(self, keys: Sequence[bytes]) -> None:
        """Replace the content: at each moment the old one is there, or the new one, whole.

        Raises:
            KeyRotationFailed: it cannot be written.
        """
        try:
            with _draft(self._path, "".join(map(key_text, keys))) as draft:
                draft.replace(self._path)
                _sync(self._path.parent)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> KeyRotationFailed:
        return KeyRotationFailed(f"{self._path} cannot be replaced: {error.strerror}.")


def key_file(uri: str) -> Path | None:
    """The file that a source of keys names; None if it is no file."""
    scheme, _, rest = uri.partition(":")
    return Path(rest) if scheme == "file" else None


def loose_mode(path: Path) -> int:
    """The mode of a file that others than its owner may read or change; 0 of any other."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0  # whatever needs the file says so
    return mode if mode & 0o077 else 0


def write_key_file(path: Path, text: str) -> None:
    """Write a new key file under another name, then link it in place: whole, or not at all.

    Raises:
        InvalidConfiguration: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _draft(path, text) as draft:
            try:
                os.link(draft, path)
            except FileExistsError:
                return  # another `init` was first
            _sync(path.parent)
    except OSError as error:
        msg = f"The key file {path} cannot be written: {error.strerror}."
        raise InvalidConfiguration(msg) from error


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
