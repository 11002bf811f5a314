"""Notice files: accepted content, refusals, and the published bytes."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import InvalidNoticeFile
from countersign.core.notices.model import NoticeContent, notice_digest, published_bytes
from countersign.core.notices.notice_file import parse_notice_file
from countersign.core.notices.registry import effective_at
from tests.support.every import every
from tests.unit.support import jcs

MINIMAL = {
    "id": "movers",
    "version": "2",
    "title": "Important notice",
    "heading": "You agree that:",
    "bullets": [{"id": "1", "text": "First."}, {"id": "2", "text": "Second."}],
    "attestation_text": "I have read this.",
    "source_law": "Law § 1",
    "source_bill": "Bill 1",
    "jurisdiction": "US-NY",
    "language": "en",
    "effective_from": "2026-03-08",
    "source_url": "https://example.com/law",
}
OPTIONAL = {
    "obligations": [{"type": "label", "text": "Signature required"}, {"type": "adult", "age": 18}],
    "retention_years": 7,
    "editorial": ["title"],
    "text_gaps": ["(E) is missing"],
}


def toml(table: dict[str, Any]) -> bytes:
    """The table as TOML; for values that JSON and TOML write alike, and lists of tables."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in table.items()).encode()


def _value(value: Any) -> str:  # noqa: ANN401 - any TOML value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # TOML has no escape for a lone surrogate, and DEL must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def mistakes(table: dict[str, Any]) -> list[str]:
    """The lines of the refusal."""
    with pytest.raises(InvalidNoticeFile) as caught:
        parse_notice_file(toml(table))
    return caught.value.message.split("\n")


def test_the_required_fields_suffice() -> None:
    """obligations, retention_years, editorial and text_gaps are optional."""
    content = parse_notice_file(toml(MINIMAL))
    assert [b.text for b in content.bullets] == ["First.", "Second."]
    assert (content.obligations, content.retention_years) == (None, None)
    assert (content.editorial, content.text_gaps) == ((), ())


def test_optional_fields_are_kept() -> None:
    """The file's content is published."""
    content = parse_notice_file(toml(MINIMAL | OPTIONAL))
    assert content.obligations == OPTIONAL["obligations"]
    assert content.retention_years == 7
    assert content.editorial == ("title",)
    assert content.text_gaps == ("(E) is missing",)


def test_a_field_left_out_is_left_out_of_the_published_bytes() -> None:
    """Fields that later releases add change no digest."""
    assert set(json.loads(published_bytes(parse_notice_file(toml(MINIMAL))))) == set(MINIMAL)


def test_published_bytes_are_a_known_answer() -> None:
    """The digest is in every record: the bytes of the same words may never change."""
    body = published_bytes(parse_notice_file(toml(MINIMAL)))
    expected = (
        '{"attestation_text":"I have read this.","bullets":[{"id":"1","text":"First."},'
        '{"id":"2","text":"Second."}],"effective_from":"2026-03-08",'
        '"heading":"You agree that:","id":"movers","jurisdiction":"US-NY","language":"en",'
        '"source_bill":"Bill 1","source_law":"Law § 1",'
        '"source_url":"https://example.com/law","title":"Important notice","version":"2"}'
    )
    assert body == expected.encode()
    assert notice_digest(body) == sha256(body).hexdigest()


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: "x" + text)


@given(
    words=st.fixed_dictionaries(
        dict.fromkeys(("title", "heading", "attestation_text", "source_law"), WORDS)
    ),
    lines=st.lists(WORDS, min_size=1, max_size=40),
    optional=st.fixed_dictionaries(
        {}, optional={"retention_years": st.integers(1, 100), "text_gaps": st.lists(WORDS)}
    ),
)
def test_published_bytes_are_rfc_8785_of_the_file(
    words: dict[str, str], lines: list[str], optional: dict[str, Any]
) -> None:
    """Any words and any number of lines; no id or count is special."""
    table = MINIMAL | words | {k: v for k, v in optional.items() if v}
    table["bullets"] = [{"id": str(n), "text": text} for n, text in enumerate(lines)]
    assert published_bytes(parse_notice_file(toml(table))) == jcs(table)


@given(st.permutations(sorted(MINIMAL | OPTIONAL)))
def test_the_order_of_the_fields_in_the_file_changes_no_byte(names: list[str]) -> None:
    """The same words are the same version, however the file is laid out."""
    table = MINIMAL | OPTIONAL
    content = parse_notice_file(toml({name: table[name] for name in names}))
    assert published_bytes(content) == jcs(table)


def test_a_date_may_be_written_with_or_without_quotes() -> None:
    """TOML has dates of its own."""
    bare = toml(MINIMAL).replace(b'"2026-03-08"', b"2026-03-08")
    assert parse_notice_file(bare) == parse_notice_file(toml(MINIMAL))


def test_every_mistake_is_reported_at_once() -> None:
    """Missing, unknown, of the wrong type, empty, ill-formed, repeated: one line each."""
    table: dict[str, Any] = MINIMAL | {
        "version": "2 b",
        "title": "\u200b",
        "heading": 5,
        "bullets": [{"id": "1", "text": " "}, {"id": "1", "text": "a"}, {"id": "?", "text": "a"}],
        "effective_from": "2026-02-30",
        "obligations": [{"weight": 1.5}],
        "retention_years": 0,
        "editorial": ["titel"],
        "colour": "red",
    }
    del table["source_law"]
    assert sorted(mistakes(table)) == sorted(
        [
            "source_law: missing",
            "colour: unknown",
            "heading: Expected `str`, got `int`",
            "obligations[0].weight: float is not allowed in evidence",
            "title: empty",
            "version: letters, digits, '.', - and _ only, at most 64",
            "effective_from: not a date such as 2026-01-01",
            "bullets: the text of '1' is empty",
            "bullets: not a valid id: '?'",
            "bullets: duplicate id '1'",
            "retention_years: 1 to 100",
            "editorial: unknown field 'titel'",
        ]
    )


