"""A database that does not respond, over HTTP: every caller is answered, and no 200 is lost."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import httpx2
import psycopg
import pytest

from countersign.base.config import load_settings
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App
from tests.cli.serving import wait_until
from tests.http.calls import acknowledge
from tests.support import postgres
from tests.support.service import Deployment, running_server

DURABLE = {"fsync": "off", "full_page_writes": "off"}
SECONDS = 0.4
"""How long a request waits for the database here."""
INITIALS = {"initials_per_line": ["A", "B", "C", "D"]}
ACKNOWLEDGE = "/v1/notices/ab1263/acknowledge"


@pytest.fixture
def primary() -> Iterator[postgres.PostgresServer]:
    """Give a PostgreSQL of this test alone, which confirms commits."""
    with postgres.running_postgres(DURABLE) as started:
        yield started


def several_hosts(database: str, *servers: postgres.PostgresServer) -> str:
    hosts = ",".join(str(server.socket_directory) for server in servers)
    ports = ",".join("5432" for _ in servers)
    query = f"host={hosts}&port={ports}&target_session_attrs=read-write"
    return f"postgresql://postgres@/{database}?{query}"


def wait_for_standby(operator: psycopg.Connection, name: str) -> None:
    operator.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
    operator.execute("SELECT pg_reload_conf()")
    wait_until(
        lambda: operator.execute("SHOW synchronous_standby_names").fetchone() == (name,), "set"
    )


def cancel_the_waiting_commit(operator: psycopg.Connection) -> None:
    """Cancel it, as operators do by reflex when a session hangs."""
    found = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    wait_until(lambda: operator.execute(found).fetchone() is not None, "cancelled")


class Asking(threading.Thread):
    """Sends an acknowledgment with a key."""

    def __init__(self, client: httpx2.Client, key: str) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._key = key
        self.start()

    def run(self) -> None:
        headers = {"Idempotency-Key": self._key}
        self.response = self._client.post(ACKNOWLEDGE, json=INITIALS, headers=headers)

    def answer(self) -> httpx2.Response:
        self.join(60)
        return self.response


@pytest.mark.postgres
def test_no_200_is_missing_on_a_promoted_standby(
    primary: postgres.PostgresServer, tmp_path: Path
) -> None:
    """Not even one for a commit that was cancelled while it waited for the standby."""
    database = postgres.fresh_database(primary).partition("@/")[2].partition("?")[0]
    with postgres.running_postgres(DURABLE, standby_of=primary) as standby:
        url = several_hosts(database, primary, standby)
        deployment = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": url})
        deployment.run("init")
        key = deployment.key(deployment.account("vendor"))
        with running_server(deployment) as server, server.client(key) as client:
            with primary.connect() as operator:
                wait_for_standby(operator, "*")
                confirmed = [acknowledge(client).json()["ack_id"] for _ in range(3)]
                standby.send(signal.SIGSTOP)
                once = str(uuid4())
                codes = list[str]()
                # The second time, the kept answer can be read. The waiting commit may also be the
                # one by which the server finds out whether it can write.
                while codes.count("outcome_unknown") < 2:
                    asking = Asking(client, once)
                    cancel_the_waiting_commit(operator)
                    response = asking.answer()
                    assert response.status_code == 503, response.text
                    codes.append(response.json()["error"]["code"])
                    assert response.headers["Retry-After"]
                assert {*codes} <= {"outcome_unknown", "storage_unavailable"}
            primary.send(signal.SIGKILL)
            standby.send(signal.SIGCONT)
            with standby.connect() as operator:
                wait_for_standby(operator, "")
                operator.execute("SELECT pg_promote()")
            confirmed.append(known(client, once))
            listed = client.get("/v1/acknowledgments").raise_for_status().json()["data"]
            assert [item["ack_id"] for item in listed] == confirmed[::-1]


def known(client: httpx2.Client, key: str) -> str:
    """Repeat an acknowledgment with its key until it is known."""
    answers: list[httpx2.Response] = []

    def is_done() -> bool:
        answers.append(Asking(client, key).answer())
        assert answers[-1].status_code in {200, 503}, answers[-1].text
        return answers[-1].status_code == 200

    wait_until(is_done, "known")
    ack_id: str = answers[-1].json()["ack_id"]
    return ack_id


@asynccontextmanager
async def served(deployment: Deployment, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The application in this process, whose requests wait for a moment only."""
    settings = load_settings(deployment.environment)
    async with open_deployment(settings) as opened:
        transport = httpx2.ASGITransport(App(opened, deadline_seconds=SECONDS))
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://server", headers=headers
        ) as client:
            yield client


@pytest.mark.postgres
def test_every_caller_is_answered_while_the_database_is_stopped(
    primary: postgres.PostgresServer, tmp_path: Path
) -> None:
    """Readiness is 503; a retry with the key is done once, as soon as the database continues."""
    url = postgres.fresh_database(primary)
    deployment = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": url})
    deployment.run("init")
    key = deployment.key(deployment.account("vendor"))

    async def ask() -> None:
        async with served(deployment, key) as client:
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.post(ACKNOWLEDGE, json=INITIALS)).status_code == 200
            with stopped(primary):
                once = {"Idempotency-Key": str(uuid4())}
                asked = [client.post(ACKNOWLEDGE, json=INITIALS) for _ in range(20)]
                asked.append(client.post(ACKNOWLEDGE, json=INITIALS, headers=once))
                asked += [client.get("/v1/acknowledgments") for _ in range(20)]
                asked += [client.get("/v1/events"), client.get("/readyz")]
                # It ends; whether in time depends on the machine.
                responses = await asyncio.gather(*asked)
                assert {response.status_code for response in responses} == {503}
                codes = {response.json()["error"]["code"] for response in responses}
                assert codes <= {"storage_unavailable", "outcome_unknown"}
                assert all(response.headers["Retry-After"] for response in responses)
            while True:
                again = await client.post(ACKNOWLEDGE, json=INITIALS, headers=once)
                if again.status_code == 200:
                    break
                assert again.json()["error"]["code"] != "idempotency_in_progress"
            while (listed := await client.get("/v1/acknowledgments?limit=100")).status_code != 200:
                assert listed.status_code == 503
            assert len(listed.json()["data"]) == 2

    asyncio.run(ask())


@contextmanager
def stopped(server: postgres.PostgresServer) -> Iterator[None]:
    """No process of it runs; its kernel still answers for it."""
    server.send(signal.SIGSTOP)
    try:
        yield
    finally:
        server.send(signal.SIGCONT)
