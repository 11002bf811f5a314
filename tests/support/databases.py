"""Fixtures of an open `Database` on an empty, migrated database, for tests of any directory.

On both engines, unless a test or its directory names one.
"""

import asyncio
import shutil
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, make_url

from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import SQLITE_FILE, database_url
from countersign.base.db.tables import metadata
from tests.support import postgres
from tests.support.engines import POSTGRES
from tests.support.pgbouncer import PgBouncer, running_pgbouncer

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine to its end, always on the same event loop."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T: ...


# For features of one engine; by default a test runs on both.
on_sqlite = pytest.mark.parametrize("engine_name", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("engine_name", [POSTGRES], indirect=True)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrate one database; the tests get copies, which cost much less."""
    url = database_url(None, tmp_path_factory.mktemp("template"))
    schema.upgrade(url)
    return Path(url.database or "")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.PostgresServer) -> URL:
    """Migrate one database, for copies."""
    url = make_url(postgres.fresh_database(postgres_server))
    schema.upgrade(url)
    return url


@pytest.fixture(scope="session")
def postgres_shared(postgres_server: postgres.PostgresServer, postgres_template: URL) -> URL:
    """Copy one database, which is emptied for each test: copying it takes longer."""
    return make_url(postgres.fresh_database(postgres_server, template=postgres_template.database))


POOLED = pytest.param("pooled", marks=[pytest.mark.postgres, pytest.mark.pgbouncer])
"""PostgreSQL behind PgBouncer in transaction mode, for calls through a `Database`."""


@pytest.fixture(scope="session")
def pgbouncer(
    postgres_server: postgres.PostgresServer,
) -> Iterator[PgBouncer]:
    """Run PgBouncer in front of the PostgreSQL of the tests."""
    with running_pgbouncer(postgres_server) as found:
        yield found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Behind the pooler only tests that use a `Database` run, and none twice."""
    items[:] = [
        item
        for item in items
        if item.get_closest_marker("pgbouncer") is None
        or "engine_name" not in (names := getattr(item, "fixturenames", ()))
        or "database" in names
    ]


@pytest.fixture(params=["sqlite", POSTGRES, POOLED])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Give each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture
def empty_url(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """The URL of a separate database without migrations."""
    if engine_name == "sqlite":
        folder = tmp_path / "empty"
        folder.mkdir()
        return database_url(None, folder)
    return database_url(request.getfixturevalue("postgres_url"), tmp_path)


@pytest.fixture
def embedded_url(tmp_path: Path, sqlite_template: Path) -> URL:
    """The URL of an empty, migrated embedded database that no other test uses."""
    shutil.copy(sqlite_template, tmp_path / SQLITE_FILE)
    return database_url(None, tmp_path)


@pytest.fixture
def own_url(engine_name: str, request: pytest.FixtureRequest) -> URL:
    """The URL of an empty, migrated database that no other test uses, for any change.

    On PostgreSQL `url` costs less than half of it.
    """
    if engine_name == "sqlite":
        embedded: URL = request.getfixturevalue("embedded_url")
        return embedded
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    template: URL = request.getfixturevalue("postgres_template")
    return make_url(postgres.fresh_database(server, template=template.database))


@pytest.fixture
def url(engine_name: str, request: pytest.FixtureRequest) -> URL:
    """The URL of an empty, migrated database; its schema must stay as it is."""
    if engine_name == "sqlite":
        own: URL = request.getfixturevalue("own_url")
        return own
    shared: URL = request.getfixturevalue("postgres_shared")
    pooler: PgBouncer | None = None
    if engine_name == "pooled":
        pooler = request.getfixturevalue("pgbouncer")
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    with server.connect(shared.database or "") as connection, connection.transaction():
        _empty(connection)
    return shared if pooler is None else pooler.url(shared)


def _empty(connection: psycopg.Connection) -> None:
    """Delete every row: as a superuser, and with the triggers off that would refuse it."""
    triggers = connection.execute(
        "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal"
    ).fetchall()
    switch = sql.SQL("ALTER TABLE {} {} TRIGGER {}")
    for table, trigger, _ in triggers:
        words = sql.Identifier(table), sql.SQL("DISABLE"), sql.Identifier(trigger)
        connection.execute(switch.format(*words))
    for emptied in reversed(metadata.sorted_tables):
        connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(emptied.name)))
    for table, trigger, mode in triggers:
        on = sql.SQL("ENABLE ALWAYS" if mode == "A" else "ENABLE")
        connection.execute(switch.format(sql.Identifier(table), on, sql.Identifier(trigger)))


@pytest.fixture
def run() -> Iterator[Run]:
    """Give the event loop of the test."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def database(url: URL, run: Run) -> Iterator[Database]:
    """Give the open database."""
    opened = Database(url)
    run(opened.__aenter__())
    try:
        yield opened
    finally:
        run(opened.__aexit__(None, None, None))
