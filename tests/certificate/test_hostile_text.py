"""Text of buyers, vendors and publishers is shown literally, and never breaks the document."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.core.paper.typeset import COMBINING, SHOWABLE, qr_code, showable, typeset
from tests.certificate.facts import made_dossier, make_certificate
from tests.certificate.reader import lines_of, pages_of, squeezed, words_of
from tests.support.depth import drawn

MARKUP: Final = (
    '#eval("1") #sys.inputs *bold* _it_ $x^2$ `raw` <a> @ref \\ // /* " \' [x] = h - l + e'
)
HOSTILE: Final = {
    "markup": MARKUP,
    "unbroken": "W" * 1024,
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "turned around": "a\u202egnp.exe\u202c",
    "combining": "a" + "\u0301" * 300,
    "emoji": "\U0001f44d\U0001f469\u200d\U0001f467\ufe0f",
    "unbroken CJK": "\u5f20" * 1024,
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff\ufffe",
    "private": "\ue000\U000f0000\U0010ffff",
    "spaces": " " * 300 + "x",
    "nearly plain": "a" * 1023 + "\u5f20",
    "lines": "a\n\n\r\nb\n" * 50,
    "empty": "",
}
SOME: Final = {"markup", "turned around", "controls"}
"""Those of the first stage: each takes most of a second."""
ANY: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=() if name in SOME else pytest.mark.later)
        for name, text in HOSTILE.items()
    ],
)
def test_a_certificate_is_made_from_any_text_in_any_field(text: str) -> None:
    """As initials, as the notice and as every field that a vendor fills in."""
    notice = {
        "title": text,
        "heading": text,
        "attestation_text": text,
        "source_law": text,
        "source_url": text,
        "text_gaps": [text],
    }
    agent = {"user_agent": text, "source": "body", "truncated": True}
    personal = {
        "initials_per_line": [text, "JD"],
        "session_id": text,
        "cbid": text,
        "user_agent": agent,
    }
    lines = [("A", text), ("B", "The last line.")]
    words = words_of(make_certificate(made_dossier(personal, lines=lines, notice=notice)))
    assert "The last line." in words
    assert "How to verify it" in words


def test_markup_is_shown_and_never_interpreted() -> None:
    """Text that looks like a typesetter command stays text."""
    personal = {"session_id": MARKUP, "initials_per_line": ["#1+1", "*JD*"]}
    words = words_of(make_certificate(made_dossier(personal)))
    assert squeezed(MARKUP) in squeezed(words)
    assert "#1+1" in words
    assert "*JD*" in words


@given(ANY, ANY)
@settings(max_examples=drawn(15))
def test_any_text_at_all_makes_a_certificate(line: str, field: str) -> None:
    """No character that can be stored stops the compiler."""
    personal = {"session_id": field, "initials_per_line": [field, line]}
    lines = [(field, line), ("B", field)]
    assert make_certificate(made_dossier(personal, lines=lines)).startswith(b"%PDF-")


def test_initials_that_could_be_mistaken_have_their_code_points_next_to_them() -> None:
    """Characters without a glyph, look-alikes and blanks are spelled out; plain ones are not."""
    personal = {"initials_per_line": ["\u5f20\u4e09", "\u0410\u0412"]}
    words = words_of(make_certificate(made_dossier(personal)))
    assert "U+5F20 U+4E09" in words
    assert "U+0410 U+0412" in words
    trailing = words_of(make_certificate(made_dossier({"initials_per_line": ["JD ", "JD"]})))
    assert "U+004A U+0044 U+0020" in trailing
    plain = {"initials_per_line": ["\u00c9.M.", "J D"]}
    assert "U+" not in words_of(make_certificate(made_dossier(plain)))


def test_invisible_and_directional_characters_are_shown_as_code_points() -> None:
    """A reader sees that something is there that cannot be seen."""
    assert showable("a\u202eb\u200bc\u00add\x00") == "a[U+202E]b[U+200B]c[U+00AD]d[U+0000]"
    assert showable("one\ntwo\t", keep="\n") == "one\ntwo[U+0009]"
    assert showable("a[U+202E]b [x]") == "a[U+005B]U+202E]b [x]"
    assert showable({"x": ["\u0301", None, 1, True]}) == {"x": ["[U+0301]", None, 1, True]}


def test_combining_characters_stay_with_their_base() -> None:
    """Accents that were typed apart, joined letters, and emoji of several; never a pile of them."""
    for whole in (
        "e\u0301",
        "\u0645\u06cc\u200c\u062e",
        "\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f",
    ):
        assert showable(whole) == whole
    assert showable("a\u200db \u0301") == "a[U+200D]b [U+0301]"
    assert showable("e" + "\u0301" * 5) == "e" + "\u0301" * 4 + "[U+0301]"


@pytest.mark.later
def test_every_showable_character_has_a_glyph_in_every_style_used() -> None:
    """The table lists the characters of the fonts inside the compiler; the compiler decides."""
    alone = [chr(point) for first, last in SHOWABLE for point in range(first, last + 1)]
    marks = [chr(point) for first, last in COMBINING for point in range(first, last + 1)]
    text = "".join(alone) + "".join(f"x{mark}" for mark in marks)
    words = {
        "title": "", "id": "", "origin": "", "date": [2026, 1, 1, 0, 0, 0], "test": False,
        "keywords": [], "summary": "", "qr": qr_code("x"), "verify_url": "https://x.example",
        "t": text,
    }  # fmt: skip
    styles = b'#facts.t #text(weight: "semibold", facts.t) #mono(facts.t)'
    assert typeset(styles, words | {"title": "All"}).startswith(b"%PDF-")


def test_long_words_are_broken_where_the_column_ends() -> None:
    """The widest letters take several lines, and none of them leaves the page."""
    personal = {"initials_per_line": ["W" * 32, "JD"], "session_id": "W" * 255}
    lines = [("A", "W" * 400), ("B", "The last line.")]
    broken = lines_of(make_certificate(made_dossier(personal, lines=lines)))
    words = [word for line in broken for word in line.split() if "WW" in word]
    assert sum(word.count("W") for word in words) == 2 * (32 + 255) + 400
    # A page is 21 cm wide; a W of this size is wider than 3 mm, and the margins are 2 cm each.
    assert max(len(word) for word in words) <= 45


def test_long_words_stay_on_the_page_and_are_copied_whole() -> None:
    """The breaks are no characters: text copied from the page has nothing added."""
    long = "".join(f"{number:04d}" for number in range(255))
    agent = {"user_agent": long, "source": "body", "truncated": False}
    words = words_of(make_certificate(made_dossier({"user_agent": agent})))
    # A word may go on on the next page, after what stands at the foot of this one.
    assert long in re.sub(r"ack_[0-9a-z]{26}Page\dof\d", "", squeezed(words))
    assert "\u200b" not in words


def test_two_hundred_lines_and_a_line_of_five_thousand_characters_fit() -> None:
    """The largest notice that there may be is one document, whole."""
    lines = [(f"L{number}", f"Line {number}.") for number in range(199)]
    lines.append(("long", "x" * 4999 + "!"))
    pdf = make_certificate(made_dossier(lines=lines))
    words = words_of(pdf)
    assert all(f"Line {number}." in words for number in range(199))
    body = squeezed("".join(pages_of(pdf)))
    assert body.count("x") >= 4999
