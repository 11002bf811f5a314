"""Keeping a database busy from outside, so that many calls end up in one batch."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, create_engine

from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded, sqlite_module
from countersign.base.db.pooler import of_driver
from countersign.core.access.account import add_account
from tests.storage import items

WAIT_SECONDS_MAX = 5.0


@contextmanager
def other_writer(url: URL) -> Iterator[None]:
    """Another process is writing: no one else can until the block ends."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, module=sqlite_module(), connect_args={"isolation_level": None})
        begin = "BEGIN IMMEDIATE"
    else:
        engine = create_engine(of_driver(url))
        begin = "LOCK TABLE accounts, api_keys, records, buyers IN EXCLUSIVE MODE"
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(begin)
            yield
            connection.rollback()
    finally:
        engine.dispose()


async def in_one_batch(database: Database, calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results of these calls in one transaction, each a result or an exception.

    While another process writes, a first call occupies the writer, and these pile up behind it. On
    the embedded database that is not needed: calls that arrive while a batch waits for its turn
    join it.
    """
    occupiers = [] if is_embedded(database.url) else [items.account()]
    with other_writer(database.url):
        occupying = [asyncio.ensure_future(database.write(add_account, a)) for a in occupiers]
        await asyncio.sleep(0)  # now it is in the queue
        await _until_waiting(database, 0)
        waiting = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)
        await _until_waiting(database, len(calls))
        await asyncio.sleep(0.01)  # acknowledgments are made ready within a few turns
        batches_before = database.batches()["write"][0]
    await asyncio.gather(*occupying)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert database.batches()["write"][0] == batches_before + len(occupiers) + 1, (
        "they were not one batch"
    )
    return outcomes


async def _until_waiting(database: Database, number: int) -> None:
    """Wait until this many writes wait for the next batch."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while database.batches()["write"][2] != number:  # noqa: ASYNC110 - it can only be polled
            await asyncio.sleep(0.001)
