"""The sessions of the simulated Plaid; every person in them is invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countersign_simulators.base import Session, merged, timestamp
from countersign_simulators.people import Person, birthday

PERSONAL: Final = (
    *("first", "last", "born", "number", "street"),
    *("city", "phone", "email", "id_number"),
)
_STEPS: Final = (
    "accept_tos",
    "verify_sms",
    "kyc_check",
    "documentary_verification",
    "selfie_check",
    "watchlist_screening",
    "risk_check",
)
_IMAGES: Final = ("original_front", "original_back", "cropped_front", "cropped_back", "face")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaidSession(Session):
    """An identity verification, and how it differs from a plain success."""

    person: Person
    changes: Mapping[str, Any]
    """Members that replace those of a plain success."""
    failure: str | None = None
    environment: str = "live"


def all_sessions(now: float) -> Sequence[PlaidSession]:
    """Every session, in a fixed order, with dates as of this Unix time."""
    return (
        *_verified(now),
        *_undecided(),
        *_redacted(now),
        *_unproved(now),
        *_other_person(),
        *_failing(),
    )


def verification(session: PlaidSession, started: float) -> dict[str, Any]:
    """The response for a session, without its request id; `started` is in Unix seconds."""
    subject = session.subject_reference or ""
    plain = success_of(session.session_id, session.person, subject, started)
    return merged(plain, session.changes)


# --- the objects of Plaid -----------------------------------------------------------------------


def _name(person: Person) -> dict[str, str]:
    return {"given_name": person.first, "family_name": person.last}


def _address(person: Person) -> dict[str, str | None]:
    return {
        "street": person.street,
        "city": person.city,
        "region": person.state,
        "postal_code": person.postcode,
        "country": person.country,
    }


def _user(person: Person) -> dict[str, Any]:
    """What the buyer typed."""
    return {
        "phone_number": person.phone,
        "date_of_birth": person.born,
        "ip_address": None,
        "email_address": person.email,
        "name": _name(person),
        "address": {**_address(person), "street2": None},
        "id_number": {"value": person.id_number, "type": "us_ssn"},
    }


def document_of(
    person: Person, session_id: str, *, attempt: int = 1, status: str = "success"
) -> dict[str, Any]:
    """One attempt to show a document."""
    match = "match" if status != "failed" else "no_match"
    base = f"https://images.plaid.example/verifications/{session_id}/documents/{attempt}"
    return {
        "status": status,
        "attempt": attempt,
        "images": {name: f"{base}/{name}.jpeg" for name in _IMAGES},
        "extracted_data": {
            "id_number": person.number,
            "category": "drivers_license",
            "expiration_date": "2199-12-31",
            "issue_date": "2020-05-29",
            "issuing_country": person.country,
            "issuing_region": person.state,
            "date_of_birth": person.born,
            "address": _address(person),
            "name": _name(person),
        },
        "analysis": {
            "authenticity": match,
            "image_quality": "high",
            "extracted_data": {
                "name": match,
                "date_of_birth": match,
                "expiration_date": "not_expired",
                "issuing_country": match,
            },
            "fraud_analysis_details": None,
            "image_quality_details": None,
            "aamva_verification": None,
        },
        "redacted_at": None,
    }


def success_of(session_id: str, person: Person, subject: str, started: float) -> dict[str, Any]:
    """A verification that passed: document and selfie shown, and the typed data matched."""
    return {
        "id": session_id,
        "client_user_id": subject,
        "created_at": timestamp(started - 600),
        "completed_at": timestamp(started - 300),
        "previous_attempt_id": None,
        "shareable_url": None,
        "template": {"id": "idvtmp_SimulatedTemplate", "version": 2},
        "user": _user(person),
        "status": "success",
        "steps": _steps("success") | {"watchlist_screening": "not_applicable"},
        "documentary_verification": {
            "status": "success",
            "documents": [document_of(person, session_id)],
        },
        "selfie_check": _selfie(session_id),
        "kyc_check": _kyc("match"),
        "risk_check": None,
        "verify_sms": None,
        "watchlist_screening_id": None,
        "beacon_user_id": None,
        "user_id": None,
        "redacted_at": None,
        "latest_scored_protect_event": None,
    }


def _steps(status: str) -> dict[str, str]:
    return dict.fromkeys(_STEPS, status)


def _kyc(code: str) -> dict[str, Any]:
    """Whether the typed data matched a data source, the same for each part of it."""
    return {
        "status": "success" if code == "match" else "failed",
        "address": {"summary": code, "po_box": "no", "type": "residential", "postal_code": code},
        "name": {"summary": code},
        "date_of_birth": {"summary": code},
        "id_number": {
            "summary": code,
            "ssa_verification": {"match": code, "is_deceased": False},
        },
        "phone_number": {"summary": code, "area_code": code},
    }


def without_results(status: str, step: str) -> dict[str, Any]:
    """The members of a verification in which no step has come to a result."""
    return {
        "status": status,
        "completed_at": None,
        "steps": _steps(step),
        "documentary_verification": None,
        "selfie_check": None,
        "kyc_check": None,
    }


def _selfie(session_id: str) -> dict[str, Any]:
    base = f"https://images.plaid.example/verifications/{session_id}/selfie"
    return {
        "status": "success",
        "selfies": [
            {
                "status": "success",
                "attempt": 1,
                "capture": {"image_url": f"{base}/liveness.jpeg", "video_url": None},
                "analysis": {
                    "document_comparison": "match",
                    "liveness_check": "success",
                    "facial_analysis": None,
                },
            }
        ],
    }


# --- the sessions -------------------------------------------------------------------------------


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address, a telephone and a licence of their own."""
    usual = {
        "born": f"19{61 + number}-0{1 + number % 9}-{10 + number % 18}",
        "number": f"PLQ{number:05d}77",
        "street": f"{7700 + number} Larkstump Candle Way",
        "city": "Quillhaven Bluffs",
        "postcode": "94110",
        "phone": f"+1415555{7100 + number}",
        "mail_domain": "mailbox.example",
        "id_number": f"9{number:02d}007{number:03d}",
    }
    return Person(first=first, last=last, **(usual | other))


