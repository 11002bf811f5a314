"""Test clocks as servers read them: a snapshot of all that are ahead, at most 250 ms old.

An account without a test clock pays a look into a dictionary. What changes a sandbox returns only
when no server can still go by an older snapshot, so the response is true on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import Connection, select

from countersign.access.key import Principal
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.clock import Clock
from countersign.db.database import Database
from countersign.db.tables import test_clocks, test_faults
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.snapshot import STALENESS_SECONDS, Snapshot


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


class TestClocks:
    """The time by which the sandbox of an account goes."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._clock = clock
        self._state = Snapshot(partial(database.read_batched, sandbox_state, None), clock)

    async def of(self, account_id: str, mode: Mode) -> TestClock:
        """The clock of an account; its live mode goes by real time."""
        if mode is Mode.LIVE:
            return REAL_TIME
        return (await self._state.get()).clock(account_id)

    async def shown(self, principal: Principal) -> datetime | None:
        """What the test clock of the caller's account shows now; None: it goes by real time."""
        clock = await self.of(principal.account_id, principal.mode)
        return clock.shown(from_ns(self._clock.time_ns())) if clock.ahead else None

    async def is_failing(self, account_id: str) -> bool:
        """Whether a fault may be planned for the sandbox of an account."""
        return account_id in (await self._state.get()).failing

    async def renew(self) -> None:
        """After a change: read it, and wait until every other server has to have read it too."""
        await self._state.fresh()
        await asyncio.sleep(STALENESS_SECONDS)


def sandbox_state(connection: Connection, items: Sequence[None]) -> list[SandboxState]:
    """Every test clock that is ahead, and the accounts with a planned fault."""
    clocks = connection.execute(select(test_clocks.c.account_id, test_clocks.c.ahead_ms))
    ahead = {
        row.account_id: TestClock(ahead=timedelta(milliseconds=row.ahead_ms)) for row in clocks
    }
    failing = connection.execute(select(test_faults.c.account_id)).scalars()
    state = SandboxState(ahead, frozenset(failing))
    return [state] * len(items)
