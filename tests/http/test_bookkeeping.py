"""The service's own bookkeeping neither delays nor fails a request."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path

import httpx2
import pytest

from countersign.base.db.engine import sqlite_module
from tests.http.backstage import another_deployment
from tests.support.service import Deployment, running_server


@pytest.fixture
def own(tmp_path: Path) -> Deployment:
    """Give a deployment of this test's own, on the embedded database."""
    return another_deployment(tmp_path / "data")


def test_a_key_that_was_never_used_can_read_while_nothing_can_be_written(own: Deployment) -> None:
    """Noting when a key was last used is no part of answering."""
    key = own.key(own.account("Example Arms"))
    with running_server(own) as server, server.client(key) as client:
        holder: sqlite3.Connection = sqlite_module().connect(
            str(own.data_dir / "countersign.db"), isolation_level=None
        )
        try:
            holder.execute("BEGIN IMMEDIATE")
            answer = client.get("/v1/notices/ab1263")
        finally:
            holder.close()
    assert answer.status_code == httpx2.codes.OK


def test_many_failures_of_one_kind_give_few_log_lines(own: Deployment) -> None:
    """No one can fill the disk without a key."""
    with running_server(own) as server, server.client() as stranger:
        for _ in range(300):
            assert stranger.get("/v1/notices").status_code == httpx2.codes.UNAUTHORIZED
        lines = [line for line in server.log.read_text().splitlines() if "unauthorized" in line]
    assert 1 <= len(lines) < 300


def test_an_unfinished_body_does_not_hold_up_a_stop(own: Deployment) -> None:
    """A request that never ends is given up, and the server ends with status 0."""
    key = own.key(own.account("Example Arms"))
    with running_server(own) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(
                b"POST /v1/buyers/verify HTTP/1.1\r\nHost: countersign\r\n"
                b"Authorization: Bearer " + key.encode() + b"\r\n"
                b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
            )
            assert server.stop() == 0
