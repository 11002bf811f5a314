"""Persona's verifications: which ones are proof, and of what.

An inquiry's own `fields` were typed by somebody or filled in beforehand. What is proved stands in
the verifications that it includes (Persona API 2025-12-08, "Verifications").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from countersign.domain.identity import Check, Tri
from countersign.providers.identity.reading import (
    Unreadable,
    instant,
    iso_date,
    mapping,
    sequence,
    text,
)
from countersign.providers.identity.same_person import Holder

GOVERNMENT_ID: Final = "verification/government-id"
AAMVA: Final = "verification/aamva"
DATABASE: Final = "verification/database"
STANDARD_DATABASE: Final = "verification/database-standard"
PROOFS: Final = (GOVERNMENT_ID, AAMVA, DATABASE, STANDARD_DATABASE)
"""The kinds that can prove who somebody is. A selfie, a telephone or a bill cannot."""

_VERDICTS: Final[Mapping[str, Tri]] = {"passed": Tri.PASS, "failed": Tri.FAIL}
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,96}", re.ASCII)
"""How a check and its verdict are called; a sentence could hold somebody's name."""
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification:
    """One verification of an inquiry, of a kind that can be proof."""

    verification_id: str
    kind: str
    attributes: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...]
    decided_at: datetime

    def __repr__(self) -> str:
        return "<Verification: hidden>"

    @property
    def passed(self) -> bool:
        """Passed, and its data is still there."""
        return self.attributes.get("status") == "passed" and not self.redacted

    @property
    def redacted(self) -> bool:
        """Whether it passed once, but what it knew is gone."""
        return text(self.attributes.get("redacted-at"), "redacted-at") is not None

    def value(self, name: str) -> str | None:
        """A text attribute."""
        return text(self.attributes.get(name), name)

    def day(self, name: str) -> date | None:
        """A date attribute."""
        return iso_date(self.attributes.get(name), name)

    @property
    def holder(self) -> Holder:
        """Whom it names."""
        return Holder(
            given_name=self.value("name-first"),
            family_name=self.value("name-last"),
            date_of_birth=self.day("birthdate"),
        )

    def check_passed(self, name: str) -> bool:
        """Whether it made this check and passed it."""
        return any(
            made.get("name") == name and made.get("status") == "passed" for made in self.checks
        )

    def matched_fully(self, attribute: str) -> bool:
        """Whether the database has exactly this value: `partial` may be another day or street.

        Persona lets near matches pass, so that a birth date can be a day or a year off in a
        verification that passed.
        """
        for made in self.checks:
            if made.get("name") != "database_identity_comparison" or made["status"] != "passed":
                continue
            requirements = mapping(made.get("metadata"), "metadata").get("check-requirements")
            for one in sequence(requirements, "check-requirements"):
                told = mapping(one, "check-requirements")
                if told.get("name") == attribute:
                    return told.get("match-result") == "full" and told.get("status") == "passed"
        return False


def read_verifications(included: object, inquiry_id: str) -> tuple[Verification, ...]:
    """The verifications among the included resources that can be proof, the newest last.

    Raises:
        Unreadable: one is malformed, or of another inquiry.
    """
    found = []
    for one in sequence(included, "included"):
        resource = mapping(one, "included")
        if resource.get("type") in PROOFS:
            found.append(_verification(resource, inquiry_id))
    return tuple(sorted(found, key=lambda read: read.decided_at))


def checks(proofs: Sequence[Verification]) -> Iterator[Check]:
    """Every check that was made, the document's first."""
    for proof in best_first(proofs):
        for made in proof.checks:
            raw = made["status"]
            yield Check(name=made["name"], verdict=_VERDICTS.get(raw, Tri.UNKNOWN), raw=raw)


def failed_check(verifications: Sequence[Verification]) -> str | None:
    """The name of the check that failed, a required one if there is any, in the newest."""
    failed = [
        made
        for read in reversed(verifications)
        for made in read.checks
        if made["status"] == "failed"
    ]
    required = [made for made in failed if made.get("requirement") == "required"]
    return next((str(made["name"]) for made in (*required, *failed)), None)


def _verification(resource: Mapping[str, Any], inquiry_id: str) -> Verification:
    attributes = mapping(resource.get("attributes"), "attributes")
    related = mapping(resource.get("relationships"), "relationships")
    inquiry = mapping(mapping(related.get("inquiry"), "inquiry").get("data"), "inquiry.data")
    if inquiry and inquiry.get("id") != inquiry_id:
        raise Unreadable("relationships.inquiry")
    decided_at = instant(attributes.get("completed-at"), "completed-at")
    made = tuple(mapping(check, "checks") for check in sequence(attributes.get("checks"), "checks"))
    for check in made:
        if not all(_is_word(check.get(member)) for member in ("name", "status")):
            raise Unreadable("checks")
    return Verification(
        verification_id=text(resource.get("id"), "id") or "",
        kind=str(resource["type"]),
        attributes=attributes,
        checks=made,
        decided_at=decided_at or _EARLIEST,
    )


def best_first(proofs: Sequence[Verification]) -> list[Verification]:
    """Documents before authorities before databases; of one kind the newest."""
    newest_first = list(reversed(proofs))
    newest_first.sort(key=lambda proof: PROOFS.index(proof.kind))
    return newest_first


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None
