"""Reading events."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.access.key import Scope
from countersign.errors import CursorExpired, NotFound
from countersign.events import read_events
from countersign.events.model import EventType, EventView
from countersign.events.room import Events
from countersign.http.examples import ACK_ID, EVENT_ID
from countersign.http.paging import Listing, Page, cursor
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped
from countersign.http.schemas import Timestamp, view
from countersign.reason import Reason


class Event(Struct, frozen=True, kw_only=True):
    """Something that has happened. It names objects; only events about buyers have reasons."""

    id: Annotated[
        str,
        Meta(description="The `webhook-id` of its deliveries, and a cursor.", examples=[EVENT_ID]),
    ]
    type: Annotated[EventType, Meta(examples=[EventType.ACKNOWLEDGMENT_CREATED])]
    livemode: bool
    created_at: Timestamp
    data: Annotated[
        dict[str, str | list[Reason] | None],
        Meta(
            description="Identifiers: `cbid`, `ack_id`, `clearance_id`, `checkout_session_id`, "
            "or those of a notice. `cbid` is null once the buyer is erased. `buyer.failed` and "
            "`buyer.requires_input` also have `reasons` for the account "
            "that made the attempt, with the codes of the verify response.",
            examples=[{"ack_id": ACK_ID}],
        ),
    ]
    triggered: Annotated[
        bool | UnsetType,
        Meta(description="True: a test key requested the event; nothing has happened."),
    ] = UNSET


AfterEvent = Annotated[str, cursor("the id of its last event", EVENT_ID)]


class EventsQuery(Listing[AfterEvent], frozen=True, kw_only=True):
    type: Annotated[
        EventType | None,
        Meta(description="Only events of this type.", examples=[EventType.BUYER_VERIFIED]),
    ] = None
    since: Annotated[Timestamp, Meta(description="Only events at or after this time.")] | None = (
        None
    )


async def list_events(room: Events, call: Call) -> Reply:
    """The account's events, oldest first. No event is skipped, and the order never changes.

    To follow the events, keep the `id` of the last event and send it as `after` in the next
    request.
    """
    query: EventsQuery = call.query
    found, cursor = await read_events.list_events(
        room,
        call.principal.reach,
        type_=query.type,
        after=query.after,
        since=query.since,
        limit=query.limit,
    )
    return Reply(encode(Page(data=[event_body(view) for view in found], next_cursor=cursor)))


async def get_event(room: Events, call: Call) -> Reply:
    """One event of this account."""
    found = await read_events.get_event(room, call.principal.reach, call.parameter)
    return Reply(encode(event_body(found)))


def event_body(found: EventView) -> Event:
    """The event as the API shows it."""
    triggered = True if found.event.triggered else UNSET
    return view(Event, found.event, id=found.id, triggered=triggered)


ROUTES: Final = grouped(
    "Events",
    Events,
    Route(
        address="GET /v1/events",
        handler=list_events,
        operation="listEvents",
        summary="List events, oldest first",
        scope=Scope.EVENTS_READ,
        query=EventsQuery,
        response=Page[Event],
        refusals=(CursorExpired,),
    ),
    Route(
        address="GET /v1/events/{event_id}",
        handler=get_event,
        operation="getEvent",
        summary="Get one event",
        scope=Scope.EVENTS_READ,
        response=Event,
        refusals=(NotFound,),
    ),
)
