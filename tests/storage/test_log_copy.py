"""The log of the embedded database is copied into its file beside the writers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError

from countersign.base.db import database as databases
from countersign.base.db.database import Database
from countersign.base.db.engine import CHECKPOINT_PAGES, Purpose, open_engine
from tests.storage import items
from tests.storage.busy import other_writer
from tests.support.databases import Run

PAGE_BYTES = 4096
NEARLY_FULL = CHECKPOINT_PAGES - 1000


def fill(connection: Connection, pages: int) -> None:
    items.fill(connection, pages * PAGE_BYTES)


def log_of(url: URL) -> tuple[int, int]:
    """The pages in the log, and how many of them are copied."""
    engine = open_engine(url, Purpose.READ)
    with engine.connect() as connection:
        _, used, copied = connection.exec_driver_sql("PRAGMA wal_checkpoint(NOOP)").one()
    engine.dispose()
    return used, copied


@contextmanager
def reader(url: URL) -> Iterator[None]:
    """Another process reads what is there now, until the block ends."""
    engine = open_engine(url, Purpose.READ)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("SELECT count(*) FROM log_pending").one()
        yield
        connection.exec_driver_sql("COMMIT")
    engine.dispose()


@pytest.mark.parametrize(("pages", "is_copied"), [(NEARLY_FULL // 2, False), (NEARLY_FULL, True)])
def test_a_log_is_copied_beside_a_writer_when_it_is_nearly_full(
    pages: int, is_copied: bool, embedded_url: URL, run: Run
) -> None:
    """Before that its pages may change again, and be copied once."""

    async def work() -> None:
        async with Database(embedded_url) as database:
            await database.write(fill, pages)
            with other_writer(embedded_url):
                await database.scan(databases._copy_log)
            used, copied = log_of(embedded_url)
            assert used > pages
            assert copied == used * is_copied

    run(work())


def test_a_log_that_fills_faster_than_it_is_copied_is_left_to_the_commits(
    embedded_url: URL, run: Run
) -> None:
    """A copy that never ends would keep them from using the log again, and it would grow."""

    async def work() -> None:
        async with Database(embedded_url) as database:
            await database.write(fill, NEARLY_FULL - 100)
            with reader(embedded_url):  # of the end of the log that a copy sees as it begins
                await database.write(fill, 100)
                await database.scan(databases._copy_log)
            used, copied = log_of(embedded_url)
            assert used > copied > NEARLY_FULL - 100
            await database.write(fill, 500)
            await database.scan(databases._copy_log)
            assert log_of(embedded_url)[0] > used
            assert log_of(embedded_url)[1] == copied
            await database.write(fill, 600)  # past the limit: this commit copies the rest
            assert log_of(embedded_url)[0] == log_of(embedded_url)[1]
            await database.write(fill, 10)
            assert log_of(embedded_url)[0] < 100

    run(work())


def test_a_copy_that_fails_refuses_nobody(
    embedded_url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again; the commits say what is wrong with the disk."""
    monkeypatch.setattr(databases, "_COPIED_FROM", 0)

    async def work() -> None:
        async with Database(embedded_url) as database:
            await database.write(fill, 5)

            def inside(connection: Connection) -> int:
                connection.exec_driver_sql("BEGIN")  # the driver refuses a checkpoint in it
                connection.exec_driver_sql("SELECT 1 FROM log_pending").all()
                databases._copy_log(connection)
                connection.exec_driver_sql("COMMIT")
                return 1

            assert set(await asyncio.gather(*(database.scan(inside) for _ in range(3)))) == {1}
            assert log_of(embedded_url)[1] == 0

    run(work())


def test_a_slow_copy_is_cut_off_and_tried_again(
    embedded_url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its deadline; no other lane takes a new connection for it.

    If it passes before the statement has begun, that copy ends by itself.
    """
    monkeypatch.setattr(databases, "_COPY_SECONDS", 0.1)
    takes_seconds = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000000)"
        " SELECT max(i) FROM n"
    )
    ended = list[str]()

    def slow(connection: Connection) -> None:
        try:
            connection.exec_driver_sql(takes_seconds)
        except DBAPIError as error:
            ended.append(str(error.orig))

    monkeypatch.setattr(databases, "_copy_log", slow)

    async def work() -> None:
        async with Database(embedded_url) as database:
            database.limit_waiting(10.0)
            copying = asyncio.create_task(database.copy_log())
            async with asyncio.timeout(60):
                while len(ended) < 2:
                    await database.write(fill, 1)
            assert not any(one.worker.is_stale for one in database._batchers.values())
            copying.cancel()
            with suppress(asyncio.CancelledError):
                await copying

    run(work())
    assert set(ended) == {"interrupted"}


def test_writes_have_the_log_of_earlier_ones_copied(
    embedded_url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of a server wakes at each fourth batch."""
    monkeypatch.setattr(databases, "_COPIED_FROM", 0)

    async def work() -> None:
        async with Database(embedded_url) as database:
            copying = asyncio.create_task(database.copy_log())
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                while not log_of(embedded_url)[1]:
                    await database.write(fill, 5)
            copying.cancel()
            with suppress(asyncio.CancelledError):
                await copying

    run(work())
