"""The files of keys: made once, replaced whole, and changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from countersign.clock import Entropy
from countersign.db import schema
from countersign.errors import KeyRotationFailed
from countersign.private_file import draft, sync, write_key_file
from countersign.vault.key_encryption import (
    KEY_BYTES,
    KeyRing,
    key_id,
    key_source,
    key_text,
    parse_keys,
)

_VALUE: Final = "vault"


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
            with draft(self._path, "".join(map(key_text, keys))) as new:
                new.replace(self._path)
                sync(self._path.parent)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> KeyRotationFailed:
        return KeyRotationFailed(f"{self._path} cannot be replaced: {error.strerror}.")


def key_file(uri: str) -> Path | None:
    """The file that a source of keys names; None if it is no file."""
    scheme, _, rest = uri.partition(":")
    return Path(rest) if scheme == "file" else None


def make_first_key(source: str, url: URL, entropy: Entropy) -> None:
    """Make the key file of a new deployment; the database notes which key was the first.

    Raises:
        InvalidConfiguration: the source cannot be read, or the file cannot be written.
        WrongKeyEncryptionKey: the file is missing, and the database is not new.
    """
    path = key_file(source)
    if path is not None and not path.exists() and not schema.has_value(url, _VALUE):
        write_key_file(path, key_text(entropy(KEY_BYTES)))
    schema.stored_value(url, _VALUE, KeyRing(key_source(source), entropy).current_id)
