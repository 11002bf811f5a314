"""Sees every statement at the driver, and judges whether it needs rows outside of a reach.

A query is repeated on a database where only the rows in reach are visible: each table is hidden by
a view of them. Another result is the proof that the query touches more. Changes are found by
comparing all rows outside of the reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, Table, event, select, text

from countersign.base.db.tables import OWNER, RowOwner, metadata
from countersign.core.access.reach import AccountReach

_QUERY: Final = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_WRITES: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
_NAMES: Final = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)", re.IGNORECASE)
_HIDING: Final = "in_reach"
DEPLOYMENT_SCOPE: Final = "deployment"


class Statement(NamedTuple):
    """The statement and parameters given to a driver."""

    text: str
    values: Any

    @property
    def writes(self) -> bool:
        """Whether it may change rows."""
        return _WRITES.match(self.text) is not None

    @property
    def tables(self) -> set[str]:
        """The tables whose rows it reads, if they have an owner."""
        named = set(_NAMES.findall(self.text))
        return {name for name in named if name in metadata.tables and is_owned(name)}


def owner_of(name: str) -> RowOwner:
    """The owner of a table's rows; raises KeyError if it is not declared."""
    found: RowOwner = metadata.tables[name].info[OWNER]
    return found


def is_owned(name: str) -> bool:
    """Whether the rows of a table are of accounts, not of the deployment."""
    return owner_of(name) != RowOwner()


class Watch:
    """All statements of connections that are opened from now on."""

    def __init__(self) -> None:
        self.seen: list[Statement] = []

    def take(self) -> list[Statement]:
        """The queries seen since the last call, each once."""
        found, self.seen = self.seen, []
        return list({(one.text, repr(one.values)): one for one in found}.values())

    def opened(self, connection: Any, _record: object) -> None:  # noqa: ANN401 - of a driver
        """Watch a new connection of a driver."""
        if hasattr(connection, "set_trace_callback"):
            # With the values in the text.
            connection.set_trace_callback(lambda said: self.seen.append(Statement(said, ())))
            return
        kind, watch = connection.cursor_factory, self

        class Cursor(kind):  # type: ignore[misc, valid-type] # the driver's own class
            def execute(self, query: Any, params: Any = None, **options: Any) -> Any:  # noqa: ANN401
                watch.seen.append(Statement(str(query), params))
                return super().execute(query, params, **options)

            def executemany(self, query: Any, params_seq: Any, **options: Any) -> Any:  # noqa: ANN401
                params_seq = [*params_seq]
                watch.seen += [Statement(str(query), params) for params in params_seq]
                return super().executemany(query, params_seq, **options)

        connection.cursor_factory = Cursor


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch what every engine that is opened inside this block does."""
    watch = Watch()
    event.listen(Engine, "connect", watch.opened)
    try:
        yield watch
    finally:
        event.remove(Engine, "connect", watch.opened)


def condition(name: str, reach: AccountReach, schema: str) -> str:
    """In SQL, that a row of a table is in reach; `schema` has the tables themselves."""
    owner, own = owner_of(name), f"{schema}.{name}"
    found = []
    if owner.account:
        # The deployment's own rows in such a table are of no account.
        found.append(f"{own}.{owner.account} IN ('{reach.account_id}', '{DEPLOYMENT_SCOPE}')")
    if owner.mode:
        found.append(f"{own}.{owner.mode} = '{reach.mode.value}'")
    if owner.part_of:
        there = [
            f"{own}.{owner.key} IN (SELECT {owner.theirs or _key(parent)} FROM {schema}.{parent}"
            f" WHERE {condition(parent, reach, schema)})"
            for parent in owner.part_of
        ]
        found.append(f"({' OR '.join(there)})")
    if owner.is_shared:
        # The account's ties to the buyer: it created the buyer, or has a check.
        made = f"account_id = '{reach.account_id}' AND mode = '{reach.mode.value}'"
        with_buyers = ("verifications", "acknowledgment_uses", "started_checks")
        ties = [f"SELECT cbid FROM {schema}.buyers WHERE {made}"]
        ties += [
            f"SELECT cbid FROM {schema}.{tied} WHERE {condition(tied, reach, schema)}"
            for tied in with_buyers
        ]
        found.append(f"{own}.cbid IN ({' UNION '.join(ties)})")
    return " AND ".join(found)


def _key(table: str) -> str:
    (column,) = metadata.tables[table].primary_key.columns
    return str(column.name)


class Judge:
    """Repeats queries on the rows in reach alone."""

    def __init__(self, engine: Engine, reach: AccountReach, stack: ExitStack) -> None:
        self._reach = reach
        self._embedded = engine.dialect.name == "sqlite"
        self._schema = "main" if self._embedded else "public"
        self._whole, self._part = (stack.enter_context(engine.connect()) for _ in range(2))
        for connection in (self._whole, self._part):
            stack.callback(connection.invalidate)
        self._hide()

    def beyond(self, statements: Sequence[Statement]) -> list[Statement]:
        """The queries among these whose result needs rows outside of the reach."""
        asked = [one for one in statements if _QUERY.match(one.text) and one.tables]
        whole, part = (_results(one, asked) for one in (self._whole, self._part))
        return [one for one, all_, seen in zip(asked, whole, part, strict=True) if all_ != seen]

    def outside(self) -> Mapping[str, list[str]]:
        """By table, all rows outside of the reach."""
        with self._whole.begin() as transaction:
            found = {
                name: _rows(self._whole, table, condition(name, self._reach, self._schema))
                for name, table in metadata.tables.items()
                if is_owned(name)
            }
            transaction.rollback()
        return found

    def _hide(self) -> None:
        kind, place = ("TEMP VIEW", "") if self._embedded else ("VIEW", f"{_HIDING}.")
        with self._part.begin():
            if not self._embedded:
                self._part.execute(text(f"DROP SCHEMA IF EXISTS {_HIDING} CASCADE"))
                self._part.execute(text(f"CREATE SCHEMA {_HIDING}"))
            for name in filter(is_owned, metadata.tables):
                where = condition(name, self._reach, self._schema)
                seen = f"SELECT * FROM {self._schema}.{name} WHERE {where}"
                self._part.execute(text(f"CREATE {kind} {place}{name} AS {seen}"))
            if not self._embedded:
                self._part.execute(text(f"SET search_path = {_HIDING}, public"))


def _results(connection: Connection, asked: Sequence[Statement]) -> list[list[str]]:
    found = []
    with connection.begin() as transaction:
        cursor = connection.connection.cursor()
        for one in asked:
            cursor.execute(one.text, one.values)
            found.append(sorted(map(repr, cursor.fetchall())))
        transaction.rollback()
    return found


def _rows(connection: Connection, table: Table, inside: str) -> list[str]:
    found = connection.execute(select(table).where(text(f"NOT coalesce(({inside}), false)")))
    return sorted(repr(tuple(row)) for row in found)
