"""The fixed sessions of the simulated Didit; every person in them is invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countersign_simulators.base import Session, merged
from countersign_simulators.people import Person, birthday, day


@dataclass(frozen=True, slots=True, kw_only=True)
class DiditSession(Session):
    """A session, and how its decision differs from a plain approval."""

    number: int
    person: Person | None
    decision: Mapping[str, Any]
    """Members that replace those of a plain approval."""
    document: Mapping[str, Any]
    """The same for its `id_verifications[0]`."""
    failure: str | None = None
    created_at: float | None = None
    """Unix seconds; None: ten minutes ago."""


WITHOUT_RESULTS: Final[Mapping[str, Any]] = dict.fromkeys(
    ("id_verifications", "liveness_checks", "face_matches", "poa_verifications")
)
"""The members of a decision before the buyer has shown anything."""


def _session(
    number: int,
    scenario: str,
    person: Person | None = None,
    decision: Mapping[str, Any] | None = None,
    document: Mapping[str, Any] | None = None,
    *,
    more_personal: tuple[str, ...] = (),
    **other: Any,  # noqa: ANN401 - the fields of DiditSession
) -> DiditSession:
    """A session whose id is a UUID that ends in its number."""
    personal = person.texts("first", "last", "born", "number", "street") if person else ()
    fields = {"shipping_zip": "95814"} | other
    return DiditSession(
        session_id=f"d1d17000-0000-4000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        person=person,
        personal=(*personal, *more_personal),
        decision=decision or {},
        document=document or {},
        **fields,
    )


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a document of their own."""
    usual = {
        "born": "1985-08-26",
        "number": f"WZK{number:07d}",
        "street": f"{8300 + number} Marmaladegate Lane",
        "city": "Sacramento",
        "postcode": "95814",
    }
    return Person(first=first, last=last, **(usual | other))


