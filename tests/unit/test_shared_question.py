"""Waiting together: one query of the database for all waiting callers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from countersign.base.snapshot import SharedQuestion


def test_all_waiting_callers_share_one_query() -> None:
    """A thousand callers cost one query per turn; callers for the same key share it."""
    asked: list[list[int]] = []

    async def ask(keys: Sequence[int]) -> Mapping[int, str]:
        asked.append(sorted(keys))
        return {} if len(asked) == 1 else {key: f"found {key}" for key in keys}

    async def act() -> None:
        question = SharedQuestion(ask, 0.0)

        async def wait(key: int) -> str:
            while (found := await question(key)) is None:
                pass
            return found

        found = await asyncio.gather(*(wait(number % 10) for number in range(1000)))
        assert found == [f"found {number % 10}" for number in range(1000)]

    asyncio.run(act())
    assert asked == [list(range(10))] * 2


def test_a_caller_that_gives_up_leaves_the_others_waiting() -> None:
    """A closed connection takes no other caller's response away."""

    async def ask(keys: Sequence[str]) -> Mapping[str, str]:
        return dict.fromkeys(keys, "found")

    async def act() -> None:
        question = SharedQuestion(ask, 0.0)
        gone, stays = (asyncio.create_task(question(key)) for key in ("gone", "stays"))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == "found"
        assert await question("later") == "found"

    asyncio.run(act())


def test_a_failed_query_fails_for_all_its_callers_and_no_later_one() -> None:
    """The next turn asks again."""
    asked: list[Sequence[str]] = []

    async def ask(keys: Sequence[str]) -> Mapping[str, str]:
        asked.append(keys)
        if len(asked) == 1:
            raise OSError
        return dict.fromkeys(keys, "found")

    async def act() -> None:
        question = SharedQuestion(ask, 0.0)
        both = await asyncio.gather(question("a"), question("b"), return_exceptions=True)
        assert [type(outcome) for outcome in both] == [OSError, OSError]
        assert await question("a") == "found"

    asyncio.run(act())
