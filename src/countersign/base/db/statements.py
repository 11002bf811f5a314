"""Statements of the hot path as the driver takes them, and rows as types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import resources
from itertools import chain
from threading import Lock
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Dialect, Executable, Table
from sqlalchemy import text as sql_text
from sqlalchemy.exc import DBAPIError

from countersign.base.generics import T

# Statements of the hot path, as the driver takes them.
#
# `Connection.execute` with a list of rows prepares each parameter of each row by name and type,
# which takes about as long as the database's own work. Here the rows are tuples in the driver's own
# types, and the statement is text made once from the table.

_NAMED: Final = re.compile(r"^-- name: (\w+)\n(.*?)(?=^--|\Z)", re.MULTILINE | re.DOTALL)
_MARKS: Final = {"sqlite": "?", "postgresql": "%s"}
_DEFERRED: Final = "countersign_deferred"
_MARKS_MIN: Final = 8
_ROWS_MAX: Final = 64


def statements_of(package: str) -> Mapping[str, str]:
    """The statements in a package's `statements.sql`, each on one line, by the names above them."""
    text = (resources.files(package) / "statements.sql").read_text("utf-8")
    return {name: " ".join(statement.split()) for name, statement in _NAMED.findall(text)}


def lock_on_server(connection: Connection, statement: str, **values: object) -> None:
    """Wait for a lock on PostgreSQL; the embedded database has one writer at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(sql_text(statement), values)


@dataclass(slots=True)
class Deferred:
    """Statements that a connection runs at the end of its transaction."""

    statements: list[tuple[str, Sequence[object]]] = field(default_factory=list)
    """Each as text in the driver's syntax, with its values."""
    is_prepared: bool = False
    """Whether the connection has the view that the statements write to."""


def allow_deferred(connection: Connection) -> None:
    """From now on acts on this connection may leave statements for the end of the transaction."""
    connection.execution_options(**{_DEFERRED: Deferred()})


def deferred_statements(connection: Connection) -> Deferred:
    """Statements to run with the commit, whose results the act does not need.

    On the embedded database they do not block the event loop; on PostgreSQL they are sent with the
    commit. Raises KeyError if the connection is not one that writes.
    """
    deferred: Deferred = connection.get_execution_options()[_DEFERRED]
    return deferred


def run_deferred(
    connection: Connection, own: Deferred | None = None, *, commit: bool = False
) -> None:
    """Run the connection's deferred statements, or the caller's own.

    `commit` in the same round trip where possible.
    """
    deferred = own or connection.get_execution_options().get(_DEFERRED)
    if deferred is None or not deferred.statements:
        return
    driver: Any = connection.connection.driver_connection
    pipelined = connection.dialect.name == "postgresql"
    try:
        with _sent_whole(driver) if pipelined else nullcontext():
            cursor = driver.cursor()
            for text, values in deferred.statements:
                cursor.execute(text, values)
            if commit and pipelined:
                driver.commit()
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, error) from error
    finally:
        deferred.statements.clear()


@contextmanager
def _sent_whole(driver: Any) -> Iterator[None]:  # noqa: ANN401 - a connection of psycopg
    """A pipeline that sends each statement before it waits for any result.

    Psycopg (3.3.9) flushes once after the last statement. Data that does not fit into the socket
    buffer is not sent, and client and server wait for each other: seen with some hundred
    acknowledgments.
    """
    driver.pgconn.nonblocking = 0
    try:
        with driver.pipeline():
            yield
    finally:
        if not driver.closed:
            driver.pgconn.nonblocking = 1


