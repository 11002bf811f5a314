"""Manual control of a test key's sandbox: clock, buyers, events.

Each act is for an account and never for its live mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from msgspec import UNSET
from sqlalchemy import Connection, delete, insert, select, update

from countersign.base.db.tables import test_clocks, verifications
from countersign.base.errors import InvalidRequest, NotFound
from countersign.base.http.schemas import view
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CHECKOUT_SESSION,
    CLEARANCE,
    SANDBOX_BUYER,
    Mode,
    Reason,
    base32,
    from_ns,
    is_id,
    timed_id,
)
from countersign.core.access.clocks import REAL_TIME, AccountClock, sandbox_state
from countersign.core.access.room import Access
from countersign.core.buyers.expiry import write_expiries
from countersign.core.buyers.model import BuyerStatus, status_view
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.sandbox import SimulatedAct, in_state, write_simulated
from countersign.core.buyers.schemas import BuyerStatusAnswer
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.core.events.model import EventType, NewEvent, RecordedEvent
from countersign.core.events.room import Events
from countersign.core.events.routes import Event, event_view
from countersign.core.events.sql import write_one_event
from countersign.core.sandbox.schemas import TestClock


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRoom:
    """Manual control by test keys."""

    buyers: Buyers
    events: Events

    @property
    def access(self) -> Access:
        return self.buyers.access


_PREFIXES: Final = {
    "buyer": SANDBOX_BUYER,
    "acknowledgment": ACKNOWLEDGMENT,
    "clearance": CLEARANCE,
    "checkout_session": CHECKOUT_SESSION,
}
"""Prefixes of object identifiers, by the first word of an event's type."""
_NOTICE_ID_MAX: Final = 64
_NO_OBJECT: Final = "Expected {} for this type of event - at `$.object_id`."
NO_BUYER: Final = "The buyer identifier was not found in the sandbox of this account."


def move_buyer(
    connection: Connection,
    room: SandboxRoom,
    act: SimulatedAct,
    result: tuple[BuyerStatus, tuple[Reason, ...]],
) -> BuyerStatusAnswer | NotFound:
    """Put a sandbox buyer in any state; the event of that state is written with it."""
    before = buyers_by_cbid(connection, [act.cbid], to_change=True).get(act.cbid)
    if before is None or (before.account_id, before.mode) != (act.account_id, Mode.TEST):
        return NotFound(NO_BUYER)
    after = in_state(before, *result, act.now)
    if after != before:
        # The session whose guesses of ZIP codes are counted.
        of_buyer = select(verifications.c.subject_index).where(verifications.c.cbid == act.cbid)
        first = connection.execute(of_buyer.order_by(verifications.c.id).limit(1)).scalar()
        change = (room.buyers, act, (before, after), result)
        write_simulated(connection, *change, subject_index=first, members={"test_helper": True})
    shown = status_view(after, act.account_id, room.buyers.providers.floor, act.now)
    return view(BuyerStatusAnswer, shown, cbid=act.cbid, reasons=shown.reasons or UNSET)


def trigger_event(connection: Connection, room: SandboxRoom, new: NewEvent) -> Event:
    """Write an event without a cause; it is listed and delivered with `triggered: true`."""
    return event_view(room.events.ids, write_one_event(connection, new))


def event_of(
    room: SandboxRoom, account_id: str, type_: EventType, object_id: str | None
) -> NewEvent:
    """An event about this object; None: about an object that does not exist.

    Raises InvalidRequest if the id is not of an object that such an event is about.
    """
    time_ns = room.access.clock.time_ns()
    now = from_ns(time_ns)
    example = RecordedEvent.example(account_id, Mode.TEST, type_, now)
    prefix = _PREFIXES.get(type_.partition(".")[0])
    if prefix is None:
        if object_id is not None and not 0 < len(object_id) <= _NOTICE_ID_MAX:
            raise InvalidRequest(_NO_OBJECT.format("the id of a notice"))
        object_id = object_id or example.object_id
    elif object_id is None:
        object_id = f"{prefix}_{base32(int.from_bytes(room.access.entropy(16), 'big'))}"
        if prefix != SANDBOX_BUYER:  # that one is random
            object_id = timed_id(prefix, time_ns, room.access.entropy(8))
    elif not is_id(prefix, object_id):
        raise InvalidRequest(_NO_OBJECT.format(f"an identifier that begins with {prefix}_"))
    return NewEvent(account_id, Mode.TEST, type_, object_id, now, example.version, triggered=True)


_EXPIRED_MAX: Final = 1000
"""Buyers whose expiry is written in the transaction of an advance; the sweep writes the rest."""
_MILLISECOND: Final = timedelta(milliseconds=1)


async def show_clock(room: SandboxRoom, account_id: str) -> TestClock:
    """The clock as it is now, on whichever server it was changed."""
    state = await room.access.database.read_batched(sandbox_state, None)
    return _clock_view(state.clock(account_id), _now(room))


def advance_clock(
    connection: Connection,
    room: SandboxRoom,
    account_id: str,
    *,
    by: timedelta | None,
    to: datetime | None,
) -> TestClock:
    """Move the clock ahead, `by` so much or `to` that time.

    The events of buyers that expire by it, or soon will, are written in the same transaction.

    Raises InvalidRequest if it would go back, or too far ahead.
    """
    of_account, now = test_clocks.c.account_id == account_id, _now(room)
    known = select(test_clocks.c.ahead_ms).where(of_account).with_for_update()
    ahead = connection.execute(known).scalar_one_or_none()
    clock = REAL_TIME if ahead is None else AccountClock(ahead=ahead * _MILLISECOND)
    if by is not None:
        clock = clock.advanced(by)
    if to is not None:
        clock = clock.advanced_to(to, now)
    values = {"ahead_ms": clock.ahead // _MILLISECOND, "changed_at": now}
    if ahead is None:
        # If another process advances it at the same moment, its row makes this transaction fail;
        # the call is retried and then sees that row.
        connection.execute(insert(test_clocks), {"account_id": account_id} | values)
    else:
        connection.execute(update(test_clocks).where(of_account).values(values))
    write_expiries(connection, account_id, by=clock.at(now), at=now, limit=_EXPIRED_MAX)
    return _clock_view(clock, now)


def reset_clock(connection: Connection, room: SandboxRoom, account_id: str) -> TestClock:
    """Back to real time; data written by the test clock stays as it is."""
    connection.execute(delete(test_clocks).where(test_clocks.c.account_id == account_id))
    return _clock_view(REAL_TIME, _now(room))


def _now(room: SandboxRoom) -> datetime:
    return from_ns(room.access.clock.time_ns())


def _clock_view(clock: AccountClock, now: datetime) -> TestClock:
    return TestClock(
        now=clock.at(now).replace(microsecond=0),
        real_time=now.replace(microsecond=0),
        ahead_seconds=clock.ahead // timedelta(seconds=1),
    )
