"""Test clocks and planned faults, and what test keys do to their sandbox by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Row,
    bindparam,
    delete,
    insert,
    select,
    type_coerce,
    update,
)

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.sandbox_state import NO_BUYER, Fault, FaultPlan, NewMove, SandboxState
from countersign.access.test_clock import REAL_TIME, TestClock
from countersign.buyers.expiry_sql import tell_expired
from countersign.buyers.model import Attempt, Buyer
from countersign.buyers.sql import (
    buyers_by_cbid,
    encoded_reasons,
    tell_of_buyer,
    write_buyer,
)
from countersign.db.database import Database
from countersign.db.tables import buyers, test_clocks, test_faults, verifications
from countersign.errors import CountersignError, InvalidRequest, NotFound
from countersign.events.model import Event, NewEvent
from countersign.events.sql import write_one_event
from countersign.instant import to_ms
from countersign.log.journal import Journal
from countersign.log.record import NewRecord
from countersign.mode import Mode

_EXPIRED_MAX: Final = 1000
"""Buyers told of in the transaction of an advance; the sweep tells of the others."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_SELECT_OVERDUE: Final = select(test_clocks.c.account_id, test_clocks.c.ahead_ms).where(
    select(buyers.c.cbid)
    .where(
        buyers.c.account_id == test_clocks.c.account_id,
        buyers.c.mode == Mode.TEST,
        type_coerce(buyers.c.expiry_due_at, BigInteger)
        <= bindparam("now", type_=BigInteger) + test_clocks.c.ahead_ms,
    )
    .exists()
)
_SELECT_SUBJECT: Final = (
    select(verifications.c.subject_index)
    .where(verifications.c.cbid == bindparam("cbid"))
    .order_by(verifications.c.id)
    .limit(1)
)


class _Advance(NamedTuple):
    account_id: str
    move: Callable[[TestClock], TestClock]
    at: datetime
    remember: Callable[[TestClock], IdempotencyEntry] | None


class _Plan(NamedTuple):
    account_id: str
    plan: FaultPlan
    at: datetime
    remember: Callable[[FaultPlan], IdempotencyEntry] | None


class _Trigger(NamedTuple):
    event: NewEvent
    remember: Callable[[Event], IdempotencyEntry] | None


