"""Webhook endpoints and what was sent to them."""

from __future__ import annotations

from datetime import timedelta

from countersign.bootstrap import Deployment
from countersign.errors import InvalidRequest
from countersign.events.schemas import event_body
from countersign.http.body import parse_body
from countersign.http.paging import page_of, read_limit
from countersign.http.reply import Call, Reply, encode
from countersign.http.schemas import Page
from countersign.ids import WEBHOOK_ENDPOINT, is_id
from countersign.instant import parse_rfc3339
from countersign.webhooks import endpoints, schemas
from countersign.webhooks.attempt import send_example as send
from countersign.webhooks.model import (
    OVERLAP,
    DeliveryStatus,
    Endpoint,
    EndpointChanges,
)
from countersign.webhooks.schemas import (
    delivery_body,
    endpoint_body,
    render_attempt,
    render_endpoint,
)


async def create(deployment: Deployment, call: Call) -> Reply:
    """Create an endpoint that gets events from now on. Its secret is returned only once."""
    body = parse_body(call.body, schemas.WebhookEndpointRequest)
    types = None if body.event_types is None else frozenset(body.event_types)
    view = await endpoints.create_endpoint(
        deployment.webhooks,
        call.principal.account_id,
        call.principal.mode,
        EndpointChanges(url=body.url, description=body.description, event_types=types),
        call.entry,
    )
    return Reply(render_endpoint(view))


async def list_endpoints(deployment: Deployment, call: Call) -> Reply:
    """The webhook endpoints of this account and mode, oldest first."""
    principal, after = call.principal, call.query.get("after")
    if after is not None and not is_id(WEBHOOK_ENDPOINT, after):
        msg = "The query parameter after must be the id of a webhook endpoint."
        raise InvalidRequest(msg)
    found = await endpoints.list_endpoints(
        deployment.webhooks, principal.account_id, principal.mode
    )
    rest = [endpoint_body(endpoint) for endpoint in found if endpoint.id > (after or "")]
    return Reply(encode(page_of(rest, read_limit(call), lambda e: e.endpoint_id)))


async def get_endpoint(deployment: Deployment, call: Call) -> Reply:
    """One webhook endpoint, without its secret."""
    return Reply(encode(endpoint_body(await _named(deployment, call))))


async def change(deployment: Deployment, call: Call) -> Reply:
    """Change a webhook endpoint, disable it, or enable it again.

    Running servers apply the change within seconds. Events from the time while the endpoint was
    disabled are not sent automatically: use recover.
    """
    body = parse_body(call.body, schemas.WebhookEndpointChange)
    if body.event_types is not None and body.every_event_type:
        msg = "Send either event_types or every_event_type, not both - at `$.every_event_type`."
        raise InvalidRequest(msg)
    view = await endpoints.change_endpoint(
        deployment.webhooks,
        await _named(deployment, call),
        EndpointChanges(
            url=body.url,
            description=body.description,
            event_types=None if body.event_types is None else frozenset(body.event_types),
            every_event_type=bool(body.every_event_type),
            disabled=body.disabled,
        ),
        call.entry,
    )
    return Reply(render_endpoint(view))


async def delete(deployment: Deployment, call: Call) -> Reply:
    """Delete a webhook endpoint and its secrets. It gets no more events."""
    endpoint = await _named(deployment, call)
    await endpoints.delete_endpoint(deployment.webhooks, endpoint)
    return Reply(encode(schemas.DeletedWebhookEndpoint(endpoint_id=endpoint.id, deleted=True)))


async def rotate_secret(deployment: Deployment, call: Call) -> Reply:
    """Create a new secret, returned only once. Both secrets sign until the overlap ends."""
    body = parse_body(call.body, schemas.SecretRotation)
    seconds = body.overlap_seconds
    view = await endpoints.rotate_secret(
        deployment.webhooks,
        await _named(deployment, call),
        OVERLAP if seconds is None else timedelta(seconds=seconds),
        call.entry,
    )
    return Reply(render_endpoint(view))


async def recover(deployment: Deployment, call: Call) -> Reply:
    """Deliver all events since a time that were not delivered."""
    body = parse_body(call.body, schemas.Recovery)
    try:
        since = parse_rfc3339(body.since)
    except ValueError:
        msg = "Expected a time such as 2026-11-20T21:31:00Z - at `$.since`."
        raise InvalidRequest(msg) from None
    view = await endpoints.recover(
        deployment.webhooks, await _named(deployment, call), since, call.entry
    )
    return Reply(render_endpoint(view))


async def resend(deployment: Deployment, call: Call) -> Reply:
    """Deliver an event again with the same webhook-id, whatever the result of earlier attempts."""
    body = parse_body(call.body, schemas.Resending)
    endpoint = await _named(deployment, call)
    view = await endpoints.resend(deployment.webhooks, endpoint, body.event_id, call.entry)
    return Reply(encode(event_body(view)))


async def send_example(deployment: Deployment, call: Call) -> Reply:
    """Send a signed example immediately, and return the result. The example is sent only once."""
    body = parse_body(call.body, schemas.ExampleRequest)
    endpoint = await _named(deployment, call)
    attempt = await send(deployment.webhooks, endpoint, body.type, call.entry)
    return Reply(render_attempt(attempt))


async def list_deliveries(deployment: Deployment, call: Call) -> Reply:
    """The deliveries to a webhook endpoint, newest events first."""
    status = call.query.get("status")
    if status is not None and status not in frozenset(DeliveryStatus):
        msg = f"The query parameter status must be one of: {', '.join(DeliveryStatus)}."
        raise InvalidRequest(msg)
    found, cursor = await endpoints.list_deliveries(
        deployment.webhooks,
        await _named(deployment, call),
        status=None if status is None else DeliveryStatus(status),
        before=call.query.get("after"),
        limit=read_limit(call),
    )
    return Reply(encode(Page(data=[delivery_body(*item) for item in found], next_cursor=cursor)))


async def _named(deployment: Deployment, call: Call) -> Endpoint:
    principal = call.principal
    return await endpoints.get_endpoint(
        deployment.webhooks, principal.account_id, principal.mode, call.parameter
    )
