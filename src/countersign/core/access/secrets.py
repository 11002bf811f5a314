"""The deployment's secret key, and the keys derived from it.

One file of 32 random bytes (base64) is the root. Each use has its own key by HKDF-SHA-256 (RFC
5869), so that none reveals anything about another.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import URL

from countersign.base.db import schema
from countersign.base.db.tables import Field
from countersign.base.errors import WrongSecretKey
from countersign.base.files import key_text, write_key_file
from countersign.base.values import Entropy
from countersign_evidence.errors import refused_as

SECRET_BYTES: Final = 32
NONCE_BYTES: Final = 12
_FORMAT: Final = b"\x01"
INDEX_BYTES: Final = 16


class HmacSha256:
    """HMAC-SHA-256 (RFC 2104) under one key, with the key's two blocks hashed beforehand.

    `hmac.digest` hashes them each time, and releases the interpreter while it does: under load
    the wait to get it back takes longer than the whole hash.
    """

    _BLOCK: Final = 64

    def __init__(self, key: bytes) -> None:
        if len(key) > self._BLOCK:
            raise ValueError(f"a key of at most {self._BLOCK} bytes")
        block = key.ljust(self._BLOCK, b"\x00")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def __call__(self, message: bytes) -> bytes:
        """The 32 bytes of the code for this message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


class DeploymentSecret:
    """Keyed hashes, blind indexes and encryption under keys derived from one secret."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"the secret has {SECRET_BYTES} bytes")
        self._secret = secret
        self._key_pepper = HmacSha256(self._derive("api key pepper"))
        self._index_key = HmacSha256(self._derive("blind index"))
        self._slot_key = HmacSha256(self._derive("idempotency slot"))
        self._document_key = HmacSha256(self._derive("document fingerprint"))
        self._page_key = HmacSha256(self._derive("hosted page"))
        self._answer_keys: dict[int, AESGCM] = {}

    def __repr__(self) -> str:
        return "DeploymentSecret(…)"

    @classmethod
    def from_text(cls, text: str) -> "DeploymentSecret":
        """Read the content of a secret key file.

        Raises WrongSecretKey if it is not the base64 of 32 bytes.
        """
        try:
            return cls(b64decode(text.strip(), validate=True))
        except (Base64Error, ValueError) as error:
            raise WrongSecretKey("The secret key file must contain 32 bytes in base64.") from error

    def check_value(self) -> bytes:
        """A value in the database that identifies this secret."""
        return self._derive("check value")

    def event_id_key(self) -> bytes:
        """The key that masks the identifiers of events."""
        return self._derive("event id")

    def key_digest(self, token: str) -> bytes:
        """The keyed hash that stands for an API key in the database."""
        return self._key_pepper(token.encode())

    def blind_index(self, account_id: str, field: Field, value: str, more: str = "") -> bytes:
        """A keyed hash of 16 bytes, to find rows with this value; useless without the key.

        `more` separates several indexes of one field.
        """
        message = b"\x00".join((account_id.encode(), (field + more).encode(), value.encode()))
        return self._index_key(message)[:INDEX_BYTES]

    def document_fingerprint(self, issuer: str, type_: str, number: str) -> bytes:
        """The keyed hash of an identity document, 32 bytes: the same document, the same buyer."""
        parts = [part.encode() for part in (issuer, type_, number)]
        return self._document_key(b"".join(len(p).to_bytes(4, "big") + p for p in parts))

    def page_code(self, use: str, session_id: str, token_digest: bytes) -> bytes:
        """32 bytes that only a visitor with the token of a checkout session is given."""
        return self._page_key(b"\x00".join((use.encode(), session_id.encode(), token_digest)))

    def idempotency_slot(self, *parts: str) -> bytes:
        """The keyed hash of an idempotency key, with the account and request that it is for."""
        message = b""
        for part in map(str.encode, parts):
            message += len(part).to_bytes(4, "big") + part
        return self._slot_key(message)

    def fingerprint(self, body: bytes) -> bytes:
        """The keyed hash of a request body; a plain one could be guessed for short initials."""
        return self._slot_key(sha256(body).digest())

    def seal_answer(self, answer: bytes, slot: bytes, day: int, nonce: bytes) -> bytes:
        """Encrypt a kept response (AES-256-GCM); `nonce` is 12 random bytes.

        The key is that of the day, so that random nonces stay far below GCM's limit of 2^32.
        """
        header = _FORMAT + day.to_bytes(4, "big")
        key = self._answer_keys.get(day) or self._answer_key(day)
        return header + nonce + key.encrypt(nonce, answer, header + slot)

    def open_answer(self, sealed: bytes, slot: bytes) -> bytes:
        """Decrypt a kept response.

        Raises WrongSecretKey if it was not encrypted under this secret, for this slot.
        """
        header, nonce, text = sealed[:5], sealed[5 : 5 + NONCE_BYTES], sealed[5 + NONCE_BYTES :]
        key = self._answer_key(int.from_bytes(header[1:], "big"))
        try:
            return key.decrypt(nonce, text, header + slot)
        except (InvalidTag, ValueError) as error:
            raise WrongSecretKey(
                "A stored response cannot be decrypted with this secret key."
            ) from error

    def _answer_key(self, day: int) -> AESGCM:
        key = self._answer_keys.get(day)
        if key is None:
            key = AESGCM(self._derive(f"idempotency answer {day}"))
            self._answer_keys = {d: k for d, k in self._answer_keys.items() if d >= day - 2}
            self._answer_keys[day] = key
        return key

    def _derive(self, purpose: str) -> bytes:
        info = f"countersign/v1/{purpose}".encode()
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self._secret)


_VALUE: Final = "secret_check"


def make_secret(path: Path, url: URL, entropy: Entropy) -> None:
    """Make the secret key file of a new deployment, and check it."""
    if not path.exists() and not schema.has_value(url, _VALUE):
        write_key_file(path, key_text(entropy(SECRET_BYTES)))
    open_secret(path, url)


def open_secret(path: Path, url: URL) -> DeploymentSecret:
    """The secret in this file; it must match the database.

    Raises:
        WrongSecretKey: the file is missing or not readable, or the database has another secret.
    """
    secret = read_secret(path)
    kept = schema.stored_value(url, _VALUE, secret.check_value())
    if not compare_digest(secret.check_value(), kept):
        raise WrongSecretKey
    return secret


def read_secret(path: Path) -> DeploymentSecret:
    """The secret in this file; WrongSecretKey if it is missing or cannot be read."""
    what = f"The secret key file {path} cannot be read"
    with refused_as(WrongSecretKey, what, OSError, UnicodeDecodeError), suppress(FileNotFoundError):
        return DeploymentSecret.from_text(path.read_text(encoding="ascii"))
    raise WrongSecretKey(
        f"The secret key file {path} is missing. Restore it, or set "
        "COUNTERSIGN_SECRET_KEY_FILE to its path: without it no API key works."
    )
