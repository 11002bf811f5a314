"""Whether two proofs are of one person, and not one's licence and a neighbour's bill."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from typing import Final

from countersign.identity.json_reader import listed
from countersign.identity.model import Private


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Holder(Private):
    """Whom a document or a database entry names."""

    given_name: str | None
    family_name: str | None
    date_of_birth: date | None

    def may_be(self, other: Holder, *, documents: bool = False) -> bool:
        """Whether nothing shows two different people, and enough shows the same one.

        Where both have a birth date, the dates have to agree, and then the family names need only
        one part in common, or the given names agree: documents and databases write `SMITH JR`,
        `GARCIA LOPEZ` or a maiden name each in another way. Without a birth date the whole names
        must agree, including the given name: a family name alone is shared by a family. Twins share
        more: of two `documents`, the given names have to begin alike, if both are known.
        """
        family, other_family = _Name(self.family_name), _Name(other.family_name)
        given, other_given = _Name(self.given_name), _Name(other.given_name)
        if self.date_of_birth is None or other.date_of_birth is None:
            return family.is_same(other_family) and given.is_same(other_given)
        apart = documents and given.parts and other_given.parts and not given.begins_as(other_given)
        if self.date_of_birth != other.date_of_birth or apart:
            return False
        named = family.parts and other_family.parts
        return not named or family.shares_part(other_family) or given.begins_as(other_given)


class _Name:
    """A name without capitals, accents and signs: `GARCIA-LOPEZ` is `García López`."""

    def __init__(self, name: str | None) -> None:
        words = (name or "").translate(_JOINED).casefold()
        parts = re.split(r"[^\w]+|_", unicodedata.normalize("NFC", words))
        # Names in different scripts cannot be compared: that says nothing.
        self.parts = [spelled for spelled in map(_spellings, parts) if all(spelled)]

    def is_same(self, other: _Name) -> bool:
        """Whether the whole names agree, wherever their spaces are."""
        return not self._whole().isdisjoint(other._whole())

    def shares_part(self, other: _Name) -> bool:
        """Whether a distinctive part is in both, or the whole agrees."""
        return self.is_same(other) or any(
            _alike(one, another) for one in self._distinctive() for another in other._distinctive()
        )

    def begins_as(self, other: _Name) -> bool:
        """Whether the first parts agree."""
        firsts = [set(name.parts[0]) for name in (self, other) if name.parts]
        return len(firsts) == 2 and bool(firsts[0] & firsts[1])

    def _distinctive(self) -> list[tuple[str, str]]:
        return [part for part in self.parts if _COMMON.isdisjoint(part)]

    def _whole(self) -> set[str]:
        return {"".join(spellings) for spellings in zip(*self.parts, strict=True)}


def _spellings(part: str) -> tuple[str, str]:
    """A part in plain letters, in both ways: `müller` is `muller` and `mueller`."""
    plain, wide = (
        "".join(char for char in unicodedata.normalize("NFKD", text) if char.isalnum())
        for text in (part.translate(_PLAIN), part.translate(_WIDE).translate(_PLAIN))
    )
    return (plain, wide) if plain.isascii() else ("", "")


def _alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two parts agree, or one is a truncated form of the other, as in some registers."""
    return any(
        mine == theirs
        or (len(mine) >= _CUT_MIN and theirs.startswith(mine))
        or (len(theirs) >= _CUT_MIN and mine.startswith(theirs))
        for mine in one
        for theirs in other
    )


_CUT_MIN: Final = 10
"""Registers cut names at lengths of more than this."""
_JOINED: Final = str.maketrans("", "", "'\u2018\u2019\u02bc`")
"""`O'Brien` is one part, not two."""
_PLAIN: Final = str.maketrans(
    {"\u00f8": "o", "\u00e6": "ae", "\u0153": "oe", "\u0142": "l", "\u0111": "d"}
    | {"\u00f0": "d", "\u00fe": "th", "\u0131": "i"}
)
"""Letters that are no other letter with a sign on it."""
_WIDE: Final = str.maketrans(
    {"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue", "\u00f8": "oe", "\u00e5": "aa"}
)
"""How passports write letters of German and the Scandinavian languages (ICAO 9303-3)."""
_COMMON: Final = frozenset(
    listed(
        "af al av bat ben bin binti da das de del dela den der di do dos du e el ibn ii iii iv jr",
        "la las le les los sr st ten ter v van vom von y zu",
    )
)
"""Suffixes and particles: in too many names to distinguish families."""
