"""Values that every room knows: identifiers, modes, reasons, clocks and instants."""

import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from countersign_evidence.instant import (
    EPOCH,
    MILLISECOND,
    from_ns,
    parse_rfc3339,
    rfc3339,
    rfc3339_ms,
)

# Times of evidence, used from here like those below.
__all__ = ["from_ns", "parse_rfc3339", "rfc3339", "rfc3339_ms"]

# Identifiers: a prefix, an underscore, and 26 characters of base32.
#
# The 128 bits behind them are a UUIDv7 (RFC 9562 §5.7), so that identifiers sort by the time they
# were made, with a sub-millisecond fraction in `rand_a` (§6.2, method 3). The alphabet is
# Crockford's, in lower case: no i, l, o or u, and ASCII order is numeric order.

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
OVERRIDE: Final = "ovr"
FACT: Final = "rec"
"""A record of something that has no identifier of its own."""

OPAQUE_LENGTH_MAX: Final = 255
"""In characters, for identifiers that vendors choose, such as that of a session or an order."""


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


def digits(text: str, most: int) -> int | None:
    """The number that at most so many ASCII digits write; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most else None


def is_id(prefix: str, text: str) -> bool:
    """Whether the text has the form of an identifier with this prefix."""
    return text.startswith(prefix + "_") and _BODY.match(text, len(prefix) + 1) is not None


def id_pattern(prefix: str) -> str:
    """The form of an identifier with this prefix, as a JSON Schema (ECMA 262) pattern."""
    return f"^{prefix}_{_BODY_PATTERN}$"


class Mode(StrEnum):
    """Test or live: the API key decides."""

    TEST = "test"
    LIVE = "live"


MODES: Final = {mode.value: mode for mode in Mode}
"""By their words: to look one up is faster than `Mode(word)`."""


class Reason(StrEnum):
    """Why a verification does not count; docs/verification.md says what to do about each reason."""

    # The provider's decision.
    IDENTITY_FAILED = "identity_failed"
    IDENTITY_NOT_PROVED = "identity_not_proved"
    """The provider approves, but by nothing that proves the identity."""
    IDENTITY_REQUIRES_INPUT = "identity_requires_input"
    SESSION_CANCELED = "session_canceled"
    SESSION_EXPIRED = "session_expired"
    SESSION_REDACTED = "session_redacted"
    SESSION_UNDECIDED = "session_undecided"
    """It was still undecided when polling ended."""
    # Why the provider decided so, where it says; always after one of the above.
    DOCUMENT_UNREADABLE = "document_unreadable"
    DOCUMENT_UNSUPPORTED = "document_unsupported"
    DOCUMENT_NOT_ACCEPTED = "document_not_accepted"
    SELFIE_MISMATCH = "selfie_mismatch"
    SELFIE_NOT_ACCEPTED = "selfie_not_accepted"
    DETAILS_MISMATCH = "details_mismatch"
    CONTACT_UNVERIFIED = "contact_unverified"
    CONSENT_DECLINED = "consent_declined"
    DEVICE_UNSUPPORTED = "device_unsupported"
    # Why nothing can be decided: something that the vendor has to put right.
    VERIFICATION_MISCONFIGURED = "verification_misconfigured"
    VERIFICATION_NOT_CONFIGURED = "verification_not_configured"
    PROVIDER_SESSION_NOT_FOUND = "provider_session_not_found"
    # Whose session it is.
    SESSION_NOT_BOUND = "session_not_bound"
    TEST_SESSION = "test_session"
    VERIFICATION_WITHDRAWN = "verification_withdrawn"
    """What had verified the buyer no longer counts: the provider has withdrawn its approval of that
    session, or a session shows a younger person."""
    # Our decision.
    REVOKED = "revoked"
    AGE_UNKNOWN = "age_unknown"
    AGE_BELOW_MINIMUM = "age_below_minimum"
    ZIP_UNKNOWN = "zip_unknown"
    ZIP_MISMATCH = "zip_mismatch"
    DOCUMENT_EXPIRED = "document_expired"
    DOCUMENT_EXPIRY_UNKNOWN = "document_expiry_unknown"
    # The proof is weaker than the asking account requires, or counts only for other accounts.
    AGE_NOT_PROVED = "age_not_proved"
    ADDRESS_NOT_PROVED = "address_not_proved"
    SIMULATED_ELSEWHERE = "simulated_elsewhere"


Entropy: TypeAlias = Callable[[int], bytes]
"""Returns that many random bytes, as `os.urandom` does."""


class Clock(Protocol):
    """The time of the service."""

    def time_ns(self) -> int:
        """Unix time in nanoseconds."""

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how old something is."""


def from_ms(unix_ms: int) -> datetime:
    """An instant from Unix time in milliseconds."""
    return EPOCH + unix_ms * MILLISECOND


def to_ms(instant: datetime) -> int:
    """Unix time in milliseconds.

    Raises TypeError if the datetime has no time zone.
    """
    return (instant - EPOCH) // MILLISECOND


def to_the_second(instant: datetime | None) -> datetime | None:
    """The time without its fraction, which is how the API shows it; None stays None."""
    return None if instant is None else instant.replace(microsecond=0)
