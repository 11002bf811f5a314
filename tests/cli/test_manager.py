"""`serve` under a service manager: it says how it is, and takes the socket that it is given."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx2
import pytest

from countersign.base.errors import InvalidConfiguration
from countersign.server import manager as notices
from tests.cli.conftest import Bench
from tests.support.manager import Manager, hold_socket
from tests.support.service import free_port

pytestmark = [pytest.mark.crash, pytest.mark.one_engine]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory whose name is short enough for a socket."""
    made = tmp_path / "m"
    made.mkdir()
    return made


@pytest.fixture
def manager(place: Path) -> Iterator[Manager]:
    """Give a manager that holds no socket."""
    with Manager(place) as made:
        yield made


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_manager_hears_when_the_server_is_ready_and_when_it_stops(
    initialised: Bench, manager: Manager, workers: str
) -> None:
    """Each message once, from the process that it started."""
    port = free_port()
    bench = initialised.but(PORT=str(port), WORKERS=workers)
    process = manager.start(bench.environment)
    assert manager.await_notice(notices.READY, process) == [notices.READY]
    assert httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    process.terminate()
    assert manager.await_notice(notices.STOPPING, process) == [notices.STOPPING]
    assert process.wait(20) == 0
    assert manager.hear(0) is None


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_shows_the_watchdog_that_it_lives(
    initialised: Bench, manager: Manager, workers: str
) -> None:
    """Several times in each period; and no more when it is stopped."""
    bench = initialised.but(PORT=str(free_port()), WORKERS=workers)
    process = manager.start(bench.environment, watchdog_seconds=0.6)
    manager.await_notice(notices.READY, process)
    for _ in range(5):
        manager.await_notice(notices.ALIVE, process)
    process.send_signal(signal.SIGSTOP)
    while manager.hear(1.0) is not None:
        pass
    process.send_signal(signal.SIGCONT)
    manager.await_notice(notices.ALIVE, process)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_connection_between_two_servers_is_served_by_the_second(
    initialised: Bench, place: Path, workers: str
) -> None:
    """The manager holds the socket, so connections wait in it; the setting counts for nothing."""
    port = free_port()
    bench = initialised.but(PORT=str(free_port()), WORKERS=workers)
    with Manager(place, hold_socket(port)) as manager:
        for _ in range(2):
            with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                connection.request("GET", "/healthz")
                process = manager.start(bench.environment)
                assert connection.getresponse().status == 200
            manager.await_notice(notices.READY, process)
            assert f"on 127.0.0.1 port {port}\n" in manager.log.read_text()
            for _ in range(10):  # no worker waits for a second connection before it answers a first
                assert httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
            process.terminate()
            assert process.wait(20) == 0


@pytest.mark.parametrize("kind", ["not listening", "of no network", "several"])
def test_anything_but_a_listening_tcp_socket_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that hands over something else is wrong: it is not served on another address."""
    given = socket.socket(socket.AF_UNIX if kind == "of no network" else socket.AF_INET)
    if kind != "not listening":
        given.bind(str(tmp_path / "s") if kind == "of no network" else ("127.0.0.1", 0))
        given.listen()
    with given:
        monkeypatch.setattr(notices, "_FIRST_SOCKET", given.dup().detach())
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "2" if kind == "several" else "1")
        with pytest.raises(InvalidConfiguration):
            notices.handed_over()
    assert notices.handed_over() is None


def test_a_socket_for_another_process_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables may be inherited."""
    monkeypatch.setenv("LISTEN_PID", "1")
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert notices.handed_over() is None


def test_signs_of_life_for_another_process_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the variables of the watchdog may be, too."""
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    assert notices.beat_seconds() == 1.0
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert notices.beat_seconds() is None
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert notices.beat_seconds() == 1.0
    monkeypatch.setenv("WATCHDOG_USEC", "0")
    assert notices.beat_seconds() is None
