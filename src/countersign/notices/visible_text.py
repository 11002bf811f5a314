"""What counts as blank: text of which nothing can be seen."""

import unicodedata
from bisect import bisect_right
from itertools import pairwise
from typing import Final

# The Braille blank, the object replacement character (it stands for something that is not there)
# and the musical null notehead: characters that show nothing, in categories of visible ones.
_SHOW_NOTHING: Final = frozenset("\u2800\ufffc\U0001d159")
# Private use (Co) has no agreed look, so a record of it does not say what the buyer saw. Unassigned
# code points (Cn) do count as seen, but for the noncharacters: a later Unicode may assign them, and
# the result must not depend on the version of Python.
_UNSEEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Zs", "Zl", "Zp"})

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt (Unicode 16), first to last: the
# standard library does not carry the property.
_DEFAULT_IGNORABLE: Final = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_STARTS: Final = tuple(first for first, _ in _DEFAULT_IGNORABLE)
assert all(a[1] < b[0] for a, b in pairwise(_DEFAULT_IGNORABLE))  # noqa: S101 - bisect needs order


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen.

    White space, control and format characters, default-ignorable code points, private use,
    noncharacters and a few characters that show nothing are removed. Blank is what is left empty,
    or with combining marks alone. Where something visible is left, the rest does no harm.
    """
    if text.isalnum() and text.isascii():
        return False
    return not any(_stands_alone(character) for character in text)


def _stands_alone(character: str) -> bool:
    if character.isspace() or character in _SHOW_NOTHING:
        return False
    category = unicodedata.category(character)
    if category in _UNSEEN_CATEGORIES or category[0] == "M":
        return False
    code_point = ord(character)
    if code_point & 0xFFFE == 0xFFFE or 0xFDD0 <= code_point <= 0xFDEF:
        return False
    place = bisect_right(_STARTS, code_point) - 1
    return place < 0 or code_point > _DEFAULT_IGNORABLE[place][1]
