"""A real PgBouncer in transaction mode, between the service and the PostgreSQL of the tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
from sqlalchemy import URL, make_url

from countersign.base.db.pooler import through_pooler
from tests.cli.serving import running, wait_until
from tests.support.postgres import PostgresServer
from tests.support.postgres_guard import UNPRIVILEGED_ACCOUNT
from tests.support.service import free_port

PROGRAM: Final = shutil.which(
    "pgbouncer", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
)
SESSIONS: Final = 5
"""Fewer than the connections of the tests that work at the same time: they change hands."""


def missing() -> str | None:
    """The missing requirement for it."""
    return None if PROGRAM else "no pgbouncer in PATH or /usr/sbin"


@dataclass(frozen=True)
class PgBouncer:
    """Where it listens."""

    port: int

    def bare_url(self, url: URL | str) -> URL:
        """The URL of the same database through it, without the setting that says so."""
        direct = make_url(url)
        return direct.set(host="127.0.0.1", port=self.port, query={})

    def url(self, url: URL | str) -> URL:
        """The same with the setting."""
        return through_pooler(self.bare_url(url))


@contextmanager
def running_pgbouncer(server: PostgresServer) -> Iterator[PgBouncer]:
    """Run it in front of a server; it takes any password."""
    # As root it has to run as another account, like PostgreSQL: that cannot enter pytest's folders.
    with TemporaryDirectory(prefix="countersign-pgbouncer-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        with _running(server, Path(made)) as found:
            yield found


@contextmanager
def _running(server: PostgresServer, place: Path) -> Iterator[PgBouncer]:
    port, settings = free_port(), place / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.socket_directory} port=5432 user=postgres\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {SESSIONS}\nmax_client_conn = 500\n"
        "query_wait_timeout = 60\nserver_idle_timeout = 2\n"
    )
    settings.chmod(0o644)
    as_another = ("-u", UNPRIVILEGED_ACCOUNT) if os.geteuid() == 0 else ()
    assert PROGRAM is not None
    with running([PROGRAM, *as_another, str(settings)], {}, place / "said") as process:

        def answers() -> bool:
            assert process.poll() is None, (place / "said").read_text()
            try:
                address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
                with psycopg.connect(address, connect_timeout=2):
                    return True
            except psycopg.OperationalError:
                return False

        wait_until(answers, "PgBouncer in front")
        yield PgBouncer(port)
        process.terminate()
        process.wait(20)
