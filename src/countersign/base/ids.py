"""Identifiers: a prefix, an underscore, and 26 characters of base32.

The 128 bits behind them are a UUIDv7 (RFC 9562 §5.7), so that identifiers sort by the time they
were made, with a sub-millisecond fraction in `rand_a` (§6.2, method 3). The alphabet is
Crockford's, in lower case: no i, l, o or u, and ASCII order is numeric order.
"""

import re
from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH: Final = 26
_PAIRS: Final = tuple(a + b for a in ALPHABET for b in ALPHABET)
_TRIPLES: Final = tuple(a + b for a in _PAIRS for b in ALPHABET)
_MAX: Final = (1 << 128) - 1
_LOW_60_BITS: Final = (1 << 60) - 1
_MAX_MS: Final = (1 << 48) - 1
_VALUE: Final = {character: value for value, character in enumerate(ALPHABET)}
_BODY_PATTERN: Final = "[0-7][0-9a-hjkmnp-tv-z]{25}"
_BODY: Final = re.compile(_BODY_PATTERN + r"\Z")

ACCOUNT: Final = "acct"
ACKNOWLEDGMENT: Final = "ack"
BUYER: Final = "cbid"
SANDBOX_BUYER: Final = "cbid_test"
VERIFICATION: Final = "ver"
EVENT: Final = "evt"
WEBHOOK_ENDPOINT: Final = "whe"
WEBHOOK_SECRET: Final = "whs"  # noqa: S105 - the kind of an identifier
CLEARANCE: Final = "clr"
CHECKOUT_SESSION: Final = "chk"
EARLIER_SESSION: Final = "vfs"
"""Prefix of checkout sessions that earlier versions made for the identity alone."""
COPY_MAIL: Final = "cml"
PERSON: Final = "per"
FULFILMENT: Final = "ful"
FACT: Final = "rec"
"""A record of something that has no identifier of its own."""

OPAQUE_LENGTH_MAX: Final = 255
"""In characters: an identifier that a vendor chose, such as that of a session or an order."""


def base32(value: int) -> str:
    """26 characters for an integer of at most 128 bits; order is kept."""
    if not 0 <= value <= _MAX:
        raise ValueError(f"not an unsigned 128-bit integer: {value}")
    high, low = value >> 60, value & _LOW_60_BITS
    of = _TRIPLES  # 15 bits at a time, and the first 8 bits as two characters
    return (
        f"{_PAIRS[high >> 60]}{of[(high >> 45) & 32767]}{of[(high >> 30) & 32767]}"
        f"{of[(high >> 15) & 32767]}{of[high & 32767]}{of[low >> 45]}{of[(low >> 30) & 32767]}"
        f"{of[(low >> 15) & 32767]}{of[low & 32767]}"
    )


def base32_value(text: str) -> int:
    """The integer behind characters that `base32` gave."""
    value = 0
    for character in text:
        value = (value << 5) | _VALUE[character]
    return value


def uuid7(time_ns: int, entropy: bytes) -> int:
    """A UUIDv7 as an integer, from Unix time in nanoseconds and 8 random bytes."""
    ms, rest = divmod(time_ns, 1_000_000)
    fraction = (rest << 12) // 1_000_000
    random = int.from_bytes(entropy, "big") & ((1 << 62) - 1)
    return (ms << 80) | (7 << 76) | (fraction << 64) | (2 << 62) | random


def timed_id(prefix: str, time_ns: int, entropy: bytes) -> str:
    """A new time-ordered identifier, from Unix time in nanoseconds and 8 random bytes."""
    return f"{prefix}_{base32(uuid7(time_ns, entropy))}"


def earliest_id(prefix: str, unix_ms: int) -> str:
    """The smallest identifier that could have been made at or after this millisecond."""
    return f"{prefix}_{base32(min(max(unix_ms, 0), _MAX_MS) << 80)}"


def made_at_ms(identifier: str) -> int:
    """The Unix millisecond inside a time-ordered identifier."""
    return base32_value(identifier[-LENGTH:]) >> 80


def is_id(prefix: str, text: str) -> bool:
    """Whether the text has the form of an identifier with this prefix."""
    return text.startswith(prefix + "_") and _BODY.match(text, len(prefix) + 1) is not None


def id_pattern(prefix: str) -> str:
    """The form of an identifier with this prefix, as a JSON Schema (ECMA 262) pattern."""
    return f"^{prefix}_{_BODY_PATTERN}$"
