"""Rows become the types of the rooms in one way, on both engines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import pytest
from sqlalchemy import Connection, insert, literal, select

from countersign.base.db import statements
from countersign.base.db.database import Database
from countersign.base.db.statements import BulkInsert, deferred_statements
from countersign.base.db.tables import accounts
from countersign.base.values import Mode
from countersign.core.access.account import Account
from tests.support.databases import Run

AT = datetime(2026, 3, 4, 5, 6, 7, 891_000, tzinfo=UTC)
NAMES = ("acct_1", "acct_2")


class OfStruct(msgspec.Struct, frozen=True):
    """The members of a row, as a Struct."""

    id: str
    created_at: datetime
    mode: Mode
    digest: bytes
    note: str | None


@dataclass(frozen=True, slots=True)
class OfDataclass:
    """The same as a dataclass."""

    id: str
    created_at: datetime
    mode: Mode
    digest: bytes
    note: str | None


class OfTuple(NamedTuple):
    """The same as a NamedTuple."""

    id: str
    created_at: datetime
    mode: Mode
    digest: bytes
    note: str | None


class WithParts(msgspec.Struct, frozen=True):
    """A member without a column, and one whose column has another form."""

    id: str
    mode: Mode
    digest: str
    parts: tuple[Account, ...]


COLUMNS = (
    accounts.c.id,
    accounts.c.created_at,
    literal("test").label("mode"),
    literal(b"\x01\x00").label("digest"),
    literal(None).label("note"),
)


def added(connection: Connection) -> None:
    """Two accounts."""
    for name in NAMES:
        connection.execute(insert(accounts), {"id": name, "name": name, "created_at": AT})


@pytest.mark.parametrize("type_", [OfStruct, OfDataclass, OfTuple])
def test_a_row_becomes_the_type_with_its_columns(
    type_: type[OfStruct | OfDataclass | OfTuple], database: Database, run: Run
) -> None:
    """With enumerations, times and bytes, on both engines alike."""

    def read(connection: Connection) -> object:
        added(connection)
        return statements.rows(connection, select(*COLUMNS).order_by(accounts.c.id), type_)

    expected = [type_(name, AT, Mode.TEST, b"\x01\x00", None) for name in NAMES]
    assert run(database.write(read)) == expected


@pytest.mark.parametrize(("id_", "found"), [("acct_1", "acct_1"), ("acct_3", None)])
def test_at_most_one_row_is_found(
    id_: str, found: str | None, database: Database, run: Run
) -> None:
    """A missing row is no error."""

    def read(connection: Connection) -> Account | None:
        added(connection)
        return statements.row(connection, select(accounts).where(accounts.c.id == id_), Account)

    account = run(database.write(read))
    assert (account and account.id) == found


def test_members_that_are_no_columns_are_added_to_the_row(database: Database, run: Run) -> None:
    """They come before a column of the same name."""
    one = Account(id="acct_9", name="n", created_at=AT)

    def read(connection: Connection) -> WithParts:
        added(connection)
        found = connection.execute(select(*COLUMNS).limit(1)).one()
        return statements.of_row(found, WithParts, digest=found.digest.hex(), parts=(one,))

    assert run(database.write(read)) == WithParts("acct_1", Mode.TEST, "0100", (one,))


@pytest.mark.parametrize("number", [0, 1, 63, 64, 65, 129])
def test_deferred_rows_are_all_written(number: int, database: Database, run: Run) -> None:
    """However many of them fit into one statement."""
    given = [(f"acct_left_{each:03}", f"Vendor {each}", each) for each in range(number)]
    insert_accounts = BulkInsert(accounts, "id", "name", "created_at")

    def defer(connection: Connection) -> None:
        deferred = deferred_statements(connection)
        assert deferred is not None
        insert_accounts.defer(connection, deferred, given)

    def read(connection: Connection) -> list[str]:
        named = select(accounts.c.id).where(accounts.c.id.startswith("acct_left_"))
        return [*connection.execute(named.order_by(accounts.c.id)).scalars()]

    run(database.write(defer))
    assert run(database.read(read)) == [id_ for id_, *_ in given]
