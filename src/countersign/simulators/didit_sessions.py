"""The sessions that the simulated Didit knows; every person in them is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from countersign.simulators.document_people import Person, today, turned, turns_tomorrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One session: what it plays, and how its decision differs from a plain approval."""

    number: int
    plays: str
    person: Person | None = None
    shipping_zip: str = "95814"
    subject: str | None = None
    """What the buyer's server would send as `subject_reference`."""
    decision: Mapping[str, Any] = field(default_factory=dict)
    """Members of the decision that replace those of a plain approval; `...` leaves one out."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The same for its `id_verifications[0]`."""
    personal: tuple[str, ...] = ()
    """Personal strings that are not the person's."""

    @property
    def session_id(self) -> str:
        """A UUID that ends in the part's number."""
        return f"d1d17000-0000-4000-8000-{self.number:012d}"


_NOTHING: Final[Mapping[str, Any]] = {
    "id_verifications": None,
    "liveness_checks": None,
    "face_matches": None,
    "poa_verifications": None,
}


def _person(number: int, first: str, last: str, born: str = "1985-08-26", **other: str) -> Person:
    """A person with an address of their own."""
    plain = {
        "number": f"WZK{number:07d}",
        "street": f"{8300 + number} Marmaladegate Lane",
        "city": "Sacramento",
        "state": "CA",
        "postcode": "95814",
        "country": "US",
    }
    return Person(first=first, last=last, born=born, **(plain | other))


def parts(now: Callable[[], float]) -> Sequence[Part]:
    """Every part; birth dates and expiries that depend on the day are reckoned from the clock."""
    return (*_verified(now), *_refused(now), *_undecided(), *_broken())


def _verified(now: Callable[[], float]) -> Sequence[Part]:
    twin = _person(2, "Thornabel", "Wickersnout", "1972-12-30", postcode="95811-3046")
    boston = {"city": "Boston", "state": "MA", "postcode": "02116"}
    mover = _person(8, "Oswinette", "Trundlepike", postcode="95815")
    bill = f"{8308} Nettlewhisk Row"
    return (
        Part(
            number=1,
            plays="verified",
            person=_person(1, "Zinnobelle", "Crackenthorpe"),
            subject="buyer-didit-0001",
        ),
        # Two sessions of one document: one buyer.
        Part(number=2, plays="verified", person=twin, shipping_zip="95811"),
        Part(number=3, plays="verified", person=twin, shipping_zip="95811"),
        Part(
            number=4,
            plays="verified",
            person=_person(4, "Hubertrand", "Plumfeather", postcode="958181234"),
            shipping_zip="95818",
        ),
        Part(
            number=5,
            plays="verified",
            person=_person(5, "Marzipanne", "Oldershanks", **boston),
            shipping_zip="02116",
        ),
        Part(
            number=6,
            plays="verified",
            person=_person(6, "Lysandrine", "Puddifoote", turned(18, today(now()))),
        ),
        # Nobody has told us of these members.
        Part(
            number=7,
            plays="verified",
            person=_person(7, "Gideonora", "Swizzlecroft"),
            decision={"aura_checks": [{"status": "Approved", "hue": 1.0}], "future": None},
        ),
        # The licence shows an old address; a bill proves the new one.
        Part(
            number=8,
            plays="verified",
            person=mover,
            shipping_zip="95816",
            decision={
                "poa_verifications": [
                    {
                        "status": "Approved",
                        "document_type": "UTILITY_BILL",
                        "issue_date": "2026-09-01",
                        "name_match_score_id_verification": 98.0,
                        "poa_parsed_address": {
                            "street_1": bill,
                            "city": "Sacramento",
                            "region": "CA",
                            "country": "US",
                            "postal_code": "95816",
                            "is_verified": True,
                        },
                        "warnings": [],
                    }
                ]
            },
            personal=(bill,),
        ),
        # The server stumbles once over these, and then answers.
        Part(number=9, plays="verified", person=_person(9, "Fenwickery", "Dollopstone")),
        Part(number=10, plays="verified", person=_person(10, "Rowanthia", "Grizzlewick")),
        # The age is wrong, as in Didit's own example: the date of birth counts.
        Part(
            number=11,
            plays="verified",
            person=_person(11, "Peregrinda", "Hobblesworth"),
            document={"age": 12},
        ),
    )


