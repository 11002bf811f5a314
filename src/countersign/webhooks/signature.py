"""Standard Webhooks 1.0.0: signing a message, and verifying one.

See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md .
What is signed is `id.timestamp.body`. A header may carry several signatures, which is how secrets
are rotated: `v1` is HMAC-SHA256 under a shared secret, `v1a` is Ed25519.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
TOLERANCE_SECONDS: Final = 300
SECRET_BYTES: Final = 32
SEED_BYTES: Final = 32
_SECRET_BYTES_RANGE: Final = range(24, 65)
_SECRET: Final = "whsec_"  # noqa: S105 - a mark, not a password
_PRIVATE: Final = "whsk_"
_PUBLIC: Final = "whpk_"
_TIMESTAMP: Final = re.compile(r"(?:0|[1-9][0-9]{0,11})\Z")
_ID: Final = re.compile(r"[!-\-/-~]{1,256}\Z")
"""Visible ASCII without the full stop, which separates it from the timestamp."""
_HEADER_LENGTH_MAX: Final = 4096
_SIGNATURES_MAX: Final = 32


class WebhookVerificationFailed(Exception):
    """The message cannot be trusted, whatever is wrong with it."""


class SharedSecret:
    """A shared secret, `whsec_…`: signs and verifies `v1`."""

    version: Final = "v1"

    def __init__(self, secret: bytes) -> None:
        """`secret` is 24 to 64 random bytes; ValueError otherwise."""
        if len(secret) not in _SECRET_BYTES_RANGE:
            msg = "a webhook secret has 24 to 64 bytes"
            raise ValueError(msg)
        self._secret = secret

    def __repr__(self) -> str:
        return "SharedSecret(…)"

    @classmethod
    def from_text(cls, text: str) -> SharedSecret:
        """Read `whsec_…`; ValueError where it is something else."""
        return cls(_decoded(text, _SECRET))

    @property
    def text(self) -> str:
        """`whsec_` and base64: what the receiver configures."""
        return _encoded(_SECRET, self._secret)

    def signature(self, message: bytes) -> bytes:
        """The 32 bytes for these signed bytes."""
        return hmac.digest(self._secret, message, sha256)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature is this secret's, compared in constant time."""
        return hmac.compare_digest(self.signature(message), signature)


class PublicKey:
    """A public key, `whpk_…`: verifies `v1a`."""

    version: Final = "v1a"

    def __init__(self, key: bytes) -> None:
        """`key` is the 32 bytes of an Ed25519 public key; ValueError otherwise."""
        self._bytes = key
        self._key = Ed25519PublicKey.from_public_bytes(key)

    @classmethod
    def from_text(cls, text: str) -> PublicKey:
        """Read `whpk_…`; ValueError where it is something else."""
        return cls(_decoded(text, _PUBLIC))

    @property
    def text(self) -> str:
        """`whpk_` and base64."""
        return _encoded(_PUBLIC, self._bytes)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature was made with the private key (RFC 8032)."""
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class PrivateKey:
    """A private key, `whsk_…`: signs `v1a`."""

    version: Final = "v1a"

    def __init__(self, seed: bytes) -> None:
        """`seed` is the 32 bytes of an Ed25519 private key (RFC 8032); ValueError otherwise."""
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def __repr__(self) -> str:
        return "PrivateKey(…)"

    @classmethod
    def from_text(cls, text: str) -> PrivateKey:
        """Read `whsk_…`; ValueError where it is something else."""
        return cls(_decoded(text, _PRIVATE))

    @property
    def text(self) -> str:
        """`whsk_` and base64."""
        return _encoded(_PRIVATE, self._seed)

    @property
    def public_key(self) -> PublicKey:
        """What a receiver verifies with."""
        return PublicKey(self._key.public_key().public_bytes_raw())

    def signature(self, message: bytes) -> bytes:
        """The 64 bytes for these signed bytes."""
        return self._key.sign(message)


SigningKey: TypeAlias = SharedSecret | PrivateKey
VerifyingKey: TypeAlias = SharedSecret | PublicKey


def sign(
    keys: Sequence[SigningKey], message_id: str, unix_seconds: int, body: bytes
) -> dict[str, str]:
    """The three headers of a message, with a signature by each of the keys.

    Raises:
        ValueError: the id is not visible ASCII without a full stop, or the time is negative.
    """
    timestamp = str(unix_seconds)
    if _ID.match(message_id) is None or _TIMESTAMP.match(timestamp) is None:
        msg = "not an id and a time that can be signed"
        raise ValueError(msg)
    message = _message(message_id, timestamp, body)
    signatures = (f"{k.version},{b64encode(k.signature(message)).decode()}" for k in keys)
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: " ".join(signatures),
    }


def verify(
    keys: Sequence[VerifyingKey],
    headers: Mapping[str, str],
    body: bytes,
    now_unix_seconds: float,
) -> str:
    """The id of an authentic message. The caller must ignore ids seen before.

    Args:
        keys: any of them may have signed it.
        headers: of the request, names in any letter case.
        body: its exact bytes, not a re-encoded copy.
        now_unix_seconds: the time by which the message is not older or newer than five minutes.

    Raises:
        WebhookVerificationFailed: it is not authentic, too old, or malformed in any way.
    """
    found = _needed(headers)
    message_id, timestamp = found[ID_HEADER], found[TIMESTAMP_HEADER]
    if _ID.match(message_id) is None or _TIMESTAMP.match(timestamp) is None:
        raise WebhookVerificationFailed("The id or the timestamp is malformed.")
    # Not `abs(...) > TOLERANCE`: with a clock that is not a number, that would accept everything.
    if not abs(now_unix_seconds - int(timestamp)) <= TOLERANCE_SECONDS:
        raise WebhookVerificationFailed("The message's timestamp is too old or in the future.")
    message = _message(message_id, timestamp, body)
    for version, signature in _signatures(found[SIGNATURE_HEADER]):
        if any(k.version == version and k.verifies(message, signature) for k in keys):
            return message_id
    raise WebhookVerificationFailed("No signature matches one of the keys.")


def _needed(headers: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        known = name.lower()
        if known in {ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER}:
            if known in found:
                raise WebhookVerificationFailed(f"The header {known} was sent twice.")
            if not value.isascii() or len(value) > _HEADER_LENGTH_MAX:
                raise WebhookVerificationFailed(f"The header {known} is malformed.")
            found[known] = value
    if len(found) != 3:
        raise WebhookVerificationFailed("A header is missing.")
    return found


def _signatures(header: str) -> list[tuple[str, bytes]]:
    """Version and bytes of each signature; malformed and unknown ones are ignored."""
    found: list[tuple[str, bytes]] = []
    for part in header.split(" ", _SIGNATURES_MAX)[:_SIGNATURES_MAX]:
        version, comma, text = part.partition(",")
        if comma and version in {"v1", "v1a"}:
            try:
                found.append((version, b64decode(text, validate=True)))
            except (Base64Error, ValueError):
                continue
    return found


def _message(message_id: str, timestamp: str, body: bytes) -> bytes:
    return b"".join((message_id.encode(), b".", timestamp.encode(), b".", body))


def _encoded(prefix: str, key: bytes) -> str:
    return prefix + b64encode(key).decode("ascii")


def _decoded(text: str, prefix: str) -> bytes:
    if not text.startswith(prefix):
        msg = f"expected a text that begins with {prefix}"
        raise ValueError(msg)
    return b64decode(text.removeprefix(prefix), validate=True)
