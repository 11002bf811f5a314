"""The role that the page for operators lets servers run with: enough for everything, no more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import psycopg
import pytest
import yaml

from countersign.base.db.tables import PROTECTED, metadata
from countersign.base.values import rfc3339
from countersign.operate.serving_role import RIGHTS
from countersign_simulators.base import Session
from tests.cli.crew import children_of, runs
from tests.cli.serving import running, wait_for, wait_until
from tests.docs.markdown import ROOT, read
from tests.sandbox import calls
from tests.support import postgres
from tests.support.providers import playing
from tests.support.service import Deployment, free_port, running_server

pytestmark = [pytest.mark.postgres, pytest.mark.long]
DATABASE = "countersign"
OWNER, APP, KEEPER = "countersign_owner", "countersign_app", "countersign_retention"


@pytest.fixture
def cluster() -> Iterator[postgres.PostgresServer]:
    """Run a PostgreSQL of its own: roles belong to the whole of it."""
    with postgres.running_postgres() as server:
        yield server


def documented_roles() -> list[str]:
    """The statements of the page for the superuser."""
    blocks = [block.text for block in read(ROOT / "docs" / "postgresql.md").blocks]
    return _statements(next(text for text in blocks if "CREATE ROLE countersign_owner" in text))


def _statements(text: str) -> list[str]:
    return [statement.strip() for statement in text.split(";") if statement.strip()]


@pytest.fixture
def owner(cluster: postgres.PostgresServer, tmp_path: Path) -> Deployment:
    """Give a deployment as the owner sees it, with a role for servers that may do nothing."""
    with cluster.connect() as connection:
        for statement in documented_roles():
            connection.execute(statement.encode())
    made = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": url(cluster, OWNER)})
    made.run("init")
    return made


def as_app(owner: Deployment, cluster: postgres.PostgresServer) -> Deployment:
    """The same deployment under the role of servers."""
    return Deployment(data_dir=owner.data_dir, settings={"DATABASE_URL": url(cluster, APP)})


def grant(owner: Deployment, cluster: postgres.PostgresServer) -> None:
    """Run the printed statements, as the owner."""
    printed = owner.run("database", "grants", "--role", APP).stdout
    with connect(cluster, OWNER) as connection:
        for statement in _statements(printed):
            connection.execute(statement.encode())


def test_every_table_declares_the_rights_of_servers() -> None:
    """A new table needs a decision: an empty right means that servers need none."""
    assert set(RIGHTS) == {*metadata.tables, "alembic_version"}


def url(server: postgres.PostgresServer, role: str) -> str:
    """The database as a role sees it."""
    return server.url(DATABASE).replace("postgres@", f"{role}@", 1)


def test_servers_need_no_more_than_the_printed_grants(
    cluster: postgres.PostgresServer, owner: Deployment, tmp_path: Path
) -> None:
    """Every kind of request is answered, everything that runs in the background works."""
    grant(owner, cluster)
    account = owner.account("vendor")
    keys = {mode: owner.key(account, mode) for mode in ("test", "live")}
    with playing("stripe") as provider, running_server(owner, DATABASE_URL=url(cluster, APP)) as s:
        credentials = tmp_path / "stripe.json"
        credentials.write_text(json.dumps(dict(provider.simulator.credentials)))
        credentials.chmod(0o600)
        owner.run(
            *("accounts", "verification", "set", account, "--provider", "stripe"),
            *("--credentials-file", str(credentials), "--dangerous-base-url", provider.url),
        )
        with s.client(keys["test"]) as test, s.client(keys["live"]) as live:
            _use_everything(test)
            for part in ("pending", "verified"):
                _verify(live, provider.part(part))
    found = [json.loads(line) for line in s.log.read_text().splitlines() if line[:1] == "{"]
    # Housekeeping, sealing and all else that runs in the background has been allowed, too.
    assert not [event for event in found if event["event"] != "refused"]
    with connect(cluster, APP) as connection:
        for table in PROTECTED:
            for statement in (
                f"DELETE FROM {table}",  # noqa: S608 - our own names
                f"TRUNCATE {table}",
                f"ALTER TABLE {table} DISABLE TRIGGER ALL",
                f"DROP TABLE {table}",
            ):
                # Checkpoints that prove nothing more may go: of the rest, the trigger keeps each.
                kept = statement == "DELETE FROM checkpoints"
                why = (
                    psycopg.errors.RaiseException if kept else psycopg.errors.InsufficientPrivilege
                )
                with pytest.raises(why):
                    connection.execute(statement.encode())
        _keeps_the_keys_of_records(connection)


def _keeps_the_keys_of_records(connection: psycopg.Connection) -> None:
    """As the role of servers, try to make personal data unreadable."""
    statement = b"SELECT count(*) FROM shred_keys"
    before = connection.execute(statement).fetchone()
    assert before is not None
    assert before[0] > 1
    for refused in (
        "UPDATE shred_keys SET key = ''",
        "TRUNCATE shred_keys",
        "ALTER TABLE shred_keys DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "CREATE TEMPORARY TABLE erasures (record_id text)",
        "INSERT INTO erasures SELECT record_id, 0, 'x' FROM shred_keys",
        "DROP FUNCTION shred_keys_of_records",
        "CREATE SCHEMA mine",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(refused.encode())
    for path in ("public", "pg_temp, public", "nowhere"):
        connection.execute(f"SET search_path = {path}".encode())
        with pytest.raises(psycopg.errors.RaiseException, match="only with its erasure"):
            connection.execute(
                b"DELETE FROM public.shred_keys WHERE record_id IN (SELECT id FROM public.records)"
            )
    connection.execute(b"RESET search_path")
    assert connection.execute(statement).fetchone() == before


def test_an_owner_erases_data_that_the_role_of_servers_may_not(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """The command names the missing right, and the owner succeeds."""
    grant(owner, cluster)
    key = owner.key(owner.account("vendor"))
    app = as_app(owner, cluster)
    with running_server(app) as server, server.client(key) as client:
        order = calls.order(client, calls.buyer(client))
    denied = app.run("erase", order["ack_id"], "--yes", check=False)
    assert denied.returncode == 1
    assert "error (database_permission_denied)" in denied.stderr
    assert "permission denied for table" in denied.stderr
    done = owner.run("erase", order["ack_id"], "--yes")
    assert "shred-keys.db" not in done.stderr
    assert "archived WAL" in done.stderr


def test_a_hold_ends_even_if_the_role_of_servers_may_not_erase(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """Waiting erasures are done by `countersign retention run`, as the owner."""
    owner.run("database", "grants", "--role", APP, "--console", "--apply")
    key = owner.key(owner.account("vendor"))
    app = as_app(owner, cluster)
    with running_server(app) as server, server.client(key) as client:
        order = calls.order(client, calls.buyer(client))
    hold = owner.run("holds", "place", order["ack_id"], "--reason", "case 7").stdout.strip()
    assert app.read("holds", "release", hold) == {"hold_ids": [hold], "erased": [], "requested": []}


def test_the_role_of_servers_may_init_if_nothing_must_be_made(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """The container runs `init --upgrade` before each start, whatever the role."""
    grant(owner, cluster)
    app = as_app(owner, cluster)
    assert "schema of the database is up to date" in app.run("init", "--upgrade").stderr
    with connect(cluster, OWNER) as connection:
        connection.execute(b"UPDATE alembic_version SET version_num = '0019_person_subjects'")
    denied = app.run("init", "--upgrade", check=False)
    assert denied.returncode == 1
    assert "error (database_permission_denied)" in denied.stderr
    assert "owns the tables" in denied.stderr
    assert "Traceback" not in denied.stderr


def test_the_entry_point_of_the_container_works_with_the_role_of_servers(
    cluster: postgres.PostgresServer, owner: Deployment, tmp_path: Path
) -> None:
    """It is run here as it stands in the Containerfile, without the container."""
    grant(owner, cluster)
    _, _, words = (ROOT / "Containerfile").read_text(encoding="utf-8").partition("ENTRYPOINT ")
    app = Deployment(
        data_dir=owner.data_dir,
        settings={"DATABASE_URL": url(cluster, APP), "PORT": str(free_port())},
    )
    environment = app.environment
    environment["PATH"] = f"{Path(sys.prefix, 'bin')}:{environment['PATH']}"
    with running(json.loads(words), environment, tmp_path / "log") as process:
        said = wait_for(process, tmp_path / "log", "Countersign serves")
        assert "schema of the database is up to date" in said
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.crash
def test_frozen_processes_of_the_compose_file_are_replaced(
    cluster: postgres.PostgresServer, owner: Deployment, tmp_path: Path
) -> None:
    """With its settings, by the image's own command: nothing restarts an unhealthy container."""
    grant(owner, cluster)
    _, _, words = (ROOT / "Containerfile").read_text(encoding="utf-8").partition("ENTRYPOINT ")
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    given = compose["services"]["service"]["environment"]
    # The other ones are of the volumes and networks there.
    own = {name: str(given[f"COUNTERSIGN_{name}"]) for name in ("WORKERS", "DRAIN_SECONDS")}
    own |= {"DATABASE_URL": url(cluster, APP), "PORT": str(free_port())}
    app = Deployment(data_dir=owner.data_dir, settings=own)
    environment = app.environment
    environment["PATH"] = f"{Path(sys.prefix, 'bin')}:{environment['PATH']}"

    def is_healthy() -> bool:
        asked = [sys.executable, str(ROOT / "deploy" / "health.py")]
        found = [subprocess.run(asked, env=environment, check=False) for _ in range(8)]
        return not any(one.returncode for one in found)

    with running(json.loads(words), environment, tmp_path / "log") as process:
        wait_for(process, tmp_path / "log", "Countersign serves")
        frozen = children_of(process.pid)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        assert not is_healthy()
        wait_until(lambda: not any(map(runs, frozen)), "the end of the frozen workers")
        wait_until(is_healthy, "workers in their places")
        process.terminate()
        assert process.wait(20) == 0


