"""Reading events: one, or what has happened since another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog

from countersign.access.reach import Reach
from countersign.errors import CursorExpired, InvalidRequest, NotFound
from countersign.events import sql
from countersign.events.model import KEPT, EventIds, EventType, EventView, RecordedEvent
from countersign.events.room import Events
from countersign.instant import from_ns, to_ms

_log: Final = structlog.get_logger("countersign.events")
_NO_CURSOR: Final = "The query parameter after must be the id of an event of this account."


async def repair_order(events: Events) -> None:
    """Before serving: make sure that the order of events continues after a restore."""
    if await events.access.database.write(sql.renumber_restored):
        _log.warning("events_renumbered")


async def get_event(events: Events, reach: Reach, event_id: str) -> EventView:
    event = await _find(events, reach, event_id)
    if event is None:
        raise NotFound
    return EventView(id=event_id, event=event)


async def list_events(
    events: Events,
    reach: Reach,
    *,
    type_: EventType | None = None,
    after: str | None = None,
    since: datetime | None = None,
    limit: int,
) -> tuple[Sequence[EventView], str | None]:
    """A page, oldest first, and the cursor of the next; None: these are the latest for now.

    No event is left out. With a type, a page can have few or no events although there is a next
    one. To continue later, keep the id of the last event: it is the cursor.
    """
    position = None
    if after is not None:
        last = await _find(events, reach, after)
        if last is None:
            raise _no_cursor(events.ids, after, from_ns(events.access.clock.time_ns()))
        position = last.position
    found, last = await events.access.database.scan(
        sql.find_page,
        reach,
        type_=type_,
        position=position,
        since=since,
        limit=limit + 1,
    )
    views = [events.ids.view(event) for event in found]
    if len(views) > limit:
        return views[:limit], views[limit - 1].id
    return views, None if last is None else events.ids.view(last).id


async def _find(events: Events, reach: Reach, event_id: str) -> RecordedEvent | None:
    parsed = events.ids.parse(event_id)
    if parsed is None:
        return None
    seq, unix_ms = parsed
    event = await events.access.database.read(sql.find, reach, seq)
    return event if event is not None and to_ms(event.created_at) == unix_ms else None


def _no_cursor(ids: EventIds, event_id: str, now: datetime) -> InvalidRequest | CursorExpired:
    parsed = ids.parse(event_id)
    if parsed is not None and parsed[1] < to_ms(now - KEPT):
        return CursorExpired()
    return InvalidRequest(_NO_CURSOR)
