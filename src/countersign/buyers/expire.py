"""Telling that buyers have expired: nobody does anything at that moment, so somebody must look."""

from __future__ import annotations

from typing import Final

from countersign.access.test_clocks import TestClocks
from countersign.instant import from_ns
from countersign.loops import forever
from countersign.ports import Clock, ExpiryStore

PERIOD_SECONDS: Final = 2.0
CHUNK: Final = 200


class ExpireBuyers:
    """Writes `buyer.expired` soon after it has become true.

    The status itself needs no such sweep: it is computed whenever it is read.
    """

    def __init__(self, store: ExpiryStore, clocks: TestClocks, clock: Clock) -> None:
        self._store = store
        self._clocks = clocks
        self._clock = clock

    async def sweep(self) -> int:
        """Tell of all that have expired by now; gives how many."""
        told = 0
        while await self._store.due(now := from_ns(self._clock.time_ns())):
            # Nothing: another process is telling of them at this moment.
            if not (number := await self._store.tell(now, CHUNK)):
                break
            told += number
        # Sandboxes whose clock is ahead expire before.
        return told + await self._clocks.tell_expired()

    async def run(self) -> None:
        """Sweep again and again, until cancelled."""
        await forever("expiry", self.sweep, PERIOD_SECONDS)
