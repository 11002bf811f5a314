"""A pooler in transaction mode: each transaction may have another session, and leaves it clean."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, Connection, make_url, text

from countersign.base.db.database import Database
from countersign.base.db.engine import database_url
from countersign.base.db.pooler import hands_sessions_around, refuse_unknown_pooler, through_pooler
from countersign.base.errors import InvalidConfiguration, Overloaded
from tests.sealing.acts import acknowledge, get, policy_of
from tests.support.databases import Run
from tests.support.pgbouncer import SESSIONS, PgBouncer
from tests.support.service import Deployment, running_server

pytestmark = [pytest.mark.postgres, pytest.mark.pgbouncer]
ROUNDS = 30
"""Psycopg prepares a statement after five executions."""


@pytest.fixture
def direct(postgres_url: str) -> str:
    """Give a database of this test alone, past the pooler."""
    return postgres_url


@pytest.fixture
def pooled(direct: str, pgbouncer: PgBouncer, run: Run) -> Iterator[Database]:
    """Give the open database behind the pooler."""
    opened = Database(pgbouncer.url(direct))
    run(opened.__aenter__())
    yield opened
    run(opened.__aexit__(None, None, None))


def limits(connection: Connection | psycopg.Connection) -> tuple[str, str]:
    """The two limits of a session, as this transaction has them."""
    asked = "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
    if isinstance(connection, psycopg.Connection):
        found = connection.execute(asked).fetchone()
    else:
        found = tuple(connection.execute(text(asked)).one())
    assert found is not None
    return found[0], found[1]


def test_limits_stay_in_their_transaction(
    pooled: Database, direct: str, pgbouncer: PgBouncer, run: Run
) -> None:
    """Each has its own, and another client of the pool finds a session as PostgreSQL made it."""

    async def act() -> list[tuple[str, str]]:
        return [await pooled.write(limits), await pooled.read(limits), await pooled.scan(limits)]

    assert run(act()) == [("5s", "0"), ("5s", "5s"), ("5s", "5s")]
    url = pgbouncer.bare_url(direct).set(drivername="postgresql")
    address = url.render_as_string(hide_password=False)
    held = [psycopg.connect(address) for _ in range(SESSIONS)]
    assert {limits(connection) for connection in held} == {("0", "0")}
    for connection in held:
        connection.close()


def test_others_commits_are_seen_whatever_the_databases_default_is(
    direct: str, pgbouncer: PgBouncer, run: Run
) -> None:
    """Otherwise a transaction that waited for a lock would decide by outdated data."""
    url = database_url(direct, Path())
    name = sql.Identifier(url.database or "")
    with psycopg.connect(
        url.set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True
    ) as own:
        strict = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'")
        own.execute(strict.format(name))

    async def act(url: URL) -> str:
        async with Database(url) as database:
            return str(await database.write(isolation))

    for way in (url, pgbouncer.url(direct)):
        assert run(act(way)) == "read committed"


def isolation(connection: Connection) -> object:
    """The isolation of this transaction."""
    return connection.execute(text("SHOW transaction_isolation")).scalar()


def test_lanes_share_few_sessions_and_prepare_nothing(pooled: Database, run: Run) -> None:
    """Repeated statements would be prepared, and then be missing in the next session."""

    async def act() -> set[int]:
        async def one() -> int:
            written = await pooled.write(pid)
            return written if await pooled.read(pid) else 0

        return {n for _ in range(ROUNDS) for n in await asyncio.gather(*(one() for _ in range(4)))}

    assert 1 <= len(run(act())) <= SESSIONS
    prepared = text("SELECT count(*) FROM pg_prepared_statements")

    async def count() -> list[int]:
        return [
            await pooled.read(lambda c: int(c.execute(prepared).scalar_one()))
            for _ in range(ROUNDS)
        ]

    assert run(count()) == [0] * ROUNDS


def pid(connection: Connection) -> int:
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_no_look_holds_a_session_once_it_is_answered(
    pooled: Database, direct: str, run: Run
) -> None:
    """It would be missing in the pool, and hold back what vacuum may remove."""
    run(pooled.read(pid))
    run(pooled.scan(pid))
    with psycopg.connect(
        make_url(direct).set(drivername="postgresql").render_as_string(hide_password=False)
    ) as own:
        open_ = own.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"
        ).fetchone()
    assert open_ == (0,)


def test_a_query_has_its_limit(pooled: Database, run: Run) -> None:
    """As on a session of its own: a look that takes too long is broken off."""
    shorter = text("SET LOCAL statement_timeout = 20")

    def slow(connection: Connection) -> None:
        connection.execute(shorter)
        connection.execute(text("SELECT pg_sleep(5)"))

    with pytest.raises(Overloaded):
        run(pooled.scan(slow))
    assert run(pooled.scan(limits)) == ("5s", "5s")


def test_a_pooler_that_the_settings_do_not_name_is_refused(
    direct: str, pgbouncer: PgBouncer, tmp_path: Path
) -> None:
    """By `init` and `serve`, before anything is set on its sessions; the doctor says it, too."""
    bare = pgbouncer.bare_url(direct)
    with pytest.raises(InvalidConfiguration, match="COUNTERSIGN_DATABASE_POOLER"):
        refuse_unknown_pooler(bare)
    refuse_unknown_pooler(make_url(direct))
    refuse_unknown_pooler(through_pooler(make_url(direct)))
    made = Deployment(data_dir=tmp_path / "data", settings={"DATABASE_URL": direct})
    made.run("init")
    unnamed = Deployment(
        data_dir=made.data_dir,
        settings={"DATABASE_URL": bare.render_as_string(hide_password=False)},
    )
    for words in (("init",), ("serve",)):
        done = unnamed.run(*words, check=False)
        assert done.returncode != 0
        assert "COUNTERSIGN_DATABASE_POOLER" in done.stderr
    assert "a transaction pooler stands between" in unnamed.run("doctor", check=False).stdout


def test_a_deployment_works_behind_a_transaction_pooler(
    direct: str, pgbouncer: PgBouncer, tmp_path: Path
) -> None:
    """From `init` on: two servers accept, seal and prove, and the log is in order."""
    url = pgbouncer.bare_url(direct).render_as_string(hide_password=False)
    made = Deployment(
        data_dir=tmp_path / "data",
        settings={"DATABASE_URL": url, "DATABASE_POOLER": "transaction"},
    )
    made.run("init")
    key = made.key(made.account("vendor"))
    with running_server(made) as one, running_server(made) as two:
        with one.client(key) as first, two.client(key) as second:
            ids = [acknowledge(client) for _ in range(ROUNDS) for client in (first, second)]
            proofs = {get(client, ids[-1], "proof") for client in (first, second)}
        for server in (one, two):
            said = server.log.read_text()
            assert "database_error" not in said, said
            assert "sealing_postponed" not in said, said
    assert len(set(ids)) == 2 * ROUNDS
    assert proofs
    assert policy_of(made).logs
    checked = made.read("log", "check")
    assert checked["findings"] == []
    assert checked["entries"] >= 2 * ROUNDS


def test_the_check_finds_no_pooler_without_one(direct: str) -> None:
    """A connection that has a session to itself is not refused."""
    url = make_url(direct)
    _, arguments = url.get_dialect()().create_connect_args(url)
    assert not hands_sessions_around({**arguments})
