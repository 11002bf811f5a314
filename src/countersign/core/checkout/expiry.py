"""`checkout_session.expired`: a loop ends the sessions whose time is over.

The status itself needs no such loop: it is computed whenever it is read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy import BigInteger, Connection, bindparam, func, or_, select, type_coerce, update

from countersign.base.db.statements import chunks
from countersign.base.db.tables import checkout_sessions, test_clocks
from countersign.base.errors import DamagedValue
from countersign.base.loops import forever
from countersign.base.values import Mode, from_ns, to_ms
from countersign.core.checkout.model import Session, expired
from countersign.core.checkout.room import Checkout
from countersign.core.checkout.store import change, find_by_id

PERIOD_SECONDS: Final = 2.0
CHUNK: Final = 200

_log: Final = structlog.get_logger("countersign.checkout")
_c: Final = checkout_sessions.c
_now: Final = bindparam("now", type_=BigInteger)
_ahead: Final = (
    select(test_clocks.c.ahead_ms)
    .where(test_clocks.c.account_id == _c.account_id, _c.mode == Mode.TEST)
    .scalar_subquery()
)
_furthest: Final = select(func.coalesce(func.max(test_clocks.c.ahead_ms), 0)).scalar_subquery()
_due: Final = type_coerce(_c.expiry_due_at, BigInteger)
_DUE: Final = (
    select(_c.id)
    # Sandboxes whose clock is ahead expire earlier. The first condition lets the index be used.
    .where(_due <= _now + _furthest, or_(_due <= _now, _due <= _now + _ahead))
    .order_by(_c.expiry_due_at)
    .limit(CHUNK)
)


async def run(room: Checkout) -> None:
    """Sweep again and again, until cancelled."""
    await forever("checkout_expiry", partial(sweep, room, set()), PERIOD_SECONDS)


async def sweep(room: Checkout, damaged: set[str] | None = None) -> int:
    """End all sessions whose time is over by now; returns how many. `damaged` as for `change_all`.

    If a round ends none, another process has ended them.
    """

    async def over(but: Collection[str]) -> list[str]:
        return await room.access.database.scan(due, from_ns(room.access.clock.time_ns()), but)

    return await change_all(room, over, lambda one: change(room, one, expired), damaged)


async def change_all(
    room: Checkout,
    wanted: Callable[[Collection[str]], Awaitable[list[str]]],
    act: Callable[[Session], Awaitable[Session]],
    damaged: set[str] | None,
) -> int:
    """Change the wanted sessions, until there are none, or a round changes none; returns how many.

    `damaged`: ids of unreadable sessions, which are logged and then skipped. New ones are added.
    """
    number, damaged = 0, set() if damaged is None else damaged
    while ids := await wanted(damaged):
        before = number
        for session_id in ids:
            try:
                session = await find_by_id(room, session_id)
                number += session is not None and await act(session) is not session
            except DamagedValue as error:
                _log.error("checkout_session_damaged", session_id=session_id, reason=error.message)
                damaged.add(session_id)
        if number == before:
            break
    return number


def still_open(connection: Connection, account_id: str) -> Sequence[str]:
    """The sessions of an account, of both modes, that have not ended."""
    own = _c.account_id == account_id
    # An index finds the few sessions that still expire.
    query = select(_c.id).where(own, _c.expiry_due_at.is_not(None))
    return connection.execute(query).scalars().all()


def end_all(connection: Connection, account_id: str, now: datetime) -> None:
    """Expire the open sessions of an account now; the loop reports each in its next run."""
    over = {"expires_at": now, "expiry_due_at": now, "revision": _c.revision + 1}
    for ids in chunks(still_open(connection, account_id)):
        # Judged again where another transaction had the row: a session may have ended meanwhile.
        mine = _c.id.in_(ids), _c.expiry_due_at.is_not(None)
        connection.execute(update(checkout_sessions).where(*mine).values(over))


def due(connection: Connection, now: datetime, but: Collection[str] = ()) -> list[str]:
    """Open sessions whose time is over, the first to expire first; at most CHUNK."""
    wanted = _DUE.where(_c.id.not_in(but)) if but else _DUE
    return [*connection.execute(wanted, {"now": to_ms(now)}).scalars()]
