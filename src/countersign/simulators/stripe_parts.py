"""The parts that the simulated Stripe Identity plays: one VerificationSession each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from countersign.simulators.licence_holders import Person, born_years_ago, years_from_now
from countersign.simulators.stripe_objects import (
    MARZIPAN,
    OSWIN,
    ZAPHIRA,
    outputs,
)
from countersign.simulators.stripe_sketch import Part, Sketch, part_of, session_id

ERROR_CODES: Final = (
    "abandoned",
    "consent_declined",
    "country_not_supported",
    "device_not_supported",
    "document_expired",
    "document_type_not_supported",
    "document_unverified_other",
    "email_unverified_other",
    "email_verification_declined",
    "id_number_insufficient_document_data",
    "id_number_mismatch",
    "id_number_unverified_other",
    "phone_unverified_other",
    "phone_verification_declined",
    "selfie_document_missing_photo",
    "selfie_face_mismatch",
    "selfie_manipulated",
    "selfie_unverified_other",
    "under_supported_age",
)


def all_parts(now: float) -> Sequence[Part]:
    """Every part, as of this Unix time."""
    return [part_of(sketch, now) for sketch in (*_people(now), *_states(), *_manners())]


def _people(now: float) -> list[Sketch]:
    """Sessions that Stripe says are verified."""
    adult = replace(ZAPHIRA, first="Quintessa", last="Dapplegrimm", number="Q1800000")
    passport = replace(OSWIN, kind="passport", number="P77120031", state=None)
    abroad = replace(OSWIN, city="Kelowna", state="BC", zip="V1Y 6N2", country="CA")
    same_digits = replace(OSWIN, city="Wegscheid", state="BY", zip="94110", country="DE")
    return [
        Sketch(name="Verified", subject="buyer-quillfeather"),
        Sketch(name="VerifiedOther", person=OSWIN, subject="buyer-thistlewhickett"),
        Sketch(name="SameDocumentOnce", person=replace(MARZIPAN, number="S66600013")),
        Sketch(name="SameDocumentAgain", person=replace(MARZIPAN, number="S66600013")),
        Sketch(name="LeadingZeroZip", person=MARZIPAN),
        Sketch(name="ZipPlusFour", person=replace(OSWIN, zip="95814-4801"), zip="95814"),
        Sketch(name="ZipNineDigits", person=replace(OSWIN, zip="958144801"), zip="95814"),
        Sketch(name="BirthdayToday", person=replace(adult, born=born_years_ago(now, 18))),
        Sketch(name="ExtraFields", changes={"vibe": {"aura": ["teal"]}, "score": 0.5}),
        Sketch(
            name="BirthdayTomorrow",
            plays="birthday_tomorrow",
            person=replace(adult, born=born_years_ago(now, 18, days_later=1)),
        ),
        Sketch(
            name="Underage",
            plays="underage",
            person=replace(adult, born=born_years_ago(now, 16, days_later=100)),
        ),
        Sketch(
            name="ExpiredDocument",
            plays="document_expired",
            person=replace(OSWIN, expires=years_from_now(now, -1) - timedelta(days=1)),
        ),
        Sketch(name="NoBirth", plays="no_date_of_birth", person=replace(OSWIN, born=None)),
        Sketch(name="Passport", plays="no_address", person=passport, zip="95814"),
        Sketch(name="ForeignAddress", plays="foreign_address", person=abroad, zip="95814"),
        Sketch(name="ForeignSameDigits", plays="foreign_same_digits", person=same_digits),
        Sketch(name="ZipMismatch", plays="zip_mismatch", zip="90210"),
        Sketch(
            name="ZipFullWidth",
            plays="zip_not_ascii",
            person=replace(OSWIN, zip="\uff19\uff15\uff18\uff11\uff14"),
            zip="95814",
        ),
        Sketch(name="TypedOnly", plays="user_entered", document_status="unverified"),
        Sketch(
            name="TypedContradicts",
            plays="user_entered_contradicts",
            person=MARZIPAN,
            zip="94110",
            changes={"metadata": {"postal_code": "94110", "dob": "1987-03-14"}},
        ),
        # Nor is it where the goods shall go, for whoever says nothing of the buyer.
        Sketch(
            name="OtherSubject",
            plays="other_subject",
            subject="buyer-somebody-else",
            zip="94118",
        ),
        Sketch(name="TestMode", plays="test_mode", changes={"livemode": False}),
        Sketch(name="Old", plays="sensitive_results_too_old", person=OSWIN, hours_ago=72),
    ]


def _states() -> list[Sketch]:
    """Sessions with another status than `verified`, or whose data is gone."""
    flawed = {"code": "document_unverified_other", "reason": "The document could not be verified."}
    return [
        Sketch(name="Processing", plays="pending", person=None, changes={"status": "processing"}),
        Sketch(
            name="NotStarted",
            plays="requires_input",
            person=None,
            changes={"status": "requires_input", "url": "https://verify.stripe.example/start/1Sim"},
        ),
        *(
            Sketch(
                name=f"Error{''.join(word.capitalize() for word in code.split('_'))}",
                plays=f"error_{code}",
                person=None,
                changes={"status": "requires_input", "last_error": flawed | {"code": code}},
            )
            for code in ERROR_CODES
        ),
        Sketch(name="Canceled", plays="canceled", person=None, changes={"status": "canceled"}),
        Sketch(
            name="RedactionBegun",
            plays="redaction_begun",
            changes={"redaction": {"status": "processing"}},
        ),
        Sketch(
            name="Redacted",
            plays="redacted",
            person=None,
            changes=redacted() | {"redaction": {"status": "redacted"}},
        ),
        Sketch(name="RedactedUnsaid", plays="redacted_unsaid", person=None, changes=redacted()),
        Sketch(
            name="UnknownStatus", plays="unknown_status", changes={"status": "verified_probably"}
        ),
    ]


def _manners() -> list[Sketch]:
    """Sessions that are well, at a provider that is not."""
    answered_after_all = ("LimitedOnce", "LimitedBriefly", "LockedOnce")
    return [
        *(Sketch(name=name, manner=name) for name in answered_after_all),
        Sketch(name="LimitedLong", plays="rate_limited", manner="LimitedLong"),
        Sketch(name="LimitedForGood", plays="rate_limited_no_retry", manner="LimitedForGood"),
        Sketch(name="WrongId", plays="wrong_id", changes={"id": session_id("Verified")}),
        Sketch(
            name="OtherMode",
            plays="other_mode",
            manner="OtherMode",
            changes={"livemode": False},
        ),
        Sketch(name="Truncated", plays="truncated", manner="Truncated"),
        Sketch(name="Huge", plays="huge", manner="Huge"),
        Sketch(name="ServerError", plays="server_error", manner="ServerError"),
        Sketch(name="BadGateway", plays="bad_gateway_html", manner="BadGateway"),
        Sketch(name="Slow", plays="slow", manner="Slow"),
        Sketch(name="Cut", plays="cut", manner="Cut"),
    ]


def redacted() -> dict[str, Any]:
    """What redaction leaves: it still says `verified`."""
    gone = Person(
        first="[redacted]", last="[redacted]", line1="[redacted]", city="[redacted]",
        number="[redacted]", born=None, state="[redacted]", zip="[redacted]",
    )  # fmt: skip
    first_of_all = {"day": 1, "month": 1, "year": 1}
    return {
        "status": "verified",
        "metadata": {},
        "client_reference_id": None,
        "verified_outputs": outputs(gone) | {"dob": first_of_all, "sex": "[redacted]"},
    }
