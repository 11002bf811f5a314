"""Append-only tables refuse every change by the database itself, from every role.

Each engine has one filled database here: refused acts leave it unchanged, and every case checks.
"""

# Statements are put together from the names in our own tables.
# ruff: noqa: S608

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any, TypeAlias

import psycopg
import pytest
from sqlalchemy import URL, BigInteger, Integer, LargeBinary, String, Table, Text, insert

from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, sqlite_module
from countersign.base.db.tables import PROTECTED, Instant, metadata
from countersign.core.access.account import add_account
from countersign.core.notices.registry import add_version
from tests.storage import items
from tests.support.databases import on_postgres, on_sqlite
from tests.support.engines import Once, kept

# In the other tables the rowid is the key, or there is none.
WITH_HIDDEN_ROWID = [
    name for name in PROTECTED if name not in {"logs", "log_entries", "log_rosters"}
]

Execute: TypeAlias = Callable[[str], list[Any]]


@contextmanager
def foreign_connection(url: URL) -> Iterator[Execute]:
    """Connect like a foreign program: with the bare driver, without our settings."""
    if url.get_backend_name() == "sqlite":
        with closing(sqlite_module().connect(url.database, isolation_level=None)) as sqlite:
            # SQLite's default, and what lets REPLACE slip past the triggers on DELETE.
            assert sqlite.execute("PRAGMA recursive_triggers").fetchone() == (0,)
            yield lambda statement: list(sqlite.execute(statement).fetchall())
        return
    where = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(where, autocommit=True) as connection:

        def execute(statement: str) -> list[Any]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        yield execute


filled = pytest.fixture(scope="module")(kept)


@pytest.fixture
def execute(engine_name: str, filled: Once, request: pytest.FixtureRequest) -> Iterator[Execute]:
    """Connect to a database with two rows in every protected table."""
    url = filled(engine_name, lambda: nullcontext(fill(request.getfixturevalue("own_url"))))
    with foreign_connection(url) as connected:
        for name in PROTECTED:
            assert len(rows(connected, name)) == 2
        yield connected


def fill(url: URL) -> URL:
    """Write two rows into every protected table."""

    async def write() -> None:
        owner = items.account()
        async with Database(url) as database:
            await database.write(add_account, owner)
            for number in ("1", "2"):
                await items.add(database, items.acknowledgment(owner))
                event = items.notice_event("a-notice", number)
                await database.write(add_version, b"{}", "digest", event)
                await database.write(items.JOURNAL.write, [items.fact()])

    asyncio.run(write())
    with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
        for name in PROTECTED[4:]:
            for row in (made_up(name, 1), made_up(name, 2)):
                connection.execute(insert(metadata.tables[name]), row)
    return url


def rows(execute: Execute, table: str) -> list[Any]:
    return execute(f"SELECT * FROM {table} ORDER BY 1, 2")


def refused(execute: Execute, table: Table, statement: str) -> None:
    """The statement fails for the right reason, and leaves every row as it was."""
    before = rows(execute, table.name)
    with pytest.raises(Exception, match=f"{table.name} is append-only"):
        execute(statement)
    assert rows(execute, table.name) == before


def copies(table: Table, **different: str) -> str:
    """SELECT all rows, with other values in some columns."""
    chosen = ", ".join(different.get(c.name, c.name) for c in table.c)
    return f"({', '.join(c.name for c in table.c)}) SELECT {chosen} FROM {table.name}"


@pytest.fixture(params=PROTECTED)
def table(request: pytest.FixtureRequest) -> Table:
    return metadata.tables[request.param]


def test_no_column_of_a_row_can_be_updated(execute: Execute, table: Table) -> None:
    for column in table.c:
        refused(execute, table, f"UPDATE {table.name} SET {column.name} = {column.name}")


def test_rows_cannot_be_deleted(execute: Execute, table: Table) -> None:
    refused(execute, table, f"DELETE FROM {table.name}")


def test_an_insert_cannot_become_an_update(execute: Execute, table: Table) -> None:
    key = ", ".join(column.name for column in table.primary_key)
    last = list(table.c)[-1].name
    # WHERE true: without it SQLite takes ON for the beginning of a join.
    statement = (
        f"INSERT INTO {table.name} {copies(table)} WHERE true "
        f"ON CONFLICT ({key}) DO UPDATE SET {last} = excluded.{last}"
    )
    refused(execute, table, statement)


