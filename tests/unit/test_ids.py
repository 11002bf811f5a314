"""Identifiers: UUIDv7 behind a prefix, in an alphabet whose order is the order of time."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import (
    ALPHABET,
    base32,
    earliest_id,
    id_pattern,
    is_id,
    made_at_ms,
    timed_id,
    uuid7,
)
from tests.support.every import every

# RFC 9562, appendix A.6: 2022-02-22 19:22:22 UTC, rand_a 0xCC3, rand_b 0x18C4DC0C0C07398F.
RFC_UUID = UUID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
RFC_MS = 1_645_557_742_000
RFC_RAND_B = 0x18C4DC0C0C07398F
# The first nanosecond of the millisecond whose fraction in 4096ths is 0xCC3 = 3267.
RFC_NS = RFC_MS * 1_000_000 + -(-3267 * 1_000_000 // 4096)

TIMES_NS = st.integers(0, 2**48 * 1_000_000 - 1)
ENTROPY = st.binary(min_size=8, max_size=8)
PREFIXES = st.sampled_from(["ack", "cbid", "cbid_test", "key"])


def test_a_uuid7_is_the_known_answer_of_rfc_9562() -> None:
    """Appendix A.6, with the fraction of the millisecond (§6.2, method 3) as rand_a."""
    assert uuid7(RFC_NS, RFC_RAND_B.to_bytes(8, "big")) == RFC_UUID.int


def test_an_identifier_is_the_base32_of_its_uuid() -> None:
    """The same known answer, 5 bits a character from the left of 130."""
    bits = f"{RFC_UUID.int:0130b}"
    characters = "".join(ALPHABET[int(bits[at : at + 5], 2)] for at in range(0, 130, 5))
    assert characters == "01fwhe4ydgfk1shh6w1g60eecf"
    assert timed_id("ack", RFC_NS, RFC_RAND_B.to_bytes(8, "big")) == f"ack_{characters}"


@given(TIMES_NS, ENTROPY)
def test_version_variant_time_and_randomness_are_where_rfc_9562_puts_them(
    time_ns: int, entropy: bytes
) -> None:
    """Anything that reads UUIDv7 can read ours."""
    made = UUID(int=uuid7(time_ns, entropy))
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == time_ns // 1_000_000
    assert made.int & (2**62 - 1) == int.from_bytes(entropy, "big") & (2**62 - 1)


@given(TIMES_NS, st.integers(245, 10**15), ENTROPY, ENTROPY)
def test_identifiers_sort_by_the_time_they_were_made(
    time_ns: int, later: int, first: bytes, second: bytes
) -> None:
    """Down to a quarter of a microsecond, whatever the random part."""
    other = min(time_ns + later, 2**48 * 1_000_000 - 1)
    if other - time_ns >= 245:
        assert timed_id("ack", time_ns, first) < timed_id("ack", other, second)


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**128 - 1))
def test_base32_keeps_the_order_of_numbers(a: int, b: int) -> None:
    """Sorting text is sorting numbers, in every database collation that sorts by bytes."""
    assert (base32(a) < base32(b)) == (a < b)


@given(st.integers(0, 2**128 - 1))
def test_base32_loses_nothing(value: int) -> None:
    """26 characters of the alphabet, read back to the same number."""
    text = base32(value)
    assert len(text) == 26
    assert sum(ALPHABET.index(c) << (5 * (25 - place)) for place, c in enumerate(text)) == value


@pytest.mark.parametrize("value", [-1, 2**128])
def test_a_number_out_of_range_is_a_mistake_of_the_program(value: int) -> None:
    """It is not cut in silence."""
    with pytest.raises(ValueError, match="128-bit"):
        base32(value)


def test_the_alphabet_has_no_characters_that_are_mistaken_for_others() -> None:
    """Crockford's base32, in ASCII order."""
    assert len(ALPHABET) == 32
    assert not set("ilou") & set(ALPHABET)
    assert list(ALPHABET) == sorted(ALPHABET)


@given(PREFIXES, TIMES_NS, ENTROPY)
def test_the_time_can_be_read_from_an_identifier(prefix: str, time_ns: int, entropy: bytes) -> None:
    """To the millisecond."""
    assert made_at_ms(timed_id(prefix, time_ns, entropy)) == time_ns // 1_000_000


@given(TIMES_NS, TIMES_NS, ENTROPY)
def test_the_earliest_identifier_of_a_time_bounds_those_made_since(
    time_ns: int, bound_ns: int, entropy: bytes
) -> None:
    """A search by time is a search by identifier: nothing of that millisecond is missed."""
    bound_ms = bound_ns // 1_000_000
    made_since = time_ns // 1_000_000 >= bound_ms
    assert (timed_id("ack", time_ns, entropy) >= earliest_id("ack", bound_ms)) == made_since


@given(st.integers())
def test_any_time_has_an_earliest_identifier(unix_ms: int) -> None:
    """A search from the year 1 or to the year 9999 does not fail."""
    assert is_id("ack", earliest_id("ack", unix_ms))


@given(PREFIXES, PREFIXES, TIMES_NS, ENTROPY)
def test_an_identifier_has_the_form_of_its_own_prefix_only(
    prefix: str, other: str, time_ns: int, entropy: bytes
) -> None:
    """`cbid_test_…` is not a `cbid_…`: test and live do not cross."""
    made = timed_id(prefix, time_ns, entropy)
    assert is_id(other, made) == (prefix == other)


@every(
    "text",
    [
        "",
        "ack",
        "ack_",
        "ack_" + "0" * 25,
        "ack_" + "0" * 27,
        "ack_8" + "0" * 25,
        "ack_" + "0" * 25 + "u",
        "ack_" + "0" * 25 + "A",
        "ACK_" + "0" * 26,
        "ack_" + "0" * 26 + "\n",
        " ack_" + "0" * 26,
        "ack_" + "0" * 25 + "\u0660",
    ],
)
def test_lookalikes_are_not_identifiers(text: str) -> None:
    """Length, alphabet, letter case and the bound of 128 bits."""
    assert not is_id("ack", text)


@given(PREFIXES, st.one_of(st.text(max_size=40), st.from_regex(r"ack_[0-9a-z]{26}\n?")))
def test_the_documented_pattern_gives_the_same_verdict(prefix: str, text: str) -> None:
    """The pattern of the OpenAPI document, where `$` is the very end (ECMA 262)."""
    pattern = id_pattern(prefix)
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    assert is_id(prefix, text) == (re.fullmatch(pattern[1:-1], text) is not None)
