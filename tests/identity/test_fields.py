"""Known fields of a response: new ones are counted, and never named."""

from __future__ import annotations

from typing import Any

import pytest

from countersign.identity.json_reader import Fields
from tests.identity.asking import reply
from tests.identity.test_stripe import changed, document, read
from tests.simulators.published import is_known, paths

KNOWN = Fields("id address(city country) items(name *) notes", "address(zip)")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ({}, 0),
        ({"id": 1, "address": {"city": "", "zip": ""}}, 0),
        ({"address": {"street": "", "city": ""}}, 1),
        ({"address": [{"street": ""}, {"street": ""}]}, 2),
        ({"items": [{"name": "", "anything": {"else": 1}}]}, 0),
        ({"notes": {"free": {"form": 1}}, "new": {"a": 1, "b": 2}}, 1),
        ("text", 0),
    ],
)
def test_undocumented_members_are_counted(value: object, number: int) -> None:
    """Descriptions add up; a name without children covers everything below it."""
    assert KNOWN.unknown(value) == number


def test_paths_match_the_description() -> None:
    """Fields that a test compares with the provider's published description."""
    assert set(paths(KNOWN)) == {
        *("id", "address.city", "address.country", "address.zip"),
        *("items.name", "items.*", "notes"),
    }
    assert is_known("notes.free", KNOWN)
    assert not is_known("address.street", KNOWN)


@pytest.mark.parametrize(
    ("body", "number"), [(changed(), 0), (changed(novelty=1), 1), (document(novelty=[]), 1)]
)
def test_a_result_counts_the_unknown_fields_of_its_response(
    body: dict[str, Any], number: int
) -> None:
    """Unknown fields have no other effect: providers may add fields at any time."""
    result = read(reply(body))
    assert (result.outcome.value, result.unknown_fields) == ("verified", number)
