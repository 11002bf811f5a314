"""The parent of several workers, in moments that a server rarely sees."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from countersign.db.turn import SharedTurns
from countersign.server.shared import Boards, SharedArrivals
from countersign.server.workers import Shared, _Parent, _Place

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

    shared = Shared(
        turns=SharedTurns(2), arrivals=SharedArrivals(), visits=SharedArrivals(), boards=Boards(2)
    )
    made = _Parent(2, shared, listen, lambda: None)
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


def test_a_worker_that_has_just_ended_keeps_no_other_from_stopping(parent: _Parent) -> None:
    """A second Ctrl-C may come between its end and the note of it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    parent._places[0].pid = ended.pid
    parent._stop(signal.SIGTERM, None)
    assert parent._stopping
