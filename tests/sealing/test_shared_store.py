"""Servers on several machines that keep the last published checkpoints in one object store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from psycopg import sql
from sqlalchemy import make_url

from countersign_evidence.verification import verify_file
from tests.sealing.acts import acknowledge, get, policy_of
from tests.sealing.test_new_server import RECOVER, key_of, next_to, sealing
from tests.sealing.witness import wait_for
from tests.support.object_store import ObjectStore, running_store
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.service import Deployment, Server, free_port, running_server

pytestmark = [pytest.mark.postgres, pytest.mark.long]


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    """Give an S3 endpoint for all tests."""
    with running_store() as store:
        yield store


@pytest.fixture
def store(running: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """Give the endpoint, with its variables set for commands and servers."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


@pytest.fixture
def first(tmp_path: Path, postgres_url: str, store: ObjectStore) -> Deployment:
    """Give a deployment that keeps its heads in the store."""
    settings = {"DATABASE_URL": postgres_url, "LOG_HEAD_DIR": store.url(tmp_path.name)}
    made = Deployment(data_dir=tmp_path / "first", settings=settings)
    made.run("init")
    return made


def is_fine(deployment: Deployment) -> bool:
    return '"logs.fine"' in deployment.run("doctor", "--json", check=False).stdout


def test_servers_with_empty_directories_seal_into_one_log(
    first: Deployment, store: ObjectStore, tmp_path: Path
) -> None:
    """Each uses the shared heads; none has its own."""
    key, second = key_of(first), next_to(first)
    with (
        running_server(first) as one,
        running_server(second) as two,
        one.client(key) as here,
        two.client(key) as there,
    ):
        made = [acknowledge(client) for client in (here, there) * 4]
        proofs = [get(there, ack_id, "proof") for ack_id in made]
        assert sealing(here) == sealing(there) == "ok"
    assert all(verify_file(proof, policy_of(second)).ok for proof in proofs)
    assert first.read("log", "check")["findings"] == []
    assert {"live.checkpoint", "test.checkpoint", "place"} <= {*store.objects(tmp_path.name)}
    assert not [*tmp_path.rglob("*.checkpoint")]
    assert is_fine(first)
    assert is_fine(second)
    said = one.log.read_text() + two.log.read_text()
    assert store.environment["AWS_SECRET_ACCESS_KEY"] not in said
    assert "note: the last published" not in said


@pytest.mark.parametrize("away", [ObjectStore.down, ObjectStore.frozen])
def test_while_the_store_is_away_everything_is_accepted_and_nothing_is_published(
    first: Deployment,
    store: ObjectStore,
    away: Callable[[ObjectStore], AbstractContextManager[None]],
) -> None:
    """The server stays in service and says so; when the store is back, all is proved."""
    key = key_of(first)
    with running_server(first) as server, server.client(key) as client:
        made = [acknowledge(client)]
        get(client, made[0], "proof")
        with away(store):
            for _ in range(3):
                began = time.monotonic()
                made.append(acknowledge(client))
                assert time.monotonic() - began < 3
            wait_for(lambda: sealing(client) == "head_unavailable")
            wait_for(lambda: '"head_unavailable"' in server.log.read_text())
            asked = client.get(
                f"/v1/acknowledgments/{made[-1]}/proof", headers={"Prefer": "wait=1"}
            )
            assert asked.status_code == 409
            doctor = first.run("doctor", "--json", check=False).stdout
            assert '"logs.head_file"' in doctor
            assert client.get("/readyz").status_code == 200
        wait_for(lambda: sealing(client) == "ok")
        proofs = [get(client, ack_id, "proof") for ack_id in made]
    assert all(verify_file(proof, policy_of(first)).ok for proof in proofs)
    assert first.read("log", "check")["findings"] == []
    assert "query_stuck" not in server.log.read_text()


