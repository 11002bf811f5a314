"""Query strings: known parameters once each, or InvalidRequest."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.errors import InvalidRequest
from countersign.http.reply import parse_query

NAMES = ("limit", "after", "session_id")
TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=20)


@given(
    st.dictionaries(st.sampled_from(NAMES), TEXT, min_size=1), st.sampled_from([quote, quote_plus])
)
def test_any_value_is_read_as_it_was_encoded(query: dict[str, str], encode: object) -> None:
    """Percent-encoded UTF-8, with %20 or +."""
    assert callable(encode)
    text = "&".join(f"{name}={encode(value)}" for name, value in query.items())
    assert parse_query(text.encode(), NAMES) == query


@given(st.one_of(st.binary(max_size=40), st.text("&=%+abc01;?#", max_size=20).map(str.encode)))
def test_any_bytes_are_parameters_or_an_invalid_request(data: bytes) -> None:
    """There is no third outcome."""
    with suppress(InvalidRequest):
        found = parse_query(data, ("a", "b"))
        assert set(found) <= {"a", "b"}
        assert not any("\x00" in value for value in found.values())


@pytest.mark.parametrize(
    "query",
    [
        b"limit=1&limit=1",
        b"limit=1&lim%69t=2",
        b"Limit=1",
        b"colour=red",
        b"limit",
        b"limit=1&",
        b"&limit=1",
        b"after=%ff",
        b"after=%ed%a0%80",
        b"after=a%00b",
        b"after=\xc3\xa9",
        b"=1",
        b"&".join(b"limit=%d" % n for n in range(60)),
    ],
)
def test_what_is_not_clear_is_refused(query: bytes) -> None:
    """A mistyped filter must not silently find too much."""
    with pytest.raises(InvalidRequest):
        parse_query(query, NAMES)


def test_an_empty_value_is_a_value() -> None:
    """Whether it makes sense is for the handler to say."""
    assert parse_query(b"after=", NAMES) == {"after": ""}


def test_the_refusal_names_the_parameters_there_are() -> None:
    """In printable ASCII, whatever was sent."""
    with pytest.raises(InvalidRequest) as caught:
        parse_query(b"colour%C3%A9%0A=red", NAMES)
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()
    for name in NAMES:
        assert name in caught.value.message


def test_where_there_are_no_parameters_the_refusal_says_so() -> None:
    """Instead of an empty list."""
    with pytest.raises(InvalidRequest, match="Allowed: none"):
        parse_query(b"limit=1", ())
