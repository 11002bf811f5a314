"""The fixed sessions of the simulated Veriff; every person in them is invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countersign_simulators.base import Session
from countersign_simulators.people import Person, birthday, day

INTEGRATION: Final = "5117fab1-0000-4000-8000-00000000000a"
TEST_INTEGRATION: Final = "5117fab1-0000-4000-8000-0000000000ff"


@dataclass(frozen=True, slots=True, kw_only=True)
class VeriffSession(Session):
    """A session, and how its decision differs from a plain approval."""

    number: int
    person: Person | None
    decision: Mapping[str, Any] | None
    """Members that replace those of a plain approval; None: there is no decision."""
    failure: str | None = None
    integration: str | None = None
    """The integration that the response names; Veriff's reference lists no such header."""
    old_headers: bool = False
    """Whether client and signature are in the `vrf-` headers that older pages of Veriff show."""
    end_user: str | None = None
    decided_at: float | None = None
    """Unix seconds; None: a moment ago."""
    submitted: bool = True
    """Whether the buyer has sent in something."""

    @property
    def attempt_id(self) -> str:
        return f"a77e3970-0000-4000-8000-{self.number:012d}"


APPROVED: Final[Mapping[str, Any]] = {}
"""A decision that is a plain approval."""
_ANOTHER_ID: Final = "7e51ff00-0000-4000-8000-000000000001"


