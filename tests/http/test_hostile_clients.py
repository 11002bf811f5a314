"""Strangers who hold connections or send bodies: effects on others."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.support.service import Deployment, free_port

CONNECTIONS: Final = 20
_SERVE: Final = f"""
from countersign.server import listen, server
assert server._CONNECTIONS_MAX and listen._UNREAD_MILLISECONDS_MAX
server._CONNECTIONS_MAX = {CONNECTIONS}
listen._UNREAD_MILLISECONDS_MAX = 500
from countersign.root import main
main(["serve"])
"""
_ASK: Final = b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n" * 400


def _hold(port: int) -> socket.socket:
    """Ask for much, and never read any of it."""
    hostile = socket.socket()
    hostile.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    hostile.connect(("127.0.0.1", port))
    hostile.settimeout(0)
    hostile.send(_ASK)
    return hostile


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_clients_that_never_read_lose_their_places(tmp_path: Path) -> None:
    """With every place taken by such clients, an innocent one is served soon afterwards."""
    port = free_port()
    settings = {"HOST": "127.0.0.1", "PORT": str(port)}
    deployment = Deployment(data_dir=tmp_path / "data", settings=settings)
    deployment.run("init")
    with subprocess.Popen([sys.executable, "-c", _SERVE], env=deployment.environment) as server:
        try:
            _until_served(port)
            with ExitStack() as hostile:
                for _ in range(2 * CONNECTIONS):
                    hostile.enter_context(_hold(port))
                _until_served(port)
        finally:
            server.kill()


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
