"""One run at a time for each key."""

import asyncio

import pytest

from countersign.base.deadline import DEADLINE, TimeLeft
from countersign.base.errors import StorageUnavailable
from countersign.base.snapshot import KeyedLocks


def test_waiting_for_a_caller_who_waits_for_the_database_ends_at_the_deadline() -> None:
    """Else each would wait as long as all before it together."""

    async def hold() -> None:
        locks = KeyedLocks(1, of_database=True)
        async with locks.turn("session"):
            DEADLINE.set(TimeLeft(0.001))
            with pytest.raises(StorageUnavailable):
                await asyncio.wait_for(take(locks), 20)
        async with locks.turn("session") as waited:
            assert not waited

    asyncio.run(hold())


async def take(locks: KeyedLocks) -> None:
    async with locks.turn("session"):
        pytest.fail("two have their turn at once")
