"""Why a buyer is not verified, or not for whoever asks: stable codes, never a value."""

from enum import StrEnum


class Reason(StrEnum):
    """What to do about each is told in docs/verification.md."""

    # The provider's decision.
    IDENTITY_FAILED = "identity_failed"
    IDENTITY_REQUIRES_INPUT = "identity_requires_input"
    SESSION_CANCELED = "session_canceled"
    SESSION_EXPIRED = "session_expired"
    SESSION_REDACTED = "session_redacted"
    SESSION_UNDECIDED = "session_undecided"
    """It stayed undecided for as long as we ask about it."""
    # Whose session it is.
    SESSION_NOT_BOUND = "session_not_bound"
    TEST_SESSION = "test_session"
    # Our decision.
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
