"""What a session of the simulated Plaid is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from countersign.simulators.document_people import merged
from countersign.simulators.plaid_people import Person, document, success


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One session: what it plays, and how its answer differs from a plain success."""

    session_id: str
    plays: str
    person: Person
    shipping_zip: str
    subject: str
    """What the buyer's server would send as `subject_reference`."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Members that replace those of a plain success."""
    others: tuple[Person, ...] = ()
    """Whoever else is in the answer."""
    trouble: str | None = None
    """What goes wrong on the way, see `plaid.py`."""
    environment: str = "live"

    def body(self, started: float) -> dict[str, Any]:
        """The answer, without its request id."""
        plain = success(self.session_id, self.person, self.subject, started)
        return merged(plain, self.changes)


_STREET: Final = "Larkstump Candle Way"


def person_with(number: int, first: str, last: str, **other: str) -> Person:
    """A person with an address, a telephone and a licence of their own."""
    plain = {
        "born": f"19{61 + number}-0{1 + number % 9}-{10 + number % 18}",
        "number": f"PLQ{number:05d}77",
        "street": f"{7700 + number} {_STREET}",
        "city": "Quillhaven Bluffs",
        "region": "CA",
        "postal_code": "94110",
        "phone": f"+1415555{7100 + number}",
        "email": f"{first.lower()}.{last.lower()}@mailbox.example",
        "id_number": f"9{number:02d}007{number:03d}",
    }
    return Person(first=first, last=last, **(plain | other))


ZENOBELLE: Final = person_with(1, "Zenobelle", "Quillmarchant")
THISTLEWANE: Final = person_with(
    2, "Thistlewane", "Abernackle", postal_code="90012", city="Lower Pomfret Springs"
)
OTTOLINDE: Final = person_with(
    3, "Ottolinde", "Brackenspur", postal_code="90210", street="1 Mossgable Ct"
)


def shown(session_id: str, person: Person, **changed: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    """The section of one accepted document, with changes to what was read from it."""
    plain = document(person, 1, "success", session_id)
    return {
        "documentary_verification": {
            "status": "success",
            "documents": [merged(plain, {"extracted_data": changed})],
        }
    }


def part_of(
    name: str,
    plays: str,
    person: Person,
    changes: Mapping[str, Any] | None = None,
    **other: Any,  # noqa: ANN401 - the fields of Part
) -> Part:
    fields = {"shipping_zip": person.postal_code, "subject": f"buyer-{name.lower()}"} | other
    return Part(
        session_id=f"idv_{name}", plays=plays, person=person, changes=changes or {}, **fields
    )
