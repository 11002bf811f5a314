"""Values that every room knows: modes, reasons, clocks and instants."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from countersign_evidence.instant import from_ns, parse_rfc3339, rfc3339, rfc3339_ms

__all__ = [
    "MODES",
    "Clock",
    "Entropy",
    "Mode",
    "Reason",
    "from_ms",
    "from_ns",
    "parse_rfc3339",
    "rfc3339",
    "rfc3339_ms",
    "to_ms",
    "to_the_second",
]


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
    """The provider has taken back what it said of a session that had verified the buyer."""
    # Our decision.
    REVOKED = "revoked"
    AGE_UNKNOWN = "age_unknown"
    AGE_BELOW_MINIMUM = "age_below_minimum"
    ZIP_UNKNOWN = "zip_unknown"
    ZIP_MISMATCH = "zip_mismatch"
    DOCUMENT_EXPIRED = "document_expired"
    DOCUMENT_EXPIRY_UNKNOWN = "document_expiry_unknown"
    # What was proved is less than the asking account wants, or counts only elsewhere.
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


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def from_ms(unix_ms: int) -> datetime:
    """An instant from Unix time in milliseconds."""
    return _EPOCH + unix_ms * _MILLISECOND


def to_ms(instant: datetime) -> int:
    """Unix time in milliseconds.

    Raises TypeError if the datetime has no time zone.
    """
    return (instant - _EPOCH) // _MILLISECOND


def to_the_second(instant: datetime | None) -> datetime | None:
    """The time without its fraction, which is how the API shows it; None stays None."""
    return None if instant is None else instant.replace(microsecond=0)