class DriverStatement:
    """A statement of the hot path as the driver takes it, written with `?` for each parameter."""

    def __init__(self, text: str) -> None:
        self._text = {dialect: text.replace("?", mark) for dialect, mark in _MARKS.items()}

    def __call__(self, connection: Connection, *values: object) -> Any:  # noqa: ANN401 - a cursor
        """Run it with these values: in the driver's own types, times as Unix milliseconds."""
        # As `_execute` does it, in one call: this runs several times in each transaction.
        cursor = connection.connection.cursor()
        try:
            cursor.execute(self._text[connection.dialect.name], values)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _wrapped(connection, error) from error
        return cursor

    def defer(self, connection: Connection, deferred: Deferred, *values: object) -> None:
        """Leave it for the end of the transaction, with these values."""
        deferred.statements.append((self._text[connection.dialect.name], values))

    def for_each(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Run it for each of these rows of values."""
        if rows:
            _execute(connection, self._text[connection.dialect.name], rows, many=True)


class BulkInsert:
    """An INSERT of these columns of a table; times are Unix milliseconds.

    `made` are columns with an expression for each engine. PostgreSQL gets an array for each column,
    and so one statement for all rows.
    """

    def __init__(self, table: Table, *columns: str, **made: Mapping[str, str]) -> None:
        unknown = {*columns, *made} - set(table.c.keys())
        if unknown:
            raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
        into = f"INSERT INTO {table.name} ({', '.join([*made, *columns])})"
        marks = [*(each["sqlite"] for each in made.values()), *("?" * len(columns))]
        self._marks = f"({', '.join(marks)})"
        self._rows = f"{into} VALUES {self._marks}"
        values = ", ".join([*(each["postgresql"] for each in made.values()), "new.*"])
        self._arrays = f"{into} SELECT {values} FROM unnest(%s) AS new"  # noqa: S608
        self._types = [table.c[column].type for column in columns]
        self._from_arrays = ""

    def __call__(self, connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert these rows, of values in the driver's own types."""
        if connection.dialect.name == "sqlite":
            _execute(connection, self._rows, rows, many=True)
        elif rows:
            _execute(connection, *self._in_arrays(connection.dialect, rows))

    def defer(
        self, connection: Connection, deferred: Deferred, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """Leave it for the end of the transaction: on SQLite too, one statement for many rows."""
        if connection.dialect.name != "sqlite":
            if rows:
                deferred.statements.append(self._in_arrays(connection.dialect, rows))
            return
        for start in range(0, len(rows), _ROWS_MAX):
            some = rows[start : start + _ROWS_MAX]
            text = self._rows + f", {self._marks}" * (len(some) - 1)
            deferred.statements.append((text, [*chain.from_iterable(some)]))

    def _in_arrays(
        self, dialect: Dialect, rows: Sequence[tuple[object, ...]]
    ) -> tuple[str, Sequence[object]]:
        # A connection's dialect knows the types; callers without a connection need not load it.
        if not self._from_arrays:
            # Without its length: a text that is too long is to be refused, not cut.
            types = [type_.compile(dialect).partition("(")[0] for type_ in self._types]
            self._from_arrays = self._arrays % ", ".join(f"%b::{type_}[]" for type_ in types)
        return self._from_arrays, [*map(list, zip(*rows, strict=True))]


def _execute(
    connection: Connection, text: str, values: Sequence[Any], *, many: bool = False
) -> None:
    """Run it past SQLAlchemy, whose own work for a statement takes longer than the database's.

    Raises:
        DBAPIError: as SQLAlchemy would raise it.
    """
    cursor = connection.connection.cursor()
    try:
        (cursor.executemany if many else cursor.execute)(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, error) from error


def _wrapped(connection: Connection, error: Exception) -> Exception:
    kind = connection.dialect.loaded_dbapi.Error
    return DBAPIError.instance(None, None, error, kind, dialect=connection.dialect)


class SelectAmong:
    """A SELECT of the hot path by many texts or bytes at once, written with `{}` for `IN (…)`.

    It gives the driver's own types. SQLite has a mark for each value, and few statements to
    prepare: the marks are doubled until they suffice.
    """

    def __init__(self, text: str, *, for_update: bool = False) -> None:
        self._text = text
        self._any = text.format("= ANY(%s)") + (" FOR UPDATE" if for_update else "")
        self._among: dict[int, str] = {}

    def __call__(
        self, connection: Connection, values: Iterable[str] | Iterable[bytes]
    ) -> Sequence[tuple[Any, ...]]:
        given = [*values]
        if connection.dialect.name == "postgresql":
            text, sent = self._any, [given]
        else:
            marks = 1 << max(len(given) - 1, _MARKS_MIN - 1).bit_length()
            text = self._among.get(marks, "")
            if not text:
                among = f"IN ({', '.join('?' * marks)})"
                text = self._among[marks] = self._text.format(among)
            sent = given + [None] * (marks - len(given))
        # As `_execute` does it, in one call.
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text, sent)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _wrapped(connection, error) from error
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
        return rows


# msgspec describes a type at its first use, and crashes if another thread uses it meanwhile.
_DESCRIBING: Final = Lock()
_DESCRIBED: Final = set[type]()
_CHUNK: Final = 500
"""Values in one statement; the databases have a limit."""


def rows(
    connection: Connection,
    statement: Executable,
    type_: type[T],
    parameters: Mapping[str, object] | None = None,
) -> list[T]:
    """The rows of a statement as objects of this type."""
    return [of_row(found, type_) for found in connection.execute(statement, parameters)]


def row(
    connection: Connection,
    statement: Executable,
    type_: type[T],
    parameters: Mapping[str, object] | None = None,
) -> T | None:
    """The first row of a statement as this type, which may have one row at most; None: no row."""
    found = connection.execute(statement, parameters).one_or_none()
    return None if found is None else of_row(found, type_)


def of_row(found: Any, type_: type[T], **others: object) -> T:  # noqa: ANN401 - see there
    """A row as a Struct, a dataclass or a NamedTuple; enumerations come from their values.

    Columns have the names of fields, and a column without a field is left out; for a NamedTuple the
    columns are in its order, and the row may be the driver's. `others` are fields without a column,
    or with a column of another form: they come first. A row that does not fit is a mistake of the
    program, or a value that was put into the database from outside.
    """
    if type_ not in _DESCRIBED:
        with _DESCRIBING:
            msgspec.json.Decoder(type_)
            _DESCRIBED.add(type_)
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
