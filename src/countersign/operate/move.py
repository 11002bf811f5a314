"""Moving the embedded database into an empty PostgreSQL, which gets the schema first.

Rows are copied in slices in the order of their keys, tables in the order of their references. Each
slice is committed together with its end position, so a killed move continues where it stopped. Then
each row is read back and compared. Until the end neither database may be used, and afterwards only
the new one: two that sign would fork the log.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final, TypeAlias
from uuid import uuid4

from sqlalchemy import (
    URL,
    Boolean,
    Connection,
    Table,
    UniqueConstraint,
    delete,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import dialect as postgresql

from countersign.base.cli import Report
from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.db.schema import FILLING, MOVED, connected
from countersign.base.db.tables import deployment, metadata
from countersign.base.errors import MoveFailed, NotInitialised

_Row: TypeAlias = tuple[Any, ...]

_INDEXES: Final = {"blind_recent", "blind_runs", "kept_slots"}
"""Tables by which the embedded database looks up; PostgreSQL has indexes instead."""
_TABLES: Final = tuple(t for t in metadata.sorted_tables if t.name not in _INDEXES)
_DIALECT: Final = postgresql()  # type: ignore[no-untyped-call]
_OWN: Final = (MOVED, FILLING)
"""Rows of `deployment` with the state of this module; they are not moved."""
_MAY_CREATE: Final = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
_CONTINUE_NUMBERS: Final = (
    "SELECT setval('events_seq_seq', max(seq)) FROM events HAVING count(*) > 0"
)
"""The only numbers assigned by PostgreSQL: the next one comes after all moved ones."""
_AGAIN: Final = "Run the command again to go on from there."
_BEGIN_AGAIN: Final = (
    "Nothing was changed in the old database. Create another new one, and begin again after "
    "`countersign migrate-database --cancel`."
)


class _Plan:
    """How the rows of a table are read and written, in the order of its key."""

    def __init__(self, table: Table) -> None:
        """By the primary key, or by a unique constraint."""
        unique = (c for c in table.constraints if isinstance(c, UniqueConstraint))
        key = [c.name for c in table.primary_key] or [c.name for c in next(unique).columns]
        if table.name == "idempotency_keys":  # by the index that the embedded database has
            key = ["expires_at", "slot"]
        columns = [c.name for c in table.columns]
        types = [c.type.compile(_DIALECT).partition("(")[0].lower() for c in table.columns]
        named, keyed = (", ".join(f'"{name}"' for name in names) for names in (columns, key))
        marks = ", ".join("?" * len(key))
        own = f" WHERE name NOT IN {_OWN}" if table is deployment else ""
        rest = f" {'AND' if own else 'WHERE'} ({keyed}) > ({marks})"
        order = f" ORDER BY {keyed} LIMIT ?"
        arrays = ", ".join(f"%b::{types[columns.index(name)]}[]" for name in key)
        read = f'SELECT {named} FROM "{table.name}"'  # noqa: S608 - our own names, as below
        self.table, self.types = table, types
        self.is_whole = any(key.column.table is table for key in table.foreign_keys)
        """Whether its rows refer to each other, so that it must be copied as a whole."""
        self.key_of: Callable[[_Row], Any] = itemgetter(*(columns.index(name) for name in key))
        """The values of the key of a row: one, or a tuple of several."""
        self.flags = [at for at, c in enumerate(table.columns) if isinstance(c.type, Boolean)]
        """Indexes of the Boolean columns: SQLite keeps numbers."""
        self.first = f"{read}{own}{order}"
        self.next = f"{read}{own}{rest}{order}"
        self.into = f'COPY "{table.name}" ({named}) FROM STDIN (FORMAT binary)'
        self.again = f"{read} WHERE ({keyed}) IN (SELECT * FROM unnest({arrays}))"  # noqa: S608

    def values_of(self, row: _Row) -> _Row:
        """The values of the key, as parameters."""
        key = self.key_of(row)
        return key if isinstance(key, tuple) else (key,)

    def typed(self, rows: list[_Row]) -> list[_Row]:
        """The rows of SQLite as PostgreSQL gives them."""
        for at in self.flags:
            rows = [(*r[:at], None if r[at] is None else bool(r[at]), *r[at + 1 :]) for r in rows]
        return rows


class Move:
    """A move in progress, made by `begun_move`, which keeps others from writing to the source.

    `report` is called after each step with the amount done, the total and the unit.
    """

    def __init__(self, source: Connection, target: Connection, slice_rows: int) -> None:
        self._source, self._target, self._slice_rows = source, target, slice_rows
        self._from, self._to = _driver(source), _driver(target)
        self._plans = [_Plan(table) for table in _TABLES]
        counts = [f'SELECT count(*) FROM "{table.name}"' for table in _TABLES]  # noqa: S608
        self._counts = [self._from.execute(count).fetchone()[0] for count in counts]
        self.rows = sum(self._counts)

    def copy(self, report: Report) -> None:
        """Copy the missing rows. Raises MoveFailed if PostgreSQL does not take it."""
        place = _note(self._target, FILLING) or {}
        begun = place.get("table", 0)
        done = sum(self._counts[:begun])
        for number, plan in enumerate(self._plans[begun:], begun):
            after = ast.literal_eval(place.get("after", "None")) if number == begun else None
            for rows in self._slices(plan, after):
                with self._speaking(plan):
                    with self._to.cursor() as cursor, cursor.copy(plan.into) as into:
                        into.set_types(plan.types)
                        for row in rows:
                            into.write_row(row)
                    # In the same transaction.
                    self._at({"table": number, "after": repr(plan.values_of(rows[-1]))})
                done += len(rows)
                report(done, self.rows, "rows")
        self._at({"table": len(self._plans)})

    def compare(self, report: Report) -> None:
        """Read every row back, and compare it with its original.

        Raises:
            MoveFailed: with the table and the key of the first row that differs.
        """
        done = 0
        for plan in self._plans:
            number = 0
            for rows in self._slices(plan, None):
                with self._speaking(plan):
                    found = self._found(plan, rows)
                originals = {plan.key_of(row): row for row in rows}
                if found != originals:
                    key = next(key for key, row in originals.items() if found.get(key) != row)
                    raise MoveFailed(
                        f"The row {key!r} of {plan.table.name} is not the same in the new "
                        f"database. {_BEGIN_AGAIN}"
                    )
                number += len(rows)
                done += len(rows)
                report(done, self.rows, "rows")
            stored = self._target.execute(select(func.count()).select_from(plan.table)).scalar_one()
            stored -= plan.table is deployment  # that it is being filled
            if stored != number:
                raise MoveFailed(
                    f"The new database has {stored} rows in {plan.table.name}, and the old one "
                    f"{number}. {_BEGIN_AGAIN}"
                )

    def finish(self) -> None:
        """Let the new database be used, and no longer the old one."""
        # All before it is on the disk when this commit is: it writes, so it is flushed.
        self._target.execute(text("SET synchronous_commit = on"))
        self._target.execute(text(_CONTINUE_NUMBERS))
        self._at({"table": len(self._plans)})
        # First the old one: at no moment may both be used.
        _write(self._source, MOVED, (_note(self._source, MOVED) or {}) | {"done": True})
        self._source.commit()
        _release(self._target)

    def _slices(self, plan: _Plan, after: _Row | None) -> Iterator[list[_Row]]:
        while True:
            statement = plan.first if after is None else plan.next
            values = (*(after or ()), -1 if plan.is_whole else self._slice_rows)
            rows = self._from.execute(statement, values).fetchall()
            if not rows:
                return
            yield plan.typed(rows)
            after = plan.values_of(rows[-1])

    def _found(self, plan: _Plan, rows: Sequence[_Row]) -> Mapping[_Row, _Row]:
        keys = [plan.values_of(row) for row in rows]
        with self._to.cursor(binary=True) as cursor:
            cursor.execute(plan.again, [*map(list, zip(*keys, strict=True))])
            return {plan.key_of(row): row for row in cursor.fetchall()}

    def _at(self, place: Mapping[str, Any]) -> None:
        note = {"id": (_note(self._target, FILLING) or {})["id"]}
        _write(self._target, FILLING, note | dict(place))
        self._target.commit()

    @contextmanager
    def _speaking(self, plan: _Plan) -> Iterator[None]:
        try:
            yield
        except self._target.dialect.loaded_dbapi.Error as error:
            # Without its details: they can hold values of rows.
            what = (str(error).splitlines() or [type(error).__name__])[0]
            raise MoveFailed(
                f"The new database does not take the rows of {plan.table.name}: {what}. {_AGAIN}"
            ) from error


@contextmanager
def begun_move(source: URL, target: URL, slice_rows: int = 5000) -> Iterator[Move]:
    """Begin a move, or go on with it: from now on the source can only be moved.

    Raises:
        MoveFailed: the target is not empty, or the source is on its way to another one.
        SchemaMismatch, NotInitialised: the source is not at this release's schema.
    """
    schema.check(source, while_moving=True)
    place = place_of(target)
    with connected(source, Purpose.WRITE) as old:
        with old.begin():
            note = _note(old, MOVED) or {"id": uuid4().hex, "to": place}
            is_made = _is_made(target, note)
            _write(old, MOVED, note)
        if not is_made:
            schema.upgrade(target)
        with connected(target, Purpose.WRITE) as new:
            # It is flushed at the end of the move: rows lost by a crash of PostgreSQL are copied
            # again.
            new.execute(text("SET synchronous_commit = off"))
            if _note(new, FILLING) is None:
                _write(new, FILLING, {"id": note["id"]})
            new.commit()
            old.begin()  # no command that was open before writes any more
            yield Move(old, new, slice_rows)


def moved_to(source: URL, target: URL | None = None) -> str | None:
    """The target of a complete move of this database; None: the data is still here.

    With the target, it also completes a move that was killed at the very end.

    Raises MoveFailed if the target is another database, or has lost its tables.
    """
    try:
        schema.check(source, while_moving=True)
    except NotInitialised:
        return None
    with connected(source, Purpose.READ) as old:
        note = _note(old, MOVED) or {}
    if not note.get("done"):
        return None
    if target is not None:
        if place_of(target) != note["to"]:
            raise MoveFailed(
                f"Everything was moved to {note['to']}. From one PostgreSQL to another, "
                "use its own tools."
            )
        with connected(target, Purpose.WRITE) as new:
            if not inspect(new).has_table(deployment.name):
                raise MoveFailed(
                    f"Everything was moved to {note['to']}, and its tables are gone. Restore that "
                    "database from a backup of it."
                )
            if (_note(new, FILLING) or {}).get("id") == note["id"]:
                _release(new)
    return str(note["to"])


def cancel_move(source: URL) -> bool:
    """Let the source be used again; False: no move has begun.

    Raises:
        MoveFailed: the move is complete, and the log may have gone on in the new database.
    """
    schema.check(source, while_moving=True)
    with connected(source, Purpose.WRITE) as old, old.begin():
        note = _note(old, MOVED)
        if note is not None and note.get("done"):
            raise MoveFailed(
                f"The move to {note['to']} is complete. The log goes on there, and to go on here, "
                "too, would fork it."
            )
        old.execute(delete(deployment).where(deployment.c.name == MOVED))
        return note is not None


def place_of(url: URL) -> str:
    """The URL for display: without a password, nor one in its parameters."""
    parameters = {name: value for name, value in url.query.items() if "pass" not in name}
    where = (url.host, url.port, url.database)
    return URL.create("postgresql", url.username, None, *where, query=parameters).render_as_string()


def _is_made(target: URL, note: Mapping[str, Any]) -> bool:
    """Whether a target has its tables; refuses one that is not empty and not part of this move."""
    with connected(target, Purpose.READ) as new:
        encoding = new.execute(text("SHOW server_encoding")).scalar_one()
        if encoding != "UTF8":
            name = encoding.decode() if isinstance(encoding, bytes) else encoding
            raise MoveFailed(f"The new database has the encoding {name}: create it with UTF8.")
        may_create = new.execute(text(_MAY_CREATE)).scalar_one()
        tables = inspect(new).get_table_names()
        ours, rows = deployment.name in tables, sorted({*tables} - {"alembic_version"})
        found = (_note(new, FILLING) or {}).get("id") if ours else None
        what = next((name for name in rows if ours and _has_rows(new, name)), None)
    if found == note["id"]:
        return True
    if note["to"] != place_of(target):
        raise MoveFailed(
            f"The move to {note['to']} has begun. Go on with that URL, or give it up first: "
            "countersign migrate-database --cancel"
        )
    if not may_create:
        raise MoveFailed(
            f"The role of {place_of(target)} may not create tables there. Give the URL of the role "
            "that owns the database."
        )
    if what is not None or (tables and not ours):
        raise MoveFailed(
            f"The database {place_of(target)} is not empty: it has "
            f"{f'rows in {what}' if what else f'the table {tables[0]}'}. Create another database "
            "for Countersign alone, and give its URL."
        )
    if tables:
        schema.check(target)
    return bool(tables)


def _has_rows(connection: Connection, table: str) -> bool:
    return connection.execute(text(f'SELECT 1 FROM "{table}" LIMIT 1')).first() is not None  # noqa: S608


def _release(connection: Connection) -> None:
    connection.execute(text("SET synchronous_commit = on"))
    connection.execute(delete(deployment).where(deployment.c.name == FILLING))
    connection.commit()


def _driver(connection: Connection) -> Any:  # noqa: ANN401 - a DBAPI connection
    return connection.connection.driver_connection


def _note(connection: Connection, name: str) -> dict[str, Any] | None:
    value = schema.value_of(connection, name)
    return None if value is None else dict(json.loads(value))


def _write(connection: Connection, name: str, note: Mapping[str, Any]) -> None:
    schema.put_value(connection, name, json.dumps(note).encode())
