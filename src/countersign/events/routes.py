"""Reading events."""

from __future__ import annotations

from datetime import datetime

from countersign.bootstrap import Deployment
from countersign.errors import InvalidRequest
from countersign.events import read_events
from countersign.events.model import EventType
from countersign.events.schemas import event_body
from countersign.http.paging import read_limit
from countersign.http.reply import Call, Reply, encode
from countersign.http.schemas import Page
from countersign.instant import parse_rfc3339


async def list_events(deployment: Deployment, call: Call) -> Reply:
    """The account's events, oldest first. No event is skipped, and the order never changes.

    To follow the events, keep the `id` of the last event and send it as `after` in the next
    request.
    """
    type_ = call.query.get("type")
    if type_ is not None and type_ not in frozenset(EventType):
        msg = f"The query parameter type must be one of: {', '.join(EventType)}."
        raise InvalidRequest(msg)
    found, cursor = await read_events.list_events(
        deployment.events,
        call.principal,
        type_=None if type_ is None else EventType(type_),
        after=call.query.get("after"),
        since=_time(call, "since"),
        limit=read_limit(call),
    )
    return Reply(encode(Page(data=[event_body(view) for view in found], next_cursor=cursor)))


async def get_event(deployment: Deployment, call: Call) -> Reply:
    """One event of this account."""
    principal = call.principal
    found = await read_events.get_event(
        deployment.events, principal.account_id, principal.mode, call.parameter
    )
    return Reply(encode(event_body(found)))


def _time(call: Call, name: str) -> datetime | None:
    text = call.query.get(name)
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        msg = f"The query parameter {name} must be a time such as 2026-11-20T21:31:00Z."
        raise InvalidRequest(msg) from None
