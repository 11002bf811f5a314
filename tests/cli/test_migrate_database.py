"""`countersign migrate-database`, as an operator runs it: from a file to a database server."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Bench
from tests.cli.serving import running
from tests.support import postgres
from tests.support.service import running_server

pytestmark = [pytest.mark.postgres, pytest.mark.one_engine, pytest.mark.long]

INITIALS = {"initials_per_line": ["JD"] * 4}
REPEATED = {"Idempotency-Key": "the-first-order"}
ACKNOWLEDGE = "/v1/notices/ab1263/acknowledge"


def as_configured(url: str) -> str:
    """A URL as operators write it."""
    return url.replace("postgresql+psycopg://postgres@", "postgresql://postgres:hidden@", 1)


def read_all(client: httpx2.Client) -> dict[str, Any]:
    """A vendor's view of the past."""
    postgres.settle()
    events = client.get("/v1/events", params={"limit": 100}).json()["data"]
    return {
        "acknowledgments": client.get("/v1/acknowledgments").json()["data"],
        "events": [event for event in events if event["type"] == "acknowledgment.created"],
    }


def test_a_deployment_continues_in_its_new_database(
    initialised: Bench, postgres_server: postgres.PostgresServer
) -> None:
    """Keys work, replays agree, history is readable, the log continues; the old file is closed."""
    url = as_configured(postgres.fresh_database(postgres_server))
    key = initialised.widest_key(initialised.account("vendor"))
    with running_server(initialised) as server, server.client(key) as client:
        first = client.post(ACKNOWLEDGE, json=INITIALS, headers=REPEATED).json()
        assert first["ack_id"].startswith("ack_")
        for _ in range(3):
            client.post(ACKNOWLEDGE, json=INITIALS)
        before = read_all(client)
        words = initialised.refused("migrate-database", "--to", url)
        assert "data_directory_locked" in words
    done = initialised.run("migrate-database", "--to", url, "--json")
    place = json.loads(done.stdout)["moved_to"]
    assert "hidden" not in done.stdout + done.stderr
    for command in (("accounts", "list"), ("backup", "b"), ("init",), ("log", "check"), ("serve",)):
        words = initialised.refused(*command)
        assert "database_moved" in words
        assert "COUNTERSIGN_DATABASE_URL" in words.replace("\n", "")
        assert "hidden" not in words
    looked = json.loads(initialised.run("doctor", "--json", check=False).stdout)["lines"]
    lines = {line["check"]: line for line in looked}
    assert lines["schema"]["severity"] == "missing"
    assert lines["database"]["severity"] == "broken"
    assert "COUNTERSIGN_DATABASE_URL" in lines["database"]["what_to_do"]
    assert place in lines["database"]["found"]
    again = initialised.run("migrate-database", "--to", url)
    assert "Nothing is left to move" in again.stderr

    moved = initialised.but(DATABASE_URL=url)
    again = moved.run("migrate-database", "--to", url)
    assert "Nothing is left to move" in again.stderr
    assert moved.read("log", "check")["findings"] == []
    with running_server(moved) as server, server.client(key) as client:
        assert client.post(ACKNOWLEDGE, json=INITIALS, headers=REPEATED).json() == first
        assert read_all(client) == before
        more = client.post(ACKNOWLEDGE, json=INITIALS).json()["ack_id"]
        found = [one["ack_id"] for one in client.get("/v1/acknowledgments").json()["data"]]
        assert set(found) - {one["ack_id"] for one in before["acknowledgments"]} == {more}
        events = read_all(client)["events"]
        assert [one for one in events if one in before["events"]] == before["events"]
        assert len(events) == len(before["events"]) + 1
    assert moved.read("log", "check")["findings"] == []


def test_a_second_move_is_told_that_the_first_one_runs(initialised: Bench, tmp_path: Path) -> None:
    """The message does not mention a server: the operator would look for one to stop."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        move = ("migrate-database", "--to", f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x")
        first = [sys.executable, "-m", "countersign", *move]
        with running(first, initialised.environment, tmp_path / "log") as process:
            silent.settimeout(60)
            asked, _ = silent.accept()
            with asked:
                said = initialised.refused(*move)
    assert "data_directory_locked" in said
    assert f"Another Countersign command (process {process.pid})" in said.replace("\n", " ")


def test_there_is_no_way_back_to_a_file(
    initialised: Bench, postgres_server: postgres.PostgresServer
) -> None:
    """Nor from one PostgreSQL to another; each refusal gives the reason."""
    url = as_configured(postgres.fresh_database(postgres_server))
    for bench, to in (
        (initialised, "sqlite:////tmp/other.db"),
        (initialised.but(DATABASE_URL=url), "postgresql://h/other"),
    ):
        words = bench.refused("migrate-database", "--to", to).replace("\n", " ")
        assert "move_failed" in words
        assert "no way back to a file" in words


def test_a_move_can_be_given_up(initialised: Bench) -> None:
    """If the new database cannot be reached, the move does not begin, and commands continue."""
    words = initialised.refused("migrate-database", "--to", "postgresql://127.0.0.1:1/x")
    assert "storage_unavailable" in words
    assert initialised.run("accounts", "list").returncode == 0
    assert initialised.read("migrate-database", "--cancel") == {"cancelled": False}
    assert "invalid_configuration" in initialised.refused("migrate-database")
