"""The inquiries of the simulated Persona, and their parts.

Written from Persona's OpenAPI description, version 2025-12-08.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from countersign_simulators.base import timestamp
from countersign_simulators.hosted import Created
from countersign_simulators.people import Person, day
from countersign_simulators.table import Played, Table

_TABLE: Final = Table("persona")
_AAMVA_CHECKS: Final = ("identification_number", "birthdate", "address", "name")
_COMPARED: Final = {
    "name_last": "string_similarity",
    "birthdate": "date_similarity",
    "address_postal_code": "string_difference",
}
"""The comparisons of a database check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaSession(Played):
    """An inquiry, and Persona's behaviour when it is requested."""

    data: Mapping[str, Any]
    included: Sequence[Mapping[str, Any]]


def session_id(name: str) -> str:
    """The identifier of the inquiry with this CamelCase name."""
    return f"inq_{f'Sim{name}'.ljust(28, '0')}"


def time(now: float, *, minutes_ago: float = 0) -> str:
    """A time as Persona writes it."""
    return timestamp(now - 60 * minutes_ago).replace("Z", ".000Z")


def all_sessions(now: float) -> Sequence[PersonaSession]:
    """Every fixed inquiry, with dates as of this Unix time."""
    return [_fixed(row, now) for row in _TABLE.rows(now)]


def session_of(created: Created, now: float) -> PersonaSession:
    """A created inquiry as it is at this Unix time."""
    made, row = created.made, _TABLE.row_of(created, now)
    status, proofs = row.pop("status"), row.pop("proofs")
    person = row["person"] = replace(row["person"], kind="dl")
    own_id = created.session_id
    included = [
        _resource(
            own_id, own_id.removeprefix("inq_"), "government-id", _document(person, now, proof, 0)
        )
        for proof in proofs
    ]
    # Data of the creation, then the buyer's input.
    fields = _fields(replace(person, postcode=created.zip))
    if not proofs:
        sent = made["fields"]
        fields = {name: one | {"value": sent.get(name)} for name, one in fields.items()}
    changed = time(created.changed_at)
    is_complete = status in {"completed", "approved", "declined"}
    attributes = _TABLE.body(
        "inquiry",
        status=status,
        reference=created.reference,
        fields=fields,
        created=time(created.created_at),
        updated=changed,
        begun=None if status == "created" else changed,
        completed=changed if is_complete else None,
        failed=changed if status == "failed" else None,
        decided=changed if status in {"approved", "declined"} else None,
        expired=changed if status == "expired" else None,
    ) | {
        **{name: made[name] for name in ("note", "tags")},
        "previous-step-name": None if status == "created" else "start",
        "next-step-name": "success" if is_complete else "verification_government_id",
    }
    return PersonaSession(data=_data(own_id, attributes, included), included=included, **row)


def _fixed(row: dict[str, Any], now: float) -> PersonaSession:
    """The inquiry of a row.

    `proofs` are its verifications, see `_proof`; `typed` is the person whose data the buyer typed,
    if different from the document's; `reference` is that of the inquiry, if not the one that the
    buyer's server sends; `withheld` are attributes that the key may not see.
    """
    name, person, status = row["session_id"], row["person"], row.pop("status")
    own_id = row["session_id"] = session_id(name)
    typed = _TABLE.person(row.pop("typed"), {"mark": ""}) if "typed" in row else person
    included = [
        _resource(own_id, f"Sim{name}{index}", *_proof(proof, person, now))
        for index, proof in enumerate(row.pop("proofs"))
    ]
    for withheld in row.pop("withheld", ()):
        del included[0]["attributes"][withheld]
    redacted = row.pop("redacted", False)
    decided = time(now, minutes_ago=5)
    attributes = _TABLE.body(
        "inquiry",
        status=status,
        reference=row.pop("reference", row["subject_reference"]),
        fields=_fields(typed),
        created=time(now, minutes_ago=30),
        updated=decided,
        begun=time(now, minutes_ago=25),
        completed=None if status in {"created", "pending", "expired"} else time(now, minutes_ago=8),
        failed=decided if status == "failed" else None,
        decided=decided if status in {"approved", "declined"} else None,
        expired=decided if status == "expired" else None,
    ) | {"redacted-at": time(now, minutes_ago=1) if redacted else None}
    data = _data(own_id, attributes, [] if redacted else included)
    return PersonaSession(data=data, included=included, **row)


