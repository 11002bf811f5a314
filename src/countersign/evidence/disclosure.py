"""Salted disclosures (RFC 9901, SD-JWT): a personal field apart from the record that binds it.

The record holds only digests. Deleting the disclosure erases the field; the record, and every
proof about it, stays valid.
"""

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from countersign.evidence.errors import EvidenceError

SALT_BYTES: Final = 16
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(tuple[str, str, Any]).decode


class Disclosure(NamedTuple):
    """One disclosed field."""

    encoded: str
    """base64url(JSON [salt, name, value]), without padding (RFC 9901 §4.2.1)."""
    digest: str
    """base64url(SHA-256(ASCII(encoded))), without padding (RFC 9901 §4.2.3)."""


def b64url(data: bytes) -> str:
    """base64url without padding (RFC 4648 §5)."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def disclose(salt: bytes, name: str, value: object) -> Disclosure:
    """Make the disclosure of one field. `salt` is 16 random bytes, used once."""
    text = b2a_base64(_encode((b64url(salt), name, value)), newline=False)
    encoded = text.translate(_URL_SAFE).rstrip(b"=")
    return Disclosure(encoded.decode("ascii"), b64url(sha256(encoded).digest()))


def read_disclosure(encoded: str) -> tuple[str, str, Any]:
    """Salt, name and value of an encoded disclosure.

    Raises:
        EvidenceError: it is not base64url of a JSON array [salt, name, value].
    """
    msg = "a disclosure is base64url of a JSON array [salt, name, value]"
    try:
        data = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        found = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise EvidenceError(msg) from error
    if b64url(data) != encoded:
        raise EvidenceError(msg)
    return found