def _refused(now: Callable[[], float]) -> Sequence[Part]:
    day = today(now())
    return (
        Part(
            number=20,
            plays="failed",
            person=_person(20, "Ambrosina", "Quaggleton"),
            decision={"status": "Declined"},
            document={
                "status": "Declined",
                "warnings": [{"risk": "DOCUMENT_TAMPERED", "feature": "ID_VERIFICATION"}],
            },
        ),
        # Deleted at Didit: the session is gone from the API.
        Part(number=21, plays="redacted"),
        Part(
            number=22,
            plays="underage",
            person=_person(22, "Tuppencia", "Brambleshaw", turned(16, day)),
        ),
        Part(
            number=23,
            plays="of_age_tomorrow",
            person=_person(23, "Wolframina", "Teaspooner", turns_tomorrow(18, day)),
        ),
        Part(
            number=24,
            plays="document_expired",
            person=_person(24, "Cordelion", "Mugglethwait"),
            document={"expiration_date": (day - timedelta(days=1)).isoformat()},
        ),
        # An age is in the answer, without the date it was reckoned from.
        Part(
            number=25,
            plays="no_birth_date",
            person=_person(25, "Evangelope", "Sockburne"),
            document={"date_of_birth": None, "age": 41},
        ),
        Part(
            number=26,
            plays="no_address",
            person=_person(26, "Montgomerille", "Fizzlethorn"),
            document={"document_type": "Passport", "parsed_address": None, "address": None},
        ),
        Part(
            number=27,
            plays="foreign_address",
            person=_person(
                27,
                "Brunhildegund",
                "Käsekuchen",
                street="Lila-Igel-Straße 9",
                city="Berlin",
                state="BE",
                postcode="10115",
                country="DE",
            ),
            shipping_zip="10115",
            document={"issuing_state": "DEU", "document_type": "Identity Card"},
        ),
        Part(
            number=28,
            plays="zip_mismatch",
            person=_person(28, "Isambardine", "Clutterbury", postcode="95822"),
        ),
        # The address could not be found on the map: nobody knows whose the ZIP code is.
        Part(
            number=29,
            plays="address_doubted",
            person=_person(29, "Araminthe", "Scrimblewood"),
            document={"parsed_address": {"is_verified": False}},
        ),
        # Approved as a whole by a workflow that goes without the document.
        Part(
            number=30,
            plays="document_not_approved",
            person=_person(30, "Crispinelle", "Vexworthy"),
            document={"status": "In Review"},
        ),
        # What was said when the session was made is in the answer too, and proves nothing.
        Part(
            number=31,
            plays="user_entered",
            person=_person(31, "Theodosian", "Gabblegrove", postcode="95831"),
            decision={
                "expected_details": {
                    "date_of_birth": "1970-02-03",
                    "parsed_address": {"postal_code": "95814", "country": "US"},
                }
            },
            personal=("1970-02-03",),
        ),
        Part(
            number=32,
            plays="test_session",
            person=_person(32, "Leontynet", "Marchbanksy"),
            decision={"environment": "sandbox"},
        ),
        Part(
            number=33,
            plays="other_subject",
            person=_person(33, "Drusillian", "Peppercombe"),
            # Nor is it where the goods shall go, for whoever says nothing of the buyer.
            shipping_zip="95819",
            subject="buyer-didit-0033",
            decision={"vendor_data": "buyer-of-somebody-else"},
        ),
        # Approved with the bill of a neighbour, by an account that lets names differ.
        Part(
            number=37,
            plays="bill_of_another",
            person=_person(37, "Balthasette", "Grumblewood", postcode="95820"),
            shipping_zip="95821",
            decision={
                "poa_verifications": [
                    {
                        "status": "Approved",
                        "document_type": "UTILITY_BILL",
                        "name_match_score_id_verification": 3.0,
                        "poa_parsed_address": {
                            "street_1": "9 Nettlewhisk Row",
                            "postal_code": "95821",
                            "country": "US",
                            "is_verified": True,
                        },
                        "warnings": [{"risk": "NAME_MISMATCH_ID_VERIFICATION"}],
                    }
                ]
            },
            personal=("9 Nettlewhisk Row",),
        ),
        Part(
            number=34,
            plays="unknown_status",
            person=_person(34, "Hyacintholo", "Throgbottom"),
            decision={"status": "approved"},
        ),
        Part(
            number=35,
            plays="other_session",
            person=_person(35, "Sebastienne", "Ruffledown"),
            decision={"session_id": "d1d17000-0000-4000-8000-000000000001"},
        ),
        Part(
            number=36,
            plays="business",
            person=_person(36, "Eglantino", "Wobblesmith"),
            decision={"session_kind": "business"},
        ),
    )


def _undecided() -> Sequence[Part]:
    words = {
        "pending": "In Progress",
        "review": "In Review",
        "requires_input": "Not Started",
        "awaiting_user": "Awaiting User",
        "resubmitted": "Resubmitted",
        "canceled": "Abandoned",
        "expired": "Expired",
        "document_check_expired": "Kyc Expired",
    }
    return tuple(
        Part(number=40 + place, plays=plays, decision={**_NOTHING, "status": status})
        for place, (plays, status) in enumerate(words.items())
    )


def _broken() -> Sequence[Part]:
    return (
        Part(number=50, plays="truncated", person=_person(50, "Octavion", "Drizzlemere")),
        Part(number=51, plays="huge"),
        Part(number=52, plays="error_500"),
        Part(number=53, plays="html_502"),
        Part(number=54, plays="slow", person=_person(54, "Seraphilda", "Clatterpan")),
        Part(number=55, plays="cut", person=_person(55, "Euphemond", "Rumplehurst")),
        Part(number=56, plays="rate_limited"),
        # Undecided when it is asked for the first time, approved after that.
        Part(number=57, plays="decided_later", person=_person(57, "Marigolda", "Twistlebury")),
    )