def _data(
    own_id: str, attributes: Mapping[str, Any], included: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The inquiry as a resource, which names its verifications."""
    links = [{"type": one["type"], "id": one["id"]} for one in included]
    relationships = _TABLE.body("relationships", verifications=links)
    own = {"attributes": attributes, "relationships": relationships}
    return {"type": "inquiry", "id": own_id, **own}


def _resource(inquiry: str, name: str, kind: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """A verification of an inquiry."""
    return {
        "type": f"verification/{kind}",
        "id": f"ver_{name}",
        "attributes": attributes,
        "relationships": {"inquiry": {"data": {"type": "inquiry", "id": inquiry}}},
    }


def _proof(variant: str, person: Person, now: float) -> tuple[str, dict[str, Any]]:
    """The kind and the attributes of a verification; of a document by its status."""
    match variant:
        case "aamva" | "aamva_without_birth":
            return "aamva", _aamva(
                person, now, "passed" if variant == "aamva" else "not_applicable"
            )
        case "partial_match":
            return "database", _database(person, now, "partial")
        case "selfie":
            return "selfie", {"status": "passed", "checks": []}
        case "passed_of_another":
            another = _TABLE.person("another", {})
            return "government-id", _document(another, now, "passed", 20)
        case "redacted":
            return "government-id", _redacted(_document(person, now, "passed", 10), now)
        case status:
            minutes_ago = 10 if status == "passed" else 20
            return "government-id", _document(person, now, status, minutes_ago)


def _check(
    name: str, status: str = "passed", metadata: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """One of the checks of a verification."""
    return _TABLE.body("check", name=name, status=status, metadata=dict(metadata or {}))


def _common(
    now: float, status: str, country: str, checks: list[dict[str, Any]], minutes_ago: float
) -> dict[str, Any]:
    """The attributes that every verification has."""
    ago = {"created_at": minutes_ago + 3, "submitted_at": minutes_ago + 1}
    if status not in {"initiated", "submitted"}:
        ago["completed_at"] = minutes_ago
    times: dict[str, object] = {"completed_at": None, "completed_at_ts": None}
    times |= {name: time(now, minutes_ago=minutes) for name, minutes in ago.items()}
    times |= {f"{name}_ts": int(now - minutes * 60) for name, minutes in ago.items()}
    return _TABLE.body("common", status=status, country_code=country, checks=checks, **times)


def _document(person: Person, now: float, status: str, minutes_ago: float) -> dict[str, Any]:
    """The attributes of a `verification/government-id`; a passport has no address."""
    checks = [
        _check("id_barcode_detection", "passed" if status == "passed" else "failed"),
        _check("id_expired_detection"),
        _check("id_selfie_comparison", "not_applicable"),
    ]
    nowhere = {"street": None, "city": None, "postcode": None}
    return _common(now, status, person.country, checks, minutes_ago) | _TABLE.body(
        "government-id",
        person,
        **(nowhere if person.kind == "pp" else {}),
        region=None if person.kind == "pp" else person.state,
        issued=day(now, years=-4).isoformat(),
        valid_until=(person.expires or day(now, years=4)).isoformat(),
    )


def _redacted(attributes: dict[str, Any], now: float) -> dict[str, Any]:
    """It still says `passed`; its personal data is null."""
    kept = {"status", "created-at", "created-at-ts", "checks", "tags", "from-reusable-persona"}
    empty: dict[str, list[str]] = {"entity-confidence-reasons": [], "photo-urls": []}
    gone = {name: value if name in kept else None for name, value in attributes.items()}
    return gone | empty | {"redacted-at": time(now, minutes_ago=1)}


def _aamva(person: Person, now: float, birth: str) -> dict[str, Any]:
    """The attributes of a `verification/aamva`; `birth` is the check of the birth date."""
    checks = [
        _check(f"aamva_{name}_comparison", birth if name == "birthdate" else "passed")
        for name in _AAMVA_CHECKS
    ]
    issued, until = (day(now, years=years).isoformat() for years in (-4, 4))
    own = _TABLE.body("aamva", person, issued=issued, valid_until=until)
    return _common(now, "passed", person.country, checks, 9) | own


def _database(person: Person, now: float, match: str) -> dict[str, Any]:
    """The attributes of a `verification/database`; `match` is how birth date and ZIP matched."""
    requirements = [
        _TABLE.body("requirement", name=name, kind=kind, match=match)
        for name, kind in _COMPARED.items()
    ]
    compared = _check("database_identity_comparison", metadata={"check-requirements": requirements})
    checks = [compared, _check("database_po_box_detection")]
    return _common(now, "passed", person.country, checks, 9) | _TABLE.body("database", person)


def _fields(person: Person) -> dict[str, Any]:
    """The buyer's input, under the names of the inquiry template."""
    return {
        name: {"type": "date" if name == "birthdate" else "string", "value": value}
        for name, value in _TABLE.body("fields", person).items()
    }
