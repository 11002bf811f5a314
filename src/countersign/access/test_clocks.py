"""Test clocks as servers read them: a snapshot of all that are ahead, at most 250 ms old.

An account without a test clock pays a look into a dictionary. What changes a sandbox returns only
when no server can still go by an older snapshot, so the response is true on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.key import Principal
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.clock import Clock
from countersign.errors import InvalidRequest
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.ports import SandboxStore
from countersign.snapshot import STALENESS_SECONDS, Snapshot

_CHUNK: Final = 200


class TestClocks:
    """By which time the sandbox of an account is judged."""

    def __init__(self, store: SandboxStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._state = Snapshot(store.state, clock)

    async def of(self, account_id: str, mode: Mode) -> TestClock:
        """The clock by which an account is judged; its live mode goes by real time."""
        if mode is Mode.LIVE:
            return REAL_TIME
        return (await self._state.get()).clock(account_id)

    async def shown(self, principal: Principal) -> datetime | None:
        """What the test clock of whoever asks shows now; None: real time is what counts."""
        clock = await self.of(principal.account_id, principal.mode)
        return clock.shown(from_ns(self._clock.time_ns())) if clock.ahead else None

    async def is_failing(self, account_id: str) -> bool:
        """Whether a fault may be planned for the sandbox of an account."""
        return account_id in (await self._state.get()).failing

    async def tell_expired(self) -> int:
        """Tell of the buyers that have expired by test clocks; gives how many."""
        told = 0
        while await self._store.overdue(now := from_ns(self._clock.time_ns())):
            # Nothing: another process is telling of them at this moment.
            if not (number := await self._store.tell_overdue(now, _CHUNK)):
                break
            told += number
        return told

    async def renew(self) -> None:
        """After a change: read it, and wait until every other server has to have read it too."""
        await self._state.fresh()
        await asyncio.sleep(STALENESS_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockView:
    """A test clock at one moment."""

    now: datetime
    """What it shows."""
    real_time: datetime
    ahead: timedelta


class ManageTestClock:
    """The test clock of an account: reading it, advancing it, and back to real time."""

    def __init__(self, store: SandboxStore, clocks: TestClocks, clock: Clock) -> None:
        self._store = store
        self._clocks = clocks
        self._clock = clock

    async def show(self, account_id: str) -> ClockView:
        """The clock as it is now, on whichever server it was changed."""
        clock = (await self._store.state()).clock(account_id)
        return _view(clock, from_ns(self._clock.time_ns()))

    async def advance(
        self,
        account_id: str,
        *,
        by: timedelta | None = None,
        to: datetime | None = None,
        remember: Callable[[ClockView], IdempotencyEntry] | None = None,
    ) -> ClockView:
        """Move the clock ahead; when this returns, every server goes by it.

        Buyers that expire by it are told of in the same transaction.

        Args:
            account_id: whose.
            by: how far.
            to: until it shows this time; one of the two is given.
            remember: makes the answer that is kept for a repeated request.

        Raises:
            InvalidRequest: neither or both are given, it would go back, or too far ahead.
        """
        now = from_ns(self._clock.time_ns())

        def move(clock: TestClock) -> TestClock:
            if by is not None and to is None:
                return clock.advanced(by)
            if to is not None and by is None:
                return clock.advanced_to(to, now)
            msg = "Give either the time to advance by, or the time to advance to."
            raise InvalidRequest(msg)

        kept = None if remember is None else lambda clock: remember(_view(clock, now))
        advanced = await self._store.advance(account_id, move, now, kept)
        await self._clocks.renew()
        return _view(advanced, now)

    async def reset(self, account_id: str) -> ClockView:
        """Back to real time; what was written by the clock stays as it is."""
        await self._store.reset(account_id)
        await self._clocks.renew()
        return _view(REAL_TIME, from_ns(self._clock.time_ns()))


def _view(clock: TestClock, now: datetime) -> ClockView:
    return ClockView(now=clock.at(now), real_time=now, ahead=clock.ahead)
