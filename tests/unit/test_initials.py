"""Blank initials, and the two rules over the lines of a notice."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from countersign.base.errors import EmptyInitials, InitialsCountMismatch
from countersign.core.acknowledgments.acknowledge import check_initials
from countersign.core.notices.model import is_blank
from tests.support.every import every


def _points(text: str) -> set[int]:
    """Code points from a list like `034F 115F..1160`, as the Unicode data files write it."""
    found: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("..")
        found |= set(range(int(first, 16), int(last or first, 16) + 1))
    return found


# PropList.txt of Unicode 16.
OTHER_DEFAULT_IGNORABLE = _points(
    "034F 115F..1160 17B4..17B5 2065 3164 FFA0 FFF0..FFF8 E0000 E0002..E001F E0080..E00FF "
    "E01F0..E0FFF"
)
VARIATION_SELECTORS = _points("180B..180D 180F FE00..FE0F E0100..E01EF")
PREPENDED_MARKS = _points("0600..0605 06DD 070F 0890..0891 08E2 110BD 110CD")
VISIBLE_FORMATS = PREPENDED_MARKS | _points("FFF9..FFFB 13430..13440")

# Planes 2 to 13 and 15 to 16 hold ideographs, private use and nothing; their ends stand for them.
EVERY_CHARACTER = [
    chr(p) for p in sorted(_points("0..1FFFF 20000 2FA1D DFFFF E0000..E0FFF E1000 F0000 10FFFF"))
]
FORMAT_CHARACTERS = {ord(c) for c in EVERY_CHARACTER if unicodedata.category(c) == "Cf"}
# The rule at the head of Default_Ignorable_Code_Point in DerivedCoreProperties.txt.
DEFAULT_IGNORABLE = (
    OTHER_DEFAULT_IGNORABLE | FORMAT_CHARACTERS | VARIATION_SELECTORS
) - VISIBLE_FORMATS


# The 66 of Unicode, D14.
NONCHARACTERS = _points("FDD0..FDEF") | {
    plane << 16 | end for plane in range(17) for end in (0xFFFE, 0xFFFF)
}


def blank_by_the_words_of_the_rule(text: str) -> bool:
    """Nothing left after removing invisible characters, or only combining marks."""
    left = [
        c
        for c in text
        if not c.isspace()
        and unicodedata.category(c) not in {"Zs", "Zl", "Zp"}  # white space
        and unicodedata.category(c) not in {"Cc", "Cf"}  # control and format characters
        and ord(c) not in DEFAULT_IGNORABLE
        and c not in "\u2800\ufffc\U0001d159"
        and not 0x1F3FB <= ord(c) <= 0x1F3FF  # emoji modifiers
        and unicodedata.category(c) != "Co"
        and ord(c) not in NONCHARACTERS
    ]
    return all(unicodedata.category(c) in {"Mn", "Mc", "Me"} for c in left)


def judged_by_the_rule(text: str) -> bool:
    """Whether the fixed list agrees with the rule in words, by Unicode 14.

    Later Unicode assignments count as visible: each release judges the same initials alike.
    """
    blank, by_words = is_blank(text), blank_by_the_words_of_the_rule(text)
    return blank == by_words or (not blank and unicodedata.unidata_version != "14.0.0")


UNSEEN = st.sampled_from(
    [chr(p) for p in sorted(DEFAULT_IGNORABLE)[::40]]
    + list(" \t\n\r\x00\x1f\x7f\x85\xa0\u2000\u2028\u2029\u3000\u2800\ufeff\u200b\u200d\u3164")
)
MARKS = st.sampled_from("\u0301\u0903\u20dd\u0488\U0001d165\u3099")
SEEN = st.sampled_from("AjÉß.·-中ا\u05d0\U0001f58b0\u0378")


def test_every_default_ignorable_code_point_is_blank() -> None:
    """Initials of only such characters show nothing."""
    assert not [hex(point) for point in DEFAULT_IGNORABLE if not is_blank(chr(point))]


def test_every_single_character_is_judged_by_the_rule() -> None:
    """Every code point that could be unseen, against the words of the rule."""
    assert [hex(ord(c)) for c in EVERY_CHARACTER if not judged_by_the_rule(c)] == []


@given(st.lists(st.one_of(UNSEEN, MARKS, SEEN), max_size=32).map("".join))
@example("")
@example("\u200b\u0301")
@example("\ufeffA")
def test_strings_are_judged_by_the_rule(text: str) -> None:
    """Mixtures of visible and invisible characters, and combining marks."""
    assert judged_by_the_rule(text)


@given(st.text(max_size=32))
def test_any_text_is_judged_by_the_rule(text: str) -> None:
    """Whatever is typed gets one of two verdicts."""
    assert judged_by_the_rule(text)


@every(
    "text",
    [
        *("", " ", "\t\r\n", "\u00a0\u3000", "\u200b\u200d", "\u2800\u2800", "\u0301", "\u00ad"),
        *("\U0001f3fb", "\U0001f3fd\u200d\U0001f3ff"),
        *("\x00", "\U0001d159", "\ufffc", "\uffff", "\ufdd0", "\U0010ffff", "\ue000\uf8ff"),
    ],
)
def test_invisible_text_is_blank(text: str) -> None:
    """The ways to leave a line empty, by accident or not."""
    assert is_blank(text)


@pytest.mark.parametrize(
    "text", ["JD", "j.d.", " J ", "J\u0301", "李", "\U0001f58b", "-", "0", "J\ue000"]
)
def test_anything_to_be_seen_is_not_blank(text: str) -> None:
    """This rule does not judge whether initials look like someone's name."""
    assert not is_blank(text)


@given(st.lists(st.text(max_size=3), max_size=8), st.integers(0, 8))
def test_the_count_is_judged_before_the_blanks(lines: list[str], count: int) -> None:
    """One refusal at a time: first the number of elements, then their content."""
    blank = [number for number, text in enumerate(lines, 1) if is_blank(text)]
    if len(lines) != count:
        with pytest.raises(InitialsCountMismatch):
            check_initials(lines, count)
    elif blank:
        with pytest.raises(EmptyInitials):
            check_initials(lines, count)
    else:
        check_initials(lines, count)


def test_the_refusal_of_a_count_gives_the_expected_and_the_received_one() -> None:
    """A developer can correct the request from the message alone."""
    with pytest.raises(InitialsCountMismatch) as caught:
        check_initials(["JD"] * 17, 23)
    assert "23" in caught.value.message
    assert "17" in caught.value.message


def test_the_blank_refusal_names_every_blank_line_counted_from_one() -> None:
    """People count lines from 1, and want to know all of them at once."""
    with pytest.raises(EmptyInitials) as caught:
        check_initials(["", "JD", "\u200b", "JD"], 4)
    assert caught.value.message == "The initials are blank on lines 1, 3."


def test_one_blank_line_is_named_in_the_singular() -> None:
    """The message is shown to people."""
    with pytest.raises(EmptyInitials) as caught:
        check_initials(["JD", " "], 2)
    assert caught.value.message == "The initials are blank on line 2."
