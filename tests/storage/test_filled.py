"""What a deployment of the first migration has stored comes along with every later one."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from sqlalchemy import URL, Boolean, Connection, MetaData, select, text
from sqlalchemy.exc import DBAPIError

from countersign.access.secrets import DeploymentSecret
from countersign.db import schema
from countersign.db.engine import Purpose, is_embedded
from countersign.db.tables import disclosures
from countersign.errors import SchemaMismatch
from countersign.instant import from_ms, rfc3339
from countersign.log.blind_runs import found_by
from tests.cli.serving import wait_until
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


def test_what_the_first_migration_found_by_session_or_buyer_is_found(
    filled: Deployment, empty_url: URL
) -> None:
    """By every key of its rows, those that share one together; where it is kept has changed."""
    filled.run("init")
    columns, rows = ROWS["disclosures"]["columns"], ROWS["disclosures"]["rows"]
    c = disclosures.c
    with schema.connected(empty_url, Purpose.READ) as connection:
        for column in (c.session_index, c.cbid_index):
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


def test_what_an_earlier_erasure_left_in_the_first_migrations_rows_is_gone(
    filled: Deployment, empty_url: URL
) -> None:
    """Buyers who are there are still named by audit and holds; the rows are protected again."""
    there = "cbid_test_2wgqspn0fr19z36g2hnjt8h956"
    gone = "cbid_test_41qzj54b87yy8r4ama2swkg8wa"
    used = "ack_01m84tw536eg5rcd6y8nx4yx4v"
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        # As the first release erased a buyer: its events, and what operators wrote, were left.
        connection.execute(text("DELETE FROM verifications WHERE cbid = :gone"), {"gone": gone})
        connection.execute(text("DELETE FROM buyers WHERE cbid = :gone"), {"gone": gone})
        for number, cbid in enumerate((there, gone)):
            row = {"id": f"aud_{number:026}", "cbid": cbid, "d": f'{{"reason":"of {cbid}"}}'}
            new = "VALUES (:id, 1795458893690, 'root', 'evidence_shown', :cbid, :d)"
            connection.execute(text(f"INSERT INTO audit_log {new}"), row)
        before = events_of(connection)
        assert gone in {object_id for _, object_id in before}
        (index,) = connection.execute(text("SELECT order_index FROM acknowledgment_uses")).one()
    filled.run("init")
    with schema.connected(empty_url, Purpose.WRITE) as connection:
        tables = MetaData()
        tables.reflect(connection)
        all_rows = {t.name: connection.execute(t.select()).all() for t in tables.sorted_tables}
        left = {name: str(rows) for name, rows in all_rows.items()}
        assert [table for table, rows in left.items() if gone in rows] == []
        assert there not in left["audit_log"] + left["legal_holds"]
        after = [(seq, "" if object_id == gone else object_id) for seq, object_id in before]
        assert events_of(connection) == after
        query = "SELECT cbid, order_index FROM acknowledgment_uses WHERE ack_id = :used"
        cbid, overwritten = connection.execute(text(query), {"used": used}).one()
        assert cbid is None
        assert bytes(overwritten) != bytes(index)
    with (
        pytest.raises(DBAPIError, match="append-only"),
        schema.connected(empty_url, Purpose.WRITE) as connection,
    ):
        connection.execute(text("UPDATE audit_log SET actor = 'me'"))
    assert f"of {there}" in {one["details"]["reason"] for one in filled.read("audit", there)}
    assert "erased buyer" in {one["subject"] for one in filled.read("audit")}
    (hold,) = (one for one in filled.read("holds", "list") if one["released_at"] is None)
    assert hold["subject"] == there
    filled.run("holds", "release", hold["hold_id"])
    assert kept_answers(filled, empty_url, there) > 0
    filled.run("erase", there, "--yes")
    assert kept_answers(filled, empty_url, there) == 0


def test_verification_sessions_of_before_are_checkout_sessions_that_have_ended(
    filled: Deployment, empty_url: URL
) -> None:
    """An open one as expired, with its event; events and subscriptions have their new names."""
    done = "vfs_01m859k1jyfj7rfke3qbssjy11"
    cancelled = "vfs_01m84tw66pe15ts0weav87wxbx"
    was_open = "vfs_01m84tw674f31a9em75qs81mga"
    endpoint, before = "whe_01m84tw5rzfx79v382b9c4hv5g", time.time_ns() // 1_000_000
    names = ("completed", "expired", "cancelled")
    types = json.dumps(["buyer.revoked", *(f"verification_session.{name}" for name in names)])
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():

        def update(what: str, **values: str | int) -> None:
            connection.execute(text(f"UPDATE {what}"), values)

        # Nothing is old enough to be deleted, and nothing has expired by itself.
        update("checkout_sessions SET ended_at = :at WHERE ended_at IS NOT NULL", at=before)
        due = "expires_at = :at, expiry_due_at = :at WHERE status = 'open'"
        update(f"checkout_sessions SET {due}", at=before + 86_400_000)
        update("events SET at = :at", at=before)
        asked = "event_types = :types, cursor_seq = 34 WHERE id = :id"
        update(f"webhook_endpoints SET {asked}", types=types, id=endpoint)
        # A buyer who declined was reported as a cancellation.
        query = "SELECT id FROM checkout_sessions WHERE status = 'declined'"
        declined = connection.execute(text(query)).scalar_one()
        old = "verification_session.cancelled"
        update("events SET type = :old WHERE object_id = :id", old=old, id=declined)
    filled.run("init")
    (account,) = (line["account_id"] for line in filled.read("accounts", "list"))
    key = filled.widest_key(account)
    with running_server(filled) as server, server.client(key) as client:

        def reported() -> dict[str, str]:
            found = client.get("/v1/events", params={"limit": 100}).json()["data"]
            about = {event["data"].get("checkout_session_id"): event["type"] for event in found}
            return {id_: type_ for id_, type_ in about.items() if id_}

        def delivered() -> set[str]:
            path = f"/v1/webhook_endpoints/{endpoint}/deliveries"
            return {one["event"]["type"] for one in client.get(path).json()["data"]}

        wait_until(lambda: was_open in reported(), "the end of the open session is reported")
        assert (
            reported()
            | {
                done: "checkout_session.completed",
                was_open: "checkout_session.expired",
                cancelled: "checkout_session.cancelled",
                declined: "checkout_session.declined",
            }
            == reported()
        )
        found = {
            id_: client.get(f"/v1/checkout_sessions/{id_}").json()
            for id_ in (done, was_open, cancelled)
        }
        assert [one["status"] for one in found.values()] == ["completed", "expired", "cancelled"]
        assert [one["collect"] for one in found.values()] == [["identity"]] * 3
        assert found[done]["cbid"] == "cbid_test_7g7aznzpzsth6j6np6cf2as6ae"
        assert found[was_open]["ended_at"] >= rfc3339(from_ms(before))
        closed = client.post(f"/v1/checkout_sessions/{was_open}/cancel", json={})
        assert closed.json()["error"]["code"] == "checkout_session_closed"
        wanted = client.get(f"/v1/webhook_endpoints/{endpoint}").json()["event_types"]
        ends = ("cancelled", "completed", "declined", "expired")
        assert wanted == ["buyer.revoked", *(f"checkout_session.{name}" for name in ends)]
        missed = {"checkout_session.completed", "checkout_session.expired"}
        wait_until(lambda: missed <= delivered(), "what was not delivered before is")


def events_of(connection: Connection) -> list[tuple[int, str]]:
    """The numbers and objects of all events."""
    rows = connection.execute(text("SELECT seq, object_id FROM events ORDER BY seq"))
    return [(row.seq, row.object_id) for row in rows]


def kept_answers(filled: Deployment, url: URL, cbid: str) -> int:
    """How many of the responses that are kept for retries name this buyer."""
    key = (filled.data_dir / "secret.key").read_text(encoding="ascii")
    secret = DeploymentSecret.from_text(key)
    with schema.connected(url, Purpose.READ) as connection:
        rows = connection.execute(text("SELECT slot, response FROM idempotency_keys")).all()
    answers = [secret.open_answer(bytes(row.response), bytes(row.slot)) for row in rows]
    return sum(cbid.encode() in answer for answer in answers)
