"""A keyed fingerprint of an identity document: the same document, the same buyer.

The one place that normalises a document's words, so that a licence has the same fingerprint
whichever provider reads it, and two licences have different ones, whatever is missing. When in
doubt there is no fingerprint: one buyer recorded twice is better than two buyers merged.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from importlib import resources
from typing import Final, TypeAlias

from countersign.identity.json_reader import by_word

Fingerprint: TypeAlias = Callable[[str | None, str | None, str | None, str | None], bytes | None]
"""From issuing country, issuing region, kind and number of a document, each as the provider writes
it, to 32 bytes; None if they do not identify one document.

The number goes no further than this call.
"""

KeyedHash: TypeAlias = Callable[[str, str, str], bytes]
"""Maps issuer, kind and number in normal form to 32 bytes, under the deployment's key, so that
numbers cannot be guessed."""

US: Final = "US"
_WORDS: Final[dict[str, dict[str, str]]] = json.loads(
    (resources.files(__package__) / "documents.json").read_bytes()
)
"""Kinds of documents, with the providers' words for them and similar spellings; the countries (ISO
3166-1) by alpha-2 code; and the states, the district and the territories of the United States by
USPS code (Publication 28, appendix B), which equals that of ISO 3166-2:US. All in capitals without
signs. Not the military addresses AA, AE and AP: no licence is issued there."""
_KINDS: Final = by_word(_WORDS["kinds"])
_STATES: Final = by_word(_WORDS["states"])
_CODES: Final = frozenset(_WORDS["states"])
_COUNTRIES: Final = {code: code for code in _WORDS["countries"]} | by_word(_WORDS["countries"])
_TERRITORIES: Final = frozenset({"AS", "GU", "MP", "PR", "VI"})
"""Of the United States, and with a country code of their own: some providers write that."""
_OF_THE_US: Final = re.compile(r"\s*U\.?\s?S\.?(?:\s?A\.?)?[\s_,:-]+(?=\S)")
"""The prefix of the state in `US-CA`, `US_CA` and `USA CA`; not of `U.S. Virgin Islands`
alone, which is a name by itself."""
_SIGNS: Final = re.compile(r"[\W_]+")

_NATIONAL: Final = frozenset({"passport", "residence_permit"})
"""Kinds with national numbers, so a region says nothing about the issuer."""
_BY_REGION: Final = frozenset({US, "CA", "AU"})
"""Countries where each state or province numbers its own licences and cards."""

# Separators are single and inside: others remain from a mask.
_NUMBER: Final = re.compile(r"[A-Za-z0-9]+(?:[ ./-][A-Za-z0-9]+)*", re.ASCII)
# Masks, and words: no document number has so many letters in a row.
_MASK: Final = re.compile(r"XX|[A-Z]{6}")
_DIGIT: Final = re.compile(r"[0-9]")
_LENGTH_MIN: Final = 5
_LENGTH_MAX: Final = 64
_DIGITS_MIN: Final = 4


def fingerprints(keyed: KeyedHash, base_url: str | None) -> Fingerprint:
    """How documents are identified at one place.

    Args:
        keyed: the deployment's keyed hash.
        base_url: where the provider is, if not at its usual address. Documents there are separate:
            a simulator's must never be mistaken for those of a real person.
    """
    realm = "" if base_url is None else base_url.rstrip("/")

    def fingerprint(
        country: str | None, region: str | None, kind: str | None, number: str | None
    ) -> bytes | None:
        issued_by, kept, what = issuer(country, region), number_of(number or ""), kind_of(kind)
        if issued_by is None or kept is None or not what:
            return None
        state, part = issued_by
        if what in _NATIONAL:
            part = None
        elif part is None and state in _BY_REGION:
            # Another state may have given the same number to another person.
            return None
        return keyed("\x00".join((realm, state, part or "")), what, kept)

    return fingerprint


def issuer(country: str | None, region: str | None) -> tuple[str, str | None] | None:
    """The issuer of a document: the country, and its part; None without a country.

    Providers write `USA`, `US-CA`, `California` and `US_CA`. A country is its alpha-2 code, or if
    unknown the given text without signs. A state or territory of the United States is its
    two-letter code; None if it is missing or ambiguous. A region elsewhere is the given text
    without signs.
    """
    given = _word(country)
    if not given:
        return None
    known = _COUNTRIES.get(given, given)
    if _STATES.get(given) in _TERRITORIES:
        known = _STATES[given]
    if known in _TERRITORIES:
        return US, known
    if not region:
        return known, None
    return known, _state(region) if known == US else _word(region) or None


def kind_of(kind: str | None) -> str:
    """`licence`, `id_card`, `passport`, `residence_permit`, or the word without signs."""
    word = _word(kind)
    return _KINDS.get(word, word)


def is_known_kind(kind: str) -> bool:
    """Whether documents of this kind are one kind at every provider."""
    return _word(kind) in _KINDS


def number_of(number: str) -> str | None:
    """A number as documents are compared, `d 123-4567` as `D1234567`; None if it is ambiguous.

    A masked number (`*****1234`, `12xxxx89`), the rest of one, a row of zeros, or a word such as
    `NOT AVAILABLE` would merge many buyers into one.
    """
    given = number.strip(" ")
    if len(given) > _LENGTH_MAX or _NUMBER.fullmatch(given) is None:
        return None
    kept = _word(given)
    digits = len(_DIGIT.findall(kept))
    if len(kept) < _LENGTH_MIN or digits < _DIGITS_MIN or len(set(kept)) < 2:
        return None
    return None if _MASK.search(kept) else kept


def _word(text: str | None) -> str:
    """Letters and digits only, compatible forms and capitals folded: `Driver's` is `DRIVERS`."""
    return _SIGNS.sub("", unicodedata.normalize("NFKC", text or "").upper())


def _state(region: str) -> str | None:
    upper = unicodedata.normalize("NFKC", region).upper()
    for spelled in (upper, _OF_THE_US.sub("", upper, count=1)):
        given = _word(spelled)
        if given in _CODES:
            return given
        for style in ("STATEOF", "COMMONWEALTHOF", "TERRITORYOF"):
            if given.startswith(style) and given not in _STATES:
                given = given.removeprefix(style)
        if given in _STATES:
            return _STATES[given]
    return None
