"""From the rows of a statement to the types that the acts work with: one way for all rooms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import Connection, Executable, Row

T = TypeVar("T")

_CHUNK: Final = 500
"""Values in one statement; the databases have a limit."""


def rows(
    connection: Connection,
    statement: Executable,
    type_: type[T],
    parameters: Mapping[str, object] | None = None,
) -> list[T]:
    """What a statement finds, each row as this type."""
    return [of_row(found, type_) for found in connection.execute(statement, parameters)]


def row(
    connection: Connection,
    statement: Executable,
    type_: type[T],
    parameters: Mapping[str, object] | None = None,
) -> T | None:
    """The one row that a statement finds, as this type; None if there is none."""
    found = connection.execute(statement, parameters).one_or_none()
    return None if found is None else of_row(found, type_)


def of_row(found: Row[*tuple[Any, ...]], type_: type[T], **others: object) -> T:
    """A row as a Struct, a dataclass or a NamedTuple; enumerations come from their values.

    The columns have the names of the fields, and a column that has no field is left out; those of
    a NamedTuple are in its order. `others` are members that are not columns, or that the column
    has in another form: they come first. A row that does not fit is a mistake of the program, or
    a value that was put into the database from outside.
    """
    if issubclass(type_, tuple):
        return msgspec.convert(tuple(found), type_)
    if others:
        # The names of columns are a kind of str that msgspec does not take for one.
        members = {str(name): value for name, value in found._asdict().items()} | others
        return msgspec.convert(members, type_, from_attributes=True)
    return msgspec.convert(found, type_, from_attributes=True)


def chunks(ids: Sequence[T]) -> list[Sequence[T]]:
    """The ids in lists short enough for one statement."""
    return [ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK)]