_ZENOBELLE: Final = _buyer(1, "Zenobelle", "Quillmarchant")
_THISTLEWANE: Final = _buyer(
    2, "Thistlewane", "Abernackle", postcode="90012", city="Lower Pomfret Springs"
)
_OTTOLINDE: Final = _buyer(3, "Ottolinde", "Brackenspur", postcode="90210", street="1 Mossgable Ct")


def _session(
    name: str,
    scenario: str,
    person: Person,
    changes: Mapping[str, Any] | None = None,
    *,
    others: tuple[Person, ...] = (),
    **fields: Any,  # noqa: ANN401 - the fields of PlaidSession
) -> PlaidSession:
    """A session about a person; `others` are in the response too."""
    personal = [text for each in (person, *others) for text in each.texts(*PERSONAL)]
    return PlaidSession(
        **{"shipping_zip": person.postcode} | fields,
        session_id=f"idv_{name}",
        scenario=scenario,
        subject_reference=f"buyer-{name.lower()}",
        personal=tuple(dict.fromkeys(personal)),
        person=person,
        changes=changes or {},
    )


def _documents(*documents: Mapping[str, Any], **other: str) -> dict[str, Any]:
    """The section of documents that were shown."""
    return {"documentary_verification": {"documents": list(documents), **other}}


def _shown(session_id: str, person: Person, **changes: object) -> Mapping[str, Any]:
    """The section of one accepted document, with changes to what was read from it."""
    document = merged(document_of(person, session_id), {"extracted_data": changes})
    return _documents(document, status="success")


