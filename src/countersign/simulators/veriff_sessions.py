"""The sessions that the simulated Veriff knows; every person in them is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from countersign.simulators.document_people import Person, today, turned, turns_tomorrow

INTEGRATION: Final = "5117fab1-0000-4000-8000-00000000000a"
TEST_INTEGRATION: Final = "5117fab1-0000-4000-8000-0000000000ff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One session: what it plays, and how its answer differs from a plain approval."""

    number: int
    plays: str
    person: Person | None = None
    shipping_zip: str = "93701"
    subject: str | None = None
    """What the buyer's server would send as `subject_reference`."""
    verification: Mapping[str, Any] | None = field(default_factory=dict)
    """Members that replace those of a plain approval; None for no decision."""
    id_version: str = "4"
    integration: str | None = None
    """The integration that the answer names; Veriff's reference lists no such header."""
    feedback_headers: bool = False
    """Whether client and signature stand in the `vrf-` headers that older pages of Veriff show."""

    @property
    def session_id(self) -> str:
        """A UUID that ends in the part's number."""
        return f"7e51ff00-0000-{self.id_version}000-8000-{self.number:012d}"


def no_data(status: str, code: int, reason: int | None) -> Mapping[str, Any]:
    """The members of a decision that knows nothing of a person."""
    return {
        "status": status,
        "code": code,
        "reasonCode": reason,
        "reason": None if reason is None else "Made up by the simulator",
        "person": {"firstName": None, "lastName": None, "dateOfBirth": None, "addresses": None},
        "document": {"type": None, "number": None, "country": None, "validUntil": None},
    }


def _person(number: int, first: str, last: str, born: str = "1987-03-14", **other: str) -> Person:
    """A person with an address of their own."""
    plain = {
        "number": f"VQX{number:07d}",
        "street": f"{4100 + number} Crumblequince Terrace",
        "city": "Fresno",
        "state": "California",
        "postcode": "93701",
        "country": "USA",
    }
    return Person(first=first, last=last, born=born, **(plain | other))