def test_a_server_that_begins_while_the_store_is_away_accepts(
    first: Deployment, store: ObjectStore
) -> None:
    """It does not take the database's head for the published one."""
    key = key_of(first)
    with running_server(first) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
    with store.down():
        begun = running_server(next_to(first))
        with begun as server, server.client(key) as client:
            ack_id = acknowledge(client)
            wait_for(lambda: sealing(client) == "head_unavailable")
            assert client.get(f"/v1/acknowledgments/{ack_id}/proof").status_code == 409
    with running_server(first) as server, server.client(key) as client:
        assert verify_file(get(client, ack_id, "proof"), policy_of(first)).ok


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_server_starts_at_a_store_that_ignores_conditions(
    first: Deployment,
    store: ObjectStore,
    tmp_path: Path,
    postgres_server: PostgresServer,
    workers: str,
) -> None:
    """Several servers would replace each other's heads, a larger one by a smaller one, too."""
    one = {"WORKERS": workers, "PORT": str(free_port())}
    here = Deployment(data_dir=first.data_dir, settings=dict(first.settings) | one)
    other = {
        "DATABASE_URL": fresh_database(postgres_server),
        "LOG_HEAD_DIR": store.url(f"{tmp_path.name}-other"),
    }
    new = Deployment(data_dir=tmp_path / "new", settings=other)
    with store.ignoring("If-Match"):
        before = store.objects(tmp_path.name)
        for refused in (here.run("serve", check=False), new.run("init", check=False)):
            assert refused.returncode == 1
            assert "error (heads_overwritable)" in refused.stderr
            assert "ignores the conditions of writes" in " ".join(refused.stderr.split())
        assert store.objects(tmp_path.name) == before | {"probe"}
        assert store.objects(f"{tmp_path.name}-other") == {"probe"}
    with running_server(here) as server, server.client(key_of(here)) as client:
        get(client, acknowledge(client), "proof")
    new.run("init")
    assert {"live.checkpoint", "test.checkpoint"} <= store.objects(f"{tmp_path.name}-other")


def test_a_restored_backup_is_sealed_on_by_no_server_that_shares_the_store(
    first: Deployment, postgres_server: PostgresServer
) -> None:
    """Whether it was there before or is new, with an empty directory: all of them stop."""
    key, database = key_of(first), str(make_url(first.settings["DATABASE_URL"]).database)

    def copy(old: str, new: str) -> None:
        with postgres_server.connect() as connection:
            names = sql.Identifier(new), sql.Identifier(old)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0]))
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))

    def prove(server: Server) -> None:
        with server.client(key) as client:
            get(client, acknowledge(client), "proof")

    with running_server(first) as server:
        prove(server)
    copy(database, f"{database}_older")
    with running_server(first) as server:
        prove(server)
    copy(f"{database}_older", database)
    for deployment in (next_to(first), first):
        with running_server(deployment) as server, server.client(key) as client:
            wait_for(lambda client=client: sealing(client) == "suspended")  # type: ignore[misc]
            ack_id = acknowledge(client)
            assert client.get(f"/v1/acknowledgments/{ack_id}/proof").status_code == 409
            assert "was published, but the database does not contain it" in server.log.read_text()


def test_lost_heads_are_the_operators_to_decide(
    first: Deployment, store: ObjectStore, tmp_path: Path
) -> None:
    """An emptied place does not mean that nothing was published."""
    key = key_of(first)
    with running_server(first) as server, server.client(key) as client:
        get(client, acknowledge(client), "proof")
        store.empty(tmp_path.name)
        ack_id = acknowledge(client)
        wait_for(lambda: sealing(client) == "suspended")
        for mode in ("test", "live"):
            first.run(*RECOVER, mode, "--adopt-database-head", "--move-heads")
        wait_for(lambda: sealing(client) == "ok")
        assert verify_file(get(client, ack_id, "proof"), policy_of(first)).ok
    assert first.read("log", "check")["findings"] == []


def test_the_embedded_database_keeps_its_heads_in_a_directory(tmp_path: Path) -> None:
    """It seals in the transactions of its acts: those would wait for a store."""
    made = Deployment(data_dir=tmp_path / "data", settings={"LOG_HEAD_DIR": "s3://bucket/heads"})
    refused = made.run("init", check=False)
    assert refused.returncode != 0
    assert "COUNTERSIGN_LOG_HEAD_DIR: expected a directory" in refused.stderr