def _verified(now: float) -> Sequence[PlaidSession]:
    plus_four = _buyer(4, "Euphronia", "Tanglewick", postcode="95814-2215")
    nine_digits = _buyer(5, "Cadwallonius", "Fernbottom", postcode="900410123")
    zero = _buyer(6, "Hesperina", "Dunmarrow", postcode="02139", state="MA")
    third, attempts = _buyer(7, "Lysanderine", "Cobblegrove"), "idv_VerifiedThirdAttempt"
    failed = _buyer(8, "Grizelbart", "Underquay")
    thrice = _documents(
        document_of(failed, attempts, status="failed"),
        document_of(third, attempts, attempt=3),
        document_of(failed, attempts, attempt=2, status="failed"),
    )
    reviewed = _buyer(9, "Marigolda", "Pepperwhistle")
    manual = document_of(reviewed, "idv_VerifiedByReviewer", status="manually_approved")
    moved, typed_street = ("Bartholoma", "Snickerthorn"), "12 Mossgable Court"
    contradicted, typed_born = ("Isambardine", "Wolverquist"), "1931-02-03"
    typed = {
        "date_of_birth": typed_born,
        "address": {"street": _OTTOLINDE.street, "postal_code": _OTTOLINDE.postcode},
    }
    extra = _buyer(13, "Oswaldina", "Tumbleferry")
    unknown_members = {"an_addition": {"of": ["next", "year"]}, "steps": {"palm_check": "success"}}
    return (
        _session("VerifiedLicense", "verified", _ZENOBELLE),
        _session("VerifiedSecondBuyer", "verified", _THISTLEWANE),
        # The same licence as the first: the same buyer.
        _session("VerifiedSameDocument", "verified", _ZENOBELLE),
        _session("VerifiedZipPlusFour", "verified", plus_four, shipping_zip="95814"),
        _session("VerifiedNineDigitZip", "verified", nine_digits, shipping_zip="90041"),
        _session("VerifiedLeadingZeroZip", "verified", zero),
        _session("VerifiedThirdAttempt", "verified", third, thrice, others=(failed,)),
        _session(
            "VerifiedByReviewer",
            "verified",
            reviewed,
            {
                "steps": {"documentary_verification": "manually_approved"},
                **_documents(manual, status="manually_approved"),
            },
        ),
        # The licence has the old address; a data source has the typed one.
        _session(
            "VerifiedMovedHouse",
            "verified",
            _buyer(10, *moved),
            {"user": {"address": {"street": typed_street, "postal_code": "94704"}}},
            shipping_zip="94704",
            others=(_buyer(10, *moved, street=typed_street),),
        ),
        # What was typed is not what the document says, and no data source has it.
        _session(
            "VerifiedTypedElse",
            "verified",
            _buyer(11, *contradicted),
            {"user": typed, "kyc_check": _kyc("no_match"), "steps": {"kyc_check": "failed"}},
            others=(_buyer(11, *contradicted, born=typed_born, street=_OTTOLINDE.street),),
        ),
        _session(
            "BirthdayToday",
            "verified",
            _buyer(12, "Peregrinelle", "Hatherswick", born=birthday(now, 18)),
        ),
        _session("UnknownExtraFields", "verified", extra, unknown_members),
        _session("RateLimitedOnce", "verified", extra, failure="limited_once"),
    )


def _undecided() -> Sequence[PlaidSession]:
    typed = ("phone_number", "date_of_birth", "email_address", "name", "address", "id_number")
    not_begun = without_results("active", "waiting_for_prerequisite")
    review = {"status": "pending_review", "steps": {"watchlist_screening": "pending_review"}}
    failed = document_of(_ZENOBELLE, "idv_FailedDocument", status="failed")
    failed_document = {
        "status": "failed",
        "steps": {"documentary_verification": "failed"},
        **_documents(failed, status="failed"),
    }
    failed_selfie = {"steps": {"selfie_check": "failed"}}
    canceled = without_results("canceled", "canceled")
    return (
        _session(
            "ActiveNotBegun",
            "requires_input",
            _ZENOBELLE,
            {**not_begun, "user": dict.fromkeys(typed)},
        ),
        _session("PendingReview", "pending", _THISTLEWANE, review),
        _session("FailedDocument", "failed", _ZENOBELLE, failed_document),
        _session("FailedSelfie", "failed_selfie", _THISTLEWANE, failed_selfie),
        _session("CanceledInReview", "canceled", _ZENOBELLE, canceled),
        _session("ExpiredUnfinished", "expired", _ZENOBELLE, without_results("expired", "expired")),
        _session("UnknownStatus", "unknown_status", _ZENOBELLE, {"status": "under_observation"}),
    )


def _redacted(now: float) -> Sequence[PlaidSession]:
    gone = timestamp(now - 86400)
    members = ("date_of_birth", "name", "address", "id_number", "phone_number", "email_address")
    emptied = {
        **document_of(_ZENOBELLE, "idv_RedactedAltogether"),
        "extracted_data": None,
        "redacted_at": gone,
    }
    redacted = {"redacted_at": gone, "user": dict.fromkeys(members), **_documents(emptied)}
    half = {**document_of(_THISTLEWANE, "idv_RedactedDocument"), "redacted_at": gone}
    return (
        _session("RedactedAltogether", "redacted", _ZENOBELLE, redacted),
        _session("RedactedDocument", "redacted_document", _THISTLEWANE, _documents(half)),
    )


