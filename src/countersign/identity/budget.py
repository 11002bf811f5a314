"""How long one result may take, however many requests it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


class Allowance:
    """Seconds, of the event loop's clock, that can be spent in parts."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """What is done inside is on this allowance.

        Raises:
            TimeoutError: nothing is left of it.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                yield
        finally:
            self._left = max(0.0, self._left - (clock() - began))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The time for the requests of one result."""

    sending: Allowance
    """For requests and responses, with every repetition."""
    waiting: Allowance
    """For a place among those that are sent at a time: that is our load, and no fault of the
    provider."""
