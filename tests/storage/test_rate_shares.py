"""Shares of a limit, as PostgreSQL gives them out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import psycopg
import pytest
from sqlalchemy import URL, Connection, text

from countersign.base.db.database import Database
from countersign.base.db.pooler import of_driver
from countersign.base.errors import Overloaded
from countersign.base.setting_values import Rate
from countersign.operate.housekeeping import delete_expired
from countersign.server.shares import Ask, Share, lease_together
from tests.storage.items import NOON
from tests.support.databases import POOLED, Run
from tests.support.engines import POSTGRES

pytestmark = pytest.mark.parametrize("engine_name", [POSTGRES, POOLED], indirect=True)

RATE = Rate(1000, 100_000)
"""Practically nothing refills during a test."""
INTERVAL = RATE.seconds / RATE.requests


def about(granted: int, ahead: float) -> Share:
    """The granted requests, and roughly when the bucket is empty again."""
    return Share(granted, pytest.approx(ahead, abs=1))  # type: ignore[arg-type]


def ask(want: int, name: bytes = b"one", rate: Rate = RATE) -> Ask:
    return Ask(name, want, rate.seconds / rate.requests, float(rate.seconds))


async def leased(database: Database, *asks: Ask) -> Sequence[Share]:
    """The grants of one batch."""
    return await asyncio.gather(*(database.read_batched(lease_together, one) for one in asks))


def test_granted_requests_are_gone_and_returned_ones_are_back(database: Database, run: Run) -> None:
    async def act() -> None:
        [first] = await leased(database, ask(100))
        assert first == about(100, 100 * INTERVAL)
        [second] = await leased(database, ask(10))
        assert second == about(10, 110 * INTERVAL)
        [back] = await leased(database, ask(-60))
        assert back == about(-60, 50 * INTERVAL)

    run(act())


def test_half_of_the_last_requests_are_granted_until_there_are_none(
    database: Database, run: Run
) -> None:
    """Others ask for them, too."""

    async def act() -> None:
        granted = [(await leased(database, ask(300)))[0].granted for _ in range(12)]
        assert granted == [300, 300, 200, 100, 50, 25, 13, 6, 3, 2, 1, 0]
        assert sum(granted) == RATE.requests

    run(act())


def test_several_in_one_batch_get_their_own(database: Database, run: Run) -> None:
    """Of one name, of others, and of another limit."""

    async def act() -> None:
        other = Rate(50, 100_000)
        asks = [ask(7), ask(1, b"two"), ask(5), ask(40, b"three", other), ask(-2)]
        assert [one.granted for one in await leased(database, *asks)] == [7, 1, 5, 40, -2]
        [rest] = await leased(database, ask(0))
        assert rest == about(0, 10 * INTERVAL)

    run(act())


def test_a_clock_set_back_costs_at_most_a_full_bucket(database: Database, run: Run) -> None:
    """After a failover the time is that of another machine."""

    def ahead(connection: Connection) -> None:
        connection.execute(text("UPDATE rate_shares SET empty_at = empty_at + 86400000000000"))

    async def act() -> None:
        await leased(database, ask(1))
        await database.write(ahead)
        assert await leased(database, ask(1)) == [about(0, RATE.seconds)]

    run(act())


def test_no_commit_waits_for_leases(database: Database, run: Run) -> None:
    """The table has no write-ahead log, so no commit waits for a disk or a standby."""
    kind = text("SELECT relpersistence FROM pg_class WHERE relname = 'rate_shares'")
    assert run(database.read(lambda connection: connection.execute(kind).scalar())) == "u"


def test_unused_buckets_are_deleted(database: Database, run: Run) -> None:
    def old(connection: Connection) -> None:
        connection.execute(text("INSERT INTO rate_shares VALUES ('\\x01', 0, 1)"))

    run(database.write(old))
    assert run(database.write(delete_expired, NOON, 10)) == 1


def test_servers_that_lease_in_opposite_order_do_not_wait_for_each_other(
    database: Database, run: Run
) -> None:
    """Of several limits and names; there is no deadlock, and none takes a second."""
    rates = Rate(1000, 100_000), Rate(2000, 100_000)
    asks = [ask(1, bytes([n]), rates[n % 2]) for n in range(40)]

    async def act() -> float:
        async with Database(database.url) as other:
            longest = 0.0
            for _ in range(15):
                begun = time.monotonic()
                both = leased(database, *asks), leased(other, *reversed(asks))
                for shares in await asyncio.gather(*both):
                    assert {share.granted for share in shares} == {1}
                longest = max(longest, time.monotonic() - begun)
            return longest

    assert run(act()) < 1


def test_a_lookup_batched_with_a_lease_locks_nothing_and_is_answered_without_it(
    database: Database, url: URL, run: Run
) -> None:
    """A name that another keeps locked is refused after half a second, and nothing else is."""

    def one(connection: Connection) -> int:
        return int(connection.execute(text("SELECT 1")).scalar_one())

    def locks(connection: Connection) -> int:
        own = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode LIKE 'Row%'"
        return int(connection.execute(text(own)).scalar_one())

    async def act() -> None:
        asked = await asyncio.gather(
            database.read_batched(lease_together, ask(1)), database.read(locks)
        )
        assert asked[1] == 0
        address = of_driver(url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as holder:
            holder.execute("SELECT FROM rate_shares FOR UPDATE")
            begun = time.monotonic()
            refused, looked = await asyncio.gather(
                database.read_batched(lease_together, ask(1)),
                database.read(one),
                return_exceptions=True,
            )
            assert isinstance(refused, Overloaded)
            assert looked == 1
            assert time.monotonic() - begun < 4  # who waits for the lock gives up after five
        [again] = await leased(database, ask(1))
        assert again.granted == 1

    run(act())
