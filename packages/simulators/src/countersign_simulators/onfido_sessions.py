"""The fixed runs of the simulated Onfido; every person in them is invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from countersign_simulators.base import Session
from countersign_simulators.people import Person, birthday


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A document check, and how its report differs from a clear one."""

    person: Person
    changes: Mapping[str, Any] = field(default_factory=dict)
    only_in_report: bool = False
    """The output of the task has no properties: they are at `/reports/{uuid}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Session):
    """A workflow run, and how it differs from a plain approval."""

    number: int
    checks: Sequence[Check]
    """In the order in which they were made."""
    changes: Mapping[str, Any]
    """Members that replace those of a plain approval."""
    failure: str | None = None
    environment: str = "live"
    between: tuple[float, float] | None = None
    """Unix seconds: when it was created and last changed; None: before the simulator started."""

    def task_id(self, index: int) -> str:
        return f"document_check_{self.number:03d}{index}"

    def report_id(self, index: int) -> str:
        return f"0f1d4e90-000{index}-4000-8000-{self.number:012d}"


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a licence of their own."""
    usual = {
        "born": f"19{62 + number}-1{number % 3}-{10 + number % 18}",
        "number": f"OFX{number:06d}K",
        "street": f"{5200 + number} Bellwether Sprocket Row",
        "city": "Eureka",
        "postcode": "95501",
        "country": "USA",
    }
    return Person(first=first, last=last, **(usual | other))


_CALLIOPE: Final = _buyer(1, "Callioperine", "Mudlarkson")
_WENDOLYN: Final = _buyer(2, "Wendolynda", "Thrumblecastle", postcode="90660", city="Pico Rivera")


def _session(
    number: int,
    scenario: str,
    person: Person,
    changes: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    *,
    checks: Sequence[Check] | None = None,
    more_personal: tuple[str, ...] = (),
    **other: Any,  # noqa: ANN401 - the fields of Run
) -> Run:
    """A run in which one document was shown, with changes to the run and to what was read."""
    if checks is None:
        checks = [Check(person=person, changes={"properties": properties or {}})]
    fields = ("first", "last", "born", "number", "street")
    personal = [text for check in checks for text in check.person.texts(*fields)]
    return Run(
        **{"shipping_zip": person.postcode[:5]} | other,
        session_id=f"0f1d0000-0000-4000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        subject_reference=f"buyer-onfido-{number:04d}",
        personal=tuple(dict.fromkeys((*personal, *more_personal))),
        checks=checks,
        changes=changes or {},
    )


def _verified(now: float) -> Sequence[Run]:
    plus_four = _buyer(3, "Ferdinandria", "Oxpecker", postcode="94102-4301")
    nine_digits = _buyer(4, "Silvanthea", "Crumpetfield", postcode="921010987")
    zero = _buyer(5, "Humphriette", "Plumworth", postcode="07030", state="NJ", city="Hoboken")
    twice = _buyer(6, "Archibaldine", "Netherwick")
    blurred = Check(
        person=_buyer(7, "Jocastabel", "Ramsbottomley"),
        changes={"result": "consider", "sub_result": "rejected"},
    )
    apart = _buyer(8, "Quentinella", "Hobgrove")
    passport = _buyer(9, "Tobiasina", "Larchwhistle", state="")
    no_address = {"address": ..., "address_lines": ..., "issuing_state": ...}
    typed = _buyer(10, "Eglantina", "Bumblethorpe")
    young = "2011-11-11"
    form = {"output": {"dob": young, "postcode": "10001", "profile": {"dob": young}}}
    eighteen = _buyer(11, "Persimmony", "Goosegate", born=birthday(now, 18))
    extra = _buyer(12, "Dorotheon", "Wimblecroft")
    unknown_members = {
        "an_addition": {"of": ["next", "year"]},
        "link": {"url": "https://id.onfido.example"},
    }
    return (
        _session(1, "verified", _CALLIOPE),
        _session(2, "verified", _WENDOLYN),
        # The same licence as the first: the same buyer.
        _session(3, "verified", _CALLIOPE),
        _session(4, "verified", plus_four),
        _session(5, "verified", nine_digits),
        _session(6, "verified", zero),
        # The first attempt was not clear, and of somebody else.
        _session(7, "verified", twice, checks=[blurred, Check(person=twice)]),
        _session(8, "verified", apart, checks=[Check(person=apart, only_in_report=True)]),
        # A passport has no address: a database check has put one into the declared output.
        _session(
            9,
            "verified",
            passport,
            {"output": {"checked_address": {"postcode": "95540", "country": "USA"}}},
            {**no_address, "document_type": "passport"},
            shipping_zip="95540",
        ),
        # What the workflow puts out of the person's own form is not declared, so it is not read.
        _session(10, "verified", typed, form, more_personal=(young,)),
        _session(11, "verified", eighteen),
        _session(12, "verified", extra, unknown_members),
        _session(13, "verified", extra, failure="limited_once"),
    )


