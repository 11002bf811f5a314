"""Standard Webhooks 1.0.0: signing a message.

See https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md .
The signature covers `id.timestamp.body`. A header may carry several signatures, which is how
secrets are rotated: `v1` is HMAC-SHA256 under a shared secret, `v1a` is Ed25519.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
SECRET_BYTES: Final = 32
SEED_BYTES: Final = 32
_SECRET_BYTES_RANGE: Final = range(24, 65)
_SECRET: Final = "whsec_"  # noqa: S105 - a mark, not a password
_PUBLIC: Final = "whpk_"
_TIMESTAMP: Final = re.compile(r"(?:0|[1-9][0-9]{0,11})\Z")
_ID: Final = re.compile(r"[!-\-/-~]{1,256}\Z")
"""Visible ASCII without the full stop, which separates it from the timestamp."""


class SharedSecret:
    """A shared secret, `whsec_…`: signs `v1`."""

    version: Final = "v1"

    def __init__(self, secret: bytes) -> None:
        """`secret` is 24 to 64 random bytes; ValueError otherwise."""
        if len(secret) not in _SECRET_BYTES_RANGE:
            raise ValueError("a webhook secret has 24 to 64 bytes")
        self._secret = secret

    def __repr__(self) -> str:
        return "SharedSecret(…)"

    @classmethod
    def from_text(cls, text: str) -> SharedSecret:
        """Read `whsec_…`; ValueError where it is something else."""
        if not text.startswith(_SECRET):
            raise ValueError(f"expected a text that begins with {_SECRET}")
        return cls(b64decode(text.removeprefix(_SECRET), validate=True))

    @property
    def text(self) -> str:
        """`whsec_` and base64: what the receiver configures."""
        return _SECRET + b64encode(self._secret).decode("ascii")

    def signature(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, sha256)


class PrivateKey:
    """A private key: signs `v1a`."""

    version: Final = "v1a"

    def __init__(self, seed: bytes) -> None:
        """`seed` is the 32 bytes of an Ed25519 private key (RFC 8032); ValueError otherwise."""
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def __repr__(self) -> str:
        return "PrivateKey(…)"

    @property
    def public_key(self) -> str:
        """`whpk_` and base64: what the receiver configures."""
        return _PUBLIC + b64encode(self._key.public_key().public_bytes_raw()).decode("ascii")

    def signature(self, message: bytes) -> bytes:
        return self._key.sign(message)


SigningKey: TypeAlias = SharedSecret | PrivateKey


def sign(
    keys: Sequence[SigningKey], message_id: str, unix_seconds: int, body: bytes
) -> dict[str, str]:
    """The three headers of a message, with a signature by each of the keys.

    Raises:
        ValueError: the id is not visible ASCII without a full stop, or the time is negative.
    """
    timestamp = str(unix_seconds)
    if _ID.match(message_id) is None or _TIMESTAMP.match(timestamp) is None:
        raise ValueError("not an id and a time that can be signed")
    message = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (f"{k.version},{b64encode(k.signature(message)).decode()}" for k in keys)
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: " ".join(signatures),
    }
