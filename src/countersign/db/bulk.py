"""Statements of the hot path, as the driver takes them.

`Connection.execute` with a list of rows prepares each parameter of each row by name and type,
which takes about as long as the database's own work. Here the rows are tuples in the driver's own
types, and the statement is text made once from the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, CursorResult, Row, Table

_MARKS: Final = {"sqlite": "?", "postgresql": "%s"}
_encode: Final = msgspec.json.Encoder().encode


class BulkStatement:
    """A statement of the hot path for many rows of values, written with `?` for each parameter."""

    def __init__(self, text: str) -> None:
        self._text = {dialect: text.replace("?", mark) for dialect, mark in _MARKS.items()}

    def __call__(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Run it for each of these rows, in the driver's own types."""
        connection.exec_driver_sql(self._text[connection.dialect.name], list(rows))


class BulkInsert(BulkStatement):
    """An INSERT of these columns of a table; times are Unix milliseconds."""

    def __init__(self, table: Table, *columns: str) -> None:
        unknown = set(columns) - set(table.c.keys())
        if unknown:
            msg = f"{table.name} has no columns {sorted(unknown)}"
            raise ValueError(msg)
        marks = ", ".join("?" * len(columns))
        super().__init__(f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})")  # noqa: S608 - our own names


class DriverStatement:
    """A statement of the hot path as the driver takes it, written with `?` for each parameter."""

    def __init__(self, text: str) -> None:
        self._text = {dialect: text.replace("?", mark) for dialect, mark in _MARKS.items()}

    def __call__(self, connection: Connection, *values: object) -> CursorResult[*tuple[Any, ...]]:
        """Run it with these values: in the driver's own types, times as Unix milliseconds."""
        return connection.exec_driver_sql(self._text[connection.dialect.name], values)


class SelectAmong:
    """A SELECT of the hot path by many texts at once, written with `{}` for `IN (…)`.

    However many there are, the statement is the same one, which is prepared once. It gives the
    driver's own types.
    """

    def __init__(self, text: str, *, for_update: bool = False) -> None:
        self._text = {
            "sqlite": text.format("IN (SELECT value FROM json_each(?))"),
            "postgresql": text.format("= ANY(%s)") + (" FOR UPDATE" if for_update else ""),
        }

    def __call__(
        self, connection: Connection, texts: Iterable[str]
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        dialect, given = connection.dialect.name, [*texts]
        value = _encode(given).decode() if dialect == "sqlite" else given
        return connection.exec_driver_sql(self._text[dialect], (value,)).fetchall()