def _undecided() -> Sequence[Run]:
    def without_check(number: int, scenario: str, status: str, **other: object) -> Run:
        return _session(number, scenario, _CALLIOPE, {"status": status, **other}, checks=[])

    error = {"type": "workflow_error", "message": "A task of the workflow could not be run."}
    declined = {"status": "declined", "reasons": ["DOCUMENT_FRAUD"]}
    return (
        without_check(21, "pending", "processing"),
        _session(22, "review", _WENDOLYN, {"status": "review"}),
        without_check(23, "requires_input", "awaiting_input"),
        without_check(24, "requires_client_input", "awaiting_client_input"),
        _session(25, "failed", _WENDOLYN, declined),
        without_check(26, "canceled", "abandoned"),
        without_check(27, "workflow_error", "error", error=error),
        without_check(28, "unknown_status", "under_observation"),
    )


def _unproved(now: float) -> Sequence[Run]:
    under_age = _buyer(13, "Mirabellon", "Foxtrotter", born=birthday(now, 17))
    tomorrow = _buyer(14, "Anselmina", "Puddifoot", born=birthday(now, 18, days_later=1))
    abroad = _buyer(15, "Gwendolith", "Sprucemoor", country="CAN", state="BC", postcode="V6B 1A1")
    consider = Check(person=_WENDOLYN, changes={"result": "consider", "sub_result": "caution"})
    other_subject = {"customer_user_id": "buyer-of-another"}
    undeclared = {"output": {"postcode": "95501"}}
    return (
        _session(31, "underage", under_age),
        _session(32, "underage_until_tomorrow", tomorrow),
        _session(33, "expired_document", _CALLIOPE, properties={"date_of_expiry": "2021-03-04"}),
        _session(34, "age_unknown", _CALLIOPE, properties={"date_of_birth": ...}),
        _session(35, "zip_unknown", _CALLIOPE, properties={"address_lines": ...}),
        _session(36, "foreign_address", abroad, shipping_zip="95501"),
        _session(37, "zip_mismatch", _WENDOLYN, shipping_zip="95501"),
        # Approved by the workflow, but the document report is not clear.
        _session(38, "document_not_clear", _WENDOLYN, checks=[consider]),
        # A workflow that checks no document at all.
        _session(39, "no_document", _CALLIOPE, checks=[]),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        _session(40, "other_subject", _CALLIOPE, other_subject, shipping_zip="95502"),
        _session(41, "undeclared_output_zip", _WENDOLYN, undeclared, shipping_zip="95501"),
        _session(42, "other_environment", _CALLIOPE, environment="sandbox"),
    )


def _failing() -> Sequence[Run]:
    other = "0f1d0000-0000-4000-8000-000000000001"
    return (
        _session(51, "wrong_id", _CALLIOPE, {"id": other}),
        _session(52, "wrong_task", _CALLIOPE, failure="wrong_task"),
        _session(53, "truncated", _CALLIOPE, failure="truncated"),
        _session(54, "oversized", _CALLIOPE, failure="huge"),
        _session(55, "rate_limited", _CALLIOPE, failure="limited_long"),
        _session(56, "server_error", _CALLIOPE, failure="server_error"),
        _session(57, "bad_gateway", _CALLIOPE, failure="bad_gateway"),
        _session(58, "slow", _CALLIOPE, failure="slow"),
        _session(59, "cut", _CALLIOPE, failure="cut"),
        _session(60, "deleted", _CALLIOPE, failure="deleted"),
        _session(61, "report_server_error", _CALLIOPE, failure="report_server_error"),
    )


def runs(now: float) -> Sequence[Run]:
    """All of them, with dates as of `now` in Unix seconds."""
    return (*_verified(now), *_undecided(), *_unproved(now), *_failing())
