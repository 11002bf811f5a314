"""Data of the last build survives every later migration."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from sqlalchemy import URL, Boolean, Connection, MetaData, select, text
from sqlalchemy.exc import DBAPIError

from countersign.base.db import schema
from countersign.base.db.engine import SQLITE_FILE, Purpose, is_embedded
from countersign.base.db.tables import disclosures
from countersign.base.errors import SchemaMismatch
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.log.blind_runs import found_by
from countersign.operate.backup import back_up
from tests.support.databases import on_sqlite
from tests.support.service import Deployment, running_server

FILLED: Final = Path(__file__).with_name("filled_0019")
ROWS: Final = json.loads((FILLED / "rows.json").read_bytes())
EVIDENCE: Final = (
    *("records", "log_entries", "checkpoints", "notice_versions", "deployment_records", "parties"),
    *("audit_log", "audit_chain", "erasures"),
)
"""Data that no migration may touch: it is signed, or others hold proofs of it."""
FIRST: Final = "0019_person_subjects"
"""The first migration: the rows were stored at it."""
ACCOUNT: Final = ROWS["accounts"]["rows"][0][0]


def fill(connection: Connection) -> None:
    """Store every row as it was read from a deployment of the last build."""
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
    """A column's value; JSON cannot hold bytes."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value


