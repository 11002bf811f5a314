"""Snapshots: the age of a value, and who waits for which read."""

from __future__ import annotations

import asyncio

from countersign.base.snapshot import STALENESS_SECONDS, Snapshot
from tests.unit.support import HandClock, run


class Readings:
    """A value that is the number of the reading, and a gate for each reading to wait at."""

    def __init__(self) -> None:
        self.begun = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.gate.wait()
        return number


async def settled() -> None:
    """Let every task run as far as it gets."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_value_is_read_again_when_it_is_too_old() -> None:
    """Until then nothing is read."""
    clock, readings = HandClock(), Readings()
    snapshot = Snapshot(readings, clock)

    async def story() -> list[int]:
        readings.gate.set()
        first = [await snapshot.get(), await snapshot.get()]
        clock.advance(STALENESS_SECONDS)
        return [*first, await snapshot.get(), await snapshot.fresh()]

    assert run(story()) == [1, 1, 2, 3]


def test_a_reading_that_began_too_long_ago_is_not_good_enough() -> None:
    """However long the database took over it."""
    clock, readings = HandClock(), Readings()
    snapshot = Snapshot(readings, clock)

    async def story() -> list[int]:
        callers = [asyncio.create_task(snapshot.get())]
        await settled()
        clock.advance(STALENESS_SECONDS)
        callers.append(asyncio.create_task(snapshot.get()))
        await settled()
        readings.gate.set()
        return await asyncio.gather(*callers)

    assert run(story()) == [1, 2]


def test_callers_who_want_a_fresh_value_share_one_reading_that_began_after_them() -> None:
    """A read that is under way may be too old for them."""
    readings = Readings()
    snapshot = Snapshot(readings, HandClock())

    async def story() -> list[int]:
        early = asyncio.create_task(snapshot.fresh())
        await settled()
        late = [asyncio.create_task(snapshot.fresh()) for _ in range(3)]
        await settled()
        readings.gate.set()
        return await asyncio.gather(early, *late)

    assert run(story()) == [1, 2, 2, 2]


def test_a_caller_that_gives_up_does_not_cancel_the_reading() -> None:
    """A closed connection is no reason for the others to wait longer."""
    readings = Readings()
    snapshot = Snapshot(readings, HandClock())

    async def story() -> list[int]:
        callers = [asyncio.create_task(snapshot.get()) for _ in range(3)]
        await settled()
        callers[0].cancel()
        await settled()
        readings.gate.set()
        return await asyncio.gather(*callers[1:])

    assert run(story()) == [1, 1]
    assert readings.begun == 1
