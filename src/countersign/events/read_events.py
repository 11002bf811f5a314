"""Reading events: one, or what has happened since another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from countersign.access.key import Principal
from countersign.errors import CursorExpired, InvalidRequest, NotFound
from countersign.events.model import KEPT, Event, EventIds, EventQuery, EventType
from countersign.instant import from_ns, rfc3339, to_ms
from countersign.mode import Mode
from countersign.ports import Clock, EventStore

_log: Final = structlog.get_logger("countersign.events")
_NO_CURSOR: Final = "The query parameter after must be the id of an event of this account."


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """An event with its identifier."""

    id: str
    event: Event

    @property
    def message(self) -> Mapping[str, object]:
        """What a webhook says: the event as the API shows it, and the time by its standard name."""
        created_at = rfc3339(self.event.created_at)
        message: dict[str, object] = {
            "type": self.event.type.value,
            "timestamp": created_at,
            "id": self.id,
            "livemode": self.event.mode is Mode.LIVE,
            "created_at": created_at,
            "data": self.event.data,
        }
        if self.event.triggered:
            message["triggered"] = True
        return message


class ReadEvents:
    """The events of an account, oldest first: in one order, and none is ever left out."""

    def __init__(self, store: EventStore, ids: EventIds, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock

    async def begin(self) -> None:
        """Before serving: make sure that the order of events goes on after a restore."""
        if await self._store.heal():
            _log.warning("events_renumbered")

    def view(self, event: Event) -> EventView:
        """The event with its identifier."""
        return EventView(
            id=self._ids.compose(event.position.seq, to_ms(event.created_at)), event=event
        )

    async def one(self, account_id: str, mode: Mode, event_id: str) -> EventView:
        """One event.

        Raises:
            NotFound: there is none with this identifier in this account and mode.
        """
        event = await self._find(account_id, mode, event_id)
        if event is None:
            raise NotFound
        return EventView(id=event_id, event=event)

    async def many(
        self,
        principal: Principal,
        *,
        type_: EventType | None,
        after: str | None,
        since: datetime | None,
        limit: int,
    ) -> tuple[Sequence[EventView], str | None]:
        """A page, and the cursor of the next; None: these are the latest for now.

        With a type, a page may hold few or none although there is a next one.

        Whoever wants to go on later keeps the id of the last event: it is the cursor.

        Raises:
            InvalidRequest: `after` is not the id of an event of this account and mode.
            CursorExpired: that event is so old that some after it may be gone.
        """
        position = None
        if after is not None:
            last = await self._find(principal.account_id, principal.mode, after)
            if last is None:
                raise self._lost(after)
            position = last.position
        query = EventQuery(
            account_id=principal.account_id,
            mode=principal.mode,
            type=type_,
            after=position,
            since=since,
            limit=limit + 1,
        )
        events, last = await self._store.find(query)
        found = [self.view(event) for event in events]
        if len(found) > limit:
            return found[:limit], found[limit - 1].id
        return found, None if last is None else self.view(last).id

    async def _find(self, account_id: str, mode: Mode, event_id: str) -> Event | None:
        parsed = self._ids.parse(event_id)
        if parsed is None:
            return None
        seq, unix_ms = parsed
        event = await self._store.get(account_id, mode, seq)
        return event if event is not None and to_ms(event.created_at) == unix_ms else None

    def _lost(self, event_id: str) -> InvalidRequest | CursorExpired:
        parsed = self._ids.parse(event_id)
        oldest = to_ms(from_ns(self._clock.time_ns()) - KEPT)
        if parsed is not None and parsed[1] < oldest:
            return CursorExpired()
        return InvalidRequest(_NO_CURSOR)