def parts(now: Callable[[], float]) -> Sequence[Part]:
    """Every part; birth dates and expiries that depend on the day are reckoned from the clock."""
    day = today(now())
    twin = _person(
        2,
        "BARNABOLD",
        "FENWHISTLE",
        "1979-11-02",
        street="77 Old Quincemarsh Road",
        city="San Francisco",
        postcode="94110-2231",
    )
    verified = [
        Part(
            number=1,
            plays="verified",
            person=_person(1, "PERPETUA", "WIGGLESTONE", street="418 Brindlemoss Terrace"),
            subject="buyer-veriff-0001",
        ),
        # Two sessions of one document: one buyer. The second has an identifier of version 3.
        Part(number=2, plays="verified", person=twin, shipping_zip="94110"),
        Part(number=3, plays="verified", person=twin, shipping_zip="94110", id_version="3"),
        Part(
            number=4,
            plays="verified",
            person=_person(4, "ISOLDINA", "MUMBLETHORPE", postcode="937211234"),
            shipping_zip="93721",
        ),
        Part(
            number=5,
            plays="verified",
            person=_person(
                5,
                "GUNDRICK",
                "SPARROWVANE",
                city="Boston",
                state="Massachusetts",
                postcode="02139",
            ),
            shipping_zip="02139",
        ),
        Part(
            number=6,
            plays="verified",
            person=_person(6, "LUMINELLE", "OXTROTTER", turned(18, day)),
        ),
        # Nobody has told us of these members.
        Part(
            number=7,
            plays="verified",
            person=_person(7, "THADDEUSINE", "PEBBLEWORTH"),
            verification={"holographicAura": {"hue": "mauve"}, "futureList": [1, 2.5, None]},
        ),
        # Veriff's pages disagree about codes: only the status counts.
        Part(
            number=8,
            plays="verified",
            person=_person(8, "ORSOLVINA", "GLIMMERPATCH"),
            verification={"code": 9121},
        ),
        # The headers as older pages of Veriff show them.
        Part(
            number=11,
            plays="verified",
            person=_person(11, "ZEPHYRINDA", "QUILLHOOTER"),
            integration=INTEGRATION,
            feedback_headers=True,
        ),
        # The server stumbles once over these, and then answers.
        Part(number=9, plays="verified", person=_person(9, "CASPERION", "DUNDERWILLOW")),
        Part(number=10, plays="verified", person=_person(10, "WILHELMOT", "TANGLEBROOK")),
    ]
    refused = [
        Part(number=20, plays="pending", verification=None),
        Part(number=21, plays="review", verification=no_data("review", 9121, None)),
        Part(
            number=22,
            plays="requires_input",
            verification=no_data("resubmission_requested", 9103, 204),
        ),
        Part(
            number=23,
            plays="failed",
            person=_person(23, "MORDECAINE", "BRISTLECOMB"),
            verification={"status": "declined", "code": 9102, "reasonCode": 106, "reason": "Fraud"},
        ),
        Part(number=24, plays="canceled", verification=no_data("abandoned", 9104, None)),
        Part(number=25, plays="expired", verification=no_data("expired", 9104, None)),
        # Deleted at Veriff: the session is gone from the API.
        Part(number=26, plays="redacted"),
        Part(
            number=27,
            plays="underage",
            person=_person(27, "JUNIPERELLA", "SNICKETWELL", turned(16, day)),
        ),
        Part(
            number=28,
            plays="of_age_tomorrow",
            person=_person(28, "ALDERWYNE", "COPPERNETTLE", turns_tomorrow(18, day)),
        ),
        Part(
            number=29,
            plays="document_expired",
            person=_person(29, "ROSAMUNDIA", "FLINTWICKER"),
            verification={"document": {"validUntil": (day - timedelta(days=1)).isoformat()}},
        ),
        # An age guessed from the face is in the answer, and is no proof.
        Part(
            number=30,
            plays="no_birth_date",
            person=_person(30, "TIBERIOLA", "HUCKLEMARSH"),
            verification={"person": {"dateOfBirth": None}},
        ),
        Part(
            number=31,
            plays="no_address",
            person=_person(31, "ESMERALDINE", "VANTERPOOLE"),
            verification={"person": {"addresses": ...}, "document": {"type": "PASSPORT"}},
        ),
        Part(
            number=32,
            plays="unparsed_address",
            person=_person(32, "HORATIANNE", "WOBBLECHIME"),
            verification={
                "person": {
                    "addresses": [{"fullAddress": "4132 Crumblequince Terrace, Fresno 93701"}]
                }
            },
        ),
        Part(
            number=33,
            plays="foreign_address",
            person=_person(
                33,
                "FRANZISKANE",
                "LEBERWURZEL",
                street="12 Rue du Hérisson Violet",
                city="Paris",
                state="Île-de-France",
                postcode="75008",
                country="France",
            ),
            shipping_zip="75008",
            verification={"document": {"country": "FR", "type": "ID_CARD"}},
        ),
        Part(
            number=34,
            plays="zip_mismatch",
            person=_person(34, "BALTHAZINE", "THRUMBLETON", postcode="93702"),
        ),
        # A check without a document gives back what somebody typed.
        Part(
            number=35,
            plays="user_entered",
            person=_person(35, "QUENTINABEL", "MOSSGROVER"),
            verification={"document": no_data("", 0, None)["document"]},
        ),
        Part(
            number=36,
            plays="test_session",
            person=_person(36, "VALENTIQUE", "GORSEBERRY"),
            integration=TEST_INTEGRATION,
        ),
        Part(
            number=37,
            plays="other_subject",
            person=_person(37, "PHILOMENIX", "BUTTERWHIT"),
            # Nor is it where the goods shall go, for whoever says nothing of the buyer.
            shipping_zip="93722",
            subject="buyer-veriff-0037",
            verification={"vendorData": "buyer-of-somebody-else"},
        ),
        Part(
            number=38,
            plays="unknown_status",
            person=_person(38, "GWENDOLINUS", "PIDDLECREEK"),
            verification={"status": "approved_conditionally"},
        ),
        Part(
            number=39,
            plays="other_session",
            person=_person(39, "ARCHIBELLA", "NUTHATCHER"),
            verification={"id": "7e51ff00-0000-4000-8000-000000000001"},
        ),
        # The code says yes, the status says no.
        Part(
            number=40,
            plays="contradicting_code",
            person=_person(40, "LEOPOLDINE", "SQUIRRELHOPE"),
            verification={"status": "declined", "code": 9001, "reasonCode": 102},
        ),
        Part(number=50, plays="truncated", person=_person(50, "OCTAVIUSA", "DRIZZLEFORD")),
        Part(number=51, plays="huge"),
        Part(number=52, plays="error_500"),
        Part(number=53, plays="html_502"),
        Part(number=54, plays="slow", person=_person(54, "SERAPHINO", "CLATTERBECK")),
        Part(number=55, plays="cut", person=_person(55, "EUPHEMIUS", "RUMPLESTANE")),
        Part(number=56, plays="unsigned", person=_person(56, "CLEMENTOR", "WHIFFLETREE")),
        Part(number=57, plays="wrong_signature", person=_person(57, "DULCINETTE", "GRUMBLEFEN")),
        Part(number=58, plays="rate_limited"),
        # Undecided when it is asked for the first time, approved after that.
        Part(number=59, plays="decided_later", person=_person(59, "MARIGOLDO", "TWISTLEDOWN")),
    ]
    return (*verified, *refused)