def rows_of(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table in the columns that it had."""
    columns = ", ".join(f'"{name}"' for name in ROWS[table]["columns"])
    found = connection.execute(text(f"SELECT {columns} FROM {table}"))  # noqa: S608 - our own names
    return sorted((tuple(row) for row in found), key=repr)


@pytest.fixture
def filled(empty_url: URL, tmp_path: Path) -> Deployment:
    """A deployment of the last build."""
    data_dir = Path(empty_url.database or "").parent if is_embedded(empty_url) else tmp_path / "d"
    shutil.copytree(FILLED, data_dir, dirs_exist_ok=True)
    for key in data_dir.glob("*.key"):
        key.chmod(0o600)
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, FIRST)
        fill(connection)
    url = empty_url.set(drivername="postgresql").render_as_string(hide_password=False)
    settings = {} if is_embedded(empty_url) else {"DATABASE_URL": url}
    return Deployment(data_dir=data_dir, settings=settings)


def test_evidence_of_before_is_there_unchanged(filled: Deployment, empty_url: URL) -> None:
    """Row by row, with audit and erasures, and the log agrees with it."""
    filled.run("init")
    with schema.connected(empty_url, Purpose.READ) as connection:
        for table in EVIDENCE:
            before = sorted((tuple(map(stored, row)) for row in ROWS[table]["rows"]), key=repr)
            assert [row for row in rows_of(connection, table) if row in before] == before, table
    assert filled.read("log", "check")["findings"] == []


def test_a_deployment_of_the_last_build_continues(filled: Deployment) -> None:
    """Its acknowledgments are read with their personal data, its holds hold, new acts are taken."""
    filled.run("init")
    key = filled.widest_key(ACCOUNT)
    own = [row for row in ROWS["records"]["rows"] if row[0].startswith("ack_")]
    own = [row[0] for row in own if (row[1], row[2]) == (ACCOUNT, "test")]
    with running_server(filled) as server, server.client(key) as client:
        found = client.get("/v1/acknowledgments", params={"limit": 100}).json()["data"]
        assert {item["ack_id"] for item in found} == {*own}
        read = {item["initials_per_line"][0] for item in found if item["initials_per_line"]}
        assert read == {"JD", "AB"}
        by_order = {"order_reference": "A-7"}
        (one,) = client.get("/v1/acknowledgments", params=by_order).json()["data"]
        assert one["order_reference"] == "A-7"
        sent = client.post("/v1/notices/ab1263/acknowledge", json={"initials_per_line": ["JD"] * 4})
        assert sent.status_code == httpx2.codes.OK, sent.text
        path = f"/v1/acknowledgments/{sent.json()['ack_id']}"
        since = {"since": client.get(path).json()["accepted_at"]}
        events = client.get("/v1/events", params=since).json()["data"]
        assert sent.json()["ack_id"] in {event["data"].get("ack_id") for event in events}
    holds = {hold["reason"]: hold["released_at"] for hold in filled.read("holds", "list")}
    in_force = {reason for reason, released_at in holds.items() if released_at is None}
    assert in_force == {"case 2", "case 11: order of A", "case 13: buyer", "case 14: account"}
    assert {*holds} - in_force == {"case 1", "case 12: live order"}


def test_searches_by_session_buyer_or_order_still_find_the_same(
    filled: Deployment, empty_url: URL
) -> None:
    """By every key of its rows, with those that share one together."""
    filled.run("init")
    columns, rows = ROWS["disclosures"]["columns"], ROWS["disclosures"]["rows"]
    c = disclosures.c
    with schema.connected(empty_url, Purpose.READ) as connection:
        for column in (c.session_index, c.cbid_index, c.reference_index):
            wanted: dict[bytes, set[str]] = {}
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                index = stored(values[column.name])
                if index is not None:
                    wanted.setdefault(index, set()).add(values["record_id"])
            assert wanted
            for index, ids in wanted.items():
                query = select(c.record_id).where(found_by(connection, column, index))
                assert set(connection.execute(query).scalars()) == ids


@on_sqlite
def test_a_backup_of_an_earlier_build_is_left_to_the_build_that_upgrades_it(
    filled: Deployment, empty_url: URL, tmp_path: Path
) -> None:
    """It is restored as it is; `init` changes nothing, and names the build that goes first."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        # As the previous migration made it, one of those that this release no longer has.
        connection.execute(text("DROP TABLE person_subjects"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0018_figures_of_a_day'"))
    back_up(empty_url, tmp_path / "backup", None, 0, lambda _done, _total, _unit: None)
    place = tmp_path / "restored"
    shutil.copytree(FILLED, place)
    for key in place.glob("*.key"):
        key.chmod(0o600)
    restored = Deployment(data_dir=place)
    restored.run("restore", str(tmp_path / "backup"), "--yes")
    before = dumped(place / SQLITE_FILE)
    done = restored.run("init", "--upgrade", check=False)
    assert done.returncode == 1
    assert "error (schema_mismatch)" in done.stderr
    assert "0018_figures_of_a_day" in done.stderr
    assert dumped(place / SQLITE_FILE) == before


def dumped(file: Path) -> list[str]:
    """The whole database as SQL."""
    with closing(sqlite3.connect(file)) as connection:
        return [*connection.iterdump()]


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
        assert revision.scalar_one() == FIRST


def test_a_migration_that_does_not_fit_is_refused_in_words(
    filled: Deployment, empty_url: URL
) -> None:
    """As in a database of a development version, which lacks a column needed by a migration."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        connection.execute(text("ALTER TABLE legal_holds RENAME COLUMN subject TO about"))
    with pytest.raises(SchemaMismatch, match=r"subject.*empty data directory"):
        schema.upgrade(empty_url)


def test_an_erasure_overwrites_responses_of_before(filled: Deployment, empty_url: URL) -> None:
    """Once its hold is released; for some responses the subject was not recorded."""
    there = "cbid_test_2wgqspn0fr19z36g2hnjt8h956"
    filled.run("init")
    (hold,) = (one for one in filled.read("holds", "list") if one["reason"] == "case 2")
    assert hold["subject"] == there
    filled.run("holds", "release", hold["hold_id"])
    assert kept_answers(filled, empty_url, there) > 0
    filled.run("erase", there, "--yes")
    assert kept_answers(filled, empty_url, there) == 0


def test_an_erasure_that_waits_for_a_hold_is_done_when_the_hold_ends(filled: Deployment) -> None:
    """Both are of before the upgrade."""
    columns, rows = ROWS["waiting_erasures"]["columns"], ROWS["waiting_erasures"]["rows"]
    waiting = [dict(zip(columns, row, strict=True))["record_id"] for row in rows]
    filled.run("init")
    (hold,) = (one for one in filled.read("holds", "list") if one["reason"].startswith("case 11"))
    assert hold["subject"] in waiting
    assert filled.read("acknowledgments", "show", hold["subject"])["initials_per_line"]
    filled.run("holds", "release", hold["hold_id"])
    assert not filled.read("acknowledgments", "show", hold["subject"])["initials_per_line"]


@pytest.mark.parametrize("table", ["records", "audit_log", "erasures", "audit_chain"])
def test_rows_of_before_are_protected(filled: Deployment, empty_url: URL, table: str) -> None:
    """By the triggers that the first migration makes."""
    filled.run("init")
    column = ROWS[table]["columns"][0]
    with (
        pytest.raises(DBAPIError, match="append-only"),
        schema.connected(empty_url, Purpose.WRITE) as connection,
    ):
        connection.execute(text(f"UPDATE {table} SET {column} = {column}"))  # noqa: S608 - ours


def test_verification_sessions_of_before_are_read_as_checkout_sessions(filled: Deployment) -> None:
    """They keep their identifiers, and have ended."""
    filled.run("init")
    ids = [row[0] for row in ROWS["checkout_sessions"]["rows"] if row[0].startswith("vfs_")]
    key = filled.widest_key(ACCOUNT)
    with running_server(filled) as server, server.client(key) as client:
        found = [client.get(f"/v1/checkout_sessions/{id_}").json() for id_ in ids]
    assert {one["status"] for one in found} == {"completed", "expired", "cancelled"}
    assert [one["collect"] for one in found] == [["identity"]] * len(ids)


def kept_answers(filled: Deployment, url: URL, cbid: str) -> int:
    """How many of the responses that are kept for retries name this buyer."""
    key = (filled.data_dir / "secret.key").read_text(encoding="ascii")
    secret = DeploymentSecret.from_text(key)
    with schema.connected(url, Purpose.READ) as connection:
        rows = connection.execute(text("SELECT slot, response FROM idempotency_keys")).all()
    answers = [secret.open_answer(bytes(row.response), bytes(row.slot)) for row in rows]
    return sum(cbid.encode() in answer for answer in answers)
