"""Restarts under load, as callers see them: `python -m tests.crash.restarts`."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from subprocess import Popen
from typing import Final, Self

from countersign.server.manager import READY
from tests.http.backstage import another_deployment
from tests.support.manager import Manager, hold_socket
from tests.support.service import Deployment, free_port

RESTARTS: Final = 10
_CALLERS: Final = 3
_PAUSE_SECONDS: Final = 0.01
"""Between two calls of a caller: some hundred meet each restart, and leave it a processor."""
_LOOK_SECONDS: Final = 0.1
_PATH: Final = "/v1/notices/ab1263/acknowledge"
_BODY: Final = b'{"initials_per_line":["A","B","C","D"]}'


@dataclass(slots=True)
class Tally:
    """The callers' observations."""

    ack_ids: list[str] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


def call(connect: Callable[[], HTTPConnection], key: str, number: str, tally: Tally) -> None:
    """Acknowledge over a connection of its own; a failure counts by its name."""
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": number}
    headers["Content-Type"] = "application/json"
    try:
        with closing(connect()) as connection:
            connection.request("POST", _PATH, _BODY, headers)
            answer = connection.getresponse()
            body = answer.read()
    except (OSError, HTTPException) as error:
        tally.failures[type(error).__name__] += 1
        return
    if answer.status == 200:
        tally.ack_ids.append(body.split(b'"')[3].decode())
    else:
        tally.failures[str(answer.status)] += 1


@contextmanager
def load(connect: Callable[[], HTTPConnection], key: str) -> Iterator[Tally]:
    """Call from several threads for the length of the block."""
    tally, over = Tally(), threading.Event()

    def caller(own: int) -> None:
        for turn in range(sys.maxsize):
            call(connect, key, f"{own}-{turn}", tally)
            if over.wait(_PAUSE_SECONDS):
                return

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        over.set()
        for thread in threads:
            thread.join()


@dataclass(slots=True, kw_only=True)
class Unit:
    """A server as a unit of a manager, which restarts it."""

    manager: Manager
    environment: dict[str, str]
    process: Popen[bytes] | None = None

    def restart(self) -> None:
        """As `systemctl restart`: it returns when the server is ready."""
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait(30) == 0
        self.process = self.manager.start(self.environment)
        self.manager.await_notice(READY, self.process)


@contextmanager
def unit(deployment: Deployment, port: int, place: Path, *, socket: bool) -> Iterator[Unit]:
    """A running server of this deployment; with a socket unit or without."""
    place.mkdir()
    settings = {"RATE_LIMIT": "off"} | dict(deployment.settings) | {"PORT": str(port)}
    own = replace(deployment, settings=settings)
    with Manager(place, hold_socket(port) if socket else None) as manager:
        made = Unit(manager=manager, environment=own.environment)
        made.restart()
        yield made
        assert made.process is not None
        made.process.terminate()
        made.process.wait(30)


def plainly(port: int, silent_seconds: float = 0.0) -> Callable[[], HTTPConnection]:
    """How to connect to a server itself, and for how long nothing is sent then."""

    def connect() -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        if silent_seconds:
            connection.connect()
            time.sleep(silent_seconds)
        return connection

    return connect


class Balancer:
    """A load balancer's choice among servers: those that were ready at the last check."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._ready = list(ports)
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()

    def connect(self) -> HTTPConnection:
        """Connect to one of them."""
        ready = self._ready or self._ports
        return HTTPConnection("127.0.0.1", ready[time.monotonic_ns() % len(ready)], timeout=30)

    def sees(self, port: int) -> bool:
        """Whether it sends requests to this one."""
        return port in self._ready

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._ready = [port for port in self._ports if _is_ready(port)]


def _is_ready(port: int) -> bool:
    with contextlib.suppress(OSError, HTTPException), closing(plainly(port)()) as connection:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


def stored(deployment: Deployment) -> int:
    """How many acknowledgments there are."""
    return len(deployment.run("export", "--account", "vendor").stdout.splitlines())


def main() -> None:
    """Print what ten restarts cost without anything in front, and with a socket of the manager."""
    for socket, drain in ((False, "0"), (False, "1"), (True, "0"), (True, "1")):
        place = Path(tempfile.mkdtemp())
        deployment = another_deployment(place / "data")
        key, port = deployment.key(deployment.account("vendor")), free_port()
        deployment = replace(deployment, settings={"DRAIN_SECONDS": drain})
        with unit(deployment, port, place / "m", socket=socket) as server:
            with load(plainly(port), key) as tally:
                for _ in range(RESTARTS):
                    server.restart()
            failures = dict(tally.failures)
        print(f"socket={socket} drain={drain}: {len(tally.ack_ids)} answered, {failures}")  # noqa: T201


if __name__ == "__main__":
    main()
