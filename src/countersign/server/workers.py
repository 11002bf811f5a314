"""Several processes as one server: a parent that supervises, and workers that serve.

The parent opens a listening socket for each worker, forks them before there is an event loop or a
database connection, replaces each one that dies, and ends when all have ended. It serves nothing
itself. Workers end with it, however it ends. See docs/decisions/operations.md.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import resource
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import structlog
from prometheus_client.registry import Collector

from countersign.base.db.turn import SharedTurn, SharedTurns
from countersign.base.db.writes import Writes
from countersign.server.listen import opener
from countersign.server.manager import ALIVE, STOPPING, beat_seconds, notify
from countersign.server.request_log import PLACES, RequestView
from countersign.server.shared import Boards, MetricRow, Pulses, SharedArrivals, SummedMetrics

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
_STEADY_SECONDS: Final = 10.0
"""A worker that lived for so long has not failed at its start."""
_PAUSE_SECONDS_MAX: Final = 30.0
_READY: Final = b"\0"
"""No stack has this byte: pieces of one arrive on the same socket, and begin anywhere."""
_TICK_SECONDS: Final = 1.0
"""Seconds between two ticks of a worker's event loop, and between two checks by the parent."""
_FROZEN_SECONDS: Final = 10.0
"""A worker is replaced if its event loop has not ticked for this long."""
_LAST_WORDS_SECONDS: Final = 2.0
"""Time for it to print its traceback."""
_LAST_WORDS_BYTES_MAX: Final = 16 * 1024

_log: Final = structlog.get_logger("countersign.workers")
_Ready: TypeAlias = Callable[[str, int], None]
"""Called with host and port."""


