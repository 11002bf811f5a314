"""A server that has to stop goes on serving for a while, and says that it will not for long."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import httpx2
import pytest

from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.http.calls import acknowledge
from tests.support.service import Deployment, Server, running_server

LONG = "120"
"""Longer than a test may take: what ends these servers is never the time."""


@pytest.fixture
def deployed(tmp_path: Path) -> Deployment:
    """Give an initialised deployment."""
    return another_deployment(tmp_path / "data")


@pytest.fixture(params=["1", "2"])
def draining(request: pytest.FixtureRequest, deployed: Deployment) -> Iterator[tuple[Server, str]]:
    """A server of one or two processes that was asked to stop, and a key."""
    key = deployed.key(deployed.account("vendor"))
    with running_server(deployed, DRAIN_SECONDS=LONG, WORKERS=request.param) as server:
        wait_until(lambda: "Countersign serves" in server.log.read_text(), "all processes")
        server.process.send_signal(signal.SIGTERM)
        # Each of several processes gets the signal by itself.
        for _ in range(20):
            wait_until(lambda: not _is_ready(server), "not ready")
        yield server, key
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        assert "worker_ended" not in server.log.read_text()


def _is_ready(server: Server) -> bool:
    with server.client() as another:
        return another.get("/readyz").status_code == 200


def test_a_load_balancer_sees_that_the_server_will_stop(draining: tuple[Server, str]) -> None:
    """The process is alive meanwhile: whatever watches that has nothing to do."""
    server, _ = draining
    with server.client() as client:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "draining"
        assert client.get("/healthz").status_code == 200


def test_requests_during_draining_are_served(draining: tuple[Server, str]) -> None:
    """On open connections, and on new ones."""
    server, key = draining
    for _ in range(3):
        with server.client(key) as client:
            assert acknowledge(client).status_code == 200
            assert acknowledge(client).status_code == 200


def test_every_connection_ends_with_its_next_response(draining: tuple[Server, str]) -> None:
    """A proxy that keeps connections then uses others, which reach another server."""
    server, _ = draining
    with closing(HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
        connection.connect()
        stays: socket.socket = connection.sock
        stays = stays.dup()
        connection.request("GET", "/v1/notices")
        answer = connection.getresponse()
        assert answer.getheader("Connection") == "close"
        answer.read()
        with stays:
            stays.settimeout(10)
            assert stays.recv(1) == b""


def test_a_second_signal_ends_the_draining(deployed: Deployment) -> None:
    """An operator who presses Ctrl-C twice does not want to wait."""
    with running_server(deployed, DRAIN_SECONDS=LONG) as server:
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: not _is_ready(server), "not ready")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0


def test_the_draining_ends_by_itself(deployed: Deployment) -> None:
    """After the seconds of the setting; nothing is accepted then."""
    with running_server(deployed, DRAIN_SECONDS="1") as server:
        server.process.send_signal(signal.SIGTERM)
        answered = 0
        with suppress(httpx2.TransportError):
            while True:
                answered += not _is_ready(server)
        assert answered
        assert server.process.wait(20) == 0


def test_without_drain_time_the_server_closes_at_once(deployed: Deployment) -> None:
    """Alone, with nothing in front of it, there is nothing to wait for."""
    with running_server(deployed) as server:
        server.process.send_signal(signal.SIGTERM)
        with suppress(httpx2.TransportError):
            while True:
                _is_ready(server)
        assert server.process.wait(20) == 0
