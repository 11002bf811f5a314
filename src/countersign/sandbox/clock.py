"""The test clock of an account: reading it, advancing it, and back to real time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.access.test_clocks import sandbox_state
from countersign.buyers.expiry import write_expired
from countersign.db.tables import test_clocks
from countersign.errors import InvalidRequest
from countersign.instant import from_ns
from countersign.sandbox.room import SandboxRoom

_EXPIRED_MAX: Final = 1000
"""Buyers whose expiry is written in the transaction of an advance; the sweep writes the others."""
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockView:
    """A test clock at one moment."""

    now: datetime
    """What it shows."""
    real_time: datetime
    ahead: timedelta


async def show(room: SandboxRoom, account_id: str) -> ClockView:
    """The clock as it is now, on whichever server it was changed."""
    state = await room.buyers.database.read_batched(sandbox_state, None)
    return _view(state.clock(account_id), _now(room))


async def advance(
    room: SandboxRoom,
    account_id: str,
    *,
    by: timedelta | None = None,
    to: datetime | None = None,
    remember: Callable[[ClockView], IdempotencyEntry] | None = None,
) -> ClockView:
    """Move the clock ahead; when this returns, every server goes by it.

    The events of buyers that expire by it are written in the same transaction.

    Args:
        room: what the act works with.
        account_id: whose.
        by: how far.
        to: until it shows this time; one of the two is given.
        remember: makes the kept response for a repeated request.

    Raises:
        InvalidRequest: neither or both are given, it would go back, or too far ahead.
    """
    database = room.buyers.database
    view = await database.write(_advance, account_id, by, to, _now(room), remember)
    await room.buyers.test_clocks.renew()
    return view


async def reset(room: SandboxRoom, account_id: str) -> ClockView:
    """Back to real time; what was written by the clock stays as it is."""
    await room.buyers.database.write(_reset, account_id)
    await room.buyers.test_clocks.renew()
    return _view(REAL_TIME, _now(room))


def _advance(  # noqa: PLR0917 - see `Database.write`
    connection: Connection,
    account_id: str,
    by: timedelta | None,
    to: datetime | None,
    now: datetime,
    remember: Callable[[ClockView], IdempotencyEntry] | None,
) -> ClockView | InvalidRequest:
    of_account = test_clocks.c.account_id == account_id
    ahead = connection.execute(
        select(test_clocks.c.ahead_ms).where(of_account).with_for_update()
    ).scalar_one_or_none()
    known = REAL_TIME if ahead is None else TestClock(ahead=ahead * _MILLISECOND)
    try:
        clock = _moved(known, by, to, now)
    except InvalidRequest as refusal:
        return refusal
    values = {"ahead_ms": clock.ahead // _MILLISECOND, "changed_at": now}
    if ahead is None:
        # Where another process advances it at this moment too, its row makes this transaction
        # fail, and the call is done again by itself: then that row is seen.
        connection.execute(insert(test_clocks), {"account_id": account_id} | values)
    else:
        connection.execute(update(test_clocks).where(of_account).values(values))
    write_expired(
        connection,
        expired_by=clock.at(now),
        at=now,
        limit=_EXPIRED_MAX,
        sandbox_of=account_id,
    )
    view = _view(clock, now)
    if remember is not None:
        keep_answers(connection, [remember(view)])
    return view


def _moved(clock: TestClock, by: timedelta | None, to: datetime | None, now: datetime) -> TestClock:
    if by is not None and to is None:
        return clock.advanced(by)
    if to is not None and by is None:
        return clock.advanced_to(to, now)
    msg = "Give either the time to advance by, or the time to advance to."
    raise InvalidRequest(msg)


def _reset(connection: Connection, account_id: str) -> None:
    connection.execute(delete(test_clocks).where(test_clocks.c.account_id == account_id))


def _now(room: SandboxRoom) -> datetime:
    return from_ns(room.buyers.clock.time_ns())


def _view(clock: TestClock, now: datetime) -> ClockView:
    return ClockView(now=clock.at(now), real_time=now, ahead=clock.ahead)
