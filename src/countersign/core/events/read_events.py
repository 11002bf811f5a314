"""Finding an event, and the order that all are read in."""

from __future__ import annotations

from typing import Final

import structlog
from sqlalchemy import Connection

from countersign.base.values import to_ms
from countersign.core.access.key import Reach
from countersign.core.events import sql
from countersign.core.events.model import RecordedEvent
from countersign.core.events.room import Events

_log: Final = structlog.get_logger("countersign.events")


async def repair_order(events: Events) -> None:
    """Before serving: make sure that the order of events continues after a restore."""
    if await events.access.database.write(sql.renumber_restored):
        _log.warning("events_renumbered")


def find_event(
    connection: Connection, events: Events, reach: Reach, event_id: str
) -> RecordedEvent | None:
    """The event with this identifier, if it is in reach."""
    parsed = events.ids.parse(event_id)
    if parsed is None:
        return None
    seq, unix_ms = parsed
    event = sql.find(connection, reach, seq)
    return event if event is not None and to_ms(event.created_at) == unix_ms else None
