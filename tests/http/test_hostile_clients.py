"""Strangers who hold connections or send bodies: their bounds, and the effects on others."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final

import httpx2
import pytest

from tests.support.service import Deployment, free_port

CONNECTIONS: Final = 20
_SERVE: Final = f"""
from countersign.server import listen, server
assert server._CONNECTIONS_MAX and listen._UNREAD_MILLISECONDS_MAX
assert server._HEADER_MILLISECONDS_MAX
server._CONNECTIONS_MAX = {CONNECTIONS}
server._HEADER_MILLISECONDS_MAX = 500
listen._UNREAD_MILLISECONDS_MAX = 500
from countersign.root import main
main(["serve"])
"""
_ASK: Final = b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n" * 400


_HEAD: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
_POST: Final = b"POST /v1/buyers/verify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server with few places and short periods."""
    port = free_port()
    settings = {"HOST": "127.0.0.1", "PORT": str(port)}
    deployment = Deployment(data_dir=tmp_path_factory.mktemp("held") / "data", settings=settings)
    deployment.run("init")
    with subprocess.Popen([sys.executable, "-c", _SERVE], env=deployment.environment) as server:
        try:
            _until_served(port)
            yield port
        finally:
            server.kill()


def _connected(port: int, sent: bytes, receives: int = 65536) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", port))
    connection.sendall(sent)
    return connection


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_clients_that_never_read_lose_their_places(port: int) -> None:
    """With every place taken by such clients, an innocent one is served soon afterwards."""
    with ExitStack() as hostile:
        for _ in range(2 * CONNECTIONS):
            hostile.enter_context(_connected(port, _ASK, 4096))
        _until_served(port)


@pytest.mark.parametrize(
    ("sent", "then"),
    [
        pytest.param(b"", b"", id="silent"),
        pytest.param(_HEAD, b"", id="half a head"),
        pytest.param(_HEAD + b"X: ", b"a", id="a head in bytes"),
        pytest.param(_HEAD + b"\r\n", b"", id="kept alive, idle"),
        pytest.param(_HEAD + b"\r\n" + _HEAD + b"X: ", b"a", id="kept alive, a head in bytes"),
        pytest.param(
            _POST + b"Content-Length: 60000\r\n\r\n{", b" ", id="refused, a body in bytes"
        ),
    ],
)
def test_a_connection_that_asks_for_nothing_ends(port: int, sent: bytes, then: bytes) -> None:
    """Silent or slow, before a request, within its head, behind it, or once it is refused."""
    with _connected(port, sent) as held, suppress(ConnectionError):
        held.settimeout(0.05)
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            try:
                if not held.recv(65536):
                    return
            except TimeoutError:
                held.sendall(then)
        pytest.fail("the connection is still open")


@pytest.mark.parametrize("sent", [_HEAD + b"\r\n", _POST + b"Content-Length: 30000000\r\n\r\n"])
def test_no_client_fills_the_memory(port: int, sent: bytes) -> None:
    """Requests are not read on while their responses are not, nor a body that is refused."""
    with _connected(port, sent, 4096) as hostile, suppress(ConnectionError, TimeoutError):
        hostile.settimeout(1)
        more = sent * 1000 if sent.startswith(b"GET") else b" " * 65536
        taken = 0
        while taken < 20_000_000:
            taken += hostile.send(more[taken % len(more) :])
        pytest.fail("the server takes all")


def _until_served(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            answer = httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=5, verify=False)
        except httpx2.TransportError:
            assert time.monotonic() < deadline, "an innocent client is not served"
            time.sleep(0.05)
        else:
            assert answer.status_code == 200
            return