class SandboxRows:
    """See `ports.SandboxStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def state(self) -> SandboxState:
        """Every test clock that is ahead, and the accounts with a planned fault."""
        return await self._database.read_batched(_state, None)

    async def advance(
        self,
        account_id: str,
        move: Callable[[TestClock], TestClock],
        at: datetime,
        remember: Callable[[TestClock], IdempotencyEntry] | None,
    ) -> TestClock:
        """Move a clock ahead, and tell of the buyers that expire by it.

        Raises:
            InvalidRequest: as `move` says.
        """
        return await self._database.write(_advance, _Advance(account_id, move, at, remember))

    async def reset(self, account_id: str) -> None:
        """Bring a clock to real time."""
        await self._database.write(_reset, account_id)

    async def overdue(self, now: datetime) -> bool:
        """Whether a buyer has expired by a test clock of whom nobody was told."""
        return await self._database.scan(_is_overdue, now)

    async def tell_overdue(self, now: datetime, limit: int) -> int:
        """Write `buyer.expired` for those that have expired by now; gives for how many."""
        return await self._database.write(_tell_overdue, (now, limit))

    async def planned(self, account_id: str) -> FaultPlan | None:
        """What verifications of an account meet."""
        return await self._database.read(_planned, account_id)

    async def plan(
        self,
        account_id: str,
        plan: FaultPlan,
        at: datetime,
        remember: Callable[[FaultPlan], IdempotencyEntry] | None,
    ) -> None:
        """Plan a fault, in place of one that was planned before."""
        await self._database.write(_plan, _Plan(account_id, plan, at, remember))

    async def take(self, account_id: str) -> FaultPlan | None:
        """The fault that this call meets; it counts as one of those that do."""
        return await self._database.write(_take, account_id)

    async def clear(self, account_id: str) -> None:
        """Forget what was planned."""
        await self._database.write(_clear, account_id)

    async def move_buyer(self, move: NewMove) -> Buyer:
        """Write a sandbox buyer in another state, with its record and its event.

        Raises:
            NotFound: the account has no such sandbox buyer.
        """
        return await self._database.write_batched(self._move_buyers, move)

    async def trigger(
        self, event: NewEvent, remember: Callable[[Event], IdempotencyEntry] | None
    ) -> Event:
        """Write an event that tells of nothing that happened."""
        return await self._database.write(_trigger, _Trigger(event, remember))

    def _move_buyers(
        self, connection: Connection, moves: Sequence[NewMove]
    ) -> list[Buyer | CountersignError]:
        written: list[NewRecord] = []
        outcomes = [_move_buyer(connection, move, written) for move in moves]
        self._journal.write(connection, written)
        return outcomes


def _state(connection: Connection, items: Sequence[None]) -> list[SandboxState]:
    clocks = connection.execute(select(test_clocks.c.account_id, test_clocks.c.ahead_ms))
    faults = connection.execute(select(test_faults.c.account_id))
    state = SandboxState(
        clocks={row.account_id: _clock(row.ahead_ms) for row in clocks},
        failing=frozenset(faults.scalars()),
    )
    return [state] * len(items)


def _advance(connection: Connection, item: _Advance) -> TestClock | InvalidRequest:
    own = test_clocks.c.account_id == item.account_id
    known = connection.execute(
        select(test_clocks.c.ahead_ms).where(own).with_for_update()
    ).scalar_one_or_none()
    try:
        clock = item.move(REAL_TIME if known is None else _clock(known))
    except InvalidRequest as refusal:
        return refusal
    values = {"ahead_ms": clock.ahead // _MILLISECOND, "changed_at": item.at}
    if known is None:
        # Where another process advances it at this moment too, its row makes this transaction
        # fail, and the call is done again by itself: then that row is seen.
        connection.execute(insert(test_clocks), {"account_id": item.account_id} | values)
    else:
        connection.execute(update(test_clocks).where(own).values(values))
    tell_expired(
        connection,
        expired_by=clock.at(item.at),
        at=item.at,
        limit=_EXPIRED_MAX,
        sandbox_of=item.account_id,
    )
    if item.remember is not None:
        keep_answers(connection, [item.remember(clock)])
    return clock


def _reset(connection: Connection, account_id: str) -> None:
    connection.execute(delete(test_clocks).where(test_clocks.c.account_id == account_id))


def _is_overdue(connection: Connection, now: datetime) -> bool:
    found = connection.execute(_SELECT_OVERDUE.limit(1), {"now": to_ms(now)})
    return found.first() is not None


def _tell_overdue(connection: Connection, item: tuple[datetime, int]) -> int:
    now, limit = item
    told = 0
    for account_id, ahead_ms in connection.execute(_SELECT_OVERDUE, {"now": to_ms(now)}).all():
        told += tell_expired(
            connection,
            expired_by=_clock(ahead_ms).at(now),
            at=now,
            limit=limit - told,
            sandbox_of=account_id,
        )
        if told >= limit:
            break
    return told


def _planned(connection: Connection, account_id: str) -> FaultPlan | None:
    row = connection.execute(
        select(test_faults).where(test_faults.c.account_id == account_id)
    ).one_or_none()
    return None if row is None else _to_plan(row)


def _plan(connection: Connection, item: _Plan) -> None:
    connection.execute(delete(test_faults).where(test_faults.c.account_id == item.account_id))
    connection.execute(
        insert(test_faults),
        {
            "account_id": item.account_id,
            "fault": item.plan.fault,
            "calls_left": item.plan.calls,
            "delay_ms": item.plan.delay // _MILLISECOND,
            "planned_at": item.at,
        },
    )
    if item.remember is not None:
        keep_answers(connection, [item.remember(item.plan)])


def _take(connection: Connection, account_id: str) -> FaultPlan | None:
    own = test_faults.c.account_id == account_id
    row = connection.execute(select(test_faults).where(own).with_for_update()).one_or_none()
    if row is None:
        return None
    if row.calls_left == 1:
        connection.execute(delete(test_faults).where(own))
    elif row.calls_left is not None:
        connection.execute(update(test_faults).where(own).values(calls_left=row.calls_left - 1))
    return _to_plan(row)


def _clear(connection: Connection, account_id: str) -> None:
    connection.execute(delete(test_faults).where(test_faults.c.account_id == account_id))


def _move_buyer(
    connection: Connection, move: NewMove, written: list[NewRecord]
) -> Buyer | CountersignError:
    before = buyers_by_cbid(connection, [move.cbid], to_change=True).get(move.cbid)
    if before is None or (before.account_id, before.mode) != (move.account_id, Mode.TEST):
        return NotFound(NO_BUYER)
    after = move.decide(before)
    if after != before:
        write_buyer(connection, before, after)
        written.append(move.record)
        told = Attempt(status=after.status, at=move.judged_at, reasons=after.reasons)
        connection.execute(
            insert(verifications),
            {
                "id": move.record.id,
                "account_id": move.account_id,
                "mode": Mode.TEST,
                "cbid": move.cbid,
                "provider": move.provider,
                # The session whose guesses of ZIP codes are counted.
                "subject_index": connection.execute(_SELECT_SUBJECT, {"cbid": move.cbid}).scalar(),
                "status": after.status,
                "reasons": encoded_reasons(told),
                "at": move.record.at,
            },
        )
        tell_of_buyer(connection, after, move.record.at, by=move.judged_at)
    if move.remember is not None:
        keep_answers(connection, [move.remember(after)])
    return after


def _trigger(connection: Connection, item: _Trigger) -> Event:
    event = write_one_event(connection, item.event)
    if item.remember is not None:
        keep_answers(connection, [item.remember(event)])
    return event


def _clock(ahead_ms: int) -> TestClock:
    return TestClock(ahead=timedelta(milliseconds=ahead_ms))


def _to_plan(row: Row[*tuple[Any, ...]]) -> FaultPlan:
    return FaultPlan(
        fault=Fault(row.fault),
        calls=row.calls_left,
        delay=timedelta(milliseconds=row.delay_ms),
    )
