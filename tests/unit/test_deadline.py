"""One timer for many waits: each ends in time, and a cancellation stays a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from countersign.base.deadline import TimeLimit

LONG = 3600.0

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


async def _wait(seconds: float) -> str:
    with TimeLimit(seconds):
        await asyncio.Event().wait()
    return "it came"


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.01])
def test_a_wait_ends_in_time_even_behind_longer_ones(run: Run, seconds: float) -> None:
    async def work() -> None:
        longer = [asyncio.create_task(_wait(LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await _wait(seconds)
        assert not any(task.done() for task in longer)
        for task in longer:
            task.cancel()
        ended = await asyncio.gather(*longer, return_exceptions=True)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * 3

    run(work())


def test_a_timely_result_is_returned_and_its_limit_ends_nothing_later(run: Run) -> None:
    async def work() -> None:
        with TimeLimit(0.0):
            found = 1
        assert found == 1
        await asyncio.sleep(0.01)
        with TimeLimit(LONG), pytest.raises(TimeoutError):
            await _wait(0.0)
        await asyncio.sleep(0)

    run(work())


def test_an_error_of_the_block_is_its_own(run: Run) -> None:
    async def work() -> None:
        with pytest.raises(KeyError), TimeLimit(LONG):
            raise KeyError
        limit = TimeLimit(LONG)
        with pytest.raises(TimeoutError), limit:
            raise TimeoutError
        assert not limit.is_over

    run(work())


def test_a_task_cancelled_at_the_same_moment_stays_cancelled(run: Run) -> None:
    async def work() -> None:
        task = asyncio.create_task(_wait(LONG))
        await asyncio.sleep(0)
        task.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        both = TimeLimit(LONG)

        async def end() -> None:
            with both:
                await asyncio.Event().wait()

        other = asyncio.create_task(end())
        await asyncio.sleep(0)
        other.cancel()
        both.end()
        with pytest.raises(asyncio.CancelledError):
            await other

    run(work())


def test_many_waits_have_one_timer(run: Run) -> None:
    made: list[float] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        waits: list[TimeLimit] = []
        for _ in range(100):
            with TimeLimit(LONG) as limit:
                waits.append(limit)
                made.append(limit._waits.looks_at)
        assert len({id(limit._waits) for limit in waits}) == 1
        assert len(set(made)) == 1
        assert made[0] <= loop.time() + LONG

    run(work())
