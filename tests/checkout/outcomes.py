"""The page's text for every outcome at every provider."""

from __future__ import annotations

from typing import Final

from countersign_simulators.hosted import Outcome

_CANCELED: Final = "reason_session_canceled"
_FAILED: Final = "reason_identity_failed"
_UNREADABLE: Final = "reason_document_unreadable"
_NO_SELFIE: Final = "reason_selfie_not_accepted"
OPEN: Final = "identity_unfinished"
"""The buyer can go on with the same check."""
VERIFIED: Final = frozenset({Outcome.VERIFIED, Outcome.NEVER})
_USUAL: Final = {
    Outcome.UNDERAGE: "reason_age_below_minimum",
    Outcome.WRONG_ZIP: "reason_zip_mismatch",
    Outcome.DOCUMENT_EXPIRED: "reason_document_expired",
    Outcome.PHOTO_BLURRED: _UNREADABLE,
    Outcome.CONSENT_DECLINED: _CANCELED,
    Outcome.FAILED: _FAILED,
    Outcome.CANCELLED: _CANCELED,
    Outcome.EXPIRED: "reason_session_expired",
}
OTHERWISE: Final = {
    ("stripe", Outcome.PHOTO_BLURRED): "reason_document_not_accepted",
    ("stripe", Outcome.CONSENT_DECLINED): "reason_consent_declined",
    ("stripe", Outcome.FAILED): _NO_SELFIE,
    # Stripe ends nothing: a further address of the same session works.
    ("stripe", Outcome.EXPIRED): OPEN,
    ("persona", Outcome.CONSENT_DECLINED): _FAILED,
    ("persona", Outcome.FAILED): _UNREADABLE,
    # For Persona the inquiry is pending, and its buyer may come back.
    ("persona", Outcome.CANCELLED): OPEN,
    ("plaid", Outcome.PHOTO_BLURRED): "reason_document_not_accepted",
    ("plaid", Outcome.CONSENT_DECLINED): "reason_consent_declined",
    ("plaid", Outcome.FAILED): _NO_SELFIE,
    ("didit", Outcome.FAILED): "reason_document_not_accepted",
    ("onfido", Outcome.EXPIRED): _CANCELED,
}
REFUSED: Final = tuple(_USUAL)


def said(provider: str, outcome: Outcome) -> str:
    """The name of the text that the page shows."""
    return OTHERWISE.get((provider, outcome), _USUAL[outcome])