@on_sqlite
@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE"])
def test_a_row_cannot_be_replaced(execute: Execute, table: Table, verb: str) -> None:
    refused(execute, table, f"{verb} INTO {table.name} {copies(table)}")


@on_sqlite
@pytest.mark.parametrize("table", WITH_HIDDEN_ROWID, indirect=True)
@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE"])
def test_a_row_cannot_be_replaced_through_its_rowid(
    execute: Execute, table: Table, verb: str
) -> None:
    """A new key, but the hidden rowid of a row that is there: SQLite would delete that one."""
    key = next(iter(table.primary_key)).name
    columns, selected = copies(table, **{key: f"'x' || {key}"}).split(" SELECT ")
    statement = f"{verb} INTO {table.name} (rowid, {columns[1:]} SELECT rowid, {selected}"
    refused(execute, table, statement)


@on_sqlite
@pytest.mark.parametrize("conflict", ["REPLACE", "IGNORE", "ROLLBACK"])
def test_an_update_is_refused_whatever_it_says_about_conflicts(
    execute: Execute, table: Table, conflict: str
) -> None:
    last = list(table.c)[-1].name
    refused(execute, table, f"UPDATE OR {conflict} {table.name} SET {last} = {last}")


@on_postgres
@pytest.mark.parametrize("more", ["", " CASCADE", " RESTART IDENTITY CASCADE"])
def test_a_table_cannot_be_emptied(execute: Execute, table: Table, more: str) -> None:
    before = rows(execute, table.name)
    # If other tables refer to it, PostgreSQL refuses a plain statement for its own reason.
    with pytest.raises(psycopg.Error, match=r"is append-only|referenced in a foreign key"):
        execute(f"TRUNCATE {table.name}{more}")
    assert rows(execute, table.name) == before


@on_postgres
def test_rows_cannot_be_merged_into(execute: Execute, table: Table) -> None:
    key = " AND ".join(f"a.{column.name} = b.{column.name}" for column in table.primary_key)
    refused(
        execute,
        table,
        f"MERGE INTO {table.name} a USING {table.name} b ON {key} WHEN MATCHED THEN DELETE",
    )


@on_postgres
def test_the_refusal_holds_for_a_replicating_session_too(execute: Execute, table: Table) -> None:
    execute("SET session_replication_role = replica")
    refused(execute, table, f"DELETE FROM {table.name}")


def test_the_protected_tables_are_those_that_hold_evidence() -> None:
    erasable = {"disclosures", "shred_keys", "buyers", "verifications", "zip_attempts"}
    erasable |= {"verification_evidence", "buyer_documents", "provider_sessions"}
    erasable |= {"buyer_references"}
    changing = {"log_heads", "log_keys", "log_pending", "legal_holds", "data_keys"}
    # The evidence is in records; these tables are for lookups.
    changing |= {"clearances", "acknowledgment_uses", "fulfilments", "clearance_keys"}
    changing |= {"blind_recent", "blind_runs", "kept_slots", "order_acts"}
    passing = {"idempotency_keys", "pending_sessions", "provider_messages", "events"}
    passing |= {"test_clocks", "test_faults", "checkout_sessions", "started_checks"}
    passing |= {"rate_shares"}
    passing |= {"remembered", "remembered_uses", "erasure_requests", "waiting_erasures"}
    passing |= {"copy_mails"}
    changing |= {"matters", "buyer_blocks", "overrides"}
    passing |= {"people", "person_grants", "person_links", "person_passkeys", "person_sessions"}
    passing |= {"person_subjects", "buyer_blocks"}
    own = {
        "accounts",
        "account_brands",
        "account_origins",
        "api_keys",
        "deployment",
        "verification_settings",
        "further_providers",
        "clearance_settings",
    }
    own |= {name for name in metadata.tables if name.startswith("webhook_")}
    assert set(PROTECTED) == set(metadata.tables) - erasable - changing - passing - own


def made_up(table: str, number: int) -> dict[str, Any]:
    """Some values for a row, other ones for each number."""
    values: dict[type, Any] = {
        String: f"t{number}",
        Text: f"t{number}",
        Integer: number,
        BigInteger: number,
        LargeBinary: bytes([number]),
        Instant: items.NOON,
    }
    row = {c.name: values[type(c.type)] for c in metadata.tables[table].c}
    return row | ({"mode": "test"} if "mode" in row else {})
