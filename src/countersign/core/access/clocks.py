"""Test clocks as servers read them: a snapshot of all that are ahead, at most 250 ms old.

An account without a test clock costs one dictionary look-up. An act that changes a sandbox returns
only when no server can use an older snapshot, so the response is true on every server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection

from countersign.base.db.database import Database
from countersign.base.db.statements import DriverStatement
from countersign.base.errors import InvalidRequest
from countersign.base.snapshot import STALENESS_SECONDS, Snapshot
from countersign.base.values import Clock, Mode, from_ns, rfc3339_ms

AHEAD_MAX: Final = timedelta(days=3650)
"""How far ahead of real time a test clock can be."""


class AccountClock(Struct, frozen=True, kw_only=True):
    """How far an account's sandbox is ahead; none: real time."""

    ahead: timedelta = timedelta(0)

    def at(self, now: datetime) -> datetime:
        return now + self.ahead

    def text(self, now: datetime) -> str | None:
        """`test_clock` of a record, whose own time is always real; None if it is the same."""
        return rfc3339_ms(now + self.ahead) if self.ahead else None

    def member(self, now: datetime) -> dict[str, str]:
        """The member `test_clock` of a record, if it has one."""
        text = self.text(now)
        return {} if text is None else {"test_clock": text}

    def advanced(self, step: timedelta) -> AccountClock:
        """This clock, moved ahead.

        Raises InvalidRequest if it would go back, or be further ahead than AHEAD_MAX.
        """
        if step < timedelta(0):
            raise InvalidRequest("A test clock cannot go back; reset it to return to real time.")
        ahead = self.ahead + step
        if ahead > AHEAD_MAX:
            raise InvalidRequest(
                f"A test clock can be at most {AHEAD_MAX.days} days ahead of real time."
            )
        return AccountClock(ahead=ahead)

    def advanced_to(self, time: datetime, now: datetime) -> AccountClock:
        """This clock, moved ahead until it shows that time, to the end of its second.

        All times of the API are cut to the second, so the events of that second have happened.

        Raises InvalidRequest if it shows a later time already, or that is too far ahead.
        """
        return self.advanced(time.replace(microsecond=999_000) - self.at(now))


REAL_TIME: Final = AccountClock()
_ahead: Final = DriverStatement("SELECT account_id, ahead_ms FROM test_clocks")
_failing: Final = DriverStatement("SELECT account_id FROM test_faults")


@dataclass(frozen=True, slots=True)
class SandboxState:
    """The servers' cache of all sandboxes."""

    clocks: Mapping[str, AccountClock]
    """By account; only clocks that are ahead."""
    failing: frozenset[str]
    """The accounts for which a fault of the identity provider is planned."""

    def clock(self, account_id: str) -> AccountClock:
        return self.clocks.get(account_id, REAL_TIME)


class TestClocks:
    """The time in an account's sandbox."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._clock = clock
        self._state = Snapshot(partial(database.read_batched, sandbox_state, None), clock)

    async def of(self, account_id: str, mode: Mode) -> AccountClock:
        """The clock of an account; its live mode goes by real time."""
        if mode is Mode.LIVE:
            return REAL_TIME
        return (await self._state.get()).clocks.get(account_id, REAL_TIME)

    async def now(self, account_id: str, mode: Mode) -> datetime:
        """The present, by the account's test clock if the mode has one."""
        now = from_ns(self._clock.time_ns())
        if mode is Mode.LIVE:
            return now
        return now + (await self._state.get()).clocks.get(account_id, REAL_TIME).ahead

    async def is_failing(self, account_id: str) -> bool:
        """Whether a fault may be planned for the sandbox of an account."""
        return account_id in (await self._state.get()).failing

    async def renew(self) -> None:
        """After a change: read it, and wait until every other server has to have read it too."""
        await self._state.fresh()
        await asyncio.sleep(STALENESS_SECONDS)


def sandbox_state(connection: Connection, items: Sequence[None]) -> list[SandboxState]:
    """Every test clock that is ahead, and the accounts with a planned fault."""
    ahead = {id_: AccountClock(ahead=timedelta(milliseconds=ms)) for id_, ms in _ahead(connection)}
    state = SandboxState(ahead, frozenset(id_ for (id_,) in _failing(connection)))
    return [state] * len(items)
