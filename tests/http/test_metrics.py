"""`/metrics` costs nothing unless requested, and does not reveal the software."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from countersign.server.metrics import serve_metrics
from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.support.service import Server, free_port, running_server

CONNECTIONS_MAX, BEYOND = 32, 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Give a server with metrics."""
    deployment = another_deployment(tmp_path / "data")
    with running_server(deployment, METRICS_PORT=str(free_port())) as started:
        yield started


def address(server: Server) -> tuple[str, int]:
    return "127.0.0.1", int(server.deployment.settings["METRICS_PORT"])


def get(server: Server) -> httpx2.Response:
    host, port = address(server)
    return httpx2.get(f"http://{host}:{port}/metrics", verify=False)


def threads(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def test_connections_hold_no_threads_and_are_bounded(server: Server) -> None:
    """Further ones are closed at once; once the others have gone, the server responds again."""
    before = threads(server)
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(address(server), 30))
            for _ in range(CONNECTIONS_MAX + BEYOND)
        ]
        wait_until(lambda: len(select.select(idle, [], [], 10)[0]) >= BEYOND, "closed connections")
        assert threads(server) <= before + 1

    def responds() -> bool:
        try:
            return get(server).status_code == 200
        except httpx2.TransportError:
            return False

    wait_until(responds, "metrics again")


def test_an_idle_connection_is_closed() -> None:
    """So no one can block monitoring for long."""

    async def idle() -> bytes:
        metrics = await serve_metrics(CollectorRegistry(), "127.0.0.1", 0, seconds_max=0.05)
        async with metrics:
            port = metrics.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            sent = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return sent

    assert asyncio.run(idle()) == b""


def test_metrics_name_no_software(server: Server) -> None:
    """Neither the language nor its version."""
    response = get(server)
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert "countersign_http_answers_total" in response.text
    assert "Server" not in response.headers
    assert "python" not in response.text.lower()


@pytest.mark.parametrize("request_line", [b"GET / HTTP/1.1", b"POST /metrics HTTP/1.1", b"x"])
def test_the_port_of_the_metrics_serves_nothing_else(server: Server, request_line: bytes) -> None:
    """Whatever is sent."""
    with socket.create_connection(address(server), 10) as connection:
        connection.sendall(request_line + b"\r\n\r\n")
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 404 ")
