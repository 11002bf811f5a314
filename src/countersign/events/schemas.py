"""The body of an event."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.events.model import EventType, EventView
from countersign.http.schemas import Timestamp
from countersign.mode import Mode
from countersign.reason import Reason


class Event(Struct, frozen=True, kw_only=True):
    """Something that has happened. It names objects; only events about buyers have reasons."""

    id: Annotated[str, Meta(description="The `webhook-id` of its deliveries, and a cursor.")]
    type: EventType
    livemode: bool
    created_at: Timestamp
    data: Annotated[
        dict[str, str | list[Reason]],
        Meta(
            description="Identifiers: `cbid`, `ack_id`, `clearance_id`, or those of a notice. "
            "`buyer.failed` and `buyer.requires_input` also have `reasons` for the account "
            "that made the attempt, with the codes of the verify response."
        ),
    ]
    triggered: (
        Annotated[
            bool,
            Meta(description="True: a test key requested the event; nothing has happened."),
        ]
        | UnsetType
    ) = UNSET


def event_body(view: EventView) -> Event:
    """The event as the API shows it."""
    event = view.event
    return Event(
        id=view.id,
        type=event.type,
        livemode=event.mode is Mode.LIVE,
        created_at=event.created_at.replace(microsecond=0),
        data=event.data,
        triggered=True if event.triggered else UNSET,
    )
