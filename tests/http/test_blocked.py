"""While another program holds a lock, readiness, metric, doctor and callers name that cause."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import make_url

from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.http.calls import acknowledge
from tests.support import postgres
from tests.support.lock_holder import write_lock_held
from tests.support.service import Deployment, Server, free_port, running_server

BLOCKED = "Another program holds a lock of the database: nobody can write."


@contextmanager
def serving(deployment: Deployment, workers: int) -> Iterator[tuple[Server, str]]:
    """A server with metrics, and a key."""
    key = deployment.key(deployment.account("vendor"))
    settings = {"WORKERS": str(workers), "METRICS_PORT": str(free_port())}
    with running_server(deployment, **settings) as server:
        wait_until(lambda: trouble(server) == 0.0, "all is well")
        yield server, key


def readiness(server: Server) -> tuple[int, str]:
    """Status and what is said."""
    with server.client() as client:
        answer = client.get("/readyz")
    said = answer.json()
    return answer.status_code, "ready" if answer.status_code == 200 else said["error"]["message"]


def trouble(server: Server) -> float:
    """The metric."""
    port = server.deployment.settings["METRICS_PORT"]
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    (found,) = re.findall(r"^countersign_database_trouble (\S+)$", text, re.MULTILINE)
    return float(found)


def write(server: Server, key: str) -> tuple[int, str]:
    """Status and code of an act."""
    with server.client(key) as client:
        answer = acknowledge(client)
    return answer.status_code, "" if answer.status_code == 200 else answer.json()["error"]["code"]


def judge(server: Server, key: str, callers: int) -> None:
    """All say it, all the time, while this many write; the lock is held."""
    with ThreadPoolExecutor(callers + 1) as pool:
        written = [pool.submit(write, server, key) for _ in range(callers)]
        wait_until(lambda: readiness(server) == (503, BLOCKED), "not ready")
        assert trouble(server) == 1.0
        done = server.deployment.run("doctor", "--seconds=60", "--json", check=False)
        assert [one.result() for one in written] == [(503, "blocked")] * callers
        # Also after its callers have gone, and with the next ones.
        assert readiness(server) == (503, BLOCKED)
        assert trouble(server) == 1.0
    assert done.returncode == 2
    (line,) = (line for line in json.loads(done.stdout)["lines"] if line["check"] == "server")
    assert (line["severity"], line["found"]) == ("broken", BLOCKED)
    assert "End the program that holds the file" in line["what_to_do"]


def is_well(server: Server, key: str) -> None:
    """It is so again, by itself."""
    wait_until(lambda: readiness(server) == (200, "ready"), "ready again")
    wait_until(lambda: trouble(server) == 0.0, "all workers have counted")
    assert write(server, key) == (200, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_another_program_that_holds_the_write_lock_is_named(tmp_path: Path, workers: int) -> None:
    """Without callers, with one, and with three."""
    deployment = another_deployment(tmp_path / "data")
    with serving(deployment, workers) as (server, key):
        for callers in (0, 1, 3):
            with write_lock_held(deployment.data_dir / "countersign.db"):
                judge(server, key, callers)
            is_well(server, key)


def test_a_command_of_ours_may_hold_the_lock_for_a_moment(tmp_path: Path) -> None:
    """Its callers wait, and nothing is refused."""
    deployment = another_deployment(tmp_path / "data")
    with serving(deployment, 1) as (server, key), ThreadPoolExecutor(1) as pool:
        with write_lock_held(deployment.data_dir / "countersign.db"):
            written = pool.submit(write, server, key)
            assert readiness(server) == (200, "ready")
        assert written.result() == (200, "")


@pytest.mark.postgres
def test_another_session_that_holds_a_lock_is_named(
    postgres_server: postgres.PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    """A server finds a locked queue of the log without callers."""
    deployment = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": postgres_url})
    deployment.run("init")
    name = make_url(postgres_url).database or ""
    with (
        serving(deployment, 1) as (server, key),
        postgres_server.connect(name) as other,
    ):
        for callers in (0, 3):
            with other.transaction():
                other.execute("LOCK TABLE log_pending, records, idempotency_keys IN EXCLUSIVE MODE")
                judge(server, key, callers)
            is_well(server, key)