def _session(
    number: int,
    scenario: str,
    person: Person | None = None,
    decision: Mapping[str, Any] | None = APPROVED,
    *,
    version: str = "4",
    **other: Any,  # noqa: ANN401 - the fields of VeriffSession
) -> VeriffSession:
    """A session whose id is a UUID of this version that ends in its number."""
    fields = {"shipping_zip": "93701"} | other
    return VeriffSession(
        session_id=f"7e51ff00-0000-{version}000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        person=person,
        personal=person.texts("first", "last", "born", "number", "street") if person else (),
        decision=decision,
        **fields,
    )


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a document of their own."""
    usual = {
        "born": "1987-03-14",
        "number": f"VQX{number:07d}",
        "street": f"{4100 + number} Crumblequince Terrace",
        "city": "Fresno",
        "state": "California",
        "postcode": "93701",
        "country": "USA",
    }
    return Person(first=first, last=last, **(usual | other))


def without_data(status: str, code: int, reason: int | None) -> Mapping[str, Any]:
    """The members of a decision that knows nothing of a person."""
    return {
        "status": status,
        "code": code,
        "reasonCode": reason,
        "reason": None if reason is None else "Made up by the simulator",
        "person": {"firstName": None, "lastName": None, "dateOfBirth": None, "addresses": None},
        "document": {"type": None, "number": None, "country": None, "validUntil": None},
    }


def _verified(now: float) -> Sequence[VeriffSession]:
    first = _buyer(1, "PERPETUA", "WIGGLESTONE", street="418 Brindlemoss Terrace")
    at = {"street": "77 Old Quincemarsh Road", "city": "San Francisco", "postcode": "94110-2231"}
    twice = _buyer(2, "BARNABOLD", "FENWHISTLE", born="1979-11-02", **at)
    nine_digits = _buyer(4, "ISOLDINA", "MUMBLETHORPE", postcode="937211234")
    boston = {"city": "Boston", "state": "Massachusetts", "postcode": "02139"}
    leading_zero = _buyer(5, "GUNDRICK", "SPARROWVANE", **boston)
    eighteen = _buyer(6, "LUMINELLE", "OXTROTTER", born=birthday(now, 18))
    unknown_members = {"holographicAura": {"hue": "mauve"}, "futureList": [1, 2.5, None]}
    return (
        _session(1, "verified", first, subject_reference="buyer-veriff-0001"),
        # Two sessions of one document: one buyer. The second has an identifier of version 3.
        _session(2, "verified", twice, shipping_zip="94110"),
        _session(3, "verified", twice, shipping_zip="94110", version="3"),
        _session(4, "verified", nine_digits, shipping_zip="93721"),
        _session(5, "verified", leading_zero, shipping_zip="02139"),
        _session(6, "verified", eighteen),
        _session(7, "verified", _buyer(7, "THADDEUSINE", "PEBBLEWORTH"), unknown_members),
        # Veriff's pages disagree about codes: only the status counts.
        _session(8, "verified", _buyer(8, "ORSOLVINA", "GLIMMERPATCH"), {"code": 9121}),
        # The headers as older pages of Veriff show them.
        _session(
            11,
            "verified",
            _buyer(11, "ZEPHYRINDA", "QUILLHOOTER"),
            integration=INTEGRATION,
            old_headers=True,
        ),
        _session(9, "verified", _buyer(9, "CASPERION", "DUNDERWILLOW"), failure="limited_briefly"),
        _session(10, "verified", _buyer(10, "WILHELMOT", "TANGLEBROOK"), failure="limited_once"),
    )


def _undecided() -> Sequence[VeriffSession]:
    fraud = {"status": "declined", "code": 9102, "reasonCode": 106, "reason": "Fraud"}
    retry = without_data("resubmission_requested", 9103, 204)
    return (
        _session(20, "pending", decision=None),
        _session(21, "review", decision=without_data("review", 9121, None)),
        _session(22, "requires_input", decision=retry),
        _session(23, "failed", _buyer(23, "MORDECAINE", "BRISTLECOMB"), fraud),
        _session(24, "canceled", decision=without_data("abandoned", 9104, None)),
        _session(25, "expired", decision=without_data("expired", 9104, None)),
        # Deleted at Veriff: the session is gone from the API.
        _session(26, "redacted"),
    )


def _unproved(now: float) -> Sequence[VeriffSession]:
    under_age = _buyer(27, "JUNIPERELLA", "SNICKETWELL", born=birthday(now, 16))
    tomorrow = _buyer(28, "ALDERWYNE", "COPPERNETTLE", born=birthday(now, 18, days_later=1))
    yesterday = day(now, days=-1).isoformat()
    france = {"state": "Île-de-France", "postcode": "75008", "country": "France"}
    at = {"street": "12 Rue du Hérisson Violet", "city": "Paris", **france}
    unparsed = [{"fullAddress": "4132 Crumblequince Terrace, Fresno 93701"}]
    passport = {"person": {"addresses": ...}, "document": {"type": "PASSPORT"}}
    declined = {"status": "declined", "code": 9001, "reasonCode": 102}

    def of(
        number: int,
        scenario: str,
        names: tuple[str, str],
        decision: Mapping[str, Any] = APPROVED,
        **other: Any,  # noqa: ANN401 - the fields of VeriffSession
    ) -> VeriffSession:
        return _session(number, scenario, _buyer(number, *names), decision, **other)

    return (
        _session(27, "underage", under_age),
        _session(28, "of_age_tomorrow", tomorrow),
        of(
            29,
            "document_expired",
            ("ROSAMUNDIA", "FLINTWICKER"),
            {"document": {"validUntil": yesterday}},
        ),
        # An age guessed from the face is in the decision, and is no proof.
        of(30, "no_birth_date", ("TIBERIOLA", "HUCKLEMARSH"), {"person": {"dateOfBirth": None}}),
        of(31, "no_address", ("ESMERALDINE", "VANTERPOOLE"), passport),
        of(
            32,
            "unparsed_address",
            ("HORATIANNE", "WOBBLECHIME"),
            {"person": {"addresses": unparsed}},
        ),
        _session(
            33,
            "foreign_address",
            _buyer(33, "FRANZISKANE", "LEBERWURZEL", **at),
            {"document": {"country": "FR", "type": "ID_CARD"}},
            shipping_zip="75008",
        ),
        _session(34, "zip_mismatch", _buyer(34, "BALTHAZINE", "THRUMBLETON", postcode="93702")),
        # A check without a document returns what somebody typed.
        of(
            35,
            "user_entered",
            ("QUENTINABEL", "MOSSGROVER"),
            {"document": without_data("", 0, None)["document"]},
        ),
        of(36, "test_session", ("VALENTIQUE", "GORSEBERRY"), integration=TEST_INTEGRATION),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        of(
            37,
            "other_subject",
            ("PHILOMENIX", "BUTTERWHIT"),
            {"vendorData": "buyer-of-somebody-else"},
            shipping_zip="93722",
            subject_reference="buyer-veriff-0037",
        ),
        of(
            38,
            "unknown_status",
            ("GWENDOLINUS", "PIDDLECREEK"),
            {"status": "approved_conditionally"},
        ),
        of(39, "other_session", ("ARCHIBELLA", "NUTHATCHER"), {"id": _ANOTHER_ID}),
        # The code says yes, the status says no.
        of(40, "contradicting_code", ("LEOPOLDINE", "SQUIRRELHOPE"), declined),
    )


def _failing() -> Sequence[VeriffSession]:
    later = _buyer(59, "MARIGOLDO", "TWISTLEDOWN")

    def of(number: int, scenario: str, first: str, last: str) -> VeriffSession:
        return _session(number, scenario, _buyer(number, first, last), failure=scenario)

    return (
        of(50, "truncated", "OCTAVIUSA", "DRIZZLEFORD"),
        _session(51, "huge", failure="huge"),
        _session(52, "error_500", failure="server_error"),
        _session(53, "html_502", failure="bad_gateway"),
        of(54, "slow", "SERAPHINO", "CLATTERBECK"),
        of(55, "cut", "EUPHEMIUS", "RUMPLESTANE"),
        of(56, "unsigned", "CLEMENTOR", "WHIFFLETREE"),
        of(57, "wrong_signature", "DULCINETTE", "GRUMBLEFEN"),
        _session(58, "rate_limited", failure="limited"),
        # Undecided when it is requested for the first time, approved after that.
        _session(59, "decided_later", later),
    )


def sessions(now: float) -> Sequence[VeriffSession]:
    """All of them, with dates as of `now` in Unix seconds."""
    return (*_verified(now), *_undecided(), *_unproved(now), *_failing())
