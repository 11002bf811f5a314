"""Decisions about identity checks reach sessions that no browser shows: a loop takes them over.

A buyer who closes the window while the provider decides is still verified, and the vendor gets the
event.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from sqlalchemy import Connection, func, select

from countersign.base.db.tables import checkout_sessions, started_checks
from countersign.base.loops import forever
from countersign.core.checkout.expiry import change_all
from countersign.hosted.pages.identity import take_over
from countersign.hosted.pages.room import HostedPages

PERIOD_SECONDS: Final = 2.0
CHUNK: Final = 200

_c: Final = checkout_sessions.c
_NEWS: Final = (
    select(_c.id)
    .join(started_checks, started_checks.c.reference == _c.id)
    # Open sessions only; there is an index for it.
    .where(_c.expiry_due_at.is_not(None), started_checks.c.revision > 0)
    .group_by(_c.id, _c.check_revision)
    .having(func.sum(started_checks.c.revision) > _c.check_revision)
    .order_by(_c.id)
    .limit(CHUNK)
)


async def run(room: HostedPages) -> None:
    """Look again and again, until cancelled."""
    await forever("checkout_following", partial(sweep, room, set()), PERIOD_SECONDS)


async def sweep(room: HostedPages, damaged: set[str] | None = None) -> int:
    """Take over all decisions that there are by now; returns how many sessions they changed.

    `damaged` as for `change_all`. If a round changes none, another process was faster, or their
    time is over.
    """
    wanted = partial(room.access.database.scan, news)
    return await change_all(room, wanted, partial(take_over, room), damaged)


def news(connection: Connection, but: Collection[str] = ()) -> list[str]:
    """Open sessions with decisions that are not applied yet, oldest first; at most CHUNK."""
    wanted = _NEWS.where(_c.id.not_in(but)) if but else _NEWS
    return [*connection.execute(wanted).scalars()]
