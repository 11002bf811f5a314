"""How the C2SP formats write bytes, hashes and numbers: one way each, and no other is read."""

import binascii
import re
from base64 import b64decode, b64encode
from typing import Final

from countersign_evidence.errors import EvidenceError
from countersign_evidence.tree import HASH_BYTES, SIZE_MAX

_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{0,18})\Z", re.ASCII)


def strict_base64(text: str) -> bytes:
    """The bytes of standard base64 (RFC 4648 §4) written in the one canonical way."""
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvidenceError("not canonical base64") from error
    if b64encode(data).decode("ascii") != text:
        raise EvidenceError("not canonical base64")
    return data


def read_number(text: str) -> int:
    """A size or index: decimal digits without leading zeros, at most 2^63 - 1."""
    if _NUMBER.match(text) is None or int(text) > SIZE_MAX:
        raise EvidenceError("not a number from 0 to 2^63 - 1")
    return int(text)


def read_hash(text: str) -> bytes:
    """The 32 bytes of a hash in base64."""
    hash_ = strict_base64(text)
    if len(hash_) != HASH_BYTES:
        raise EvidenceError(f"a hash has {HASH_BYTES} bytes")
    return hash_


def read_text(data: bytes, what: str, encoding: str = "utf-8") -> str:
    """The text behind these bytes; `what` says in the error what has to be in this encoding."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise EvidenceError(what) from error
