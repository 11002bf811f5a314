"""Webhook endpoints: their events, deliveries, and resending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from countersign.server.console_host import EVENT_TYPES
from countersign_console.acts import Act, Field
from countersign_console.lists import ListPage
from countersign_console.visit import Visit

_EXAMPLES: Final = tuple(one for one in EVENT_TYPES if not one.startswith("notice."))
_act: Final = partial(Act, scope="webhooks:manage")
_TYPES: Final = Field(name="event_types", kind="ticks", options=EVENT_TYPES)


class Webhooks(ListPage):
    """`webhooks`; below an endpoint its deliveries, newest first."""

    async def extras(self, visit: Visit, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """A page of deliveries, each with its message, its last attempt, and its response."""
        place = f"{self.path}/{item['endpoint_id']}/deliveries"
        found = await visit.page_of(place, after=visit.request.query.get("after", ""))
        deliveries = [
            {"last": one["attempts"][-1] if one["attempts"] else None, "sent": _sent(one["event"])}
            | one
            for one in found["data"]
        ]
        after, here = found["next_cursor"], f"webhooks/{item['endpoint_id']}"
        more = visit.at(here, after=after) if after else ""
        may_send = visit.may_do("webhooks:manage") and not item["disabled_at"]
        return {"deliveries": deliveries, "more": more, "may_send": may_send}


def _sent(event: Mapping[str, Any]) -> str:
    """The body of a message, one member a line."""
    message = {"type": event["type"], "timestamp": event["created_at"], **event}
    return json.dumps(message, indent=1, ensure_ascii=False)


WEBHOOKS: Final = Webhooks(
    name="webhooks",
    path="/v1/webhook_endpoints",
    identifier="endpoint_id",
    title="url",
    item_path="/v1/webhook_endpoints/{id}",
    columns=("url", "description", "created_at", "disabled_at"),
    template="endpoint.html",
    guide="webhooks",
    new=(
        _act(
            name="add_endpoint",
            path="/v1/webhook_endpoints",
            fields=(Field(name="url", required=True), Field(name="description"), _TYPES),
            shows=("endpoint_id", "secret"),
        ),
    ),
    acts=(
        _act(
            name="change_endpoint",
            path="/v1/webhook_endpoints/{id}",
            method="PATCH",
            fields=(
                Field(name="url"),
                Field(name="description"),
                _TYPES,
                Field(name="every_event_type", kind="check"),
            ),
        ),
        _act(
            name="disable_endpoint",
            path="/v1/webhook_endpoints/{id}",
            method="PATCH",
            sends={"disabled": True},
            when=lambda endpoint: not endpoint["disabled_at"],
        ),
        _act(
            name="enable_endpoint",
            path="/v1/webhook_endpoints/{id}",
            method="PATCH",
            sends={"disabled": False},
            when=lambda endpoint: bool(endpoint["disabled_at"]),
        ),
        _act(
            name="send_example",
            path="/v1/webhook_endpoints/{id}/send_example",
            fields=(Field(name="type", options=_EXAMPLES, required=True),),
            shows=("outcome", "http_status", "duration_ms", "attempted_at"),
        ),
        _act(
            name="recover",
            path="/v1/webhook_endpoints/{id}/recover",
            fields=(Field(name="since", kind="day", required=True),),
            when=lambda endpoint: not endpoint["disabled_at"],
        ),
        _act(
            name="resend_event",
            path="/v1/webhook_endpoints/{id}/resend",
            fields=(Field(name="event_id", required=True),),
            hidden=True,
        ),
        _act(
            name="rotate_secret",
            path="/v1/webhook_endpoints/{id}/rotate_secret",
            shows=("secret",),
        ),
        _act(
            name="delete_endpoint",
            path="/v1/webhook_endpoints/{id}",
            method="DELETE",
            fresh=True,
            danger=True,
        ),
    ),
)
