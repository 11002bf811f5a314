"""Salted disclosures (RFC 9901, SD-JWT): a personal field apart from the record that binds it.

The record holds only digests. Deleting the disclosure erases the field; the record, and every
proof about it, stays valid.
"""

import json
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign_evidence.errors import EvidenceError

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


def disclose(fields: Sequence[tuple[str, str, object]]) -> tuple[list[str], list[str]]:
    """The disclosures of fields, of one record or of many: salt, name and value of each.

    Encoded as base64url(JSON [salt, name, value]) without padding (RFC 9901 §4.2.1), and the
    digest of each, base64url(SHA-256(ASCII(encoded))) (§4.2.3). A salt is base64url of 16 random
    bytes, and used once. One step is done for all before the next: one field after the other takes
    half as long again.
    """
    encoded = b64url_each(_encode_lines(fields).split(b"\n")[:-1])
    return encoded, b64url_each([sha256(one.encode()).digest() for one in encoded])


def read_disclosure(encoded: str) -> tuple[str, str, Any]:
    """Salt, name and value of an encoded disclosure.

    Raises EvidenceError if it is not base64url of a JSON array [salt, name, value], or one that
    readers understand differently: with a member twice, or a number that is no plain integer.
    """
    msg = "a disclosure is base64url of a JSON array [salt, name, value]"
    try:
        data = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        found = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except EvidenceError:
        raise
    except (ValueError, RecursionError) as error:
        raise EvidenceError(msg) from error
    if b64url(data) != encoded or not isinstance(found, list) or len(found) != 3:
        raise EvidenceError(msg)
    salt, name, value = found
    if not isinstance(salt, str) or not isinstance(name, str):
        raise EvidenceError(msg)
    return salt, name, value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise EvidenceError("a disclosure has a duplicate member")
    return members


def _integer(text: str) -> int:
    return _no_number(text) if text == "-0" else int(text)


def _no_number(text: str) -> int:
    raise EvidenceError(f"{text[:40]} is not a number that a disclosure can contain")
