"""The log of the embedded database is copied into its file while others write."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
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
NEARLY_FULL = CHECKPOINT_PAGES - 900


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
        _, in_log, copied = connection.exec_driver_sql("PRAGMA wal_checkpoint(NOOP)").one()
    engine.dispose()
    return in_log, copied


def test_a_log_that_is_nearly_full_is_copied_beside_a_writer(url: URL, run: Run) -> None:
    """Neither waits for the other."""

    async def work() -> None:
        async with Database(url) as database:
            await database.write(fill, NEARLY_FULL)
            with other_writer(url):
                await database.scan(databases._checkpoint)
            in_log, copied = log_of(url)
            assert copied == in_log > NEARLY_FULL

    run(work())


def test_a_short_log_is_left_for_more_changes_of_the_same_pages(url: URL, run: Run) -> None:
    """A page that changes often is copied once."""

    async def work() -> None:
        async with Database(url) as database:
            await database.write(fill, NEARLY_FULL // 2)
            await database.scan(databases._checkpoint)
            in_log, copied = log_of(url)
            assert in_log > NEARLY_FULL // 2
            assert copied == 0

    run(work())


def test_writes_have_the_log_of_earlier_ones_copied(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of a server wakes at each batch."""
    monkeypatch.setattr(databases, "_LEFT_PAGES", CHECKPOINT_PAGES)

    async def work() -> None:
        async with Database(url) as database:
            looking = asyncio.create_task(database.run_checkpoints())
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                while not log_of(url)[1]:
                    await database.write(fill, 5)
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    run(work())
