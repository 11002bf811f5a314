"""The log of the embedded database is copied into its file beside the writers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, text

from countersign.base.db import database as databases
from countersign.base.db.database import Database
from countersign.base.db.engine import (
    CHECKPOINT_PAGES,
    SQLITE_FILE,
    Purpose,
    database_url,
    open_engine,
)
from tests.storage import items
from tests.storage.busy import other_writer
from tests.storage.conftest import Run

PAGE_BYTES = 4096
NEARLY_FULL = CHECKPOINT_PAGES - 1000


@pytest.fixture
def url(tmp_path: Path, sqlite_template: Path) -> URL:
    """Give an embedded database."""
    shutil.copy(sqlite_template, tmp_path / SQLITE_FILE)
    return database_url(None, tmp_path)


def fill(connection: Connection, pages: int) -> None:
    """Write this many pages of one row."""
    row = "INSERT INTO log_pending (record_id, mode, digest) VALUES (:id, 'test', zeroblob(:size))"
    connection.execute(text(row), {"id": items.identifier("rec"), "size": pages * PAGE_BYTES})


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
    pages: int, is_copied: bool, url: URL, run: Run
) -> None:
    """Before that its pages may change again, and be copied once."""

    async def work() -> None:
        async with Database(url) as database:
            await database.write(fill, pages)
            with other_writer(url):
                await database.scan(databases._copy_log)
            used, copied = log_of(url)
            assert used > pages
            assert copied == used * is_copied

    run(work())


def test_a_log_that_fills_faster_than_it_is_copied_is_left_to_the_commits(
    url: URL, run: Run
) -> None:
    """A copy that never ends would keep them from using the log again, and it would grow."""

    async def work() -> None:
        async with Database(url) as database:
            await database.write(fill, NEARLY_FULL - 100)
            with reader(url):  # of the end of the log that a copy sees as it begins
                await database.write(fill, 100)
                await database.scan(databases._copy_log)
            used, copied = log_of(url)
            assert used > copied > NEARLY_FULL - 100
            await database.write(fill, 500)
            await database.scan(databases._copy_log)
            assert log_of(url)[0] > used
            assert log_of(url)[1] == copied
            await database.write(fill, 600)  # past the limit: this commit copies the rest
            assert log_of(url)[0] == log_of(url)[1]
            await database.write(fill, 10)
            assert log_of(url)[0] < 100

    run(work())


def test_a_copy_that_fails_refuses_nobody(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again; the commits say what is wrong with the disk."""
    monkeypatch.setattr(databases, "_COPIED_FROM", 0)

    async def work() -> None:
        async with Database(url) as database:
            await database.write(fill, 5)

            def inside(connection: Connection) -> int:
                connection.exec_driver_sql("BEGIN")  # the driver refuses a checkpoint in it
                connection.exec_driver_sql("SELECT 1 FROM log_pending").all()
                databases._copy_log(connection)
                connection.exec_driver_sql("COMMIT")
                return 1

            assert set(await asyncio.gather(*(database.scan(inside) for _ in range(3)))) == {1}
            assert log_of(url)[1] == 0

    run(work())


def test_writes_have_the_log_of_earlier_ones_copied(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of a server wakes at each fourth batch."""
    monkeypatch.setattr(databases, "_COPIED_FROM", 0)

    async def work() -> None:
        async with Database(url) as database:
            copying = asyncio.create_task(database.copy_log())
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                while not log_of(url)[1]:
                    await database.write(fill, 5)
            copying.cancel()
            with suppress(asyncio.CancelledError):
                await copying

    run(work())
