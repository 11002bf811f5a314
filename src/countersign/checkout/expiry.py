"""`checkout_session.expired`: a loop ends the sessions whose time is over.

The status itself needs no such loop: it is computed whenever it is read.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy import BigInteger, Connection, bindparam, func, or_, select, type_coerce

from countersign.checkout.model import expired
from countersign.checkout.room import Checkout
from countersign.checkout.store import change, find_by_id
from countersign.db.tables import checkout_sessions, test_clocks
from countersign.errors import DamagedValue
from countersign.instant import from_ns, to_ms
from countersign.loops import forever
from countersign.mode import Mode

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
    # Sandboxes whose clock is ahead expire earlier. The first condition is what the index is for.
    .where(_due <= _now + _furthest, or_(_due <= _now, _due <= _now + _ahead))
    .order_by(_c.expiry_due_at)
    .limit(CHUNK)
)


async def run(room: Checkout) -> None:
    """Sweep again and again, until cancelled."""
    await forever("checkout_expiry", partial(sweep, room, set()), PERIOD_SECONDS)


async def sweep(room: Checkout, damaged: set[str] | None = None) -> int:
    """End all sessions whose time is over by now; returns how many.

    `damaged` are those that were reported before: each is reported once.
    """
    damaged = set() if damaged is None else damaged
    ended = 0
    while ids := await room.access.database.scan(due, from_ns(room.access.clock.time_ns())):
        before = ended
        for session_id in ids:
            try:
                session = await find_by_id(room, session_id)
                if session is not None:
                    ended += await change(room, session, expired) is not session
            except DamagedValue as error:
                # One session keeps no other open.
                if session_id not in damaged:
                    damaged.add(session_id)
                    _log.error(
                        "checkout_session_damaged",
                        checkout_session=session_id,
                        detail=error.message,
                    )
        if ended == before:
            break  # another process has ended them, or they cannot be read
    return ended


def due(connection: Connection, now: datetime) -> list[str]:
    """Open sessions whose time is over, the first to expire first; at most CHUNK."""
    return [*connection.execute(_DUE, {"now": to_ms(now)}).scalars()]
