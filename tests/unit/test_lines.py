"""Those who want the same thing stand in one line."""

import asyncio

import pytest

from countersign.deadline import DEADLINE, TimeLeft
from countersign.errors import StorageUnavailable
from countersign.lines import Lines


def test_who_stands_in_line_for_the_database_waits_for_the_database() -> None:
    """Else each would wait as long as all before it together."""

    async def stand() -> None:
        lines = Lines(1, of_database=True)
        async with lines.turn("session"):
            DEADLINE.set(TimeLeft(0.001))
            with pytest.raises(StorageUnavailable):
                await asyncio.wait_for(take(lines), 20)
        async with lines.turn("session") as waited:
            assert not waited

    asyncio.run(stand())


async def take(lines: Lines) -> None:
    async with lines.turn("session"):
        pytest.fail("two have their turn at once")
