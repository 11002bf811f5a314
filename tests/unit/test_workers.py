"""The parent of several workers, in moments that a server rarely sees."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from countersign.server.shared import SharedArrivals
from countersign.server.workers import _READY, _Parent, _Place

pytestmark = pytest.mark.first_try


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    """Give the listening sockets that the parent has opened."""
    sockets: list[socket.socket] = []
    yield sockets
    for each in sockets:
        each.close()


@pytest.fixture
def parent(opened: list[socket.socket]) -> Iterator[_Parent]:
    """Give a parent that has forked nothing yet."""

    def listen() -> socket.socket:
        opened.append(socket.create_server(("127.0.0.1", 0)))
        return opened[-1]

    made = _Parent(2, listen, lambda _host, _port: None)
    yield made
    for end in (made._woken, made._waker, made._selector):
        end.close()


def test_no_client_is_left_in_the_socket_of_a_worker_that_cannot_be_forked(
    parent: _Parent, opened: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt is half a minute away; the other workers take its connections."""

    def refused() -> int:
        raise OSError(errno.EAGAIN, "no")

    monkeypatch.setattr(os, "fork", refused)
    place = _Place(number=2)
    assert parent._fork(place) is None
    assert place.due is not None
    assert [each.fileno() for each in opened] == [-1]


def test_no_worker_is_forked_after_the_stop(
    parent: _Parent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal may come right before the fork; nothing would pass it on to that worker."""

    def forked() -> int:
        raise AssertionError

    monkeypatch.setattr(os, "fork", forked)
    parent._stop(signal.SIGTERM, None)
    assert parent._fork(_Place(number=1)) is None
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_that_has_just_ended_does_not_keep_others_from_stopping(parent: _Parent) -> None:
    """A second Ctrl-C may come between its end and the note of it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    parent._places[0].pid = ended.pid
    parent._stop(signal.SIGTERM, None)
    assert parent._stopping


@pytest.fixture
def clock(parent: _Parent, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the clock of the parent, whose first worker runs as a process of this test."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(os, "kill", lambda _pid, number: made.sent.append(number))
    parent._looked = made.now
    parent._places[0].pid = os.getpid()
    return made


@dataclass
class Clock:
    """The parent's time, and its signals to the worker."""

    now: float = 1000.0
    sent: list[int] = field(default_factory=list)

    def look(self, parent: _Parent, after: float) -> None:
        self.now += after
        parent._look()


def test_a_worker_without_a_tick_is_ended_after_ten_seconds(parent: _Parent, clock: Clock) -> None:
    """First by a signal that prints its stack; if that fails, by a kill."""
    parent._shared.pulses.beat(0)
    for _ in range(10):
        clock.look(parent, 1.0)
    assert clock.sent == []
    clock.look(parent, 1.0)
    assert clock.sent == [signal.SIGABRT, signal.SIGCONT]
    clock.look(parent, 1.0)
    assert signal.SIGKILL not in clock.sent
    clock.look(parent, 1.0)
    assert clock.sent[-1] == signal.SIGKILL


def test_a_worker_that_is_only_slow_stays(parent: _Parent, clock: Clock) -> None:
    """One tick is enough: it comes round."""
    for seconds in range(100):
        if seconds % 9 == 0:
            parent._shared.pulses.beat(0)
        clock.look(parent, 1.0)
    assert clock.sent == []


def test_a_worker_that_has_not_begun_is_not_frozen(parent: _Parent, clock: Clock) -> None:
    """To open a large database may take long."""
    for _ in range(100):
        clock.look(parent, 1.0)
    assert clock.sent == []


def test_workers_are_not_blamed_for_a_stop_of_the_whole_server(
    parent: _Parent, clock: Clock
) -> None:
    """Ctrl-Z in a terminal stops the parent, too: its clock goes on, and nothing is wrong."""
    parent._shared.pulses.beat(0)
    clock.look(parent, 1.0)
    clock.look(parent, 3600.0)
    parent._shared.pulses.beat(0)
    clock.look(parent, 1.0)
    assert clock.sent == []


def test_a_lock_that_was_taken_from_a_frozen_worker_can_be_released_by_it() -> None:
    """It goes on after another worker has died, and its request must not fail for that."""
    arrivals = SharedArrivals()
    arrivals._lock.acquire()
    arrivals.recover()
    arrivals.recover()
    arrivals._release()
    assert arrivals.add("key", 1.0, 1.0, 10.0) == 2.0


def test_no_piece_of_a_stack_is_mistaken_for_being_ready(parent: _Parent) -> None:
    """Pieces begin anywhere, also with any of its letters; a second worker would be forked."""
    place, other = parent._places
    place.forks = 1
    place.channel, worker = socket.socketpair()
    with worker, place.channel:
        for piece in [bytes([code]) + b", line 982 in run\n" for code in range(ord(" "), 127)]:
            worker.send(piece)
            parent._hear(place)
            assert place.last_words.endswith(piece)
        assert not place.was_ready
        assert other.due is None
        worker.send(_READY + b"Fatal")
        parent._hear(place)
        assert place.was_ready
        assert place.last_words.endswith(b"run\nFatal")
