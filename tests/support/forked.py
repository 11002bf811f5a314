"""Programs run as `python -m MODULE`, in forks of one process that has imported everything already.

Starting this service costs a second, nearly all of it for imports; a fork takes a hundredth. Each
is still a separate process, with its own environment, standard streams, exit status and end: it can
be killed, and leaves the same behind as any killed process. Only interpreter settings read at the
start (the seed of hashes, warnings, locale) are shared. The start itself is tested by tests with
`subprocess`.

Run as a program, this is that process. It ends when the process that started it has ended.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, Final, NoReturn, TypedDict

from tests.support import compiled, moved_clock

_PRELOADED: Final = (
    "countersign.server.server",
    "alembic.command",
    "psycopg",
    # Modules that a server or a command loads by name.
    "countersign.base.cli",
    "countersign_conformance.kit",
    # Modules that deliberately crashing processes load through their helpers.
    "pytest",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvloop",
)
_NUMBER: Final = struct.Struct("!i")
_STREAMS: Final = 3
_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class _Order(TypedDict):
    """The program to execute; its standard streams and report pipe come as descriptors."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class Forked:
    """A process started here; the parts of `subprocess.Popen` that tests need."""

    def __init__(self, words: Sequence[str], status: int) -> None:
        """`status` is read from: first the process id, at the end the exit status."""
        self.args = words
        self.returncode: int | None = None
        self._status = status
        self._lock = Lock()
        self.pid = self._read()

    def poll(self) -> int | None:
        """The exit status, minus the signal that ended it, or None while it runs."""
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                try:
                    self.returncode = os.waitstatus_to_exitcode(self._read())
                except AssertionError:
                    # Nothing will report its end: it is not left running.
                    with suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGKILL)
                    self.returncode = -signal.SIGKILL
                os.close(self._status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not ended after so many seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
            select.select([self._status], [], [], left)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it without warning (SIGKILL)."""
        self.send_signal(signal.SIGKILL)

    def _read(self) -> int:
        found = os.read(self._status, _NUMBER.size)
        if len(found) < _NUMBER.size:
            raise AssertionError("the process that forks the others has ended")
        number: int = _NUMBER.unpack(found)[0]
        return number


def start(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdout: IO[Any],
    stderr: IO[Any],
    stdin: IO[Any] | None = None,
    directory: Path | None = None,
) -> Forked:
    """Start `python -m WORDS`; without `stdin` it has nothing to read."""
    order: _Order = {
        "words": list(words),
        "environment": dict(environment),
        "directory": str((directory or Path()).resolve()),
    }
    status, report = os.pipe()
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - it is no file
        streams = [(stdin or nothing).fileno(), stdout.fileno(), stderr.fileno()]
        _parent().fork(order, [*streams, report])
    os.close(report)
    return Forked(words, status)


def run(
    *words: str,
    environment: Mapping[str, str],
    typed: str = "",
    directory: Path | None = None,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m WORDS` to its end."""
    return Running(words, environment, typed=typed, directory=directory).end(seconds)


class Running:
    """A command on its way to its end; several may be under way."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        typed: str = "",
        directory: Path | None = None,
    ) -> None:
        self._words = words
        self._out, self._err = (
            TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed in `end`
            for _ in range(2)
        )
        with TemporaryFile("w+", encoding="utf-8") as stdin:
            stdin.write(typed)
            stdin.seek(0)
            self._process = start(
                words,
                environment,
                stdout=self._out,
                stderr=self._err,
                stdin=stdin,
                directory=directory,
            )

    def end(self, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """The exit status.

        Raises:
            subprocess.TimeoutExpired: it takes longer, and was killed.
        """
        late = False
        with self._out, self._err:
            try:
                status = self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                status, late = self._process.wait(10), True
            said = [(stream.seek(0), stream.read())[1] for stream in (self._out, self._err)]
        if late:
            raise subprocess.TimeoutExpired(list(self._words), seconds, *said)
        return subprocess.CompletedProcess(list(self._words), status, *said)


class _Parent:
    """The process that the others are forked from, as seen from here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Should this process be killed, its socket is closed and the other ends too.
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[2],
            )

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self.process.wait(10)

    def fork(self, order: _Order, descriptors: Sequence[int]) -> None:
        text = json.dumps(order).encode()
        with self._lock:
            socket.send_fds(self._socket, [_NUMBER.pack(len(text))], descriptors)
            self._socket.sendall(text)


@cache
def _made() -> list[_Parent]:
    return []


def _parent() -> _Parent:
    """The existing one, or another if that has ended."""
    made = _made()
    if not made or made[-1].process.poll() is not None:
        made.append(_Parent())
        atexit.register(made[-1].close)
    return made[-1]


def _serve(control: socket.socket) -> _Order | None:
    """Fork for each order, and report how each ended; returns its order in the forked process."""
    wakes, wake = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # After an interrupt, the developer waits for the ends of these processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, int] = {}
    awaited: list[Any] = [control, wakes]
    while True:
        ready = select.select(awaited, [], [])[0]
        if wakes in ready:
            with suppress(BlockingIOError):
                os.read(wakes, 4096)
            _tell_ends(running)
        if control not in ready:
            continue
        received = _receive(control)
        if received is None:
            return None
        text, descriptors = received
        *streams, watcher = descriptors
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            for descriptor in (wakes, wake, *descriptors, *running.values()):
                os.close(descriptor)
            order: _Order = json.loads(text)
            return order
        running[child] = watcher
        with suppress(BrokenPipeError):
            os.write(watcher, _NUMBER.pack(child))
        for descriptor in streams:
            os.close(descriptor)


def _receive(control: socket.socket) -> tuple[bytes, list[int]] | None:
    """An order with its descriptors; None when there will be no more."""
    header, descriptors, _, _ = socket.recv_fds(control, _NUMBER.size, _STREAMS + 1)
    if len(header) < _NUMBER.size:
        return None
    text, (size,) = b"", _NUMBER.unpack(header)
    while len(text) < size:
        part = control.recv(size - len(text))
        if not part:
            return None
        text += part
    return text, descriptors


def _tell_ends(running: dict[int, int]) -> None:
    for child in list(running):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            watcher = running.pop(child)
            # A caller that has given up does not read.
            with suppress(BrokenPipeError):
                os.write(watcher, _NUMBER.pack(status))
            os.close(watcher)


def _end_with_parent() -> None:
    """Leave no server behind when the tests are interrupted; Linux alone can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Be the parent of others; in each of those, run the order."""
    from countersign.root import PLACES, module_of  # noqa: PLC0415 - only this process needs it

    gc.disable()
    rooms = {module_of(place) for place in PLACES.values()}
    for name in (*_PRELOADED, *sorted(rooms)):
        importlib.import_module(name)
    compiled.share()
    # Present objects are shared by all; collecting them would copy them.
    gc.freeze()
    gc.enable()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        order = _serve(control)
    if order is not None:
        _end_with_parent()
        os.chdir(order["directory"])
        os.environ.clear()
        os.environ.update(order["environment"])
        time.tzset()
        moved_clock.install()
        sys.argv[1:] = order["words"][1:]
        try:
            runpy.run_module(order["words"][0], run_name="__main__", alter_sys=True)
            _leave(0)
        except SystemExit as ended:
            if not isinstance(ended.code, int):
                raise
            _leave(ended.code)


def _leave(status: int) -> NoReturn:
    """End as the interpreter does, but free nothing: that would copy all that is shared."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
