"""Test clocks as servers read them: a snapshot of all that are ahead, at most 250 ms old.

An account without a test clock pays a look into a dictionary. What changes a sandbox returns only
when no server can still go by an older snapshot, so the response is true on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from countersign.access.key import Principal
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.db.database import Database
from countersign.db.tables import test_clocks, test_faults
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.ports import Clock

STALENESS_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class SandboxState:
    """What servers keep in memory of all sandboxes."""

    clocks: Mapping[str, TestClock]
    """By account; only those that are ahead."""
    failing: frozenset[str]
    """The accounts for which a fault of the identity provider is planned."""

    def clock(self, account_id: str) -> TestClock:
        """The test clock of an account."""
        return self.clocks.get(account_id, REAL_TIME)


class _Snapshot(NamedTuple):
    taken_at: float
    state: SandboxState


_NOTHING: Final = _Snapshot(float("-inf"), SandboxState({}, frozenset()))


class TestClocks:
    """The time by which the sandbox of an account goes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._snapshot = _NOTHING
        self._reading: asyncio.Task[None] | None = None

    async def of(self, account_id: str, mode: Mode) -> TestClock:
        """The clock of an account; its live mode goes by real time."""
        if mode is Mode.LIVE:
            return REAL_TIME
        return (await self._state()).clock(account_id)

    async def shown(self, principal: Principal) -> datetime | None:
        """What the test clock of the caller's account shows now; None: it goes by real time."""
        clock = await self.of(principal.account_id, principal.mode)
        return clock.shown(from_ns(self._clock.time_ns())) if clock.ahead else None

    async def is_failing(self, account_id: str) -> bool:
        """Whether a fault may be planned for the sandbox of an account."""
        return account_id in (await self._state()).failing

    async def renew(self) -> None:
        """After a change: read it, and wait until every other server has to have read it too."""
        reading = self._reading
        if reading is not None and not reading.done():  # it may have begun too early
            await asyncio.wait((reading,))
        await self._read()
        await asyncio.sleep(STALENESS_SECONDS)

    async def _state(self) -> SandboxState:
        asked = self._clock.monotonic()
        while asked - self._snapshot.taken_at >= STALENESS_SECONDS:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            await asyncio.shield(self._reading)
        return self._snapshot.state

    async def _read(self) -> None:
        began = self._clock.monotonic()
        state = await self._database.read_batched(sandbox_state, None)
        if began >= self._snapshot.taken_at:
            self._snapshot = _Snapshot(began, state)


def sandbox_state(connection: Connection, items: Sequence[None]) -> list[SandboxState]:
    """Every test clock that is ahead, and the accounts with a planned fault."""
    clocks = connection.execute(select(test_clocks.c.account_id, test_clocks.c.ahead_ms))
    ahead = {
        row.account_id: TestClock(ahead=timedelta(milliseconds=row.ahead_ms)) for row in clocks
    }
    failing = connection.execute(select(test_faults.c.account_id)).scalars()
    state = SandboxState(ahead, frozenset(failing))
    return [state] * len(items)
