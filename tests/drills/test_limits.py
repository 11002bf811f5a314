"""Drills: a server that has used up its file descriptors, and ten thousand silent connections."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.drills.load import CLIENTS
from tests.drills.site import site

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

FEW = 100
IDLE = 10_000


def idle(port: int, number: int, sockets: ExitStack) -> None:
    """Connect so often, and say nothing."""
    for _ in range(number):
        sockets.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))


def test_files_are_exhausted(tmp_path: Path) -> None:
    """More connections than the server may open files: its database stays open to it."""
    with site(tmp_path) as broken:
        broken.stop()
        broken.start("prlimit", f"--nofile={FEW}:{FEW}")
        with broken.load() as load:
            load.until(100, 200)
            with ExitStack() as sockets:
                idle(broken.port, 2 * FEW, sockets)
                severity, words = broken.doctor()["limits"]
                assert severity == "warning"
                assert "LimitNOFILE" in words
                load.until(50, 200)
            load.until(100, 200)
            load.until_ready(200, "ok")
        broken.judge()


def test_ten_thousand_connections_are_idle(tmp_path: Path) -> None:
    """Existing callers continue; new ones wait until silent ones are closed."""
    own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most == resource.RLIM_INFINITY or most > IDLE + 1000, "raise `ulimit -H -n`"
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        with site(tmp_path) as broken:
            with broken.load() as load:
                load.until(100, 200)
                with ExitStack() as sockets:
                    idle(broken.port, IDLE - 2 * CLIENTS, sockets)
                    load.until(500, 200)
                load.until(100, 200)
                load.until_ready(200, "ok")
            broken.judge()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (own, most))
