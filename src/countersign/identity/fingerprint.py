"""A keyed fingerprint of an identity document: the same document, the same buyer.

The one place where a document's words are normalised, so that a licence is the same whichever
provider has read it, and two licences are not, whatever is missing of them. When in doubt there is
no fingerprint: a buyer who is recorded twice is better than two who are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from countersign.identity.document_country import US, issuer, words
from countersign.identity.fields import by_word

Fingerprint: TypeAlias = Callable[[str | None, str | None, str | None, str | None], bytes | None]
"""From issuing country, issuing region, kind and number of a document, each as the provider writes
it, to 32 bytes; None if they do not identify one document.

The number goes no further than this call.
"""

KeyedHash: TypeAlias = Callable[[str, str, str], bytes]
"""From issuer, kind and number in one spelling to 32 bytes, under the deployment's key, without
which numbers cannot be guessed."""

LICENCE: Final = "licence"
ID_CARD: Final = "id_card"
PASSPORT: Final = "passport"
RESIDENCE_PERMIT: Final = "residence_permit"

_KINDS: Final = by_word(
    {
        LICENCE: """
            DRIVINGLICENSE DRIVERSLICENSE DL DRIVINGLICENCE DRIVERSLICENCE DRIVERLICENSE
            DRIVERLICENCE UKDRIVINGLICENCE NONUKDRIVINGLICENCE""",
        ID_CARD: "IDCARD ID NATIONALIDENTITYCARD IDENTITYCARD IDENTIFICATIONCARD",
        PASSPORT: "PASSPORT PP",
        RESIDENCE_PERMIT: """
            RESIDENCEPERMIT RESIDENCEPERMITCARD RESIDENTCARD RP PR PERMANENTRESIDENCECARD
            UKBIOMETRICRESIDENCEPERMIT""",
    }
)
"""The providers' words, and the spellings close to them, in capitals without signs."""
_NATIONAL: Final = frozenset({PASSPORT, RESIDENCE_PERMIT})
"""Kinds that a whole country numbers, so that a region says nothing about the issuer."""
_BY_REGION: Final = frozenset({US, "CA", "AU"})
"""Countries in which states and provinces number their licences and cards, each by itself."""

# Separators stand one by one and inside: else they are what is left of a mask.
_NUMBER: Final = re.compile(r"[A-Za-z0-9]+(?:[ ./-][A-Za-z0-9]+)*", re.ASCII)
# Signs in the place of others, and words: no document is numbered by more letters in a row.
_MASK: Final = re.compile(r"XX|[A-Z]{6}")
_LENGTH_MIN: Final = 5
_LENGTH_MAX: Final = 64
_DIGITS_MIN: Final = 4


def fingerprints(keyed: KeyedHash, base_url: str | None) -> Fingerprint:
    """How documents are identified at one place.

    Args:
        keyed: the deployment's keyed hash.
        base_url: where the provider is, if not at its usual address. Documents there are other
            documents: a simulator's must never be taken for those of a person who exists.
    """
    realm = "" if base_url is None else base_url.rstrip("/")

    def fingerprint(
        country: str | None, region: str | None, kind: str | None, number: str | None
    ) -> bytes | None:
        issued_by, kept = issuer(country, region), number_of(number or "")
        if issued_by is None or kept is None or not words(kind or ""):
            return None
        what = kind_of(kind or "")
        state, part = issued_by
        if what in _NATIONAL:
            part = None
        elif part is None and state in _BY_REGION:
            # Another state may have given the same number to another person.
            return None
        return keyed("\x00".join((realm, state, part or "")), what, kept)

    return fingerprint


def kind_of(kind: str) -> str:
    """The kind of a document: one of the four above, or the provider's word without signs."""
    word = words(kind)
    return _KINDS.get(word, word)


def number_of(number: str) -> str | None:
    """A number as documents are compared, `d 123-4567` as `D1234567`; None if it can be of many.

    A masked one (`*****1234`, `12xxxx89`), what is left of one, a row of zeros, and a word such as
    `NOT AVAILABLE` would make one buyer of many.
    """
    given = number.strip(" ")
    if len(given) > _LENGTH_MAX or _NUMBER.fullmatch(given) is None:
        return None
    kept = words(given)
    digits = sum(char.isdigit() for char in kept)
    if len(kept) < _LENGTH_MIN or digits < _DIGITS_MIN or len(set(kept)) < 2:
        return None
    return None if _MASK.search(kept) else kept
