"""The VerificationSessions of the simulated Stripe Identity; every person in them is invented.

Written from Stripe's API reference, version 2026-10-28.endive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final
from zlib import crc32

from countersign_simulators.base import Session
from countersign_simulators.people import Person, birthday, day

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

_ZAPHIRA: Final = Person(
    first="Zaphira",
    last="Quillfeather",
    street="7714 Marrowbone Lantern Way",
    city="San Francisco",
    postcode="94110",
    number="Q7714093",
    born="1987-03-14",
)
_OSWIN: Final = Person(
    first="Oswin",
    last="Thistlewhickett",
    street="20 Gossamer Anvil Terrace",
    city="Sacramento",
    postcode="95814",
    number="ID20551177",
    kind="id_card",
    born="1999-12-31",
)
_MARZIPAN: Final = Person(
    first="Marzipanna",
    last="Obbleworth",
    street="391 Velvet Turnip Crescent",
    city="Cambridge",
    number="S39104456",
    state="MA",
    postcode="02139",
    born="1970-01-01",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeSession(Session):
    """A session, and how Stripe behaves when it is asked for it."""

    body: Mapping[str, Any]
    """The VerificationSession with its report, everything expanded."""
    failure: str | None = None
    hours_ago: float = 0.5
    """When the verification was processed."""
    live: bool = True
    """Whether it is seen with live keys; else only with test keys."""


def session_id(name: str) -> str:
    """The identifier of the session with this CamelCase name."""
    return f"vs_{f'1Sim{name}'.ljust(24, '0')}"


def all_sessions(now: float) -> Sequence[StripeSession]:
    """Every session, with dates as of this Unix time."""
    return (*_verified(now), *_unproved(now), *_states(now), *_failing(now))


# --- the objects of Stripe ----------------------------------------------------------------------


def _date(written: str | date | None) -> dict[str, int] | None:
    if written is None:
        return None
    value = date.fromisoformat(written) if isinstance(written, str) else written
    return {"day": value.day, "month": value.month, "year": value.year}


def _address(person: Person) -> dict[str, Any] | None:
    """The address on the document; a passport has none."""
    if person.kind == "passport":
        return None
    return {
        "city": person.city,
        "country": person.country,
        "line1": person.street,
        "line2": None,
        "postal_code": person.postcode,
        "state": person.state,
    }


def outputs_of(person: Person) -> dict[str, Any]:
    """`verified_outputs`, with everything that a key could be allowed to see."""
    return {
        "address": _address(person),
        "dob": _date(person.born),
        "email": None,
        "first_name": person.first,
        "id_number": None,
        "id_number_type": None,
        "last_name": person.last,
        "phone": None,
        "sex": None,
        "unparsed_place_of_birth": None,
        "unparsed_sex": None,
    }


def document_of(person: Person, now: float, status: str) -> dict[str, Any]:
    """`document` of the report, with everything that a key could be allowed to see."""
    return {
        "address": _address(person),
        "dob": _date(person.born),
        "error": None,
        "expiration_date": _date(person.expires or day(now, years=4)),
        "files": ["file_1SimDocumentFront", "file_1SimDocumentBack"],
        "first_name": person.first,
        "issued_date": _date(day(now, years=-4)),
        "issuing_country": person.country,
        "last_name": person.last,
        "number": person.number,
        "sex": None,
        "status": status,
        "type": person.kind,
        "unparsed_place_of_birth": None,
        "unparsed_sex": None,
    }


def report_of(own_id: str, created: int, document: object, *, livemode: bool) -> dict[str, Any]:
    return {
        "id": f"vr_{own_id.removeprefix('vs_')}",
        "object": "identity.verification_report",
        "client_reference_id": None,
        "created": created,
        "document": document,
        "livemode": livemode,
        "options": {"document": {}},
        "type": "document",
        "verification_flow": None,
        "verification_session": own_id,
    }


def session_body(own_id: str, subject: str, created: int) -> dict[str, Any]:
    return {
        "id": own_id,
        "object": "identity.verification_session",
        "client_reference_id": subject,
        "client_secret": None,
        "created": created,
        "last_error": None,
        "last_verification_report": None,
        "livemode": True,
        "metadata": {},
        "options": {"document": {}},
        "provided_details": None,
        "redaction": None,
        "related_customer": None,
        "related_customer_account": None,
        "related_person": None,
        "status": "verified",
        "type": "document",
        "url": None,
        "verification_flow": None,
        "verified_outputs": None,
    }


def _redacted() -> dict[str, Any]:
    """What redaction leaves: it still says `verified`."""
    members = ("first", "last", "street", "city", "number", "state", "postcode")
    gone: dict[str, Any] = dict.fromkeys(members, "[redacted]")
    outputs = outputs_of(Person(born=None, **gone))
    first_of_all = {"day": 1, "month": 1, "year": 1}
    return {
        "status": "verified",
        "metadata": {},
        "client_reference_id": None,
        "verified_outputs": outputs | {"dob": first_of_all, "sex": "[redacted]"},
    }


# --- the sessions -------------------------------------------------------------------------------


def _session(
    now: float,
    name: str,
    scenario: str = "verified",
    person: Person | None = _ZAPHIRA,
    changes: Mapping[str, Any] | None = None,
    *,
    zip_: str | None = None,
    subject: str | None = None,
    sent_subject: str | None = None,
    document_status: str = "verified",
    own_document: bool = True,
    **other: Any,  # noqa: ANN401 - the fields of StripeSession
) -> StripeSession:
    """A session about a person.

    Args:
        now: Unix time.
        name: in CamelCase, for its identifier.
        scenario: see `Session`.
        person: who is on the document; None: there are no results.
        changes: members of the VerificationSession that replace the usual ones.
        zip_: the ZIP code to ship to, if not that of the document.
        subject: the reference in the VerificationSession, and the one that the buyer's server
            sends, if not `sent_subject`.
        sent_subject: see `subject`.
        document_status: of the document in the report.
        own_document: False for a document that several sessions share.
        other: further fields of the session.
    """
    own_id, changes = session_id(name), changes or {}
    subject = subject or f"buyer-{name.lower()}"
    created = int(now - other.get("hours_ago", 0.5) * 3600)
    body = session_body(own_id, subject, created)
    if person is not None:
        if own_document:
            # So that no two sessions are the same buyer by accident.
            person = replace(person, number=f"{person.number}{crc32(name.encode()):08X}")
        document = document_of(person, now, document_status)
        livemode = changes.get("livemode", True)
        body |= {
            "verified_outputs": outputs_of(person),
            "last_verification_report": report_of(own_id, created, document, livemode=livemode),
            "provided_details": {"email": person.email, "phone": None},
        }
    fields = ("first", "last", "street", "number", "email", "born")
    return StripeSession(
        session_id=own_id,
        scenario=scenario,
        shipping_zip=zip_ or (person or _ZAPHIRA).postcode,
        subject_reference=sent_subject or subject,
        personal=() if person is None else person.texts(*fields),
        body={**body, **changes},
        **other,
    )


def _verified(now: float) -> Sequence[StripeSession]:
    adult = replace(_ZAPHIRA, first="Quintessa", last="Dapplegrimm", number="Q1800000")
    shared = replace(_MARZIPAN, number="S66600013")
    plus_four = replace(_OSWIN, postcode="95814-4801")
    nine_digits = replace(_OSWIN, postcode="958144801")
    eighteen = replace(adult, born=birthday(now, 18))
    unknown_members = {"vibe": {"aura": ["teal"]}, "score": 0.5}
    return [
        _session(now, "Verified", subject="buyer-quillfeather"),
        _session(now, "VerifiedOther", person=_OSWIN, subject="buyer-thistlewhickett"),
        _session(now, "SameDocumentOnce", person=shared, own_document=False),
        _session(now, "SameDocumentAgain", person=shared, own_document=False),
        _session(now, "LeadingZeroZip", person=_MARZIPAN),
        _session(now, "ZipPlusFour", person=plus_four, zip_="95814"),
        _session(now, "ZipNineDigits", person=nine_digits, zip_="95814"),
        _session(now, "BirthdayToday", person=eighteen),
        _session(now, "ExtraFields", changes=unknown_members),
    ]


def _unproved(now: float) -> Sequence[StripeSession]:
    """Sessions that are verified at Stripe, and still prove too little."""
    adult = replace(_ZAPHIRA, first="Quintessa", last="Dapplegrimm", number="Q1800000")
    tomorrow = replace(adult, born=birthday(now, 18, days_later=1))
    under_age = replace(adult, born=birthday(now, 16, days_later=100))
    expired = replace(_OSWIN, expires=day(now, years=-1) - timedelta(days=1))
    passport = replace(_OSWIN, kind="passport", number="P77120031", state=None)
    canada = replace(_OSWIN, city="Kelowna", state="BC", postcode="V1Y 6N2", country="CA")
    germany = replace(_OSWIN, city="Wegscheid", state="BY", postcode="94110", country="DE")
    full_width = replace(_OSWIN, postcode="\uff19\uff15\uff18\uff11\uff14")
    typed = {"metadata": {"postal_code": "94110", "dob": "1987-03-14"}}
    return [
        _session(now, "BirthdayTomorrow", "birthday_tomorrow", tomorrow),
        _session(now, "Underage", "underage", under_age),
        _session(now, "ExpiredDocument", "document_expired", expired),
        _session(now, "NoBirth", "no_date_of_birth", replace(_OSWIN, born=None)),
        _session(now, "Passport", "no_address", passport, zip_="95814"),
        _session(now, "ForeignAddress", "foreign_address", canada, zip_="95814"),
        _session(now, "ForeignSameDigits", "foreign_same_digits", germany),
        _session(now, "ZipMismatch", "zip_mismatch", zip_="90210"),
        _session(now, "ZipFullWidth", "zip_not_ascii", full_width, zip_="95814"),
        _session(now, "TypedOnly", "user_entered", document_status="unverified"),
        _session(
            now, "TypedContradicts", "user_entered_contradicts", _MARZIPAN, typed, zip_="94110"
        ),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        _session(
            now,
            "OtherSubject",
            "other_subject",
            subject="buyer-of-another-vendor",
            sent_subject="buyer-somebody-else",
            zip_="94118",
        ),
        _session(now, "TestMode", "test_mode", changes={"livemode": False}),
        _session(now, "Old", "sensitive_results_too_old", _OSWIN, hours_ago=72),
    ]


def _states(now: float) -> Sequence[StripeSession]:
    """Sessions with another status than `verified`, or whose data is gone."""
    message = "The document could not be verified."
    errors = {
        code: {"status": "requires_input", "last_error": {"code": code, "reason": message}}
        for code in ERROR_CODES
    }
    not_started = {
        "status": "requires_input",
        "url": "https://verify.stripe.example/start/1Sim",
    }
    begun = {"redaction": {"status": "processing"}}
    redacted = _redacted() | {"redaction": {"status": "redacted"}}
    return [
        _session(now, "Processing", "pending", None, {"status": "processing"}),
        _session(now, "NotStarted", "requires_input", None, not_started),
        *(
            _session(now, f"Error{_camel(code)}", f"error_{code}", None, changes)
            for code, changes in errors.items()
        ),
        _session(now, "Canceled", "canceled", None, {"status": "canceled"}),
        _session(now, "RedactionBegun", "redaction_begun", changes=begun),
        _session(now, "Redacted", "redacted", None, redacted),
        # Redacted, and the member that says so is missing.
        _session(now, "RedactedUnsaid", "redacted_unsaid", None, _redacted()),
        _session(now, "UnknownStatus", "unknown_status", changes={"status": "verified_probably"}),
    ]


def _camel(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))


def _failing(now: float) -> Sequence[StripeSession]:
    """Sessions that are fine, at a provider that is not."""
    return [
        _session(now, "LimitedOnce", failure="limited_once"),
        _session(now, "LimitedBriefly", failure="limited_briefly"),
        _session(now, "LockedOnce", failure="locked_once"),
        _session(now, "LimitedLong", "rate_limited", failure="limited_long"),
        _session(now, "LimitedForGood", "rate_limited_no_retry", failure="limited_always"),
        _session(now, "WrongId", "wrong_id", changes={"id": session_id("Verified")}),
        _session(now, "OtherMode", "other_mode", changes={"livemode": False}, live=False),
        _session(now, "Truncated", "truncated", failure="truncated"),
        _session(now, "Huge", "huge", failure="huge"),
        _session(now, "ServerError", "server_error", failure="server_error"),
        _session(now, "BadGateway", "bad_gateway_html", failure="bad_gateway"),
        _session(now, "Slow", "slow", failure="slow"),
        _session(now, "Cut", "cut", failure="cut"),
    ]
