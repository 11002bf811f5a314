"""The role that the page for operators lets servers run with: enough for everything, no more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import psycopg
import pytest

from countersign.domain.instant import rfc3339
from countersign.simulators.protocol import Session
from countersign.storage.tables import PROTECTED
from tests.docs.markdown import ROOT, read
from tests.sandbox import calls
from tests.support import postgres
from tests.support.providers import playing
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.postgres
DATABASE = "countersign"
OWNER, APP = "countersign_owner", "countersign_app"


@pytest.fixture
def cluster() -> Iterator[postgres.PostgresServer]:
    """Run a PostgreSQL of its own: roles belong to the whole of it."""
    with postgres.running_postgres() as server:
        yield server


def documented_sql() -> tuple[list[str], list[str]]:
    """The statements of the page: those for the superuser, and those for the owner."""
    blocks = [block.text for block in read(ROOT / "docs" / "operate.md").blocks]
    makes = next(text for text in blocks if "CREATE ROLE countersign_owner" in text)
    grants = next(text for text in blocks if "GRANT USAGE ON SCHEMA" in text)
    return _statements(makes), _statements(grants)


def _statements(text: str) -> list[str]:
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def url(server: postgres.PostgresServer, role: str) -> str:
    """The database as a role sees it."""
    return server.url(DATABASE).replace("postgres@", f"{role}@", 1)


def test_servers_need_no_more_than_the_documented_grants(
    cluster: postgres.PostgresServer, tmp_path: Path
) -> None:
    """Every kind of request is answered, everything that runs beside them works."""
    makes, grants = documented_sql()
    with cluster.connect() as connection:
        for statement in makes:
            connection.execute(statement.encode())
    owner = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": url(cluster, OWNER)})
    owner.run("init")
    with connect(cluster, OWNER) as connection:
        for statement in grants:
            connection.execute(statement.encode())
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
    told = [json.loads(line) for line in s.log.read_text().splitlines() if line[:1] == "{"]
    # Housekeeping, sealing and all else that runs beside requests has been allowed, too.
    assert not [event for event in told if event["event"] != "refused"]
    with connect(cluster, APP) as connection:
        for table in PROTECTED:
            for statement in (
                f"DELETE FROM {table}",  # noqa: S608 - our own names
                f"TRUNCATE {table}",
                f"ALTER TABLE {table} DISABLE TRIGGER ALL",
                f"DROP TABLE {table}",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())


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
    for path in (f"{ack}/proof", f"{ack}/bundle", f"{ack}/certificate", "/v1/log/keys"):
        assert test.get(path).status_code == 200, path
    assert test.get("/.well-known/jwks.json").is_success
