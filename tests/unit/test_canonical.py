"""Canonical JSON: the same bytes as RFC 8785, and nothing that implementations differ on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.canonical import canonical_json, checked_canonical_json
from countersign_evidence.errors import EvidenceError
from tests.unit.support import jcs

LARGEST = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEYS = st.text(st.characters(max_codepoint=0x7F), max_size=8)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-LARGEST, LARGEST), TEXT, st.sampled_from([0, -1, ""])
)
CANONICAL = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.one_of(SCALARS, st.floats(), st.integers(), st.binary(max_size=3), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.sets(st.integers(), max_size=2),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


class Word(StrEnum):
    BODY = "body"


def is_canonical(value: object) -> bool:
    """The words of the format: strings, small integers, truth values, null, and no more."""
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return not any(0xD800 <= ord(c) <= 0xDFFF for c in value)
    if isinstance(value, int):
        return -(2**53) < value < 2**53
    if isinstance(value, list):
        return all(map(is_canonical, value))
    return isinstance(value, dict) and all(
        isinstance(k, str) and max(map(ord, k), default=0) < 128 and is_canonical(v)
        for k, v in value.items()
    )


@given(CANONICAL)
def test_canonical_bytes_match_rfc_8785(value: object) -> None:
    """Against a second implementation that was written from the RFC."""
    assert canonical_json(value) == jcs(value)
    assert checked_canonical_json(value) == jcs(value)


@given(CANONICAL)
def test_nothing_is_lost_in_canonical_bytes(value: object) -> None:
    """Any JSON parser reads the value back."""
    assert json.loads(canonical_json(value)) == value


@given(st.lists(st.tuples(KEYS, SCALARS), max_size=6, unique_by=lambda m: m[0]), st.randoms())
def test_the_order_of_members_does_not_matter(members: list[Any], random: Any) -> None:  # noqa: ANN401 - hypothesis's own
    """The same object has one form."""
    shuffled = list(members)
    random.shuffle(shuffled)
    assert canonical_json(dict(shuffled)) == canonical_json(dict(members))


def test_the_examples_of_rfc_8785_are_known_answers() -> None:
    """§3.2.2 without its numbers; every escape, in the form that the RFC prescribes."""
    given_ = json.loads(
        r'{"string": "\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/",'
        r' "literals": [null, true, false]}'
    )
    expected = r'{"literals":[null,true,false],"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'
    assert canonical_json(given_) == expected.encode()


def test_every_control_character_is_written_as_the_format_says() -> None:
    """DEL and the line separators of Unicode stand as they are."""
    text = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF]))
    assert canonical_json(text) == jcs(text)


@given(ANYTHING)
def test_a_value_from_outside_is_written_or_refused(value: object) -> None:
    """Exactly the canonical types pass; everything else is an EvidenceError and nothing else."""
    if is_canonical(value):
        assert checked_canonical_json(value) == jcs(value)
    else:
        with pytest.raises(EvidenceError):
            checked_canonical_json(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {"b": 0.5}]}, "$.a[1].b"),
        ([2**53], "$[0]"),
        ([-(2**53)], "$[0]"),
        ({"é": 1}, "$"),
        ({"a": {1: 1}}, "$.a"),
        ({"a": "\ud800"}, "$.a"),
        ({"a": b"x"}, "$.a"),
        (datetime(2026, 1, 1, tzinfo=UTC), "$"),
        (float("nan"), "$"),
    ],
)
def test_a_refusal_names_the_place(value: object, place: str) -> None:
    """An operator with a long notice file finds it."""
    with pytest.raises(EvidenceError) as caught:
        checked_canonical_json(value)
    assert str(caught.value).startswith(place + ":")


def test_the_largest_integers_that_everyone_reads_alike_pass() -> None:
    """Below 2^53 in magnitude: JavaScript's safe integers."""
    assert checked_canonical_json([LARGEST, -LARGEST]) == b"[9007199254740991,-9007199254740991]"


def test_words_of_the_domain_are_written_as_strings() -> None:
    """The enumerations of the domain are strings, and encode like strings."""
    assert canonical_json({"source": Word.BODY}) == b'{"source":"body"}'
