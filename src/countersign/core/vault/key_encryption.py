"""Key-encryption keys from a file, an environment variable or a command.

A source gives one key per line, the base64 of 32 bytes. The first wraps; all of them unwrap, so a
key is changed by putting the new one before it, wrapping again, and removing the old one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.base.errors import (
    InvalidConfiguration,
    OperatorError,
    StorageUnavailable,
    WrongKeyEncryptionKey,
)
from countersign.base.values import Entropy
from countersign.core.access.secrets import NONCE_BYTES
from countersign_evidence.errors import refused_as

KEY_BYTES: Final = 32
ID_BYTES: Final = 4
_FORMAT: Final = b"\x01"
_COMMAND_SECONDS_MAX: Final = 10
_RETRY_SECONDS: Final = 5

_log: Final = structlog.get_logger("countersign.vault")


class KeyRing:
    """The keys of one source."""

    def __init__(self, source: Callable[[], str], entropy: Entropy) -> None:
        """Read the keys; they are read again when an unknown one is needed."""
        self._source = source
        self._entropy = entropy
        self._keys: dict[bytes, bytes] = {}
        self._read()

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(id_.hex() for id_ in self._keys)})"

    @property
    def ids(self) -> Sequence[bytes]:
        """The ids of the keys; the first one wraps."""
        return tuple(self._keys)

    def read_again(self) -> None:
        """Read the keys again; StorageUnavailable if they cannot be, and the log says why."""
        try:
            self._read()
        except OperatorError as error:
            _log.error("key_encryption_unavailable", reason=error.message)
            raise StorageUnavailable(
                "The key-encryption key is not available at the moment.", retry_after=_RETRY_SECONDS
            ) from error

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """0x01 ‖ id ‖ nonce ‖ AES-256-GCM of the key, bound to the context.

        The source is read again: a key that has been rotated away must not wrap anything more.
        """
        self.read_again()
        id_, own = next(iter(self._keys.items()))
        nonce = self._entropy(NONCE_BYTES)
        return _FORMAT + id_ + nonce + AESGCM(own).encrypt(nonce, key, context)

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Decrypt the result of `wrap`; WrongKeyEncryptionKey if none of the keys opens it."""
        id_ = wrapped[1 : 1 + ID_BYTES]
        if id_ not in self._keys:
            self.read_again()
        key = self._keys.get(id_)
        if wrapped[:1] != _FORMAT or key is None:
            raise WrongKeyEncryptionKey(
                f"The key-encryption key {id_.hex()} is missing; the available keys are: "
                f"{', '.join(i.hex() for i in self._keys)}. Restore it as an additional line "
                "in the source that COUNTERSIGN_KEY_ENCRYPTION_KEY names."
            )
        rest = wrapped[1 + ID_BYTES :]
        nonce, sealed = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, sealed, context)
        except (InvalidTag, ValueError) as error:
            raise WrongKeyEncryptionKey(
                "A data key cannot be decrypted: it was changed, or belongs to another place."
            ) from error

    def _read(self) -> None:
        # In one assignment, because several threads may do this.
        self._keys = {key_id(key): key for key in parse_keys(self._source())}


def key_id(key: bytes) -> bytes:
    """The four bytes that name a key-encryption key."""
    return sha256(b"countersign/v1/key-encryption-key\x00" + key).digest()[:ID_BYTES]


def parse_keys(text: str) -> list[bytes]:
    """The keys of a source: at least one, each a line."""
    keys = []
    for number, line in enumerate(text.split(), 1):
        try:
            key = b64decode(line, validate=True)
        except (Base64Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise InvalidConfiguration(
                f"Line {number} of the key-encryption keys must be 32 bytes in base64."
            )
        keys.append(key)
    if not keys:
        raise InvalidConfiguration(
            "The source that COUNTERSIGN_KEY_ENCRYPTION_KEY names contains no key-encryption key."
        )
    return keys


def key_source(uri: str) -> Callable[[], str]:
    """The reader of the keys: `file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENT…`."""
    scheme, _, rest = uri.partition(":")
    if scheme == "file":
        return lambda: _from_file(Path(rest))
    if scheme == "env":
        return lambda: os.environ.get(rest, "")
    return lambda: _from_command(shlex.split(rest))


def _from_file(path: Path) -> str:
    what = f"The key-encryption key file {path} cannot be read"
    caught = OSError, UnicodeDecodeError
    with refused_as(InvalidConfiguration, what, *caught), suppress(FileNotFoundError):
        return path.read_text(encoding="ascii")
    raise WrongKeyEncryptionKey(
        f"The key-encryption key file {path} is missing. Restore it, or set "
        "COUNTERSIGN_KEY_ENCRYPTION_KEY to its place: without it no personal data can be read."
    )


def _from_command(command: Sequence[str]) -> str:
    try:
        # The operator sees its standard error; its output is never shown.
        done = subprocess.run(  # noqa: S603 - the operator's own command, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_COMMAND_SECONDS_MAX,
            check=True,
        )
        return done.stdout.decode("ascii")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(
            f"The command for the key-encryption key, {command[:1]}, failed: "
            f"{type(error).__name__}."
        ) from None
