"""Killed at any step between the provider's answer and ours: nothing is half there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign_simulators.base import Session
from tests.http.backstage import Operator, another_deployment
from tests.support import privacy
from tests.support.engines import ENGINES, engine_server
from tests.support.providers import playing
from tests.support.service import Deployment, Server, free_port
from tests.verification.live import LiveVendor, live_vendor

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

PARTS = {"sqlite": ("verified", "pending"), "postgresql": ("verified",)}
"""The last step differs: proved facts, or a session to follow; the steps to it are the same."""


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Give a deployment of its own, whose servers listen on one port."""
    made = another_deployment(tmp_path / "data", engine_server(request))
    port = str(free_port())
    return Deployment(
        data_dir=made.data_dir,
        settings=dict(made.settings) | {"HOST": "127.0.0.1", "PORT": port, "RATE_LIMIT": "off"},
    )


@contextmanager
def victims(deployment: Deployment) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process that forks servers."""
    log = deployment.data_dir.parent / "victims.log"
    privacy.watch_log(log)
    with (
        log.open("wb") as sink,
        subprocess.Popen(
            [sys.executable, "-m", "tests.verification.victim"],
            env=deployment.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
        ) as process,
    ):
        yield process


def fork(process: subprocess.Popen[bytes], point: int, port: int) -> int:
    """Start a server that dies at this point; gives its process id."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{point}\n".encode())
    process.stdin.flush()
    child = int(process.stdout.readline())
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)
        else:
            return child


def end(child: int, port: int) -> None:
    """End the server, if it is still there, and wait until nothing listens."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            return
        time.sleep(0.02)


def at_point(
    process: subprocess.Popen[bytes],
    point: int,
    vendor: LiveVendor,
    session: Session,
    headers: Mapping[str, str],
) -> httpx2.Response | None:
    """The response of a server that dies at this point; None if it died before."""
    port = int(vendor.server.deployment.settings["PORT"])
    child = fork(process, point, port)
    try:
        return vendor.verify(session, headers=headers)
    except httpx2.TransportError:
        return None
    finally:
        end(child, port)


def contents(operator: Operator) -> Mapping[str, Any]:
    """The parts of a verification, which must exist together."""
    tables = {
        "buyers": "cbid",
        "verifications": "cbid",
        "provider_sessions": "cbid",
        "pending_sessions": "cbid",
        "verification_evidence": "record_id",
        "idempotency_keys": "account_id",
    }
    # At one moment: a commit may be on its way from a process that is gone.
    query = " UNION ALL ".join(
        f"SELECT '{table}' AS t, {key} AS k FROM {table}"  # noqa: S608 - our own names
        for table, key in tables.items()
    )
    rows = operator.rows(query)
    return {table: [row["k"] for row in rows if row["t"] == table] for table in tables}


def whole(found: Mapping[str, Any], buyers: int) -> None:
    """All of it or nothing of it, for each buyer."""
    assert len(found["buyers"]) == buyers
    for table in ("verifications", "provider_sessions"):
        assert sorted(found[table]) == sorted(found["buyers"]), table
    assert set(found["pending_sessions"]) <= set(found["buyers"])
    assert len(found["verification_evidence"]) == len(found["idempotency_keys"]) == buyers


@pytest.mark.timeout(300)
def test_killed_before_any_step_no_buyer_is_half_written_and_a_retry_continues(
    own: Deployment,
) -> None:
    """Each step in turn, by a real server; then the same request, and one cbid for good."""
    port, done, began = int(own.settings["PORT"]), 0, time.time()
    url, log = f"http://127.0.0.1:{port}", own.data_dir.parent / "victims.log"
    with (
        Operator(own) as operator,
        playing("stripe", clock=lambda: began) as played,
        victims(own) as process,
        live_vendor(
            operator, Server(deployment=own, url=url, process=process, log=log), played
        ) as vendor,
    ):
        with operator.transaction() as connection:
            parts = PARTS[connection.dialect.name]
        answers: list[bytes] = []
        for plays in parts:
            session = played.part(plays)
            key = {"Idempotency-Key": plays}
            answer: httpx2.Response | None = None
            found: Mapping[str, Any] = {}
            points = count(1)
            while answer is None:
                answer = at_point(process, next(points), vendor, session, key)
                found = contents(operator)
                # The last point is after the commit: then it is all there before its answer.
                whole(found, max(done, len(found["buyers"])))
                assert len(found["buyers"]) <= done + 1
            assert next(points) > 8, "statements and commits"
            assert answer.status_code == 200, answer.text
            assert answer.json()["cbid"] in found["buyers"]
            answers.append(answer.content)
            done += 1
            whole(contents(operator), done)
        child = fork(process, 10**9, port)
        try:
            for plays, known in zip(parts, answers, strict=True):
                session = played.part(plays)
                replayed = vendor.verify(session, headers={"Idempotency-Key": plays})
                assert replayed.content == known
                assert replayed.headers["Idempotent-Replayed"] == "true"
                assert vendor.verify(session).json()["cbid"] == replayed.json()["cbid"]
        finally:
            end(child, port)
        whole(contents(operator), done)
