"""Documents as PDF: text, times and the compiler."""

from __future__ import annotations

import io
import re
import sys
from bisect import bisect
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import msgspec

from countersign import __version__
from countersign.base.values import parse_rfc3339

if TYPE_CHECKING:
    from typst import Compiler


# Text on paper: each character is shown truly, or written as its code point.
#
# Which characters a page shows is a list (`showable.txt`, written by tools/showable.py), since
# PDF/A forbids a character without a glyph. It is not Python's table of characters, which grows
# from version to version: the same text would look different elsewhere.

FONT_PACKAGES: Final = ("manimgx_fonts", "noto_cjk_sans_otc", "fontpkg_ibm_plex_sans_arabic")
_PACIFIC: Final = ZoneInfo("America/Los_Angeles")


def _classes() -> list[list[tuple[int, int]]]:
    lists = (resources.files(__package__) / "showable.txt").read_text("ascii").split("\n\n")
    pairs = [[one.split("-") for one in part.split()] for part in lists]
    return [[(int(first, 16), int(last, 16)) for first, last in part] for part in pairs]


SHOWABLE, COMBINING = _classes()
"""Ranges of code points that a page shows as they are, and of those that combine with them."""
_MARKS_MAX: Final = 4
"""How many combining characters may follow one another: more would cover what stands above."""
# Characters that join or part others are no text by themselves. They stay where writing needs
# them: between Arabic letters, after a sign that takes a vowel away, and between emoji.
_ARABIC: Final = "\u0620-\u064a\u066e-\u06d3"
_VIRAMA: Final = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
_EMOJI: Final = "\u2190-\u2bff\U0001f000-\U0001faff"
_JOINER: Final = re.compile(
    rf"(?<=[{_ARABIC}])\u200c(?=[{_ARABIC}])|(?<=[{_VIRAMA}])[\u200c\u200d]"
    rf"|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_EMOJI}])\ufe0f"
)
# A typed bracket is escaped too, so that it differs from inserted ones.
_DOUBTFUL: Final = re.compile(r"\[(?=U\+)|[^ -~]")
_PLAIN: Final = re.compile(r"(?:[!-~\u00c0-\u017f]+(?: [!-~\u00c0-\u017f]+)*)?")
_KANA: Final = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL: Final = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def showable(value: Any, keep: str = "") -> Any:  # noqa: ANN401 - a tree of JSON values
    """The value; characters that a page cannot show faithfully become `[U+202E]` and the like.

    These are characters that the fonts lack, invisible ones, ones that change the direction of
    writing, and combining ones without a base. `keep` are characters to leave as they are.
    """
    if isinstance(value, str):
        return _DOUBTFUL.sub(
            lambda found: (
                found[0]
                if found[0] in keep or _shows(found.string, found.start())
                else f"[U+{ord(found[0]):04X}]"
            ),
            value,
        )
    if isinstance(value, dict):
        return {name: showable(item, keep) for name, item in value.items()}
    if isinstance(value, list):
        return [showable(item, keep) for item in value]
    return value


def _shows(text: str, at: int) -> bool:
    char = text[at]
    if not _holds(COMBINING, char):
        return (char != "[" and _holds(SHOWABLE, char)) or _JOINER.match(text, at) is not None
    before = reversed(text[max(0, at - _MARKS_MAX) : at])
    base = next((one for one in before if not _holds(COMBINING, one)), " ")
    return not base.isspace() and _holds(SHOWABLE, base)


def _holds(ranges: list[tuple[int, int]], char: str) -> bool:
    at = bisect(ranges, (ord(char), sys.maxunicode))
    return at > 0 and ranges[at - 1][1] >= ord(char)


def row(
    label: str, value: str, note: str | None = None, *, mono: bool = False, link: bool = False
) -> dict[str, Any]:
    """A row of a table of details; `note` gives the source of the value."""
    return {"label": label, "value": value, "note": note, "mono": mono, "link": link}


def code_points(text: str) -> str | None:
    """The code points of a text with letters or blanks that could be mistaken, such as `U+0410`.

    None for Latin letters, digits and signs with single spaces between them.
    """
    return None if _PLAIN.fullmatch(text) else " ".join(f"U+{ord(char):04X}" for char in text)


