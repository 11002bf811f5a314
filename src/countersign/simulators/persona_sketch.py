"""From a few words to a whole inquiry of the simulated Persona."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from zlib import crc32

from countersign.simulators.licence_holders import Person
from countersign.simulators.persona_objects import (
    FENWICK,
    PERCIVALD,
    aamva,
    database,
    fields,
    government_id,
    time,
)
from countersign.simulators.protocol import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An inquiry, and how the provider behaves when it is asked for it."""

    listed: Session
    body: Mapping[str, Any]
    """`data` and `included`, complete."""
    manner: str = "plain"
    """How it is answered; the words are those of `persona.Persona`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A part in the few words in which it differs from others."""

    name: str
    plays: str = "verified"
    status: str = "approved"
    person: Person = FENWICK
    typed: Person | None = None
    """What the buyer typed, if something else than what is on the document."""
    zip: str | None = None
    """The ZIP code to ship to; that of the document if not given."""
    proofs: tuple[str, ...] = ("passed",)
    """The verifications: of a document by their status, others by a word of `_verification`."""
    manner: str = "plain"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the inquiry that are otherwise than usual."""
    withheld: tuple[str, ...] = ()
    """Attributes of verifications that the key may not see."""


_ANOTHER: Final = replace(PERCIVALD, number="S52738888")
"""Whose licence is in an inquiry beside the buyer's own document."""


def session_id(name: str) -> str:
    """The identifier of the part with this CamelCase name."""
    return f"inq_{f'Sim{name}'.ljust(28, '0')}"


def part_of(sketch: Sketch, now: float) -> Part:
    """The part, as of this Unix time."""
    own_id, sent = session_id(sketch.name), f"buyer-{sketch.name.lower()}"
    person = sketch.person
    if not sketch.name.startswith("SameDocument"):
        # A document of its own, so that no two parts are the same buyer by accident.
        person = replace(person, number=f"{person.number}{crc32(sketch.name.encode()):08X}")
    included = [
        _verification(word, f"{sketch.name}{index}", person, own_id, now)
        for index, word in enumerate(sketch.proofs)
    ]
    for one in included:
        one["attributes"] = _without(one["attributes"], sketch.withheld)
    typed = fields(sketch.typed or person)
    attributes = {**_attributes(sketch.status, sent, typed, now), **sketch.changes}
    if sketch.plays == "other_subject":
        attributes["reference-id"] = "buyer-of-another-vendor"
    if attributes["redacted-at"] is not None:
        attributes["fields"] = {name: one | {"value": None} for name, one in typed.items()}
        included = []
    others = _ANOTHER.personal if "passed_of_another" in sketch.proofs else ()
    gone = sketch.plays in {"redacted", "proof_redacted"}
    listed = Session(
        session_id=own_id,
        plays=sketch.plays,
        shipping_zip=sketch.zip or person.zip,
        subject_reference=sent,
        personal=() if gone else (*person.personal, *others),
    )
    data = {
        "type": "inquiry",
        "id": own_id,
        "attributes": attributes,
        "relationships": _relationships(included),
    }
    return Part(listed=listed, body={"data": data, "included": included}, manner=sketch.manner)


def _attributes(status: str, subject: str, typed: object, now: float) -> dict[str, Any]:
    decided = time(now, minutes_ago=5) if status in {"approved", "declined"} else None
    finished = None if status in {"created", "pending", "expired"} else time(now, minutes_ago=8)
    return {
        "status": status,
        "reference-id": subject,
        "note": None,
        "behaviors": {},
        "tags": [],
        "creator": "simulator@persona.example",
        "reviewer-comment": None,
        "created-at": time(now, minutes_ago=30),
        "updated-at": time(now, minutes_ago=5),
        "started-at": time(now, minutes_ago=25),
        "expires-at": None,
        "completed-at": finished,
        "failed-at": time(now, minutes_ago=5) if status == "failed" else None,
        "marked-for-review-at": None,
        "decisioned-at": decided,
        "expired-at": time(now, minutes_ago=5) if status == "expired" else None,
        "redacted-at": None,
        "previous-step-name": "verification_government_id",
        "next-step-name": "success",
        "fields": typed,
    }


def _relationships(included: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    links = [{"type": one["type"], "id": one["id"]} for one in included]
    return {
        "account": {"data": {"type": "account", "id": "act_SimAccount00000000000000"}},
        "inquiry-template": {"data": {"type": "inquiry-template", "id": "itmpl_SimTemplate"}},
        "reviewer": {"data": {"type": "workflow-run", "id": "wfr_SimDecision"}},
        "reports": {"data": []},
        "verifications": {"data": links},
        "sessions": {"data": []},
        "documents": {"data": []},
        "selfies": {"data": []},
    }


def _verification(
    word: str, name: str, person: Person, inquiry_id: str, now: float
) -> dict[str, Any]:
    kinds = {
        "passed_of_another": (
            "government-id",
            government_id(_ANOTHER, now, status="passed", minutes_ago=20),
        ),
        "aamva": ("aamva", aamva(person, now)),
        "aamva_unborn": ("aamva", aamva(person, now, born="not_applicable")),
        "near": ("database", database(person, now, match="partial")),
        "selfie": ("selfie", {"status": "passed", "checks": []}),
    }
    kind, attributes = kinds.get(word) or (
        "government-id",
        _redacted(government_id(person, now), now)
        if word == "redacted"
        else government_id(person, now, status=word, minutes_ago=10 if word == "passed" else 20),
    )
    return {
        "type": f"verification/{kind}",
        "id": f"ver_Sim{name}",
        "attributes": attributes,
        "relationships": {"inquiry": {"data": {"type": "inquiry", "id": inquiry_id}}},
    }


def _redacted(attributes: dict[str, Any], now: float) -> dict[str, Any]:
    """It still says `passed`; what it knew of the person is null."""
    kept = {"status", "created-at", "created-at-ts", "checks", "tags", "from-reusable-persona"}
    empty: dict[str, list[str]] = {"entity-confidence-reasons": [], "photo-urls": []}
    gone = {name: value if name in kept else None for name, value in attributes.items()}
    return gone | empty | {"redacted-at": time(now, minutes_ago=1)}


def _without(attributes: Mapping[str, Any], withheld: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name not in withheld}
