"""Text that a page shows truly: what has no glyph, or shows nothing, is told by its code point."""

from __future__ import annotations

import re
from typing import Any, Final

SHOWABLE: Final = (
    (0x20, 0x7E),
    (0xA1, 0xAC),
    (0xAE, 0x24F),
    (0x370, 0x377),
    (0x37A, 0x37F),
    (0x384, 0x38A),
    (0x38C, 0x38C),
    (0x38E, 0x3A1),
    (0x3A3, 0x3FF),
    (0x400, 0x481),
    (0x48A, 0x4FF),
    (0x510, 0x513),
    (0x531, 0x556),
    (0x559, 0x58A),
    (0x5D0, 0x5EA),
    (0x621, 0x63A),
    (0x641, 0x64A),
    (0x10D0, 0x10FF),
    (0x1E00, 0x1F15),
    (0x2010, 0x2027),
    (0x2030, 0x2040),
    (0x2044, 0x2052),
    (0x2070, 0x2071),
    (0x2074, 0x208E),
    (0x20A0, 0x20C0),
    (0x2100, 0x211E),
    (0x2120, 0x2120),
    (0x2122, 0x2122),
    (0x2126, 0x2151),
    (0x2153, 0x2184),
    (0x2190, 0x23FF),
    (0x2460, 0x262F),
    (0x2701, 0x2704),
    (0x2713, 0x2718),
)
"""Code points that show something by themselves, for which the compiler has a glyph in every style.

PDF/A forbids a character without a glyph, and fonts of the machine are not used: the same facts
would look different elsewhere. Nor is Python's table of characters: it grows from version to
version.
"""
# A bracket that was typed is told apart from those that are put in.
_TOLD: Final = re.compile(
    r"\[(?=U\+)|[^" + "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in SHOWABLE) + "]"
)
_LATIN: Final = re.compile(r"(?:[!-~\u00c0-\u017f]+(?: [!-~\u00c0-\u017f]+)*)?")


def showable(value: Any, keep: str = "") -> Any:  # noqa: ANN401 - a tree of JSON values
    """The value, with each character that a page cannot show truly written as `[U+202E]`.

    These are the ones that the fonts lack, and those that show nothing, combine with what stands
    before them or turn the writing around. `keep` are characters to leave as they are.
    """
    if isinstance(value, str):
        return _TOLD.sub(
            lambda found: found[0] if found[0] in keep else f"[U+{ord(found[0]):04X}]", value
        )
    if isinstance(value, dict):
        return {name: showable(item, keep) for name, item in value.items()}
    if isinstance(value, list):
        return [showable(item, keep) for item in value]
    return value


def code_points(text: str) -> str | None:
    """The code points of a text in which letters or blanks could be mistaken, such as `U+0410`.

    None for Latin letters, digits and signs with single spaces between them.
    """
    if _LATIN.fullmatch(text):
        return None
    return " ".join(f"U+{ord(char):04X}" for char in text)
