"""The PostgreSQL that the tests rely on keeps its own promises first."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import make_url

from tests.support.postgres import PostgresServer, fresh_database, settle

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[1]

# A test run in miniature: it starts a server, says where, and waits to be ended.
RUN = """
import time
from tests.support.postgres import running_postgres
with running_postgres() as server:
    print(server.pid, server.socket_directory, flush=True)
    time.sleep(600)
"""


def test_a_sqlalchemy_url_reaches_a_real_postgresql_18(postgres_url: str) -> None:
    """The URL works as it is, and behind it is the version that we support."""
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.begin() as connection:
        version = connection.exec_driver_sql("SHOW server_version_num").scalar_one()
        connection.exec_driver_sql("CREATE TABLE proof (word text)")
    engine.dispose()
    assert int(version) // 10000 == 18


def test_every_database_is_new_and_empty(postgres_server: PostgresServer) -> None:
    """Data of one test is in no other test."""
    urls = {fresh_database(postgres_server) for _ in range(2)}
    assert len(urls) == 2
    for url in urls:
        engine = sqlalchemy.create_engine(url)
        assert sqlalchemy.inspect(engine).get_table_names() == []
        engine.dispose()


def test_a_copy_of_a_database_has_the_same_content(postgres_server: PostgresServer) -> None:
    """Writes to the copy are not in the original."""
    first = make_url(fresh_database(postgres_server))
    with postgres_server.connect(first.database or "") as connection:
        connection.execute("CREATE TABLE proof (word text)")
    copy = make_url(fresh_database(postgres_server, template=first.database))
    with postgres_server.connect(copy.database or "") as connection:
        connection.execute("DROP TABLE proof")
    with postgres_server.connect(first.database or "") as connection:
        connection.execute("SELECT * FROM proof")


def test_to_settle_waits_for_transactions_of_every_database(
    postgres_server: PostgresServer,
) -> None:
    """Committed data is listed when no older transaction of the server is left: not before."""
    other = make_url(fresh_database(postgres_server)).database or ""
    waits = threading.Thread(target=settle, daemon=True)
    with postgres_server.connect(other) as connection, connection.transaction():
        connection.execute("CREATE TABLE older (word text)")
        with postgres_server.connect() as later:
            later.execute("SELECT pg_current_xact_id()")
        waits.start()
        waits.join(0.2)
        assert waits.is_alive()
    waits.join(20)
    assert not waits.is_alive()


def test_only_its_owner_may_enter_the_socket_directory(postgres_server: PostgresServer) -> None:
    """Trusting every local connection is safe only behind a closed door."""
    assert postgres_server.socket_directory.stat().st_mode & 0o077 == 0


@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_the_test_run_however_that_ends(number: signal.Signals) -> None:
    """A test run that is killed leaves neither a process nor a file behind."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        pid, home = run.stdout.readline().split()
        # The whole group, as a CI runner does it: the guard must not be in it.
        os.killpg(run.pid, number)
    deadline = time.monotonic() + 20
    while Path(home).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(home).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
