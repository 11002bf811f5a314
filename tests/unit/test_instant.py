"""Times: parsing, formatting, and that nothing is lost between."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import (
    from_ms,
    from_ns,
    parse_rfc3339,
    rfc3339,
    rfc3339_ms,
    to_ms,
)
from tests.support.every import every

ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
INSTANTS = st.builds(
    datetime.astimezone,
    st.integers(3, 3_652_056).map(lambda day: datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=day)),
    ZONES,
).flatmap(lambda day: st.timedeltas(timedelta(0), timedelta(days=1)).map(lambda time: day + time))


@given(st.integers(-(2**43), 2**47))
def test_milliseconds_survive_the_round_trip(unix_ms: int) -> None:
    """The database stores the written value."""
    assert to_ms(from_ms(unix_ms)) == unix_ms
    assert from_ns(unix_ms * 1_000_000) == from_ms(unix_ms)
    assert parse_rfc3339(rfc3339_ms(from_ms(unix_ms))) == from_ms(unix_ms)


@given(st.integers(0, 2**62))
def test_nanoseconds_are_cut_and_never_rounded_up(time_ns: int) -> None:
    """A record never claims a time that had not come yet."""
    instant = from_ns(time_ns)
    assert to_ms(instant) * 1_000_000 <= time_ns < (to_ms(instant) + 1) * 1_000_000


def test_the_written_forms_match_the_interface() -> None:
    """The API to the second, a record to the millisecond, both in UTC."""
    instant = from_ns(1_795_210_260_123_999_999)
    assert rfc3339(instant) == "2026-11-20T21:31:00Z"
    assert rfc3339_ms(instant) == "2026-11-20T21:31:00.123Z"
    assert rfc3339_ms(from_ns(0)) == "1970-01-01T00:00:00.000Z"


@given(INSTANTS)
def test_any_zone_is_written_in_utc(instant: datetime) -> None:
    """The same instant has one form, of one length."""
    for write, cut in ((rfc3339, {"microsecond": 0}), (rfc3339_ms, {})):
        text = write(instant)
        utc = instant.astimezone(UTC)
        kept = utc.replace(microsecond=cut.get("microsecond", utc.microsecond // 1000 * 1000))
        assert text == write(utc)
        assert parse_rfc3339(text) == kept
        assert len(text) == len("2026-11-20T21:31:00Z") + (4 if write is rfc3339_ms else 0)


@given(INSTANTS, st.sampled_from("Tt"), st.sampled_from("Zz"))
def test_all_rfc_3339_forms_are_read(instant: datetime, middle: str, zone: str) -> None:
    """Any offset, any fraction, both letter cases."""
    written = instant.isoformat().replace("T", middle)
    assert parse_rfc3339(written) == instant
    utc = instant.astimezone(UTC).replace(tzinfo=None).isoformat().replace("T", middle)
    assert parse_rfc3339(utc + zone) == instant


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2026-11-20T21:31:00.1Z", 100_000),
        ("2026-11-20T21:31:00.12Z", 120_000),
        ("2026-11-20T21:31:00.123456Z", 123_456),
        ("2026-11-20T21:31:00.123456789Z", 123_456),
        ("2026-11-20T21:31:00.999999999+00:00", 999_999),
        ("2026-11-20T21:31:00-00:00", 0),
    ],
)
def test_fractions_are_read_to_the_microsecond(text: str, microsecond: int) -> None:
    """Finer ones are cut: other languages write nanoseconds."""
    expected = datetime(2026, 11, 20, 21, 31, tzinfo=UTC) + timedelta(microseconds=microsecond)
    assert parse_rfc3339(text) == expected


@every(
    "text",
    [
        "",
        "2026-11-20",
        "2026-11-20T21:31:00",
        "2026-11-20 21:31:00Z",
        "2026-11-20T21:31Z",
        "20261120T213100Z",
        "2026-W47-5T21:31:00Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-20T25:00:00Z",
        "2026-11-20T21:31:00.Z",
        "2026-11-20T21:31:00.1234567890Z",
        "2026-11-20T21:31:00,5Z",
        "2026-11-20T21:31:00+0100",
        "2026-11-20T21:31:00+24:00",
        "2026-11-20T21:31:00Z\n",
        " 2026-11-20T21:31:00Z",
        "٢٠٢٦-11-20T21:31:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "1795210260",
        "now",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """Python reads more than RFC 3339 has; the API does not."""
    with pytest.raises(ValueError, match=r"not a"):
        parse_rfc3339(text)


@given(st.text(max_size=40))
def test_no_text_makes_it_fail_in_another_way(text: str) -> None:
    """A query parameter holds whatever somebody sends."""
    with suppress(ValueError):
        assert parse_rfc3339(text).tzinfo is UTC


def test_a_time_without_a_zone_is_a_mistake_of_the_program() -> None:
    """It is not taken for UTC in silence."""
    with pytest.raises(TypeError):
        to_ms(datetime(2026, 11, 20))  # noqa: DTZ001 - that is the point
