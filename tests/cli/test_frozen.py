"""A server that hangs is detected, prints its stack, and is replaced."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign.server import manager as notices
from tests.cli.conftest import Bench
from tests.cli.crew import children_of, runs
from tests.cli.serving import running_module, wait_until
from tests.support.manager import Manager
from tests.support.service import free_port

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

COMMAND = ["tests.cli.freezing_server"]
REPLACED_SECONDS_MAX = 30.0
"""The promise of docs/install.md for a limit of ten seconds; here it is six."""
PATIENCE = 6.0


class Frozen:
    """A server of two workers, one of which will freeze."""

    def __init__(self, pid: int, port: int, log: Path) -> None:
        self.pid, self._port, self._log = pid, port, log

    def workers(self) -> list[int]:
        """Their process ids."""
        return children_of(self.pid)

    def said(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log with this event."""
        lines = [line for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [found for found in map(json.loads, lines) if found["event"] == event]

    def answers(self) -> bool:
        """Whether twenty requests on connections of their own are answered at once."""
        url = f"http://127.0.0.1:{self._port}/healthz"
        try:
            return all(httpx2.get(url, timeout=2).status_code == 200 for _ in range(20))
        except httpx2.TransportError:
            return False


@pytest.fixture
def server(either: Bench, tmp_path: Path) -> Iterator[Frozen]:
    """Give a server of two workers on each engine."""
    port, log = free_port(), tmp_path / "log"
    bench = either.but(WORKERS="2", PORT=str(port))
    bench.run("init")
    environment = {**bench.environment, "FROZEN_SECONDS": str(PATIENCE)}
    with running_module(COMMAND, environment, log) as process:
        wait_until(lambda: "Countersign serves" in log.read_text(), "both workers")
        yield Frozen(process.pid, port, log)
        sys.stderr.write(log.read_text())


def stop(pid: int) -> None:
    """As a debugger or a broken hypervisor does."""
    os.kill(pid, signal.SIGSTOP)


def spin(pid: int) -> None:
    """Simulates a bug of ours."""
    os.kill(pid, signal.SIGUSR1)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("freeze", [stop, spin])
def test_a_frozen_worker_is_replaced(
    server: Frozen, freeze: Callable[[int], None], number: int
) -> None:
    """With its stack in the log; the others continue, and so do the background loops."""
    before = server.workers()
    victim = before[number - 1]
    begun = time.monotonic()
    freeze(victim)
    wait_until(lambda: not runs(victim), "the end of the frozen worker")
    wait_until(lambda: len(server.workers()) == 2, "a worker in its place")
    wait_until(server.answers, "answers of both")
    assert time.monotonic() - begun < REPLACED_SECONDS_MAX
    assert before[2 - number] in server.workers()
    (line,) = server.said("worker_frozen")
    assert line["worker"] == number
    (ended,) = server.said("worker_ended")
    # Python cannot always write the stack of a thread that runs on, and then ends by that.
    assert ended["status"] in {-signal.SIGABRT, -signal.SIGSEGV}
    assert "Thread" in ended["stack"]
    assert ("spin_in_place" in ended["stack"]) == (freeze is spin)


def test_a_frozen_worker_does_not_keep_the_server_from_ending(server: Frozen) -> None:
    """SIGTERM alone would never end it."""
    victim = server.workers()[1]
    spin(victim)
    os.kill(server.pid, signal.SIGTERM)
    wait_until(lambda: not runs(server.pid), "the end of the server")


@pytest.mark.one_engine
def test_a_lone_server_that_freezes_is_ended_by_the_manager(
    initialised: Bench, tmp_path: Path
) -> None:
    """It shows no sign of life then, and says at the manager's SIGABRT where it is."""
    place = tmp_path / "m"
    place.mkdir()
    bench = initialised.but(PORT=str(free_port()))
    with Manager(place) as manager:
        command = [sys.executable, "-m", *COMMAND]
        process = manager.start(bench.environment, command, watchdog_seconds=0.9)
        manager.await_notice(notices.ALIVE, process)
        spin(process.pid)
        while manager.hear(0.9) is not None:
            pass
        process.send_signal(signal.SIGABRT)
        assert process.wait(20) == -signal.SIGABRT
        assert "spin_in_place" in manager.log.read_text()
