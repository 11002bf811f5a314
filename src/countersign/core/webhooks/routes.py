"""The deliveries of webhook endpoints, after the acts on the endpoints themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from countersign.base.errors import NotFound, WebhookEndpointDisabled
from countersign.base.http.schemas import EVENT_ID, Page
from countersign.core.events.model import EventType
from countersign.core.events.routes import Event
from countersign.core.gate.act import Writing
from countersign.core.webhooks import deliveries, schemas
from countersign.core.webhooks.deliver import send_example
from countersign.core.webhooks.endpoints import WEBHOOKS, change, command
from countersign.core.webhooks.model import Endpoint, Outcome
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import WebhookEndpoint


def _allow(attempt: Mapping[str, Any]) -> str:
    if attempt["outcome"] != Outcome.ADDRESS_REFUSED:
        return ""
    return (
        "The settings of this command do not allow that address, but the server's settings may. "
        "To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
    )


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints/{endpoint_id}/deliveries",
    "List deliveries and their attempts, newest first",
    commands=(
        command(
            name="webhooks deliveries",
            shows=("event.id", "event.type", "status", "attempts.outcome"),
        ),
    ),
)
async def list_webhook_deliveries(
    webhooks: Webhooks, query: schemas.DeliveriesQuery, endpoint: Endpoint
) -> Page[schemas.WebhookDelivery]:
    """The deliveries to a webhook endpoint, newest events first."""
    page, sealed = await webhooks.access.database.scan(
        deliveries.list_deliveries, webhooks, endpoint, query
    )
    for at, one in enumerate(page.data):
        if response := sealed[one.event.id]:
            text = await webhooks.responses.open(
                response, account=endpoint.account_id, row_id=one.event.id
            )
            page.data[at] = replace(one, response=text.decode(errors="replace"))
    return page


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/resend",
    "Deliver an event again",
    refusals=(NotFound, WebhookEndpointDisabled),
    request_examples={"an event": {"event_id": EVENT_ID}},
    commands=(command(name="webhooks resend", arguments=("event_id",), shows=("id",)),),
)
async def resend_event(
    webhooks: Webhooks, wanted: schemas.Resending, endpoint: Endpoint, write: Writing
) -> Event:
    """Deliver an event again with the same webhook-id, whatever the result of earlier attempts."""
    return await write(deliveries.resend, webhooks, endpoint, wanted.event_id)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/recover",
    "Deliver missed events since a time again",
    refusals=(NotFound, WebhookEndpointDisabled),
    request_examples={"since yesterday": {"since": "2026-11-19T21:31:00Z"}},
    commands=(change(name="webhooks recover"),),
)
async def recover_webhooks(
    webhooks: Webhooks, wanted: schemas.Recovery, endpoint: Endpoint, write: Writing
) -> WebhookEndpoint:
    """Deliver all events since a time that were not delivered."""
    return await write(deliveries.recover, webhooks, endpoint, wanted.since)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/send_example",
    "Send a signed example immediately",
    request_examples={"an acknowledgment": {"type": "acknowledgment.created"}},
    commands=(
        command(
            name="webhooks send-example",
            sends={"type": EventType.ACKNOWLEDGMENT_CREATED.value},
            says=_allow,
            shows=("outcome", "http_status", "duration_ms"),
        ),
    ),
)
async def send_webhook_example(
    webhooks: Webhooks, wanted: schemas.ExampleRequest, endpoint: Endpoint
) -> schemas.WebhookAttempt:
    """Send a signed example immediately, and return the result. The example is sent only once."""
    return await send_example(webhooks, endpoint, wanted.type)


ROUTES: Final = WEBHOOKS.routes
