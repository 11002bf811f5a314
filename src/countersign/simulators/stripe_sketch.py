"""From a few words to a whole VerificationSession of the simulated Stripe Identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from countersign.simulators.licence_holders import Person
from countersign.simulators.protocol import Session
from countersign.simulators.stripe_objects import ZAPHIRA, document, outputs, unix


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A session, and how the provider behaves when it is asked for it."""

    listed: Session
    body: Mapping[str, Any]
    """The VerificationSession with its report, everything expanded."""
    manner: str = "plain"
    """How it is answered; the words are those of `stripe.Stripe`."""
    hours_ago: float = 0.5
    """When the verification was processed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A part in the few words in which it differs from others."""

    name: str
    plays: str = "verified"
    person: Person | None = ZAPHIRA
    zip: str | None = None
    """The ZIP code to ship to; that of the document if not given."""
    subject: str | None = None
    manner: str = "plain"
    hours_ago: float = 0.5
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Members of the session that are otherwise than usual."""
    document_status: str = "verified"


def session_id(name: str) -> str:
    """The identifier of the part with this CamelCase name."""
    return f"vs_{f'1Sim{name}'.ljust(24, '0')}"


def part_of(sketch: Sketch, now: float) -> Part:
    """The part, as of this Unix time."""
    person, own_id = _with_own_number(sketch), session_id(sketch.name)
    sent = sketch.subject or f"buyer-{sketch.name.lower()}"
    held = "buyer-of-another-vendor" if sketch.plays == "other_subject" else sent
    created = unix(now, hours_ago=sketch.hours_ago)
    body: dict[str, Any] = {
        "id": own_id,
        "object": "identity.verification_session",
        "client_reference_id": held,
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
        "verified_outputs": None if person is None else outputs(person),
    }
    if person is not None:
        body["last_verification_report"] = _report(sketch, person, now)
        body["provided_details"] = {"email": person.email, "phone": None}
    body |= sketch.changes
    listed = Session(
        session_id=own_id,
        plays=sketch.plays,
        shipping_zip=sketch.zip or (person or ZAPHIRA).zip,
        subject_reference=sent,
        personal=() if person is None else person.personal,
    )
    return Part(listed=listed, body=body, manner=sketch.manner, hours_ago=sketch.hours_ago)


def _with_own_number(sketch: Sketch) -> Person | None:
    """The person with a document of this session's own, unless sharing it is the part."""
    if sketch.person is None or sketch.name.startswith("SameDocument"):
        return sketch.person
    return replace(sketch.person, number=f"{sketch.person.number}{crc32(sketch.name.encode()):08X}")


def _report(sketch: Sketch, person: Person, now: float) -> dict[str, Any]:
    own_id = session_id(sketch.name)
    return {
        "id": f"vr_{own_id.removeprefix('vs_')}",
        "object": "identity.verification_report",
        "client_reference_id": None,
        "created": unix(now, hours_ago=sketch.hours_ago),
        "document": document(person, now, status=sketch.document_status),
        "livemode": sketch.changes.get("livemode", True),
        "options": {"document": {}},
        "type": "document",
        "verification_flow": None,
        "verification_session": own_id,
    }