def test_a_server_names_every_right_that_its_role_lacks(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """Immediately, before it serves; a command does so, too, for its tables."""
    app = as_app(owner, cluster)
    for command in (("serve",), ("accounts", "create", "vendor"), ("init",)):
        denied = app.run(*command, check=False)
        assert denied.returncode == 1
        assert "error (database_permission_denied)" in denied.stderr
        assert "Traceback" not in denied.stderr
    refused = app.run("database", "grants", "--role", APP, "--apply", check=False)
    assert "error (database_permission_denied)" in refused.stderr
    assert refused.stdout == ""
    owner.run("database", "grants", "--role", APP, "--apply")
    with connect(cluster, OWNER) as connection:
        connection.execute(b"REVOKE ALL ON clearances FROM countersign_app")
        connection.execute(b"REVOKE UPDATE (name) ON accounts FROM countersign_app")
        connection.execute(b"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM countersign_app")
    lacks = app.run("serve", check=False).stderr
    for right in ("SELECT on clearances", "INSERT on clearances", "UPDATE on accounts", "USAGE on"):
        assert right in lacks
    assert f"countersign database grants --role {APP}" in lacks.replace("\n", " ")
    denied = app.run("accounts", "create", "vendor", check=False)
    assert "permission denied for table accounts" in denied.stderr


def test_a_right_revoked_while_a_server_runs_is_named_in_its_log(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """Callers are asked to retry; others in the same batch get their responses."""
    grant(owner, cluster)
    key = owner.key(owner.account("vendor"))
    with running_server(as_app(owner, cluster)) as server, server.client(key) as client:
        order = calls.order(client, calls.buyer(client))
        with connect(cluster, OWNER) as connection:
            connection.execute(b"REVOKE ALL ON clearances FROM countersign_app")
        refused = client.post("/v1/clearances", json=order)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "storage_unavailable"
        assert "Retry-After" in refused.headers
        calls.order(client, order["cbid"])
        said = server.log.read_text()
    assert "permission denied for table clearances" in said
    assert "unexpected_error" not in said


def connect(server: postgres.PostgresServer, role: str) -> psycopg.Connection:
    """Open a connection as this role."""
    return psycopg.connect(
        host=str(server.socket_directory), user=role, dbname=DATABASE, autocommit=True
    )


def _verify(live: httpx2.Client, session: Session) -> None:
    body = {
        "provider_identity_session_id": session.session_id,
        "shipping_zip": session.shipping_zip,
        "subject_reference": session.subject_reference,
    }
    calls.status(live, calls.ok(live.post("/v1/buyers/verify", json=body))["cbid"])


def _use_everything(test: httpx2.Client) -> None:
    """Ask for one of everything with a test key."""
    cbid = calls.buyer(test)
    order = calls.order(test, cbid)
    cleared = calls.clear(test, order)["clearance_id"]
    calls.ok(test.post(f"/v1/clearances/{cleared}/fulfilment", json={"carrier": "ups"}))
    once = {"Idempotency-Key": "once"}
    for _ in range(2):
        calls.ok(test.post("/v1/test/events", json={"type": "buyer.failed"}, headers=once))
    endpoint = calls.ok(test.post("/v1/webhook_endpoints", json={"url": "https://192.0.2.1/hook"}))
    at = f"/v1/webhook_endpoints/{endpoint['endpoint_id']}"
    calls.ok(test.post(f"{at}/rotate_secret", json={}))
    calls.ok(test.post(f"{at}/send_example", json={"type": "buyer.failed"}))
    since = rfc3339(datetime.now(UTC) - timedelta(hours=1))
    calls.ok(test.post(f"{at}/recover", json={"since": since}))
    calls.ok(test.patch(at, json={"disabled": True}))
    for path in (at, f"{at}/deliveries", "/v1/webhook_endpoints", "/v1/events", "/v1/clearances"):
        calls.ok(test.get(path))
    assert test.delete(at).is_success
    calls.advance(test, seconds=60)
    calls.move(test, cbid, "expired")
    calls.ok(test.delete("/v1/test/clock"))
    calls.ok(test.post("/v1/test/fault", json={"fault": "timeout"}))
    calls.ok(test.delete("/v1/test/fault"))
    calls.status(test, cbid)
    calls.ok(test.get("/v1/acknowledgments", params={"session_id": order["session_id"]}))
    ack = f"/v1/acknowledgments/{order['ack_id']}"
    end = time.monotonic() + 20
    while calls.ok(test.get(ack))["evidence"]["status"] == "pending":
        assert time.monotonic() < end, "it was not sealed"
        time.sleep(0.1)
    for path in (f"{ack}/proof", f"{ack}/dossier", f"{ack}/certificate", "/v1/log/keys"):
        assert test.get(path).status_code == 200, path
    assert test.get("/.well-known/jwks.json").is_success


def test_retention_has_a_role_of_its_own_that_erases(
    cluster: postgres.PostgresServer, owner: Deployment
) -> None:
    """It erases a buyer with all data as soon as it may, and the servers' role gets no right."""
    grant(owner, cluster)
    owner.run("database", "grants", "--role", KEEPER, "--retention", "--apply")
    key, app = owner.key(owner.account("vendor")), as_app(owner, cluster)
    keeper = Deployment(data_dir=owner.data_dir, settings={"DATABASE_URL": url(cluster, KEEPER)})
    with running_server(app) as server, server.client(key) as client:
        cbid = calls.buyer(client)
        ack_id = calls.order(client, cbid)["ack_id"]
    with connect(cluster, OWNER) as connection:
        connection.execute(b"INSERT INTO erasure_requests SELECT cbid, 4e12 FROM buyers")
    with pytest.raises(AssertionError, match="database_permission_denied"):
        app.run("retention", "run", "--yes")
    keeper.run("erase", ack_id, "--yes")
    done = keeper.read("retention", "run", "--yes")
    assert done["requested"] == [{"cbid": cbid, "outcome": "erased"}]
    with connect(cluster, OWNER) as connection:
        assert connection.execute(b"SELECT 1 FROM buyers").fetchall() == []
        noted = connection.execute(b"SELECT 1 FROM deployment WHERE name = 'retained_at'")
        assert len(noted.fetchall()) == 1