def _unproved(now: float) -> Sequence[PlaidSession]:
    """Sessions that succeeded at Plaid, and still prove too little."""
    under_age = _buyer(14, "Philomenka", "Larkspurrow", born=birthday(now, 17))
    tomorrow = _buyer(15, "Crispinella", "Bogglesworth", born=birthday(now, 18, days_later=1))
    canada = {"country": "CA", "state": "ON", "postcode": "K1A 0B1"}
    expired_undated = merged(
        document_of(_ZENOBELLE, "idv_ExpiredUndated"),
        {
            "extracted_data": {"expiration_date": None},
            "analysis": {"extracted_data": {"expiration_date": "expired"}},
        },
    )
    no_birth = {
        **_shown("idv_NoDateOfBirth", _ZENOBELLE, date_of_birth=None),
        "kyc_check": {"date_of_birth": {"summary": "no_data"}},
    }
    passport = _shown(
        *("idv_PassportNoAddress", _ZENOBELLE),
        address=None,
        category="passport",
        issuing_region=None,
    )
    no_data_source = {"kyc_check": None, "steps": {"kyc_check": "not_applicable"}}
    partial = {"address": {"summary": "partial_match", "postal_code": "partial_match"}}
    return (
        _session("UnderageBuyer", "underage", under_age),
        _session("BirthdayTomorrow", "underage_until_tomorrow", tomorrow),
        _session(
            "ExpiredDocument",
            "expired_document",
            _ZENOBELLE,
            _shown("idv_ExpiredDocument", _ZENOBELLE, expiration_date="2021-03-04"),
        ),
        _session(
            "ExpiredUndated",
            "expired_document_without_date",
            _ZENOBELLE,
            _documents(expired_undated),
        ),
        _session("NoDateOfBirth", "age_unknown", _ZENOBELLE, no_birth),
        _session("PassportNoAddress", "zip_unknown", _ZENOBELLE, {**passport, **no_data_source}),
        _session(
            "CanadianAddress",
            "foreign_address",
            _buyer(16, "Roderigan", "Maplewhisk", **canada),
            shipping_zip="94110",
        ),
        _session("ZipOfAnotherTown", "zip_mismatch", _THISTLEWANE, shipping_zip="94110"),
        # The typed address is about right, says the data source: that is not enough.
        _session(
            "PartialMatchZip",
            "zip_partial_match",
            _ZENOBELLE,
            {"user": {"address": {"postal_code": "94704"}}, "kyc_check": partial},
            shipping_zip="94704",
        ),
    )


def _other_person() -> Sequence[PlaidSession]:
    """Sessions in which something is of another person, or not of this account's buyer."""
    typed = {"user": _user(_OTTOLINDE)}
    of_another = merged(
        document_of(_THISTLEWANE, "idv_KycOfAnother"),
        {"analysis": {"extracted_data": {"name": "no_match"}}},
    )
    deceased = {"kyc_check": {"id_number": {"ssa_verification": {"is_deceased": True}}}}
    skipped = dict.fromkeys(("documentary_verification", "selfie_check"), "not_applicable")
    no_document = {"documentary_verification": None, "selfie_check": None, "steps": skipped}
    to_another: dict[str, Any] = {"shipping_zip": _OTTOLINDE.postcode, "others": (_OTTOLINDE,)}
    return (
        # The buyer's own licence, and the name and address of somebody else.
        _session(
            "KycOfAnother",
            "typed_another_person",
            _THISTLEWANE,
            {**typed, **_documents(of_another)},
            **to_another,
        ),
        # The typed number and address are those of a person who has died.
        _session(
            "KycOfTheDead", "typed_dead_person", _THISTLEWANE, {**typed, **deceased}, **to_another
        ),
        # The template has no document step: every step passed, and none shows a document.
        _session("NoDocumentStep", "no_document", _ZENOBELLE, no_document),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        _session(
            "OtherSubject",
            "other_subject",
            _ZENOBELLE,
            {"client_user_id": "buyer-of-another"},
            shipping_zip="94118",
        ),
        _session("SandboxEnvironment", "other_environment", _ZENOBELLE, environment="sandbox"),
    )


def _failing() -> Sequence[PlaidSession]:
    return (
        _session("WrongIdEchoed", "wrong_id", _ZENOBELLE, {"id": "idv_VerifiedLicense"}),
        _session("TruncatedJson", "truncated", _ZENOBELLE, failure="truncated"),
        _session("FiftyMegabytes", "oversized", _ZENOBELLE, failure="huge"),
        _session("RateLimitedLonger", "rate_limited", _ZENOBELLE, failure="limited_long"),
        _session("ServerError", "server_error", _ZENOBELLE, failure="server_error"),
        _session("BadGatewayPage", "bad_gateway", _ZENOBELLE, failure="bad_gateway"),
        _session("SlowAnswer", "slow", _ZENOBELLE, failure="slow"),
        _session("CutConnection", "cut", _ZENOBELLE, failure="cut"),
    )
