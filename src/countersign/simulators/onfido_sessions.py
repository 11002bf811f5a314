"""The sessions that the simulated Onfido knows; every person in them is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from countersign.simulators.document_people import Person, today, turned, turns_tomorrow
from countersign.simulators.onfido_parts import Part, Shown


def _person(number: int, first: str, last: str, **other: str) -> Person:
    """A person with an address and a licence of their own."""
    plain = {
        "born": f"19{62 + number}-1{number % 3}-{10 + number % 18}",
        "number": f"OFX{number:06d}K",
        "street": f"{5200 + number} Bellwether Sprocket Row",
        "city": "Eureka",
        "state": "CA",
        "postcode": "95501",
        "country": "USA",
    }
    return Person(first=first, last=last, **(plain | other))


_CALLIOPE: Final = _person(1, "Callioperine", "Mudlarkson")
_WENDOLYN: Final = _person(2, "Wendolynda", "Thrumblecastle", postcode="90660", city="Pico Rivera")


def parts(now: float) -> Sequence[Part]:
    """Every part, in a fixed order; ages are reckoned from `now`, in Unix seconds."""
    return (*_verified(now), *_undecided(), *_unproved(now), *_troubled())


def _part(
    number: int,
    plays: str,
    person: Person,
    changes: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    **other: Any,  # noqa: ANN401 - the fields of Part
) -> Part:
    """A run in which one document was shown, with changes to the run and to what was read."""
    shown = Shown(person=person, changes={"properties": properties or {}})
    fields = {
        "shown": [shown],
        "shipping_zip": person.postcode[:5],
        "subject": f"buyer-onfido-{number:04d}",
    } | other
    return Part(number=number, plays=plays, changes=changes or {}, **fields)


def _verified(now: float) -> Sequence[Part]:
    plus_four = _person(3, "Ferdinandria", "Oxpecker", postcode="94102-4301")
    nine = _person(4, "Silvanthea", "Crumpetfield", postcode="921010987")
    zero = _person(5, "Humphriette", "Plumworth", postcode="07030", state="NJ", city="Hoboken")
    twice = _person(6, "Archibaldine", "Netherwick")
    blurred = _person(7, "Jocastabel", "Ramsbottomley")
    apart = _person(8, "Quentinella", "Hobgrove")
    passport = _person(9, "Tobiasina", "Larchwhistle", state="")
    typed = _person(10, "Eglantina", "Bumblethorpe")
    eighteen = _person(11, "Persimmony", "Goosegate", born=turned(18, today(now)))
    extra = _person(12, "Dorotheon", "Wimblecroft")
    no_address = {"address": ..., "address_lines": ..., "issuing_state": ...}
    return (
        _part(1, "verified", _CALLIOPE),
        _part(2, "verified", _WENDOLYN),
        # The same licence as the first: the same buyer.
        _part(3, "verified", _CALLIOPE),
        _part(4, "verified", plus_four),
        _part(5, "verified", nine),
        _part(6, "verified", zero),
        # The first attempt was not clear, and of somebody else.
        _part(
            7,
            "verified",
            twice,
            shown=[
                Shown(person=blurred, changes={"result": "consider", "sub_result": "rejected"}),
                Shown(person=twice),
            ],
        ),
        _part(8, "verified", apart, shown=[Shown(person=apart, only_in_report=True)]),
        # A passport has no address: a database check has put one into the declared output.
        _part(
            9,
            "verified",
            passport,
            {"output": {"checked_address": {"postcode": "95540", "country": "USA"}}},
            {**no_address, "document_type": "passport"},
            shipping_zip="95540",
        ),
        # What the workflow puts out of the person's own form is not declared, so it is not read.
        _part(
            10,
            "verified",
            typed,
            {
                "output": {
                    "dob": "2011-11-11",
                    "postcode": "10001",
                    "profile": {"dob": "2011-11-11"},
                }
            },
            personal=("2011-11-11",),
        ),
        _part(11, "verified", eighteen),
        _part(
            12,
            "verified",
            extra,
            {"an_addition": {"of": ["next", "year"]}, "link": {"url": "https://id.onfido.example"}},
        ),
        _part(13, "verified", extra, trouble="rate_limited"),
    )


def _undecided() -> Sequence[Part]:
    def without(number: int, plays: str, status: str, **other: Any) -> Part:  # noqa: ANN401 - JSON
        return _part(number, plays, _CALLIOPE, {"status": status, **other}, shown=[])

    return (
        without(21, "pending", "processing"),
        _part(22, "review", _WENDOLYN, {"status": "review"}),
        without(23, "requires_input", "awaiting_input"),
        without(24, "requires_client_input", "awaiting_client_input"),
        _part(25, "failed", _WENDOLYN, {"status": "declined", "reasons": ["DOCUMENT_FRAUD"]}),
        without(26, "canceled", "abandoned"),
        without(
            27,
            "workflow_error",
            "error",
            error={"type": "workflow_error", "message": "A task of the workflow could not be run."},
        ),
        without(28, "unknown_status", "under_observation"),
    )


def _unproved(now: float) -> Sequence[Part]:
    day = today(now)
    young = _person(13, "Mirabellon", "Foxtrotter", born=turned(17, day))
    tomorrow = _person(14, "Anselmina", "Puddifoot", born=turns_tomorrow(18, day))
    abroad = _person(15, "Gwendolith", "Sprucemoor", country="CAN", state="BC", postcode="V6B 1A1")
    consider = Shown(person=_WENDOLYN, changes={"result": "consider", "sub_result": "caution"})
    return (
        _part(31, "underage", young),
        _part(32, "underage_until_tomorrow", tomorrow),
        _part(33, "expired_document", _CALLIOPE, properties={"date_of_expiry": "2021-03-04"}),
        _part(34, "age_unknown", _CALLIOPE, properties={"date_of_birth": ...}),
        _part(35, "zip_unknown", _CALLIOPE, properties={"address_lines": ...}),
        _part(36, "foreign_address", abroad, shipping_zip="95501"),
        _part(37, "zip_mismatch", _WENDOLYN, shipping_zip="95501"),
        # Approved by the workflow, but the document report is not clear.
        _part(38, "document_not_clear", _WENDOLYN, shown=[consider]),
        # A workflow that shows no document at all.
        _part(39, "no_document", _CALLIOPE, shown=[]),
        # Nor is it where the goods shall go, for whoever says nothing of the buyer.
        _part(
            40,
            "other_subject",
            _CALLIOPE,
            {"customer_user_id": "buyer-of-another"},
            shipping_zip="95502",
        ),
        _part(
            41,
            "undeclared_output_zip",
            _WENDOLYN,
            {"output": {"postcode": "95501"}},
            shipping_zip="95501",
        ),
        _part(42, "other_environment", _CALLIOPE, environment="sandbox"),
    )


def _troubled() -> Sequence[Part]:
    other = "0f1d0000-0000-4000-8000-000000000001"
    return (
        _part(51, "wrong_id", _CALLIOPE, {"id": other}),
        _part(52, "wrong_task", _CALLIOPE, trouble="wrong_task"),
        _part(53, "truncated", _CALLIOPE, trouble="truncated"),
        _part(54, "oversized", _CALLIOPE, trouble="oversized"),
        _part(55, "rate_limited", _CALLIOPE, trouble="rate_limited_30"),
        _part(56, "server_error", _CALLIOPE, trouble="server_error"),
        _part(57, "bad_gateway", _CALLIOPE, trouble="bad_gateway"),
        _part(58, "slow", _CALLIOPE, trouble="slow"),
        _part(59, "cut", _CALLIOPE, trouble="cut"),
        _part(60, "deleted", _CALLIOPE, trouble="deleted"),
        _part(61, "report_server_error", _CALLIOPE, trouble="report_server_error"),
    )
