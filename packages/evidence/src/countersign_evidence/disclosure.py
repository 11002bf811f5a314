"""Salted disclosures (RFC 9901, SD-JWT): a personal field apart from the record that binds it.

The record holds only digests. Deleting the disclosure erases the field; the record, and every
proof about it, stays valid.
"""

from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

SALT_BYTES: Final = 16
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_encode_lines: Final = msgspec.json.Encoder().encode_lines


def b64url(data: bytes) -> str:
    """base64url without padding (RFC 4648 §5)."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE, b"=").decode("ascii")


def b64url_each(parts: Iterable[bytes]) -> list[str]:
    """The same of each of these."""
    lines = b"".join(map(b2a_base64, parts)).translate(_URL_SAFE, b"=")
    return lines.decode("ascii").split("\n")[:-1]


def disclose(fields: Sequence[tuple[str, str, object]]) -> tuple[list[bytes], list[str]]:
    """The disclosures of fields, of one record or of many: salt, name and value of each.

    As JSON [salt, name, value], which base64url without padding encodes (RFC 9901 §4.2.1), and the
    digest of each, base64url(SHA-256(ASCII(encoded))) (§4.2.3). A salt is base64url of 16 random
    bytes, and used once. Each step is done for all fields before the next: field by field takes
    half as long again.
    """
    lines = _encode_lines(fields).split(b"\n")[:-1]
    return lines, b64url_each([sha256(one.encode()).digest() for one in b64url_each(lines)])


read_disclosure: Final = by_the_rules(rules.read_disclosure)
"""Salt, name and value of an encoded disclosure.

EvidenceError if it is not base64url of a JSON array [salt, name, value], or one that readers
understand differently: with a member twice, or a number that is no plain integer.
"""
