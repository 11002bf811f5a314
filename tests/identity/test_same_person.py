"""Two proofs are of one person only if something confirms it and nothing contradicts it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.identity.same_person import Holder
from tests.support.every import every

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
        ("Bea", "Roe", date(1990, 1, 2), False),
        ("Ada", "-", date(1990, 1, 2), True),
    ],
)
def test_name_and_birth_decide_where_they_are_known(
    given_name: str | None,
    family_name: str | None,
    date_of_birth: date | None,
    one: bool,
) -> None:
    """Capitals, accents and hyphens do not count; a family name alone is a family's."""
    other = Holder(given_name=given_name, family_name=family_name, date_of_birth=date_of_birth)
    assert ADA.may_be(other) is one
    assert other.may_be(ADA) is one


BORN: Final = date(1990, 1, 2)


@every(
    ("one", "other"),
    [
        ("John SMITH JR", "John Smith"),
        ("Maria GARCIA-LOPEZ", "Maria Garcia"),
        ("JUAN-DE-LA-CRUZ", "Juan Cruz"),
        ("Anne MILLER", "Anne Fitzgerald"),
        ("Lars JORGENSEN", "Lars J\u00f8rgensen"),
        ("Lars JOERGENSEN", "Lars J\u00f8rgensen"),
        ("Karl MUELLER", "Karl M\u00fcller"),
        ("Wei \u5f20", "Wei ZHANG"),
        ("Ada WOLFESCHLEGELSTEINHAUSEN", "Adelaide WOLFESCHLEGELST"),
        ("Mike JOHNSON", "Michael Johnson"),
        ("Ada-Marie DOE", "Ada Doe"),
        ("Sean O'BRIEN", "Sean OBRIEN"),
        ("Jos\u00e9 NU\u00d1EZ", "Jose Nunez"),
        ("Pieter VAN-DER-BERG", "Pieter Berg"),
    ],
)
def test_one_person_has_many_spellings(one: str, other: str) -> None:
    """As documents and registers write them, where the birth dates agree."""
    assert named(one, BORN).may_be(named(other, BORN))
    assert named(other, BORN).may_be(named(one, BORN))
    # Never against the birth date.
    assert not named(one, BORN).may_be(named(other, date(1962, 5, 6)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("John SMITH", "James Miller"),
        ("Juan DE-LA-CRUZ", "Pedro De-La-Vega"),
        ("John SMITH JR", "James Miller JR"),
        ("Jan VAN-DYK", "Piet Van-Gogh"),
        ("Ann LEE", "Bob Leeward"),
        ("Karl M\u00fcller", "Kurt Moeller"),
    ],
)
def test_one_birth_date_is_not_one_person(one: str, other: str) -> None:
    """Some thirty people of a town share it: a family name or the given name has to agree."""
    assert not named(one, BORN).may_be(named(other, BORN))
    assert not named(other, BORN).may_be(named(one, BORN))


@pytest.mark.parametrize(
    ("one", "other"),
    [("John SMITH JR", "John Smith"), ("Anne MILLER", "Anne Fitzgerald"), ("A. DOE", "Ada Doe")],
)
def test_without_a_birth_date_the_whole_names_have_to_agree(one: str, other: str) -> None:
    """Father and son have one name, except for the suffix."""
    assert not named(one, None).may_be(named(other, BORN))


def test_of_two_documents_the_given_names_begin_alike() -> None:
    """Twins share the birth date and the family name; a database may have only initials."""
    one, twin = named("Ada Doe", BORN), named("Bea Doe", BORN)
    assert one.may_be(twin)
    assert not one.may_be(twin, documents=True)
    assert one.may_be(named("ADA-MARIE Doe", BORN), documents=True)
    assert one.may_be(replace(twin, given_name=None), documents=True)


def named(name: str, born: date | None) -> Holder:
    """Given name, then family name; hyphens stand for spaces inside of either."""
    given_name, _, family_name = name.replace("-DE-LA-", " DE-LA-").partition(" ")
    return Holder(
        given_name=given_name.replace("-", " "),
        family_name=family_name.replace("-", " "),
        date_of_birth=born,
    )


@given(HOLDERS, HOLDERS)
def test_a_contradiction_is_never_overlooked(one: Holder, other: Holder) -> None:
    """Whatever else agrees, and in both directions."""
    assert one.may_be(other) is other.may_be(one)
    if one.date_of_birth and other.date_of_birth and one.date_of_birth != other.date_of_birth:
        assert not one.may_be(other)
    roe = "Roe" in {one.family_name} ^ {other.family_name} and one.family_name and other.family_name
    if roe and {one.given_name, other.given_name} != {"Ada", "ADA"}:
        assert one.given_name == other.given_name or not one.may_be(other)


def test_a_holder_shows_nothing_of_a_person() -> None:
    """It may be in a traceback."""
    assert "Ada" not in f"{ADA} {ADA!r}"
