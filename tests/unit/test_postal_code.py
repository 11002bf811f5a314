"""ZIP codes: a pattern and a comparison."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from countersign.base.http.schemas import ZIP_PATTERN
from countersign.core.buyers.rules import is_zip, zip5
from tests.support.every import every


@given(st.integers(0, 99_999), st.one_of(st.none(), st.integers(0, 9_999)))
def test_five_digits_and_zip_plus_4_are_zip_codes(five: int, four: int | None) -> None:
    """Leading zeros are digits; only the first five are compared."""
    text = f"{five:05}" + (f"-{four:04}" if four is not None else "")
    assert is_zip(text)
    assert zip5(text) == f"{five:05}"


@every(
    "text",
    ["", "9021", "902101", "90210-", "90210-123", "90210-12345", "90210 1234", "902101234",
     "90210\n", "90210-1234\n", " 90210", "9O210", "٩٠٢١٠", "90210-\uff11234", "K1A 0B1"],
)  # fmt: skip
def test_any_other_value_is_none(text: str) -> None:
    """ASCII digits only, and not one character more: a line break at the end included."""
    assert not is_zip(text)


@given(st.one_of(st.text(max_size=12), st.from_regex(r"[0-9]{4,6}(-[0-9]{3,5})?\n?")))
def test_the_documented_pattern_gives_the_same_verdict(text: str) -> None:
    """The pattern of the OpenAPI document, where `$` is the very end (ECMA 262)."""
    assert is_zip(text) == (re.fullmatch(ZIP_PATTERN[1:-1], text) is not None)
