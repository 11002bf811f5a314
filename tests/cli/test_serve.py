"""`serve`: one server per data directory, a clear word when it cannot start, a graceful end."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from countersign.base.db.engine import database_url
from tests.cli.conftest import Bench
from tests.cli.notice_files import LINES, write_notice
from tests.cli.serving import running_module, wait_for
from tests.storage.busy import other_writer
from tests.support.service import free_port, running_server, start_server

pytestmark = pytest.mark.long


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Give a port on which something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.crash
def test_a_data_directory_has_one_server_until_that_one_dies(initialised: Bench) -> None:
    first = start_server(initialised)
    try:
        said = initialised.refused("serve")
        assert "data_directory_locked" in said
        assert f"process {first.process.pid}" in said
        assert str(initialised.data_dir) in said
        assert "data_directory_locked" in initialised.but(PORT=str(free_port())).refused("dev")
        assert httpx2.get(first.url + "/readyz").status_code == 200
    finally:
        first.kill()
    with running_server(initialised) as second:
        assert httpx2.get(second.url + "/readyz").status_code == 200


@pytest.mark.postgres
def test_on_postgresql_several_servers_share_one_database(bench: Bench, postgres_url: str) -> None:
    shared = bench.but(DATABASE_URL=postgres_url)
    shared.run("init")
    key = shared.key(shared.account("vendor"))
    with (
        running_server(shared) as first,
        running_server(shared) as second,
        first.client(key) as one,
        second.client(key) as two,
    ):
        notice = one.get("/v1/notices/ab1263").json()
        body = {"initials_per_line": ["A"] * len(notice["bullets"])}
        repeat = {"Idempotency-Key": "once"}
        path = "/v1/notices/ab1263/acknowledge"
        made = one.post(path, json=body, headers=repeat)
        again = two.post(path, json=body, headers=repeat)
        assert again.content == made.content
        assert again.headers["Idempotent-Replayed"] == "true"
        address = f"/v1/acknowledgments/{made.json()['ack_id']}"
        # It is sealed soon, and then does not change between two requests.
        sealed = {"Prefer": "wait=10"}
        assert one.get(f"{address}/proof", headers=sealed).status_code == 200
        found = [client.get(address) for client in (one, two)]
        assert found[0].status_code == 200
        assert found[0].json() == found[1].json()


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_taken_port_is_reported(initialised: Bench, taken_port: int, command: str) -> None:
    said = initialised.but(PORT=str(taken_port)).refused(command)
    assert "address_in_use" in said
    assert f"port {taken_port} is already in use" in said
    assert "COUNTERSIGN_PORT" in said


def test_a_taken_port_for_metrics_is_reported(initialised: Bench, taken_port: int) -> None:
    settings = {"PORT": str(free_port()), "METRICS_PORT": str(taken_port)}
    said = initialised.but(**settings).refused("serve")
    assert f"port {taken_port} is already in use" in said


def test_a_port_cannot_serve_both_the_api_and_the_metrics(initialised: Bench) -> None:
    port = str(free_port())
    said = initialised.but(PORT=port, METRICS_PORT=port).refused("serve")
    assert "COUNTERSIGN_METRICS_PORT: " in said


def test_a_changed_file_of_a_published_notice_keeps_the_server_from_starting(
    initialised: Bench, tmp_path: Path
) -> None:
    bench = initialised.but(PORT=str(free_port()))
    file = write_notice(tmp_path / "notice.toml")
    bench.run("notices", "publish", str(file))
    write_notice(file, lines=(*LINES[:2], "I leave it on the table."))
    said = bench.refused("serve")
    assert "notice_file_changed" in said
    assert str(file) in said
    assert "storage-law version 2026-03" in said
    # The words are what counts, not the file: comments may change, and it may be gone.
    write_notice(file)
    file.write_text("# a comment\n" + file.read_text())
    with running_server(bench):
        pass
    file.unlink()
    with running_server(bench):
        pass


def test_an_unknown_variable_is_warned_of_and_no_more(initialised: Bench) -> None:
    with running_server(initialised.but(PROT="8080")) as server:
        said = server.log.read_text()
    assert "warning: COUNTERSIGN_PROT is not a setting" in said
    port = server.url.rpartition(":")[2]
    assert f"Countersign serves {server.url} on 127.0.0.1 port {port}\n" in said


def test_the_address_that_is_listened_on_is_printed_next_to_the_public_one(
    initialised: Bench,
) -> None:
    with running_server(initialised, PUBLIC_URL="https://evidence.example.com") as server:
        port = server.url.rpartition(":")[2]
        expected = f"Countersign serves https://evidence.example.com on 127.0.0.1 port {port}\n"
        assert expected in server.log.read_text()


@pytest.mark.parametrize("name", ["secret.key", "key-encryption.key"])
def test_a_warning_names_a_key_file_readable_by_others(initialised: Bench, name: str) -> None:
    key = initialised.data_dir / name
    key.chmod(0o644)
    with running_server(initialised) as server:
        assert f"warning: others can read or change {key} (mode 0644)" in server.log.read_text()
    key.chmod(0o600)
    with running_server(initialised) as server:
        assert "warning" not in server.log.read_text()


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_directory_that_cannot_be_written_is_refused_without_a_traceback(
    initialised: Bench, command: str
) -> None:
    # Root may write wherever permissions forbid it, so something stands in the way.
    (initialised.data_dir / "server.lock").mkdir()
    said = initialised.but(PORT=str(free_port())).refused(command)
    assert "invalid_configuration" in said
    assert str(initialised.data_dir) in said


def test_a_key_file_that_cannot_be_written_is_refused_without_a_traceback(bench: Bench) -> None:
    (bench.data_dir.parent / "file").write_text("in the way")
    place = bench.data_dir.parent / "file" / "secret.key"
    said = bench.but(SECRET_KEY_FILE=str(place)).refused("init")
    assert "invalid_configuration" in said
    assert str(place) in said


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_requests_are_answered_when_the_server_must_stop(
    initialised: Bench, number: signal.Signals, workers: str
) -> None:
    key = initialised.key(initialised.account("vendor"))
    metrics_port = free_port()
    server = start_server(initialised, METRICS_PORT=str(metrics_port), WORKERS=workers)

    def waiting_writes() -> int:
        text = httpx2.get(f"http://127.0.0.1:{metrics_port}/metrics").text
        found = re.search(r'^countersign_database_waiting{lane="write"} (\d+)', text, re.MULTILINE)
        return int(found[1]) if found else -1

    async def stop_under_way() -> list[httpx2.Response]:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
            notice = (await client.get("/v1/notices/ab1263")).json()
            body = {"initials_per_line": ["A"] * len(notice["bullets"])}
            path = "/v1/notices/ab1263/acknowledge"
            # The first request of a month creates the account's key, and all others would wait for
            # it.
            sent = [asyncio.create_task(client.post(path, json=body))]
            await asyncio.gather(*sent)
            # While another process writes, nothing can be stored: they all are under way.
            with other_writer(database_url(None, initialised.data_dir)):
                waiting = 0
                # The first ones are processed at once; later ones are seen to wait.
                while waiting < 5:
                    sent.append(asyncio.create_task(client.post(path, json=body)))
                    for _ in range(20):
                        await asyncio.sleep(0.02)
                        before, waiting = waiting, await asyncio.to_thread(waiting_writes)
                        if waiting > before:
                            break
                os.kill(server.process.pid, number)
                await asyncio.sleep(0.2)
            return await asyncio.gather(*sent)

    try:
        answers = asyncio.run(stop_under_way())
        assert {answer.status_code for answer in answers} == {200}
        assert server.process.wait(20) == 0
    finally:
        server.kill()
    with running_server(initialised) as again, again.client(key) as client:
        stored = client.get("/v1/acknowledgments").json()["data"]
        assert {a["ack_id"] for a in stored} == {a.json()["ack_id"] for a in answers}


def test_the_application_works_under_another_asgi_server(
    initialised: Bench, tmp_path: Path
) -> None:
    key = initialised.key(initialised.account("vendor"))
    port, log = free_port(), tmp_path / "log"
    command = ["tests.cli.uvicorn_server", str(port)]
    with running_module(command, initialised.environment, log) as process:
        wait_for(process, log, "Uvicorn running")
        client = httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}
        )
        with client:
            notice = client.get("/v1/notices/ab1263").json()
            body = {"initials_per_line": ["A"] * len(notice["bullets"])}
            repeat = {"Idempotency-Key": "once"}
            path = "/v1/notices/ab1263/acknowledge"
            first, again = (client.post(path, json=body, headers=repeat) for _ in range(2))
            assert first.status_code == again.status_code == 200
            assert again.content == first.content
            assert again.headers["Idempotent-Replayed"] == "true"
            found = client.get(f"/v1/acknowledgments/{first.json()['ack_id']}").json()
            assert found["initials_per_line"] == body["initials_per_line"]
            assert found["peer_ip"] == "127.0.0.1"
            unknown = client.get("/v1/nowhere")
            assert unknown.status_code == 404
            assert set(unknown.json()) == {"error"}
            large = client.post(path, content=b"x" * 100_000)
            assert large.status_code == 413
        process.terminate()
        assert process.wait(20) in {0, -signal.SIGTERM}
