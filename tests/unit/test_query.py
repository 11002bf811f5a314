"""Query strings: known parameters once each, or InvalidRequest."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import InvalidRequest
from countersign.base.http.body import parse_query, read_query
from countersign.base.values import ACKNOWLEDGMENT, timed_id
from countersign.core.acknowledgments.schemas import AcknowledgmentsQuery
from countersign.core.events.model import EventType
from countersign.core.events.routes import EventsQuery
from tests.support.every import every

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


@every(
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
def test_an_ambiguous_query_is_refused(query: bytes) -> None:
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


def test_the_refusal_says_that_there_are_no_parameters() -> None:
    """Instead of an empty list."""
    with pytest.raises(InvalidRequest, match="Allowed: none"):
        parse_query(b"limit=1", ())


def test_a_query_has_the_types_that_are_documented() -> None:
    """A time is in UTC, to the microsecond; an omitted one has its default."""
    after = timed_id(ACKNOWLEDGMENT, 0, bytes(8))
    sent = f"after={after}&accepted_after=2026-11-20t01:00:00.5%2B01:00&session_id=5&limit=007"
    assert read_query(sent.encode(), AcknowledgmentsQuery) == AcknowledgmentsQuery(
        session_id="5",
        accepted_after=datetime(2026, 11, 20, microsecond=500_000, tzinfo=UTC),
        after=after,
        limit=7,
    )
    found = read_query(b"type=buyer.verified", EventsQuery)
    assert found == EventsQuery(type=EventType.BUYER_VERIFIED, limit=20)


def test_a_route_without_parameters_takes_none() -> None:
    """Whatever their names are."""
    with pytest.raises(InvalidRequest):
        read_query(b"limit=1", None)


@every(
    ("query", "message"),
    [
        ("limit=0", "at least 1"),
        ("limit=101", "at most 100"),
        ("limit=10000000000000000", "an integer"),
        ("limit=%D9%A1", "an integer"),
        ("limit=%2B5", "an integer"),
        ("limit=5.0", "an integer"),
        ("limit=", "an integer"),
        ("limit=null", "an integer"),
        ("accepted_after=null", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=1700000000", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=2026-11-20", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=2026-11-20+00:00:00Z", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=2026-11-20T00:00:00", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=9999-12-31T23:59:59-23:59", "such as 2026-11-20T21:31:00Z"),
        ("accepted_after=2026-11-20T00:00:00Z%0A", "such as 2026-11-20T21:31:00Z"),
        (f"session_id={'x' * 256}", "at most 255 characters"),
        ("after=ack_1", "a value such as ack_"),
        (f"after=ack_{'0' * 26}%0A", "a value such as ack_"),
        (f"after=x%0Aack_{'0' * 26}", "a value such as ack_"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(query: str, message: str) -> None:
    """In one printable sentence with the expected value and its place."""
    with pytest.raises(InvalidRequest) as caught:
        read_query(query.encode(), AcknowledgmentsQuery)
    name = query.partition("=")[0]
    assert message in caught.value.message
    assert caught.value.message.endswith(f" - at the query parameter {name}.")
    assert caught.value.message.isprintable()


def test_a_word_that_is_not_in_a_list_is_refused_with_the_list() -> None:
    """So that the developer need not look it up."""
    with pytest.raises(InvalidRequest) as caught:
        read_query(b"type=buyer.known", EventsQuery)
    for type_ in EventType:
        assert type_ in caught.value.message
