"""The characters that a certificate shows as they are: run again when the fonts change.

`python -m tools.showable > src/countersign/core/paper/showable.txt` writes ranges of visible code
points, and then, after an empty line, those that combine with the character before them. The
characters of the compiler's own fonts cannot be read from outside, so the earlier list is kept; a
test has the compiler set every character of the file.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import groupby
from textwrap import fill

from fontTools.ttLib import TTCollection, TTFont

from countersign.core.paper.typeset import FONT_PACKAGES, SHOWABLE

_IDEOGRAPHIC_SPACE = 0x3000
_SHOWS_NOTHING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
_COMBINES = {"Mn", "Mc", "Me"}
# They are invisible, or change the character before them without a mark.
_INVISIBLE = {
    0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0,
    *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
}  # fmt: skip


def main() -> None:
    """Print both lists."""
    held = set(_held()) - _INVISIBLE
    shows = {p for p in held if unicodedata.category(chr(p)) not in _SHOWS_NOTHING | _COMBINES}
    shows |= {point for first, last in SHOWABLE for point in range(first, last + 1)}
    combines = {p for p in held if unicodedata.category(chr(p)) in _COMBINES}
    lists = f"{_ranges(shows | {_IDEOGRAPHIC_SPACE})}\n\n{_ranges(combines)}\n"
    sys.stdout.write(lists)


def _held() -> Iterator[int]:
    for package in FONT_PACKAGES:
        for file in resources.files(package).iterdir():
            if file.name.endswith((".ttf", ".ttc")) and "Italic" not in file.name:
                with resources.as_file(file) as path:
                    whole = file.name.endswith(".ttc")
                    for font in TTCollection(path) if whole else [TTFont(path)]:
                        yield from font.getBestCmap()


def _ranges(points: Iterable[int]) -> str:
    found = []
    for _, run in groupby(enumerate(sorted(points)), lambda pair: pair[1] - pair[0]):
        row = [point for _, point in run]
        found.append(f"{row[0]:04X}-{row[-1]:04X}")
    return fill(" ".join(found), 98)


if __name__ == "__main__":
    main()
