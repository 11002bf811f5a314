"""`/readyz` finds out whether writing works, and recovers when it does."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import make_url

from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.http.calls import acknowledge
from tests.support import postgres
from tests.support.service import Deployment, Server, running_server

FULL_AT = 96 * 1024
"""Bytes at which files stop growing: more than the server's log, less than its database."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """Give a server with a key of its own."""
    deployment = another_deployment(tmp_path / "data")
    key = deployment.key(deployment.account("vendor"))
    with running_server(deployment) as started:
        yield started, key


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """No file of this process can grow beyond some bytes."""
    _, hard = before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (FULL_AT, hard))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def ready(client: httpx2.Client) -> bool:
    """Ask; a server that is not ready responds in the form of all failures."""
    response = client.get("/readyz")
    if response.status_code == 200:
        return True
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "storage_unavailable"
    assert response.headers["Retry-After"]
    return False


def test_a_server_whose_disk_is_full_is_not_ready(server: tuple[Server, str]) -> None:
    """Without a writing request; it is ready again when there is room."""
    started, key = server
    database = started.deployment.data_dir / "countersign.db-wal"
    with started.client(key) as client:
        while database.stat().st_size < FULL_AT:
            assert acknowledge(client).status_code == 200
        with full_disk(started.process.pid):
            wait_until(lambda: not ready(client), "not ready")
            assert acknowledge(client).status_code == 503
            assert client.get("/healthz").status_code == 200
        wait_until(lambda: ready(client), "ready again")
        assert acknowledge(client).status_code == 200


def test_a_server_that_cannot_keep_its_heads_says_so_and_stays_in_service(
    server: tuple[Server, str],
) -> None:
    """Trouble with sealing refuses no act: acts accepted meanwhile are proved later."""
    started, key = server
    heads = started.deployment.data_dir / "heads"
    with started.client(key) as client:

        def sealing() -> str:
            checks: dict[str, str] = client.get("/readyz").raise_for_status().json()["checks"]
            return checks["sealing"]

        heads.rename(heads.with_name("moved"))
        heads.write_text("in the way")
        wait_until(lambda: sealing() == "head_unavailable", "reported")
        assert acknowledge(client).status_code == 200
        heads.unlink()
        heads.with_name("moved").rename(heads)
        wait_until(lambda: sealing() == "ok", "ok again")


@pytest.mark.postgres
def test_a_server_whose_database_is_read_only_is_not_ready(
    postgres_server: postgres.PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    """As after a failover: the address leads to a standby now."""
    deployment = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": postgres_url})
    deployment.run("init")
    name = make_url(postgres_url).database
    with (
        running_server(deployment) as started,
        started.client() as client,
        postgres_server.connect() as connection,
    ):

        def read_only(value: str) -> None:
            setting = f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'
            connection.execute(setting.encode())
            end = b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(end, (name,))

        read_only("on")
        wait_until(lambda: not ready(client), "not ready")
        read_only("off")
        wait_until(lambda: ready(client), "ready again")
