"""The parts that the simulated Persona plays: one inquiry each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from countersign.simulators.licence_holders import born_years_ago, years_from_now
from countersign.simulators.persona_objects import (
    FENWICK,
    PERCIVALD,
    TALLULAH,
    time,
)
from countersign.simulators.persona_sketch import Part, Sketch, part_of

DECIDED_AFTER_SECONDS: Final = 10.0
"""How long the part `DecidedLater` stays `completed` after it was first asked for."""


def all_parts(now: float) -> Sequence[Part]:
    """Every part, as of this Unix time."""
    return [part_of(sketch, now) for sketch in (*_people(now), *_states(now), *_manners())]


def _people(now: float) -> list[Sketch]:
    """Inquiries that Persona has approved."""
    adult = replace(FENWICK, first="QUORIANNE", last="SLUDGEPINNACLE", number="D1800000")
    passport = replace(TALLULAH, kind="pp", number="P16004243", state=None)
    abroad = replace(TALLULAH, city="KELOWNA", state="BC", zip="V1Y 6N2", country="CA")
    same_digits = replace(TALLULAH, city="WEGSCHEID", state="BY", zip="94110", country="DE")
    return [
        Sketch(name="Verified"),
        Sketch(name="VerifiedOther", person=TALLULAH),
        Sketch(name="SameDocumentOnce", person=replace(PERCIVALD, number="S52739999")),
        Sketch(name="SameDocumentAgain", person=replace(PERCIVALD, number="S52739999")),
        Sketch(name="LeadingZeroZip", person=PERCIVALD),
        Sketch(name="ZipPlusFour", person=replace(TALLULAH, zip="95814-4801"), zip="95814"),
        Sketch(name="ZipNineDigits", person=replace(TALLULAH, zip="958144801"), zip="95814"),
        Sketch(name="BirthdayToday", person=replace(adult, born=born_years_ago(now, 18))),
        Sketch(name="SecondAttempt", proofs=("failed", "passed")),
        Sketch(name="ExtraFields", manner="ExtraFields"),
        Sketch(name="ByLicenceRegister", proofs=("aamva",)),
        Sketch(name="TypedOtherwise", typed=PERCIVALD),
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
            person=replace(TALLULAH, expires=years_from_now(now, -1) - timedelta(days=1)),
        ),
        Sketch(name="NoBirth", plays="no_date_of_birth", person=replace(TALLULAH, born=None)),
        Sketch(name="BirthWithheld", plays="date_of_birth_withheld", withheld=("birthdate",)),
        Sketch(name="Passport", plays="no_address", person=passport, zip="95814"),
        Sketch(name="ForeignAddress", plays="foreign_address", person=abroad, zip="95814"),
        Sketch(name="ForeignSameDigits", plays="foreign_same_digits", person=same_digits),
        Sketch(name="ZipMismatch", plays="zip_mismatch", zip="90210"),
        Sketch(
            name="ZipFullWidth",
            plays="zip_not_ascii",
            person=replace(TALLULAH, zip="\uff19\uff15\uff18\uff11\uff14"),
            zip="95814",
        ),
        Sketch(
            name="TypedContradicts",
            plays="user_entered_contradicts",
            typed=FENWICK,
            person=PERCIVALD,
            zip=FENWICK.zip,
        ),
        Sketch(name="NearMatch", plays="database_near_match", proofs=("near",)),
        Sketch(name="BirthNotCompared", plays="birth_not_compared", proofs=("aamva_unborn",)),
        Sketch(name="OnlySelfie", plays="no_passed_verification", proofs=("selfie",)),
        Sketch(name="Withheld", plays="verifications_withheld", manner="Withheld"),
        # Nor is it where the goods shall go, for whoever says nothing of the buyer.
        Sketch(name="OtherSubject", plays="other_subject", zip="94118"),
        # An adult's passport, and the licence of somebody else.
        Sketch(
            name="LicenceOfAnother",
            plays="licence_of_another",
            person=passport,
            proofs=("passed", "passed_of_another"),
            zip=PERCIVALD.zip,
        ),
        Sketch(name="TestMode", plays="test_mode", manner="TestMode"),
        Sketch(name="NoEnvironment", plays="no_environment", manner="NoEnvironment"),
    ]


def _states(now: float) -> list[Sketch]:
    """Inquiries with another status than `approved`, or whose data is gone."""
    gone = time(now, minutes_ago=1)
    return [
        Sketch(name="Created", plays="requires_input", status="created", proofs=()),
        Sketch(name="Pending", plays="begun", status="pending", proofs=("requires_retry",)),
        Sketch(name="Completed", plays="pending", status="completed"),
        Sketch(name="DecidedLater", plays="decided_later", manner="DecidedLater"),
        Sketch(name="NeedsReview", plays="review", status="needs_review"),
        Sketch(name="Declined", plays="declined", status="declined"),
        Sketch(name="Failed", plays="failed", status="failed", proofs=("failed",)),
        Sketch(name="Expired", plays="expired", status="expired", proofs=()),
        Sketch(name="UnknownStatus", plays="unknown_status", status="approved_provisionally"),
        Sketch(name="Redacted", plays="redacted", changes={"redacted-at": gone}),
        Sketch(name="ProofRedacted", plays="proof_redacted", proofs=("redacted",)),
    ]


def _manners() -> list[Sketch]:
    """Inquiries that are well, at a provider that is not."""
    return [
        *(Sketch(name=name, manner=name) for name in ("LimitedOnce", "LimitedBriefly")),
        Sketch(name="LimitedLong", plays="rate_limited", manner="LimitedLong"),
        Sketch(name="WrongId", plays="wrong_id", manner="WrongId"),
        Sketch(name="Truncated", plays="truncated", manner="Truncated"),
        Sketch(name="Huge", plays="huge", manner="Huge"),
        Sketch(name="ServerError", plays="server_error", manner="ServerError"),
        Sketch(name="BadGateway", plays="bad_gateway_html", manner="BadGateway"),
        Sketch(name="Slow", plays="slow", manner="Slow"),
        Sketch(name="Cut", plays="cut", manner="Cut"),
    ]
