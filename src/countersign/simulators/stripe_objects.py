"""How a person and a document stand in the objects of the simulated Stripe Identity.

Written from Stripe's API reference, version 2026-10-28.endive.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from countersign.simulators.licence_holders import Person, years_from_now

ZAPHIRA: Final = Person(
    first="Zaphira",
    last="Quillfeather",
    line1="7714 Marrowbone Lantern Way",
    city="San Francisco",
    number="Q7714093",
    born=date(1987, 3, 14),
)
OSWIN: Final = Person(
    first="Oswin",
    last="Thistlewhickett",
    line1="20 Gossamer Anvil Terrace",
    city="Sacramento",
    number="ID20551177",
    zip="95814",
    kind="id_card",
    born=date(1999, 12, 31),
)
MARZIPAN: Final = Person(
    first="Marzipanna",
    last="Obbleworth",
    line1="391 Velvet Turnip Crescent",
    city="Cambridge",
    number="S39104456",
    state="MA",
    zip="02139",
    born=date(1970, 1, 1),
)


def parts(day: date | None) -> dict[str, int] | None:
    """A date as Stripe writes it."""
    return None if day is None else {"day": day.day, "month": day.month, "year": day.year}


def address(person: Person) -> dict[str, Any] | None:
    """The address on the document; a passport has none."""
    if person.kind == "passport":
        return None
    return {
        "city": person.city,
        "country": person.country,
        "line1": person.line1,
        "line2": None,
        "postal_code": person.zip,
        "state": person.state,
    }


def outputs(person: Person) -> dict[str, Any]:
    """`verified_outputs`, with everything that a key could be allowed to see."""
    return {
        "address": address(person),
        "dob": parts(person.born),
        "email": None,
        "first_name": person.first,
        "id_number": None,
        "id_number_type": None,
        "last_name": person.last,
        "phone": None,
        "sex": None,
        "unparsed_place_of_birth": None,
        "unparsed_sex": None,
    }


def document(person: Person, now: float, *, status: str = "verified") -> dict[str, Any]:
    """`document` of the report, with everything that a key could be allowed to see."""
    return {
        "address": address(person),
        "dob": parts(person.born),
        "error": None,
        "expiration_date": parts(person.expires or years_from_now(now, 4)),
        "files": ["file_1SimDocumentFront", "file_1SimDocumentBack"],
        "first_name": person.first,
        "issued_date": parts(years_from_now(now, -4)),
        "issuing_country": person.country,
        "last_name": person.last,
        "number": person.number,
        "sex": None,
        "status": status,
        "type": person.kind,
        "unparsed_place_of_birth": None,
        "unparsed_sex": None,
    }


def unix(now: float, *, hours_ago: float = 0.5) -> int:
    """A time a while ago, as Stripe writes it."""
    return int((datetime.fromtimestamp(now, UTC) - timedelta(hours=hours_ago)).timestamp())