class Shared:
    """Memory shared by the workers of one server; created before the first fork."""

    def __init__(self, workers: int) -> None:
        self.turns = SharedTurns(workers)
        self.writes = Writes()
        self.arrivals = SharedArrivals()
        self.visits = SharedArrivals()
        """Apart from them: many sessions of buyers make no key forgotten."""
        self.boards = Boards(workers, list[MetricRow])
        self.pulses = Pulses(workers)
        self.requests = Boards(workers * PLACES, list[RequestView])


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The knowledge of one worker process."""

    number: int
    """From 1. The first does the work in the background, and serves the metrics."""
    forks: int
    """How many processes have had this number, this one included."""
    shared: Shared
    listening: socket.socket
    parent: socket.socket

    @property
    def turn(self) -> SharedTurn:
        """The turns of this worker at the write lock of the embedded database."""
        return self.shared.turns.of(self.number - 1)

    @property
    def in_background(self) -> bool:
        """Whether this process does the work that only one process must do."""
        return self.number == 1

    @property
    def begins_server(self) -> bool:
        """Whether it is the server's first worker to begin."""
        return self.in_background and self.forks == 1

    def summed(self, own: Collector) -> SummedMetrics:
        """The metrics of all workers, including this one."""
        return SummedMetrics(own, self.shared.boards, self.number - 1)

    def open_socket(self) -> socket.socket:
        """This worker's listening socket, opened by the parent."""
        return self.listening

    def tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show the parent that this event loop goes round, now and as long as it does."""
        self.shared.pulses.beat(self.number - 1)
        loop.call_later(_TICK_SECONDS, self.tick, loop)

    def say_ready(self, _host: str, _port: int) -> None:
        """Tell the parent that this worker is about to accept connections."""
        self.parent.send(_READY)


@dataclass(slots=True, kw_only=True)
class _Place:
    """A worker as the parent sees it."""

    number: int
    forks: int = 0
    pid: int = 0
    """0: none runs."""
    channel: socket.socket | None = None
    listening: socket.socket | None = None
    """It outlives the worker if another one follows at once: connections wait in it."""
    begun: float = 0.0
    failures: int = 0
    """Consecutive early deaths."""
    due: float | None = None
    """When to fork it, by the monotonic clock."""
    was_ready: bool = False
    last_words: bytes = b""
    """Traceback of a worker that a signal kills (faulthandler)."""
    beats: int = 0
    still: float = 0.0
    """Seconds without a new beat, counting only time in which the parent was running."""
    asked: bool = False
    """True once it was sent SIGABRT, to print its traceback."""

    def leave(self) -> None:
        """Stop listening here: the others take its connections meanwhile."""
        if self.listening is not None:
            self.listening.close()
            self.listening = None


def fork_workers(number: int, host: str, port: int, ready: _Ready) -> Worker:
    """Fork this many workers: returns in each worker, and never in the parent.

    The first begins alone: if it cannot serve, it says why, and the server ends with its status.

    Args:
        number: of workers.
        host: where to listen.
        port: where to listen.
        ready: called once with host and port, in the parent, when all are ready.

    Raises:
        AddressInUse: the host and port are taken.
        SystemExit: in the parent, when all workers have ended: with the worst of their statuses.
    """
    parent = _Parent(number, opener(host, port), ready)
    gc.collect()
    gc.freeze()  # loaded modules stay in memory shared by all workers
    return parent.watch()


class _Parent:
    def __init__(
        self, workers: int, open_socket: Callable[[], socket.socket], ready: _Ready
    ) -> None:
        self._shared = Shared(workers)
        self._open_socket = open_socket
        self._ready: _Ready | None = ready
        self._places = [_Place(number=number) for number in range(1, workers + 1)]
        self._stopping = False
        self._worst = 0
        self._looked = time.monotonic()
        self._watched = beat_seconds()
        self._look_seconds = min(_TICK_SECONDS, self._watched or _TICK_SECONDS)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.settimeout(0)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def watch(self) -> Worker:
        """Fork due workers until all have ended; returns in a worker."""
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in _STOPPING:
            signal.signal(number, self._stop)
        self._places[0].due = time.monotonic()
        while True:
            for place in self._places:
                if place.due is not None and place.due <= time.monotonic() and not self._stopping:
                    worker = self._fork(place)
                    if worker is not None:
                        return worker
            if self._stopping and not any(place.pid for place in self._places):
                raise SystemExit(self._worst)
            due = [place.due for place in self._places if place.due is not None]
            next_at = min([self._looked + self._look_seconds, *(() if self._stopping else due)])
            for key, _ in self._selector.select(max(0.0, next_at - time.monotonic())):
                if isinstance(key.data, _Place):
                    self._hear(key.data)
                else:
                    self._woken.recv(64)
            if time.monotonic() - self._looked >= self._look_seconds:
                self._look()

    def _look(self) -> None:
        """Show the service manager that this process lives, and look whether the workers do."""
        if self._watched is not None:
            notify(ALIVE)
        # If this process has been stopped, too, the workers have not been still for all that time.
        passed = min(time.monotonic() - self._looked, 2 * self._look_seconds)
        self._looked = time.monotonic()
        for place in self._places:
            beats = self._shared.pulses.of(place.number - 1)
            if beats != place.beats or not beats:
                place.beats, place.still = beats, 0.0
            elif place.pid:
                place.still += passed
                if place.still >= _FROZEN_SECONDS:
                    self._end_frozen(place)

    def _end_frozen(self, place: _Place) -> None:
        """Send SIGABRT first, so that it prints its traceback, then SIGKILL."""
        if not place.asked:
            place.asked = True
            _log.error("worker_frozen", worker=place.number, seconds=round(place.still))
            os.kill(place.pid, signal.SIGABRT)
            os.kill(place.pid, signal.SIGCONT)  # a stopped process receives nothing else
        elif place.still >= _FROZEN_SECONDS + _LAST_WORDS_SECONDS:
            os.kill(place.pid, signal.SIGKILL)

    def _stop(self, _number: int, _frame: object) -> None:
        self._stopping = True
        notify(STOPPING)
        for place in self._places:
            if place.listening is not None:
                place.listening.close()
            if place.pid:
                with suppress(ProcessLookupError):  # this very moment it is seen to have ended
                    os.kill(place.pid, signal.SIGTERM)

    def _fork(self, place: _Place) -> Worker | None:
        """Fork the worker of a place; the worker, in itself."""
        # A signal that arrives meanwhile is handled here until the other process is known.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        if self._stopping:  # since the last check
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            return None
        theirs, ours = socket.socketpair()
        listening = place.listening = place.listening or self._open_socket()
        sys.stderr.flush()
        place.forks += 1
        self._shared.pulses.forget(place.number - 1)
        try:
            pid = os.fork()
        except OSError as error:  # no memory, or too many processes
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            theirs.close()
            ours.close()
            place.leave()
            place.due = time.monotonic() + _PAUSE_SECONDS_MAX
            _log.error("worker_not_forked", worker=place.number, error=error.strerror)
            return None
        if not pid:
            ours.close()
            return self._begin_worker(place, listening, theirs)
        theirs.close()
        place.pid, place.channel, place.begun, place.due = pid, ours, time.monotonic(), None
        place.last_words, place.asked = b"", False
        place.beats, place.still = 0, 0.0
        self._selector.register(ours, selectors.EVENT_READ, place)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        return None

    def _begin_worker(
        self, place: _Place, listening: socket.socket, parent: socket.socket
    ) -> Worker:
        # The service manager hears the parent alone.
        os.environ.pop("NOTIFY_SOCKET", None)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # Ctrl-C reaches all processes of a terminal; the parent passes it on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        self._selector.close()
        others = [p.listening for p in self._places if p is not place]
        for end in (self._woken, self._waker, *others, *(p.channel for p in self._places)):
            if end is not None:
                end.close()
        faulthandler.enable(parent.fileno())
        # A core dump would contain keys.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        _name_in_logs(place.number)
        return Worker(
            number=place.number,
            forks=place.forks,
            shared=self._shared,
            listening=listening,
            parent=parent,
        )

    def _hear(self, place: _Place) -> None:
        """A worker is ready, says where it stood when it died, or has ended."""
        assert place.channel is not None  # noqa: S101 - it has spoken
        said = place.channel.recv(_LAST_WORDS_BYTES_MAX)
        if said:
            if said.startswith(_READY):
                self._is_ready(place)
            room = _LAST_WORDS_BYTES_MAX - len(place.last_words)
            place.last_words += said.removeprefix(_READY)[:room]
            return
        self._selector.unregister(place.channel)
        place.channel.close()
        place.channel = None
        status = os.waitstatus_to_exitcode(os.waitpid(place.pid, 0)[1])
        place.pid = 0
        self._shared.turns.forget(place.number - 1)
        if self._stopping:
            # Until it is ready, SIGTERM ends a worker at once.
            self._worst = max(self._worst, 0 if status == -signal.SIGTERM else _shell(status))
            return
        if self._ready is not None and place.number == 1 and not place.was_ready:
            raise SystemExit(_shell(status))
        self._shared.arrivals.recover()
        self._shared.visits.recover()
        lived = time.monotonic() - place.begun
        place.failures = 1 if lived >= _STEADY_SECONDS else place.failures + 1
        # The first time at once, then after 1, 2, 4, … seconds.
        pause = min(2.0 ** (place.failures - 2), _PAUSE_SECONDS_MAX) if place.failures > 1 else 0.0
        if pause:
            place.leave()
        place.due = time.monotonic() + pause
        # The list of modules that follows is irrelevant.
        stack = place.last_words.decode(errors="replace").partition("\n\nExtension modules")[0]
        said_last = {"stack": stack} if stack else {}
        named = {"worker": place.number, "status": status, "next_in_seconds": pause}
        _log.error("worker_ended", **named, **said_last)

    def _is_ready(self, place: _Place) -> None:
        place.was_ready = True
        if place.number == 1 and place.forks == 1:
            for other in self._places[1:]:
                other.due = time.monotonic()
        is_complete = all(place.was_ready for place in self._places)
        if self._ready is not None and place.listening is not None and is_complete:
            self._ready(*place.listening.getsockname()[:2])
            self._ready = None


def _shell(status: int) -> int:
    """An exit status; of a process that a signal has ended, as shells give it."""
    return status if status >= 0 else 128 - status


def _end_with(parent: socket.socket) -> None:
    """End this process when the parent has: it would keep the socket and the lock, unwatched."""
    with suppress(OSError):
        parent.recv(1)
    os._exit(1)


def _name_in_logs(number: int) -> None:
    def name(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Any:  # noqa: ANN401
        event.setdefault("worker", number)
        return event

    structlog.configure(processors=[name, *structlog.get_config()["processors"]])