def test_an_empty_file_misses_every_required_field() -> None:
    """A first attempt learns all that it needs."""
    assert mistakes({}) == [f"{name}: missing" for name in MINIMAL]


def test_every_broken_line_is_named_by_its_number() -> None:
    """A notice may have dozens of lines."""
    lines = [{"id": "1"}, {"id": "2", "text": "a"}, {"id": "3", "text": "a", "note": "b"}, "(D)"]
    found = mistakes(MINIMAL | {"bullets": lines})
    assert [line.split(":")[:2] for line in found] == [
        ["bullets", " line 1"],
        ["bullets", " line 3"],
        ["bullets", " line 4"],
    ]


@pytest.mark.parametrize("name", [n for n in MINIMAL if n not in {"bullets", "id"}])
def test_no_worded_field_may_be_blank(name: str) -> None:
    """No text for buyers or auditors may be blank."""
    assert len(mistakes(MINIMAL | {name: " \u00a0"})) == 1


@pytest.mark.parametrize("id_", ["", "AB1263", "a b", "-a", "_a", "a/b", "a" * 65, "é", "a\n"])
def test_an_id_that_does_not_fit_an_address_is_refused(id_: str) -> None:
    """The id is a segment of URLs."""
    assert len(mistakes(MINIMAL | {"id": id_})) == 1


@pytest.mark.parametrize("date", ["", "2026", "2026-1-1", "20260101", "2026-W01-1", "2026-13-01"])
def test_only_one_spelling_of_a_date_is_taken(date: str) -> None:
    """Python reads more spellings than the format has."""
    assert mistakes(MINIMAL | {"effective_from": date}) == [
        "effective_from: not a date such as 2026-01-01"
    ]


@every(
    "broken",
    [
        b"\xff\xfe",
        b"title = ",
        b"title = 'a'\ntitle = 'b'",
        b"a = " + b"[" * 5000,
        b'title = "\\ud800"',
        b"[[bullets]]\nid = 1",
        b"bullets = 1",
        b"editorial = [1]",
        b"effective_from = 2026-01-01T00:00:00Z",
        b"obligations = 2026-01-01",
        b"obligations = 9007199254740992",
        b"obligations = 1" + b"0" * 5000,
        b"\xc3\xa9 = 1",
        b'"\xc3\xa9" = 1',
        b"obligations = {'\xc3\xa9' = 1}",
    ],
)
def test_a_broken_file_is_refused_as_a_notice_file(broken: bytes) -> None:
    """Never with a traceback."""
    with pytest.raises(InvalidNoticeFile):
        parse_notice_file(broken)


SEGMENTS = 501
HIDDEN = [
    "{}=1",
    "[{}]",
    "x = {{{}=1}}",
    """x = ["" , {{{}=1}}]""",
    """x = ['''it's''', {{{}=1}}]""",
    '''x = ["""a"""", {{{}=1}}]''',
    '''x = ["""a\\""" b""", {{{}=1}}]''',
    '''x = [""""""", {{{}=1}}]''',
    """x = ['a"', {{{}=1}}]""",
    """x = ["a\\"", {{{}=1}}]""",
    """# " '''\n{}=1""",
    """"#".{}=1""",
    'x = "a"\r\n{}=1',
]


@pytest.mark.parametrize("around", HIDDEN)
@pytest.mark.parametrize("dot", [".", " . "])
def test_a_key_of_many_dots_is_refused_before_it_is_parsed(around: str, dot: str) -> None:
    """Wherever it stands: for `tomllib`, twice as many take four times as long."""
    few, many = (around.format(dot.join(["a"] * n)).encode() for n in (3, SEGMENTS + 1))
    tomllib.loads(few.decode())
    for data, is_refused in ((few, False), (many, True)):
        with pytest.raises(InvalidNoticeFile) as refused:
            parse_notice_file(data)
        assert ("dots in its keys" in str(refused.value)) is is_refused


def test_texts_and_comments_have_as_many_dots_as_they_like() -> None:
    """Only keys count: words of a law have many."""
    words = "No. 1." * SEGMENTS
    content = parse_notice_file(toml(MINIMAL | {"title": words}) + b"\n# " + words.encode())
    assert content.title == words


def test_a_text_that_ends_in_a_backslash_goes_to_the_end_of_the_file() -> None:
    """Else each text in it is scanned to there: the time grows with the square of their number."""
    dots = ".".join(["a"] * (SEGMENTS + 1))
    for data in (f'"""\n{dots}\\', f'\\"""\n\\"""\n{dots}\\'):
        with pytest.raises(InvalidNoticeFile) as refused:
            parse_notice_file(data.encode())
        assert "dots in its keys" not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_notice_or_are_refused(data: bytes) -> None:
    """There is no third outcome."""
    try:
        found = parse_notice_file(data)
    except InvalidNoticeFile:
        return
    assert isinstance(found, NoticeContent)


def test_a_version_takes_effect_when_its_day_begins_in_the_zone() -> None:
    """0:00 local time, also on the day on which clocks change."""
    content = parse_notice_file(toml(MINIMAL))
    start = effective_at(content, ZoneInfo("America/Los_Angeles"))
    assert start.astimezone(UTC) == datetime(2026, 3, 8, 8, 0, tzinfo=UTC)
