"""The docstring below a member is its description in the API document, and in a command's help."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from countersign.base.http.described import schema_components

Place = Annotated[str, Meta(description="Any place.", examples=["here"])]


class Base(Struct):
    """What both have."""

    size: int
    """How large
    it is."""
    plain: str


class Item(Base):
    """One."""

    at: Place
    """Where it is."""
    note: Annotated[str | None, Meta(examples=["x"])] = None
    """In words.

    Left out: none.
    """


def test_docstrings_of_members_are_their_descriptions() -> None:
    """Also inherited ones; in one line, and in the place of what a type says of itself."""
    _, found = schema_components([list[Item]])
    members = found["Item"]["properties"]
    assert members["size"] == {"description": "How large it is.", "type": "integer"}
    assert members["plain"] == {"type": "string"}
    assert members["at"]["description"] == "Where it is."
    assert members["at"]["examples"] == ["here"]
    assert members["note"]["description"] == "In words.\n\nLeft out: none."
