"""Salted disclosures (RFC 9901, SD-JWT): a personal field apart from the record that binds it.

The record holds only digests. Deleting the disclosure erases the field; the record, and every
proof about it, stays valid.
"""

import json
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.evidence.errors import EvidenceError

SALT_BYTES: Final = 16
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_encode_lines: Final = msgspec.json.Encoder().encode_lines


class Disclosure(msgspec.Struct, frozen=True, gc=False):
    """One disclosed field."""

    encoded: str
    """base64url(JSON [salt, name, value]), without padding (RFC 9901 §4.2.1)."""
    digest: str
    """base64url(SHA-256(ASCII(encoded))), without padding (RFC 9901 §4.2.3)."""


def b64url(data: bytes) -> str:
    """base64url without padding (RFC 4648 §5)."""
    return b2a_base64(data, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def b64url_each(parts: Sequence[bytes]) -> list[str]:
    """The same of each of these, which are of one length."""
    if not parts:
        return []
    length = len(parts[0])
    # Zero bytes between them bring each to a multiple of three: what they add is cut off again.
    fill = bytes(-length % 3)
    text = b2a_base64(fill.join(parts) + fill, newline=False).translate(_URL_SAFE).decode("ascii")
    width, own = (length + 2) // 3 * 4, (length * 8 + 5) // 6
    return [text[start : start + own] for start in range(0, len(text), width)]


def disclose(salts: Sequence[bytes], fields: Sequence[tuple[str, object]]) -> list[Disclosure]:
    """Make the disclosures of fields, of one record or of many: name and value of each.

    `salts` are as many times 16 random bytes, each used once. One step is done for all before the
    next: one field after the other takes half as long again.
    """
    if not fields:
        return []
    lines = _encode_lines(
        [
            (salt, name, value)
            for salt, (name, value) in zip(b64url_each(salts), fields, strict=True)
        ]
    ).split(b"\n")
    lines.pop()
    encoded = b".".join([b2a_base64(line, newline=False).rstrip(b"=") for line in lines]).translate(
        _URL_SAFE
    )
    digests = b64url_each([sha256(one).digest() for one in encoded.split(b".")])
    return list(map(Disclosure, encoded.decode("ascii").split("."), digests))


def read_disclosure(encoded: str) -> tuple[str, str, Any]:
    """Salt, name and value of an encoded disclosure.

    Raises:
        EvidenceError: it is not base64url of a JSON array [salt, name, value], or one that readers
            understand differently: with a member twice, or a number that is no plain integer.
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
        msg = "a disclosure has a duplicate member"
        raise EvidenceError(msg)
    return members


def _integer(text: str) -> int:
    return _no_number(text) if text == "-0" else int(text)


def _no_number(text: str) -> int:
    msg = f"{text[:40]} is not a number that a disclosure can contain"
    raise EvidenceError(msg)
