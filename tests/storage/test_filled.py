"""What a deployment of the first migration has stored comes along with every later one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from sqlalchemy import URL, Boolean, Connection, MetaData, text

from countersign.db import schema
from countersign.db.engine import Purpose, is_embedded
from countersign.errors import SchemaMismatch
from tests.support.service import Deployment, running_server

FILLED: Final = Path(__file__).with_name("filled_0001")
ROWS: Final = json.loads((FILLED / "rows.json").read_bytes())
EVIDENCE: Final = ("records", "log_entries", "checkpoints", "notice_versions", "deployment_records")
"""What no migration may touch: it is signed, or others hold proofs of it."""


def fill(connection: Connection) -> None:
    """Store every row as it was read from a deployment of the first migration."""
    tables = MetaData()
    tables.reflect(connection)
    for table in tables.sorted_tables:
        if table.name not in ROWS:
            continue
        columns, rows = ROWS[table.name]["columns"], ROWS[table.name]["rows"]
        flags = {column.name for column in table.columns if isinstance(column.type, Boolean)}
        values = [
            {
                name: bool(value) if name in flags and value is not None else stored(value)
                for name, value in zip(columns, row, strict=True)
            }
            for row in rows
        ]
        connection.execute(table.insert(), values)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT setval('events_seq_seq', (SELECT max(seq) FROM events))"))


def stored(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    """A column's value, of which JSON cannot hold bytes."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value


def rows_of(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table in the columns of the first migration."""
    columns = ", ".join(f'"{name}"' for name in ROWS[table]["columns"])
    found = connection.execute(text(f"SELECT {columns} FROM {table}"))  # noqa: S608 - our own names
    return sorted((tuple(row) for row in found), key=repr)


@pytest.fixture
def filled(empty_url: URL, tmp_path: Path) -> Deployment:
    """A deployment of the first migration."""
    data_dir = Path(empty_url.database or "").parent if is_embedded(empty_url) else tmp_path / "d"
    shutil.copytree(FILLED, data_dir, dirs_exist_ok=True)
    for key in data_dir.glob("*.key"):
        key.chmod(0o600)
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, "0001_initial")
        fill(connection)
    url = empty_url.set(drivername="postgresql").render_as_string(hide_password=False)
    settings = {} if is_embedded(empty_url) else {"DATABASE_URL": url}
    return Deployment(data_dir=data_dir, settings=settings)


def test_the_first_migrations_evidence_is_there_unchanged(
    filled: Deployment, empty_url: URL
) -> None:
    """Row by row, and the log agrees with it."""
    filled.run("init")
    with schema.connected(empty_url, Purpose.READ) as connection:
        for table in EVIDENCE:
            before = sorted((tuple(map(stored, row)) for row in ROWS[table]["rows"]), key=repr)
            assert [row for row in rows_of(connection, table) if row in before] == before, table
    assert filled.read("log", "check")["findings"] == []


def test_a_deployment_of_the_first_migration_goes_on(filled: Deployment) -> None:
    """Its acknowledgments are read with their personal data, its hold holds, new acts are taken."""
    filled.run("init")
    (account,) = (line["account_id"] for line in filled.read("accounts", "list"))
    key = filled.widest_key(account)
    with running_server(filled) as server, server.client(key) as client:
        found = client.get("/v1/acknowledgments").json()["data"]
        assert len(found) == len([r for r in ROWS["records"]["rows"] if r[0].startswith("ack_")])
        read = {item["initials_per_line"][0] for item in found if item["initials_per_line"]}
        assert read == {"JD", "AB"}
        sent = client.post("/v1/notices/ab1263/acknowledge", json={"initials_per_line": ["JD"] * 4})
        assert sent.status_code == httpx2.codes.OK, sent.text
    holds = {hold["reason"]: hold["released_at"] for hold in filled.read("holds", "list")}
    assert holds["case 2"] is None
    assert holds["case 1"] is not None


@pytest.mark.parametrize("statement", ["ALTER TABLE records ADD COLUMN mine BIGINT"])
def test_a_database_that_differs_is_not_upgraded(
    filled: Deployment, empty_url: URL, statement: str
) -> None:
    """It stays at its revision, and the words name what differs."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        connection.execute(text(statement))
    with pytest.raises(SchemaMismatch, match="records has an unknown column mine"):
        schema.upgrade(empty_url)
    with schema.connected(empty_url, Purpose.READ) as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version"))
        assert revision.scalar_one() == "0001_initial"


def test_a_migration_that_does_not_fit_is_refused_in_words(
    filled: Deployment, empty_url: URL
) -> None:
    """As in a database of a development version, which lacks a column that a migration needs."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        connection.execute(text("ALTER TABLE records RENAME COLUMN notice_id TO notice"))
    with pytest.raises(SchemaMismatch, match=r"notice_id.*empty data directory"):
        schema.upgrade(empty_url)
