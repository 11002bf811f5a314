"""Whether two proofs are of one person: else one shows one's own licence and a neighbour's bill."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Holder:
    """Whom a document or a database entry names. Its repr shows nothing."""

    given_name: str | None
    family_name: str | None
    date_of_birth: date | None

    def __repr__(self) -> str:
        return "<Holder: hidden>"

    def may_be(self, other: Holder) -> bool:
        """Whether nothing says that they are two, and enough says that they are one.

        Family name and birth date have to agree where both tell them. One of them has to be told
        by both; a family name alone is that of a whole family, so the given name has to agree too.
        """
        families = _agree(_name(self.family_name), _name(other.family_name))
        births = _agree(self.date_of_birth, other.date_of_birth)
        if families is False or births is False:
            return False
        if births:
            return True
        return bool(families and _agree(_name(self.given_name), _name(other.given_name)))


def _agree(one: object, other: object) -> bool | None:
    """None if either is not told."""
    return None if one is None or other is None else one == other


def _name(name: str | None) -> str | None:
    """A name without capitals, accents and signs: `GARCIA-LOPEZ` is `García López`."""
    folded = unicodedata.normalize("NFKD", name or "").casefold()
    return "".join(char for char in folded if char.isalnum()) or None
