"""Reading events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.structs import replace
from sqlalchemy import Connection, Row, select

from countersign.base.errors import CursorExpired, InvalidRequest, NotFound
from countersign.base.http.schemas import (
    ACK_ID,
    EVENT_ID,
    Listing,
    Page,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import Reason, from_ns, to_ms
from countersign.core.access.key import Scope
from countersign.core.access.reach import Reach
from countersign.core.events import sql
from countersign.core.events.model import KEPT, EventIds, EventType, Position, RecordedEvent
from countersign.core.events.room import Events
from countersign.core.events.sql import find_event
from countersign.core.gate.act import Acts


class Event(Struct, frozen=True, kw_only=True):
    """Something that has happened. It names objects; only events about buyers have reasons."""

    id: Annotated[str, Meta(examples=[EVENT_ID])]
    """The `webhook-id` of its deliveries, and a cursor."""
    type: Annotated[EventType, Meta(examples=[EventType.ACKNOWLEDGMENT_CREATED])]
    livemode: bool
    created_at: Timestamp
    data: Annotated[dict[str, str | list[Reason] | None], Meta(examples=[{"ack_id": ACK_ID}])]
    """Identifiers: `cbid`, `ack_id`, `clearance_id`, `checkout_session_id`, or those of a notice.
    `cbid` is null once the buyer is erased. `buyer.failed` and `buyer.requires_input` also have
    `reasons` for the account that made the attempt, with the codes of the verify response."""
    triggered: bool | UnsetType = UNSET
    """True: a test key requested the event; nothing has happened."""


AfterEvent = Annotated[str, cursor("the id of its last event", EVENT_ID)]


class EventsQuery(Listing[AfterEvent], frozen=True, kw_only=True):
    type: Annotated[EventType | None, Meta(examples=[EventType.BUYER_VERIFIED])] = None
    """Only events of this type."""
    since: Timestamp | None = None
    """Only events at or after this time."""


EVENTS: Final = Acts("Events", Events, scope=Scope.EVENTS_READ)


@EVENTS.act("GET /v1/events", "List events, oldest first", refusals=(CursorExpired,))
def list_events(
    connection: Connection, events: Events, reach: Reach, query: EventsQuery
) -> Page[Event]:
    """The account's events, oldest first. No event is skipped, and the order never changes.

    To follow the events, keep the `id` of the last event and send it as `after` in the next
    request.
    """
    # With a type, a page can have few or no events although there is a next one.
    position = Position(-1, 0)
    if query.after is not None:
        position = _position(connection, events, reach, query.after)
    found, last = _found(connection, reach, position, query)
    page = page_of([event_view(events.ids, one) for one in found], query.limit, lambda one: one.id)
    return page if last is None else replace(page, next_cursor=event_view(events.ids, last).id)


@EVENTS.act("GET /v1/events/{event_id}", "Get one event", refusals=(NotFound,))
def get_event(connection: Connection, events: Events, reach: Reach, event_id: str) -> Event:
    """One event of this account."""
    found = find_event(connection, events, reach, event_id)
    if found is None:
        raise NotFound
    return event_view(events.ids, found)


def _found(
    connection: Connection, reach: Reach, position: Position, query: EventsQuery
) -> tuple[Sequence[RecordedEvent], RecordedEvent | None]:
    """Events after a position, one more than the page has; no later commit adds one before them.

    Fewer may not be all: then the second is the event to continue after.
    """
    type_, since, limit = query.type, query.since, query.limit + 1
    if since is not None:
        position = max(position, sql.last_before(connection, reach, since))
    # A rare type must not scan all events while others wait.
    number = limit if type_ is None else sql.WINDOW
    window = sql.after(connection, reach, position, number)
    rows = window.subquery()
    statement = select(rows).order_by(rows.c.tx, rows.c.seq).limit(limit)
    if type_ is not None:
        of_type = [type_, sql.CREATED_AND_SEALED] if type_ in sql.BOTH else [type_]
        statement = statement.where(rows.c.type.in_(of_type))
    if since is not None:
        statement = statement.where(rows.c.at >= since)
    picked = connection.execute(statement).all()
    wanted = (
        event
        for event in sql.later(picked, position)
        if type_ in {None, event.type} and (since is None or event.created_at >= since)
    )
    found = [*islice(wanted, limit)]
    if len(found) == limit:
        return found, None
    if len(picked) == limit:
        last: Row[*tuple[Any, ...]] | None = picked[-1]
    else:
        last = connection.execute(window.limit(1).offset(number - 1)).one_or_none()
    return found, None if last is None else [*sql.to_events(last)][-1]


def _position(connection: Connection, events: Events, reach: Reach, after: str) -> Position:
    """Where the event of a cursor stands."""
    last = find_event(connection, events, reach, after)
    if last is not None:
        return last.position
    parsed, now = events.ids.parse(after), from_ns(events.access.clock.time_ns())
    if parsed is not None and parsed[1] < to_ms(now - KEPT):
        raise CursorExpired
    raise InvalidRequest("The query parameter after must be the id of an event of this account.")


def event_view(ids: EventIds, event: RecordedEvent) -> Event:
    """The event as the API shows it."""
    triggered = True if event.triggered else UNSET
    return view(Event, event, id=ids.of(event), triggered=triggered)


def message_of(event: Event) -> dict[str, object]:
    """The body of a webhook: the event as the API shows it, and `timestamp`.

    Standard Webhooks 1.0.0 has that name for the time.
    """
    shown = to_builtins(event)
    return {"type": shown["type"], "timestamp": shown["created_at"], **shown}


ROUTES: Final = EVENTS.routes
