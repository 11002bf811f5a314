"""A database is served only if it has what its revision makes, whatever the revision is called."""

import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url, text

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.errors import SchemaMismatch
from tests.storage.schema_files import hashes, listed
from tests.support import postgres
from tests.support.databases import on_postgres, on_sqlite

BOTH = {
    "DROP TABLE webhook_attempts": "the table webhook_attempts is missing",
    "ALTER TABLE remembered DROP COLUMN user_handle": "remembered lacks the column user_handle",
    "ALTER TABLE accounts ADD COLUMN extra BIGINT": "accounts has an unknown column extra",
    "DROP INDEX ix_buyer_documents_cbid": (
        "buyer_documents lacks the index ix_buyer_documents_cbid"
    ),
    "CREATE UNIQUE INDEX mine ON accounts (created_at)": "accounts has an unknown index mine",
}
REBUILT = (
    "DROP TABLE log_pending; CREATE TABLE log_pending (record_id VARCHAR(40) NOT NULL,"
    " mode VARCHAR(4) NOT NULL CONSTRAINT ck_log_pending_mode CHECK (mode IN ({modes})),"
    " digest {type}, CONSTRAINT pk_log_pending PRIMARY KEY (record_id)) WITHOUT ROWID"
)
ONLY_SQLITE = {
    "DROP TRIGGER records_no_update": "records lacks the trigger records_no_update",
    REBUILT.format(type="TEXT", modes="'test', 'live'"): (
        "the column digest of log_pending is TEXT in place of BLOB NOT NULL"
    ),
    REBUILT.format(type="BLOB NOT NULL", modes="'test'"): (
        "the constraint ck_log_pending_mode of log_pending has another definition"
    ),
    REBUILT.format(type="BLOB NOT NULL", modes="'test', 'live'").removesuffix(" WITHOUT ROWID"): (
        "the storage of log_pending is ROWID in place of WITHOUT ROWID"
    ),
}
ONLY_POSTGRES = {
    "DROP TRIGGER records_no_change ON records": "records lacks the trigger records_no_change",
    "ALTER TABLE records ENABLE TRIGGER records_no_change": (
        "the trigger records_no_change of records has another definition"
    ),
    (
        "CREATE OR REPLACE FUNCTION records_append_only() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NEW, END'"
    ): "the trigger records_no_change of records has another definition",
    "ALTER TABLE accounts ALTER COLUMN name TYPE VARCHAR(99)": (
        r"the column name of accounts is character varying\(99\) NOT NULL"
        r" in place of character varying\(100\) NOT NULL"
    ),
    "ALTER TABLE buyers DROP CONSTRAINT ck_buyers_mode": "buyers lacks the constraint ck_buyers_m",
    (
        "ALTER TABLE buyers DROP CONSTRAINT ck_buyers_mode; "
        "ALTER TABLE buyers ADD CONSTRAINT ck_buyers_mode CHECK (mode IN ('test'))"
    ): "the constraint ck_buyers_mode of buyers has another definition",
    "ALTER SEQUENCE events_seq_seq INCREMENT 1": (
        "the sequence events_seq_seq of events is bigint INCREMENT BY 1"
        " in place of bigint INCREMENT BY 64"
    ),
    "ALTER SEQUENCE events_seq_seq CYCLE": "INCREMENT BY 64 CYCLE in place of bigint INCREMENT BY",
    "ALTER SEQUENCE events_seq_seq OWNED BY NONE": "events lacks the sequence events_seq_seq",
    "GRANT DELETE ON records TO PUBLIC": "records has an unknown right of PUBLIC to DELETE",
    "ALTER TABLE audit_log SET UNLOGGED": (
        "the storage of audit_log is UNLOGGED in place of LOGGED"
    ),
}
ANYBODYS = (
    "CREATE TABLE of_a_replication_tool (id INTEGER)",
    "CREATE INDEX of_an_operator ON accounts (created_at)",
)


def change(url: URL, statements: str) -> None:
    """Change the schema behind the back of the migrations."""
    with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
        for statement in statements.split("; "):
            connection.execute(text(statement.replace("NEW,", "NEW;")))


def assert_refused(url: URL, what: str) -> None:
    """Both ways to open a database name the difference, and say what to do."""
    with pytest.raises(SchemaMismatch, match=rf"{what}.*empty data directory"):
        schema.check(url)
    with pytest.raises(SchemaMismatch, match=what):
        schema.upgrade(url)


@pytest.mark.parametrize("statements", BOTH)
def test_a_difference_is_named_by_table_and_part(own_url: URL, statements: str) -> None:
    """The revision's name is right, its content is not."""
    change(own_url, statements)
    assert_refused(own_url, BOTH[statements])


@on_sqlite
@pytest.mark.parametrize("statements", ONLY_SQLITE)
def test_a_difference_is_named_on_the_embedded_database(own_url: URL, statements: str) -> None:
    """Triggers, the type of a column, and how rows are stored."""
    change(own_url, statements)
    assert_refused(own_url, ONLY_SQLITE[statements])


@on_postgres
@pytest.mark.parametrize("statements", ONLY_POSTGRES)
def test_a_difference_is_named_on_postgresql(own_url: URL, statements: str) -> None:
    """Also a trigger that is switched off or has another function, a sequence, and rights."""
    change(own_url, statements)
    assert_refused(own_url, ONLY_POSTGRES[statements])


@pytest.mark.parametrize("statement", ANYBODYS)
def test_an_operator_may_add_tables_and_indexes(own_url: URL, statement: str) -> None:
    """It changes nothing that the service does."""
    change(own_url, statement)
    schema.check(own_url)


def test_some_of_many_differences_are_named(own_url: URL) -> None:
    """A message stays short enough to read."""
    for number in range(12):
        change(own_url, f"ALTER TABLE accounts ADD COLUMN c{number} BIGINT")
    assert_refused(own_url, "unknown column c0, .* and 4 more")


def test_the_migrations_make_the_schema_that_servers_expect(url: URL) -> None:
    """Otherwise a migration was added without `make schema`."""
    with schema.connected(url, Purpose.READ) as connection:
        assert schema.expected(connection) == schema.parts_of(connection)


def test_a_landed_migration_never_changes() -> None:
    """Databases were made by it. A new one needs its line: `make schema` adds it."""
    assert hashes() == listed()


@on_postgres
def test_a_dumped_and_restored_database_is_the_same(
    own_url: URL, postgres_server: postgres.PostgresServer, tmp_path: Path
) -> None:
    """PostgreSQL writes the same CHECK with other casts and brackets after that."""
    installation = postgres.find_installation()
    assert installation is not None
    programs, dump = installation / "bin", tmp_path / "dump"
    other = make_url(postgres.fresh_database(postgres_server))
    environment = os.environ | {
        "PGHOST": str(postgres_server.socket_directory),
        "PGUSER": "postgres",
        "LD_LIBRARY_PATH": str(installation / "lib"),
    }
    for program, database, *rest in (
        ("pg_dump", own_url.database, f"--file={dump}"),
        ("psql", other.database, "--set=ON_ERROR_STOP=1", "--quiet", f"--file={dump}"),
    ):
        command = [str(programs / program), f"--dbname={database}", *rest]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    schema.check(other)
