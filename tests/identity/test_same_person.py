"""Two proofs are of one person only if something says so, and nothing the contrary."""

from __future__ import annotations

from datetime import date
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.providers.identity.same_person import Holder

ADA: Final = Holder(given_name="Ada", family_name="López-Doe", date_of_birth=date(1990, 1, 2))
HOLDERS: Final = st.builds(
    Holder,
    given_name=st.sampled_from([None, "", "Ada", "ADA", "Bea"]),
    family_name=st.sampled_from([None, "", "Doe", "DOE", "Roe", "Dó-e"]),
    date_of_birth=st.sampled_from([None, date(1990, 1, 2), date(2012, 1, 2)]),
)


@pytest.mark.parametrize(
    ("given_name", "family_name", "date_of_birth", "one"),
    [
        ("ADA", "LOPEZ DOE", date(1990, 1, 2), True),
        (None, None, date(1990, 1, 2), True),
        ("A.", "Lopez Doe", date(1990, 1, 2), True),
        ("Ada", "lopez doe", None, True),
        (None, "Lopez Doe", None, False),
        ("Spouse", "Lopez Doe", None, False),
        ("Ada", None, None, False),
        (None, None, None, False),
        ("Ada", "Lopez Doe", date(1990, 1, 3), False),
        ("Ada", "Roe", date(1990, 1, 2), False),
        ("Ada", "-", date(1990, 1, 2), True),
    ],
)
def test_name_and_birth_decide_where_they_are_told(
    given_name: str | None,
    family_name: str | None,
    date_of_birth: date | None,
    one: bool,
) -> None:
    """Capitals, accents and hyphens do not count; a family name alone is a family's."""
    other = Holder(given_name=given_name, family_name=family_name, date_of_birth=date_of_birth)
    assert ADA.may_be(other) is one
    assert other.may_be(ADA) is one


@given(HOLDERS, HOLDERS)
def test_a_contradiction_is_never_overlooked(one: Holder, other: Holder) -> None:
    """Whatever else agrees, and from whichever side it is asked."""
    assert one.may_be(other) is other.may_be(one)
    if one.date_of_birth and other.date_of_birth and one.date_of_birth != other.date_of_birth:
        assert not one.may_be(other)
    if "Roe" in {one.family_name} ^ {other.family_name} and one.family_name and other.family_name:
        assert not one.may_be(other)


def test_a_holder_shows_nothing_of_a_person() -> None:
    """It may be in a traceback."""
    assert "Ada" not in f"{ADA} {ADA!r}"