def han_font(text: str, language: str = "") -> str:
    """Whose forms the Chinese characters of a text take: `JP`, `KR`, `TC` or `SC`.

    The same code point has different forms in Japan, Korea, Taiwan and China. Without a decisive
    `language` (a BCP 47 tag) it is guessed from the text; each of these fonts shows all characters.
    """
    tag = language.lower()
    if _KANA.search(text) or tag.startswith("ja"):
        return "JP"
    if _HANGUL.search(text) or tag.startswith("ko"):
        return "KR"
    if tag.startswith("zh"):
        return "TC" if re.search("hant|-(tw|hk|mo)", tag) else "SC"
    return "SC" if _encodes(text, "gb2312") or not _encodes(text, "big5") else "TC"


def _encodes(text: str, charset: str) -> bool:
    try:
        text.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def clocks(at: datetime) -> tuple[str, str]:
    """An instant in UTC, and in Pacific time; to the millisecond where it has any."""
    utc = at.astimezone(UTC)
    return _clock(utc), _clock(utc.astimezone(_PACIFIC))


def both_times(at: datetime) -> str:
    """An instant in UTC and in Pacific time."""
    return " = ".join(clocks(at))


def time_text(text: str) -> str:
    """The same for an RFC 3339 time, such as those in records; unchanged if it is not a date."""
    try:
        return both_times(parse_rfc3339(text))
    except (ValueError, OverflowError):  # the Pacific time of the year 1 is in none
        return text


def _clock(at: datetime) -> str:
    fraction = f".{at.microsecond // 1000:03}" if at.microsecond >= 1000 else ""
    return f"{at:%Y-%m-%d %H:%M:%S}{fraction} {at.tzname()}"


# Typesetting: a template and data become a PDF (PDF/A-3b and PDF/UA-1), always the same bytes.
#
# Values reach a template as data, never as its text, so nothing that anyone wrote is ever read as
# markup. No clock is read, and no font of the machine.

_STANDARDS: Final = ("a-3b", "ua-1")
"""For archives, and for screen readers."""
OTHER_MAKER: Final = "it was not made by this release with these fonts and tools"
"""Why a document was not compared whose `maker` is another."""
_SOURCES: Final = ("parts.typ", "showable.txt", "typeset.py")
_TOOLS: Final = ("typst", "segno", "tzdata", *(name.replace("_", "-") for name in FONT_PACKAGES))
# A compiler serves one caller at a time, and refuses a second one.
_compiling: Final = Lock()


def typeset(template: bytes, words: Mapping[str, Any]) -> bytes:
    """The PDF of a template, which comes after the common parts (`parts.typ`)."""
    facts = msgspec.json.encode(words).decode()
    with _compiling:
        made = _compiler().compile(
            _parts() + template,
            sys_inputs={"facts": facts},
            pdf_standards=list(_STANDARDS),
            timestamp=0,
        )
    assert isinstance(made, bytes)  # noqa: S101 - a PDF is one file
    return made


@cache
def _compiler() -> Compiler:
    """The compiler with its fonts, each read when a text first needs it."""
    from typst import Compiler, Fonts  # noqa: PLC0415 - most processes do without

    places = [str(resources.files(package)) for package in FONT_PACKAGES]
    return Compiler(_parts(), font_paths=Fonts(include_system_fonts=False, font_paths=places))


@cache
def _parts() -> bytes:
    return (resources.files(__package__) / "parts.typ").read_bytes()


def qr_code(url: str) -> str:
    """A QR code, as SVG."""
    import segno  # noqa: PLC0415 - as above

    target = io.BytesIO()
    segno.make(url, error="m", micro=False).save(
        target, kind="svg", border=0, xmldecl=False, svgns=True, dark="#1c2733"
    )
    return target.getvalue().decode()


def maker(*sources: bytes) -> str:
    """The release, identified by all that a document depends on; `sources` are its own."""
    place = resources.files(__package__)
    common = [(place / name).read_bytes() for name in _SOURCES]
    made = sha256(b"".join([*common, *sources])).hexdigest()[:16]
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in _TOOLS)
    return f"Countersign {__version__} ({made}, {tools})"
