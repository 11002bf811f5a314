"""How a person and a document stand in the objects of the simulated Persona.

Written from Persona's OpenAPI description, version 2025-12-08.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from countersign.simulators.licence_holders import Person, years_from_now

FENWICK: Final = Person(
    first="FENWICKA",
    last="BRAMBLETHORPE",
    line1="8801 PERIWINKLE GASKET RD",
    city="SAN FRANCISCO",
    number="B8801447",
    born=date(1991, 7, 22),
    kind="dl",
)
TALLULAH: Final = Person(
    first="TALLULAHINE",
    last="GRIMBLEFORD",
    line1="16 COPPER DANDELION MEWS",
    city="SACRAMENTO",
    number="I16004242",
    zip="95814",
    kind="id",
    born=date(1963, 11, 5),
)
PERCIVALD: Final = Person(
    first="PERCIVALD",
    last="OOZLEWICK",
    line1="52 TIN NIGHTINGALE PL",
    city="CAMBRIDGE",
    number="S52730009",
    state="MA",
    zip="02139",
    born=date(1988, 2, 29),
    kind="dl",
)


def time(now: float, *, minutes_ago: float = 0) -> str:
    """A time as Persona writes it."""
    then = datetime.fromtimestamp(now, UTC) - timedelta(minutes=minutes_ago)
    return f"{then:%Y-%m-%dT%H:%M:%S}.000Z"


def check(
    name: str, status: str = "passed", metadata: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """One of the checks of a verification."""
    return {
        "name": name,
        "status": status,
        "reasons": [],
        "requirement": "required",
        "metadata": dict(metadata or {}),
    }


def shared(
    now: float, status: str, country: str, checks: list[dict[str, Any]], minutes_ago: float
) -> dict[str, Any]:
    """The attributes that every verification has."""
    completed = None if status in {"initiated", "submitted"} else time(now, minutes_ago=minutes_ago)
    return {
        "status": status,
        "created-at": time(now, minutes_ago=minutes_ago + 3),
        "created-at-ts": int(now - (minutes_ago + 3) * 60),
        "submitted-at": time(now, minutes_ago=minutes_ago + 1),
        "submitted-at-ts": int(now - (minutes_ago + 1) * 60),
        "completed-at": completed,
        "completed-at-ts": completed and int(now - minutes_ago * 60),
        "redacted-at": None,
        "country-code": country,
        "tags": [],
        "checks": checks,
    }


def government_id(
    person: Person, now: float, *, status: str = "passed", minutes_ago: float = 10
) -> dict[str, Any]:
    """The attributes of a `verification/government-id`."""
    at_home = person.kind != "pp"
    verdict = "passed" if status == "passed" else "failed"
    checks = [
        check("id_barcode_detection", verdict),
        check("id_expired_detection", "passed"),
        check("id_selfie_comparison", "not_applicable"),
    ]
    return shared(now, status, person.country, checks, minutes_ago) | {
        "entity-confidence-reasons": [],
        "entity-confidence-score": 99.0,
        "front-photo-url": "https://files.persona.example/front.jpg?access_token=simulated",
        "back-photo-url": None,
        "photo-urls": [],
        "selfie-photo": None,
        "selfie-photo-url": None,
        "video-url": None,
        "id-class": person.kind,
        "capture-method": "auto",
        "name-first": person.first,
        "name-middle": None,
        "name-last": person.last,
        "name-suffix": None,
        "native-name-first": None,
        "native-name-middle": None,
        "native-name-last": None,
        "native-name-title": None,
        "birthdate": person.born and person.born.isoformat(),
        "address-street-1": person.line1 if at_home else None,
        "address-street-2": None,
        "address-city": person.city if at_home else None,
        "address-subdivision": person.state if at_home else None,
        "address-postal-code": person.zip if at_home else None,
        "issuing-authority": person.state,
        "issuing-subdivision": person.state,
        "nationality": None,
        "document-number": None,
        "visa-status": None,
        "issue-date": years_from_now(now, -4).isoformat(),
        "expiration-date": (person.expires or years_from_now(now, 4)).isoformat(),
        "designations": None,
        "birthplace": None,
        "endorsements": None,
        "height": None,
        "sex": None,
        "restrictions": None,
        "vehicle-class": None,
        "identification-number": person.number,
        "from-reusable-persona": False,
    }


def aamva(person: Person, now: float, *, born: str = "passed") -> dict[str, Any]:
    """The attributes of a `verification/aamva`; `born` is how the birth date compared."""
    checks = [
        check("aamva_identification_number_comparison"),
        check("aamva_birthdate_comparison", born),
        check("aamva_address_comparison"),
        check("aamva_name_comparison"),
    ]
    return shared(now, "passed", person.country, checks, 9) | {
        "name-first": person.first,
        "name-last": person.last,
        "birthdate": str(person.born),
        "issue-date": years_from_now(now, -4).isoformat(),
        "expiration-date": years_from_now(now, 4).isoformat(),
        "address-postal-code": person.zip,
        "issuing-authority": person.state,
        "identification-number": person.number,
    }


def database(person: Person, now: float, *, match: str = "full") -> dict[str, Any]:
    """The attributes of a `verification/database`; `match` is how birth date and ZIP matched."""
    requirements = [
        {
            "name": name,
            "match-result": match,
            "status": "passed",
            "comparisons": [
                {"type": kind, "match-level-minimum": "partial", "match-result": match}
            ],
        }
        for name, kind in (
            ("name_last", "string_similarity"),
            ("birthdate", "date_similarity"),
            ("address_postal_code", "string_difference"),
        )
    ]
    compared = check("database_identity_comparison", metadata={"check-requirements": requirements})
    at = {
        "street-1": person.line1,
        "street-2": None,
        "city": person.city,
        "subdivision": person.state,
        "postal-code": person.zip,
    }
    return (
        shared(now, "passed", person.country, [compared, check("database_po_box_detection")], 9)
        | {f"address-{name}": value for name, value in at.items()}
        | {f"normalized-address-{name}": value for name, value in at.items()}
        | {
            "birthdate": person.born and person.born.isoformat(),
            "name-first": person.first,
            "name-middle": None,
            "name-last": person.last,
            "phone-number": None,
            "email-address": person.email,
            "identification-number": None,
            "document-number": None,
            "document-issuing-date": None,
            "document-expiry-date": None,
            "document-issuing-subdivision": None,
        }
    )


def fields(person: Person) -> dict[str, Any]:
    """What the buyer typed, under the names of the inquiry template."""
    typed = {
        "name-first": person.first,
        "name-middle": None,
        "name-last": person.last,
        "address-street-1": person.line1,
        "address-street-2": None,
        "address-city": person.city,
        "address-subdivision": person.state,
        "address-postal-code": person.zip,
        "address-country-code": person.country,
        "birthdate": person.born and person.born.isoformat(),
        "email-address": person.email,
        "phone-number": None,
        "identification-number": None,
    }
    return {
        name: {"type": "date" if name == "birthdate" else "string", "value": value}
        for name, value in typed.items()
    }
