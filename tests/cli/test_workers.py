"""`COUNTERSIGN_WORKERS`: several processes are one server, on each engine."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest

from tests.cli.conftest import Bench
from tests.cli.crew import one_client_each, runs, workers_of
from tests.cli.notice_files import LINES as OTHER_LINES
from tests.cli.notice_files import write_notice
from tests.cli.serving import wait_until
from tests.crash.wire import Connection, Lost
from tests.support.service import Server, free_port, running_server

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

PATH = "/v1/notices/ab1263/acknowledge"
BODY = {"initials_per_line": ["A", "B", "C", "D"]}
ALLOWED = 20
REVOKED_SECONDS_MAX = 5
"""What docs/install.md promises."""


@pytest.fixture
def deployed(either: Bench) -> Bench:
    """Give an initialised deployment with two workers, on each engine."""
    bench = either.but(WORKERS="2", METRICS_PORT=str(free_port()))
    bench.run("init")
    return bench


@pytest.fixture
def key(deployed: Bench) -> str:
    """Give a key of an account."""
    return deployed.key(deployed.account("vendor"))


@pytest.fixture
def server(deployed: Bench, key: str) -> Iterator[Server]:
    """Give a server with two workers."""
    with running_server(deployed) as started:
        wait_until(lambda: "Countersign serves" in started.log.read_text(), "both workers")
        yield started


ANSWERS = "countersign_http_answers_total"


def counted(server: Server, name: str, label: str = "") -> float:
    """The sum of a metric over its labels, or over those with this one."""
    port = server.deployment.settings["METRICS_PORT"]
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    return sum(map(float, re.findall(rf"^{name}(?:{{.*{label}.*}})? (\S+)$", text, re.MULTILINE)))


def check_log(bench: Bench, acknowledged: Sequence[str], key: str, server: Server) -> None:
    """Every acknowledgment is there with a proof, and the log verifies."""
    with server.client(key) as client:
        last = f"/v1/acknowledgments/{acknowledged[-1]}/proof"
        assert client.get(last, headers={"Prefer": "wait=10"}).status_code == 200
        stored, address = set(), "/v1/acknowledgments?limit=100"
        while address:
            page = client.get(address).json()
            stored |= {found["ack_id"] for found in page["data"]}
            more = page.get("next_cursor")
            address = f"/v1/acknowledgments?limit=100&after={more}" if more else ""
    assert set(acknowledged) <= stored
    assert len(set(acknowledged)) == len(acknowledged)
    done = bench.run("log", "check", "--json")
    assert done.returncode == 0


async def load(server: Server, key: str, number: int, clients: int) -> list[str]:
    """Acknowledge so often in total, by so many clients; returns the responses."""
    port = int(server.url.rpartition(":")[2])
    body = b'{"initials_per_line":["A","B","C","D"]}'
    made: list[str] = []

    async def client(own: int) -> None:
        with suppress(Lost), closing(await Connection.open(port, key)) as connection:
            for turn in range(number // clients):
                answer = await connection.post(PATH, body, f"{own}-{turn}-{time.monotonic_ns()}")
                assert answer.status == 200, answer.body
                made.append(answer.body.split(b'"')[3].decode())

    await asyncio.gather(*(client(own) for own in range(clients)))
    return made


def test_two_workers_act_as_one_server(server: Server, deployed: Bench, key: str) -> None:
    """One log, one effect for a key, one limit, one page of metrics."""
    with one_client_each(server, key) as clients:
        assert len(clients) == 2
        made = [client.post(PATH, json=BODY).json()["ack_id"] for client in clients * 3]
        repeat = {"Idempotency-Key": "once"}
        first, again = (client.post(PATH, json=BODY, headers=repeat) for client in clients)
        assert again.content == first.content
        assert again.headers["Idempotent-Replayed"] == "true"
        with ThreadPoolExecutor(2) as threads:
            at_once = list(
                threads.map(
                    lambda c: c.post(PATH, json=BODY, headers={"Idempotency-Key": "2"}), clients
                )
            )
        assert {a.status_code for a in at_once} <= {200, 409}
        effects = {a.json()["ack_id"] for a in at_once if a.status_code == 200}
        assert len(effects) == 1
        wait_until(
            lambda: counted(server, ANSWERS, 'operation="acknowledgeNotice"') == 10,
            "the answers of both workers",
        )
        made += [first.json()["ack_id"], *effects]
        made += asyncio.run(load(server, key, 120, 12))
        check_log(deployed, made, key, server)
        revoked = deployed.read("keys", "list", "--account", "vendor")[0]["key_id"]
        deployed.run("keys", "revoke", revoked, "--yes")
        begun = time.monotonic()
        for client in clients:
            wait_until(lambda c=client: c.get("/v1/acknowledgments").status_code == 401, "401")  # type: ignore[misc]
        assert time.monotonic() - begun < REVOKED_SECONDS_MAX
    said = deployed.refused("serve") if "DATABASE_URL" not in deployed.settings else ""
    assert not said or f"process {server.process.pid}" in said


def test_the_limit_of_a_key_holds_over_all_workers(deployed: Bench, key: str) -> None:
    """Exactly as many requests as allowed, and headers with the remaining ones anywhere."""
    with running_server(deployed, RATE_LIMIT=f"{ALLOWED}/3600") as server:
        wait_until(lambda: "Countersign serves" in server.log.read_text(), "both workers")
        with one_client_each(server, key) as clients:
            answers = [
                client.get("/v1/notices/ab1263") for _ in range(ALLOWED) for client in clients
            ]
    allowed = [answer for answer in answers if answer.status_code == 200]
    assert allowed == answers[:ALLOWED]
    assert {answer.status_code for answer in answers[ALLOWED:]} == {429}
    left = [int(answer.headers["ratelimit"].split(";")[1][2:]) for answer in allowed]
    assert left == list(reversed(range(ALLOWED)))


@pytest.mark.parametrize("number", [1, 2])
def test_a_killed_worker_loses_nothing_and_is_replaced(
    server: Server, deployed: Bench, key: str, number: int
) -> None:
    """The first one also runs the background loops, and so does its replacement."""

    async def killed_under_load() -> list[str]:
        killed = workers_of(server)[number - 1]
        loading = asyncio.create_task(load(server, key, 1200, 12))
        await asyncio.sleep(0.2)
        os.kill(killed, signal.SIGKILL)
        return await loading

    before = counted(server, ANSWERS)
    made = asyncio.run(killed_under_load())
    assert made
    wait_until(lambda: len(workers_of(server)) == 2, "a worker in its place")
    with one_client_each(server, key) as clients:
        made += [client.post(PATH, json=BODY).json()["ack_id"] for client in clients]
    check_log(deployed, made, key, server)
    assert counted(server, ANSWERS) > before
    assert counted(server, "countersign_loops_ended_total") == 1
    assert f'"worker": {number}' in server.log.read_text()


def test_workers_end_with_the_parent_however_it_ends(
    server: Server, deployed: Bench, key: str
) -> None:
    """Otherwise they would hold the port and the lock, and no one would watch them."""
    made = asyncio.run(load(server, key, 24, 12))
    workers = workers_of(server)
    server.kill()
    wait_until(lambda: not any(map(runs, workers)), "the end of the workers")
    with running_server(deployed) as again:
        check_log(deployed, made, key, again)


def test_a_server_that_cannot_begin_reports_it_once(deployed: Bench, tmp_path: Path) -> None:
    """The first worker begins alone, and ends the server with its own status."""
    bench = deployed.but(PORT=str(free_port()))
    file = write_notice(tmp_path / "notice.toml")
    bench.run("notices", "publish", str(file))
    write_notice(file, lines=(*OTHER_LINES[:2], "I leave it on the table."))
    assert bench.refused("serve").count("notice_file_changed") == 1