def _bill(street: str, postcode: str, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The section of a proof of address."""
    address = {"street_1": street, "postal_code": postcode, "country": "US", "is_verified": True}
    bill = {
        "status": "Approved",
        "document_type": "UTILITY_BILL",
        "poa_parsed_address": address,
        "warnings": [],
    }
    return {"poa_verifications": [merged(bill, other)]}


def _verified(now: float) -> Sequence[DiditSession]:
    twice = _buyer(2, "Thornabel", "Wickersnout", born="1972-12-30", postcode="95811-3046")
    nine_digits = _buyer(4, "Hubertrand", "Plumfeather", postcode="958181234")
    boston = {"city": "Boston", "state": "MA", "postcode": "02116"}
    mover, street = _buyer(8, "Oswinette", "Trundlepike", postcode="95815"), "8308 Nettlewhisk Row"
    new_address = _bill(
        street,
        "95816",
        issue_date="2026-09-01",
        name_match_score_id_verification=98.0,
        poa_parsed_address={"city": "Sacramento", "region": "CA"},
    )
    unknown_members = {"aura_checks": [{"status": "Approved", "hue": 1.0}], "future": None}
    return (
        _session(
            1,
            "verified",
            _buyer(1, "Zinnobelle", "Crackenthorpe"),
            subject_reference="buyer-didit-0001",
        ),
        # Two sessions of one document: one buyer.
        _session(2, "verified", twice, shipping_zip="95811"),
        _session(3, "verified", twice, shipping_zip="95811"),
        _session(4, "verified", nine_digits, shipping_zip="95818"),
        _session(
            5, "verified", _buyer(5, "Marzipanne", "Oldershanks", **boston), shipping_zip="02116"
        ),
        _session(6, "verified", _buyer(6, "Lysandrine", "Puddifoote", born=birthday(now, 18))),
        _session(7, "verified", _buyer(7, "Gideonora", "Swizzlecroft"), unknown_members),
        # The licence shows an old address; a bill proves the new one.
        _session(8, "verified", mover, new_address, shipping_zip="95816", more_personal=(street,)),
        _session(9, "verified", _buyer(9, "Fenwickery", "Dollopstone"), failure="limited_briefly"),
        _session(10, "verified", _buyer(10, "Rowanthia", "Grizzlewick"), failure="limited_once"),
        # The age is wrong, as in Didit's own example: the date of birth counts.
        _session(11, "verified", _buyer(11, "Peregrinda", "Hobblesworth"), document={"age": 12}),
    )


def _refused(now: float) -> Sequence[DiditSession]:
    tampered = {
        "status": "Declined",
        "warnings": [{"risk": "DOCUMENT_TAMPERED", "feature": "ID_VERIFICATION"}],
    }
    under_age = _buyer(22, "Tuppencia", "Brambleshaw", born=birthday(now, 16))
    tomorrow = _buyer(23, "Wolframina", "Teaspooner", born=birthday(now, 18, days_later=1))
    berlin = {"city": "Berlin", "state": "BE", "postcode": "10115", "country": "DE"}
    foreign = _buyer(27, "Brunhildegund", "Käsekuchen", street="Lila-Igel-Straße 9", **berlin)
    passport = {"document_type": "Passport", "parsed_address": None, "address": None}
    expected = {
        "date_of_birth": "1970-02-03",
        "parsed_address": {"postal_code": "95814", "country": "US"},
    }
    bill_of_another = _bill(
        "9 Nettlewhisk Row",
        "95821",
        name_match_score_id_verification=3.0,
        warnings=[{"risk": "NAME_MISMATCH_ID_VERIFICATION"}],
    )

    def of(
        number: int,
        scenario: str,
        names: tuple[str, str],
        decision: Mapping[str, Any] | None = None,
        document: Mapping[str, Any] | None = None,
        **other: Any,  # noqa: ANN401 - the fields of DiditSession
    ) -> DiditSession:
        return _session(number, scenario, _buyer(number, *names), decision, document, **other)

    return (
        of(20, "failed", ("Ambrosina", "Quaggleton"), {"status": "Declined"}, tampered),
        # Deleted at Didit: the session is gone from the API.
        _session(21, "redacted"),
        _session(22, "underage", under_age),
        _session(23, "of_age_tomorrow", tomorrow),
        of(
            24,
            "document_expired",
            ("Cordelion", "Mugglethwait"),
            document={"expiration_date": day(now, days=-1).isoformat()},
        ),
        # An age is in the decision, without the date it was computed from.
        of(
            25,
            "no_birth_date",
            ("Evangelope", "Sockburne"),
            document={"date_of_birth": None, "age": 41},
        ),
        of(26, "no_address", ("Montgomerille", "Fizzlethorn"), document=passport),
        _session(
            27,
            "foreign_address",
            foreign,
            document={"issuing_state": "DEU", "document_type": "Identity Card"},
            shipping_zip="10115",
        ),
        _session(28, "zip_mismatch", _buyer(28, "Isambardine", "Clutterbury", postcode="95822")),
        # The address was not found on the map: it is unknown whose the ZIP code is.
        of(
            29,
            "address_doubted",
            ("Araminthe", "Scrimblewood"),
            document={"parsed_address": {"is_verified": False}},
        ),
        # Approved as a whole by a workflow that does not need the document.
        of(
            30,
            "document_not_approved",
            ("Crispinelle", "Vexworthy"),
            document={"status": "In Review"},
        ),
        # What was entered when the session was created is in the decision too, and proves nothing.
        _session(
            31,
            "user_entered",
            _buyer(31, "Theodosian", "Gabblegrove", postcode="95831"),
            {"expected_details": expected},
            more_personal=("1970-02-03",),
        ),
        of(32, "test_session", ("Leontynet", "Marchbanksy"), {"environment": "sandbox"}),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        of(
            33,
            "other_subject",
            ("Drusillian", "Peppercombe"),
            {"vendor_data": "buyer-of-somebody-else"},
            shipping_zip="95819",
            subject_reference="buyer-didit-0033",
        ),
        # Approved with the bill of a neighbour, by an account that lets names differ.
        _session(
            37,
            "bill_of_another",
            _buyer(37, "Balthasette", "Grumblewood", postcode="95820"),
            bill_of_another,
            shipping_zip="95821",
            more_personal=("9 Nettlewhisk Row",),
        ),
        of(34, "unknown_status", ("Hyacintholo", "Throgbottom"), {"status": "approved"}),
        of(
            35,
            "other_session",
            ("Sebastienne", "Ruffledown"),
            {"session_id": "d1d17000-0000-4000-8000-000000000001"},
        ),
        of(36, "business", ("Eglantino", "Wobblesmith"), {"session_kind": "business"}),
    )


_UNDECIDED: Final = {
    "pending": "In Progress",
    "review": "In Review",
    "requires_input": "Not Started",
    "awaiting_user": "Awaiting User",
    "resubmitted": "Resubmitted",
    "canceled": "Abandoned",
    "expired": "Expired",
    "document_check_expired": "Kyc Expired",
}
"""Didit's status in each scenario without a decision."""


def _undecided() -> Sequence[DiditSession]:
    return tuple(
        _session(number, scenario, decision={**WITHOUT_RESULTS, "status": status})
        for number, (scenario, status) in enumerate(_UNDECIDED.items(), 40)
    )


def _failing() -> Sequence[DiditSession]:
    return (
        _session(50, "truncated", _buyer(50, "Octavion", "Drizzlemere"), failure="truncated"),
        _session(51, "huge", failure="huge"),
        _session(52, "error_500", failure="server_error"),
        _session(53, "html_502", failure="bad_gateway"),
        _session(54, "slow", _buyer(54, "Seraphilda", "Clatterpan"), failure="slow"),
        _session(55, "cut", _buyer(55, "Euphemond", "Rumplehurst"), failure="cut"),
        _session(56, "rate_limited", failure="limited"),
        # Undecided when it is requested for the first time, approved after that.
        _session(57, "decided_later", _buyer(57, "Marigolda", "Twistlebury")),
    )


def sessions(now: float) -> Sequence[DiditSession]:
    """All of them, with dates as of `now` in Unix seconds."""
    return (*_verified(now), *_refused(now), *_undecided(), *_failing())
