"""The VerificationSessions of the simulated Stripe Identity; every person in them is invented.

Written from Stripe's API reference, version 2026-10-28.endive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from countersign_simulators.hosted import Created
from countersign_simulators.people import Person, day
from countersign_simulators.table import Played, Table

OUTPUTS: Final = "verified_outputs"
REPORT: Final = "last_verification_report"
_TABLE: Final = Table("stripe")


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeSession(Played):
    """A session, and Stripe's behaviour when it is requested."""

    body: Mapping[str, Any]
    """The VerificationSession with its report, everything expanded."""
    hours_ago: float = 0.5
    """When the verification was processed."""
    live: bool = True
    """Whether it is seen with live keys; else only with test keys."""


def session_id(name: str) -> str:
    """The identifier of the session with this CamelCase name."""
    return f"vs_{f'1Sim{name}'.ljust(24, '0')}"


def all_sessions(now: float) -> Sequence[StripeSession]:
    """Every fixed session, with dates as of this Unix time."""
    return [_fixed(row, now) for row in _TABLE.rows(now)]


def session_of(created: Created, now: float) -> StripeSession:
    """A created session as it is at this Unix time, with everything expanded."""
    made, own_id, row = created.made, created.session_id, _TABLE.row_of(created, now)
    changes, status = row.pop("changes"), row.pop("document_status")
    body = _body(own_id, created.reference or "", int(created.created_at)) | {
        "client_reference_id": created.reference,
        "livemode": made["live"],
        "status": "requires_input",
        "url": made["origin"] + created.page,
        "client_secret": f"{own_id}_secret_{made['secret']}",
        **{name: made[name] for name in ("type", "verification_flow", "metadata", "options")},
        **{name: made[name] for name in ("provided_details", "related_customer")},
    }
    if changes.get("status") == "verified":
        changed = int(created.changed_at)
        body |= _results(own_id, row["person"], now, changed, live=made["live"], status=status)
        body[REPORT]["client_reference_id"] = created.reference
    return StripeSession(body=body | changes, live=made["live"], **row)


def event(**values: object) -> dict[str, Any]:
    """An event with these values."""
    return _TABLE.body("event", **values)


def _fixed(row: dict[str, Any], now: float) -> StripeSession:
    own_id, person = session_id(row.pop("session_id")), row["person"]
    changes, status = row.pop("changes"), row.pop("document_status")
    created = int(now - row.get("hours_ago", 0.5) * 3600)
    body = _body(own_id, row["subject_reference"], created)
    if person is not None:
        live = changes.get("livemode", True)
        body |= _results(own_id, person, now, created, live=live, status=status)
        body["provided_details"] = {"email": person.email, "phone": None}
    return StripeSession(session_id=own_id, body=body | changes, **row)


def _body(own_id: str, subject: str, created: int) -> dict[str, Any]:
    return _TABLE.body("session", session_id=own_id, subject=subject, created=created)


def _results(
    own_id: str, person: Person, now: float, created: int, *, live: bool, status: str
) -> dict[str, Any]:
    """A session's facts about a person, with everything that a key could be allowed to see."""
    # A passport has no address.
    address = None if person.kind == "passport" else _TABLE.body("address", person)
    found = {
        "address": address,
        "dob": _date(None if person.born is None else date.fromisoformat(person.born)),
    }
    document = _TABLE.body(
        "document",
        person,
        **found,
        expiration_date=_date(person.expires or day(now, years=4)),
        issued_date=_date(day(now, years=-4)),
        status=status,
    )
    report = _TABLE.body(
        "report",
        report_id=f"vr_{own_id.removeprefix('vs_')}",
        created=created,
        document=document,
        livemode=live,
        session_id=own_id,
    )
    return {OUTPUTS: _TABLE.body("outputs", person, **found), REPORT: report}


def _date(value: date | None) -> dict[str, int] | None:
    if value is None:
        return None
    return {"day": value.day, "month": value.month, "year": value.year}
