"""Generated initials, and the rules for them written a second time.

Blank characters are derived here from the Unicode Character Database's
Default_Ignorable_Code_Point, not from the service's ranges.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

LINES = 4
LENGTH_MAX = 32

# PropList.txt: Other_Default_Ignorable_Code_Point and Variation_Selector. The rest of the
# derived property are format characters, which are gone by their category.
_OTHER_DEFAULT_IGNORABLE = {
    0x034F,
    *range(0x115F, 0x1161),
    *range(0x17B4, 0x17B6),
    0x2065,
    0x3164,
    0xFFA0,
    *range(0xFFF0, 0xFFF9),
    0xE0000,
    *range(0xE0002, 0xE0020),
    *range(0xE0080, 0xE0100),
    *range(0xE01F0, 0xE1000),
}
_VARIATION_SELECTOR = {
    *range(0x180B, 0x180E),
    0x180F,
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
_SHOW_NOTHING = "\u2800\ufffc\U0001d159"


class Expected(NamedTuple):
    """The verdict of the rules on a list of initials."""

    code: str | None
    """None: stored."""
    blank_lines: tuple[int, ...] = ()


def expected_of(initials: Sequence[str]) -> Expected:
    """Form first, then the number of lines, then the blanks."""
    for text in initials:
        if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text) or len(text) > LENGTH_MAX:
            return Expected("invalid_request")
    if len(initials) != LINES:
        return Expected("initials_count_mismatch")
    blank = tuple(number for number, text in enumerate(initials, 1) if _is_blank(text))
    return Expected("empty_initials", blank) if blank else Expected(None)


def _is_blank(text: str) -> bool:
    left = "".join(c for c in text if not _is_removed(c))
    return all(unicodedata.category(c).startswith("M") for c in left)


def _is_removed(character: str) -> bool:
    return (
        character.isspace()
        or unicodedata.category(character) in {"Cc", "Cf", "Co", "Zs", "Zl", "Zp"}
        or ord(character) in _OTHER_DEFAULT_IGNORABLE
        or ord(character) in _VARIATION_SELECTOR
        or character in _SHOW_NOTHING
        or ord(character) & 0xFFFF in {0xFFFE, 0xFFFF}
        or "\ufdd0" <= character <= "\ufdef"
    )


def as_json(text: str, escaped: Sequence[bool]) -> str:
    """The text as a JSON string, each character written out or escaped as `escaped` says.

    A surrogate can only be escaped; in a pair, two of them are one character.
    """
    written = []
    for place, character in enumerate(text):
        if escaped[place % len(escaped)] or "\ud800" <= character <= "\udfff":
            written.append(json.dumps(character)[1:-1])
        else:
            written.append(json.dumps(character, ensure_ascii=False)[1:-1])
    return f'"{"".join(written)}"'


def as_read(text: str) -> str:
    """The text as JSON readers see it: pairs of surrogates are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_ODD = st.characters(
    categories=["Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "Co", "Cn", "Lo", "So"]
)
HIDING = (
    # NUL, bidi controls, zero width, fillers, variation selectors, tags, braille blank, emoji.
    "\x00\x01\x7f\x85\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u200e"
    "\u202a\u202e\u2028\u2060\u2065\u2066\u2069\u20dd\u2800\u3000\u3164\ufe0f\ufeff\uffa0\ufff0"
    "\ufff9\ufffc\ufffd\uffff\U000e0001\U000e0020\U000e0041\U000e01ef\U000e0fff\U0001d173"
    '\U0001bca0\U0001f600\U0010ffff\u0301\u0903"\\/'
)
_NAMED = st.sampled_from(HIDING)
_SURROGATES = st.characters(categories=["Cs"])
_TEXTS = st.one_of(
    st.sampled_from(["JD", "J.D.", "Ж", "李", "José", "أ ب", "👩‍🚀", "e\u0301"]),
    st.text(st.one_of(_NAMED, _ODD), max_size=6),
    st.text(st.one_of(_NAMED, st.characters(), st.sampled_from("JD")), max_size=4),
    st.text(max_size=LENGTH_MAX + 3),
    st.text(st.one_of(_SURROGATES, _NAMED), max_size=3),
)
LISTS = st.one_of(
    st.lists(_TEXTS, min_size=LINES, max_size=LINES),
    # Nearly all good, so that the stored ones are not few.
    st.lists(_TEXTS, min_size=1, max_size=1).map(lambda one: ["JD", *one, "JD", "JD"]),
    st.lists(_TEXTS, max_size=LINES + 2),
)
