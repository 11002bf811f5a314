"""Webhook endpoints and what was sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final

from countersign.access.key import Scope
from countersign.access.reach import DEPLOYMENT, AccountReach
from countersign.errors import (
    InvalidRequest,
    NotFound,
    TooManyWebhookEndpoints,
    WebhookEndpointDisabled,
)
from countersign.events.model import EventType
from countersign.events.routes import Event, event_body
from countersign.http.body import parse_body
from countersign.http.examples import ENDPOINT_ID, EVENT_ID
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Command, Route, grouped
from countersign.mode import Mode
from countersign.webhooks import deliveries, endpoints, schemas
from countersign.webhooks.deliver import send_example as send
from countersign.webhooks.model import OVERLAP, Endpoint, Outcome
from countersign.webhooks.room import Webhooks
from countersign.webhooks.schemas import endpoint_body, render_endpoint

EndpointsQuery = Listing[Annotated[str, cursor("the id of that page's last endpoint", ENDPOINT_ID)]]


async def create(room: Webhooks, call: Call) -> Reply:
    """Create an endpoint that gets events from now on. Its secret is returned only once."""
    body = parse_body(call.body, schemas.WebhookEndpointRequest)
    reach = AccountReach(call.principal.account_id, call.principal.mode)
    made = await endpoints.create_endpoint(room, reach, body, call.entry, audit=call.audit)
    return Reply(render_endpoint(made))


async def list_endpoints(room: Webhooks, call: Call) -> Reply:
    """The webhook endpoints of this account and mode, oldest first."""
    query: EndpointsQuery = call.query
    found = await endpoints.list_endpoints(room, call.principal.reach)
    rest = [endpoint_body(endpoint) for endpoint in found if endpoint.id > (query.after or "")]
    return Reply(encode(page_of(rest, query.limit, lambda e: e.endpoint_id)))


async def get_endpoint(room: Webhooks, call: Call) -> Reply:
    """One webhook endpoint, without its secret."""
    return Reply(encode(endpoint_body(await _named(room, call))))


async def change(room: Webhooks, call: Call) -> Reply:
    """Change a webhook endpoint, disable it, or enable it again.

    Running servers apply the change within seconds. Events from the time while the endpoint was
    disabled are not sent automatically: use recover.
    """
    body = parse_body(call.body, schemas.WebhookEndpointChange)
    if body.event_types is not None and body.every_event_type:
        raise InvalidRequest(
            "Name some types or ask for all of them, not both - at `$.every_event_type`."
        )
    endpoint = await _named(room, call)
    changed = await endpoints.change_endpoint(room, endpoint, body, call.entry, audit=call.audit)
    return Reply(render_endpoint(changed))


async def delete(room: Webhooks, call: Call) -> Reply:
    """Delete a webhook endpoint and its secrets. It gets no more events."""
    endpoint = await _named(room, call)
    await endpoints.delete_endpoint(room, endpoint, call.audit)
    return Reply(encode(schemas.DeletedWebhookEndpoint(endpoint_id=endpoint.id, deleted=True)))


async def rotate_secret(room: Webhooks, call: Call) -> Reply:
    """Create a new secret, returned only once. Both secrets sign until the overlap ends."""
    body = parse_body(call.body, schemas.SecretRotation)
    seconds = body.overlap_seconds
    overlap = OVERLAP if seconds is None else timedelta(seconds=seconds)
    endpoint = await _named(room, call)
    rotated = await endpoints.rotate_secret(room, endpoint, overlap, call.entry, audit=call.audit)
    return Reply(render_endpoint(rotated))


async def recover(room: Webhooks, call: Call) -> Reply:
    """Deliver all events since a time that were not delivered."""
    body = parse_body(call.body, schemas.Recovery)
    endpoint = await _named(room, call)
    await deliveries.recover(room, endpoint, body.since, call.entry)
    return Reply(render_endpoint(endpoint))


async def resend(room: Webhooks, call: Call) -> Reply:
    """Deliver an event again with the same webhook-id, whatever the result of earlier attempts."""
    body = parse_body(call.body, schemas.Resending)
    view = await deliveries.resend(room, await _named(room, call), body.event_id, call.entry)
    return Reply(encode(event_body(view)))


async def send_example(room: Webhooks, call: Call) -> Reply:
    """Send a signed example immediately, and return the result. The example is sent only once."""
    body = parse_body(call.body, schemas.ExampleRequest)
    return Reply(encode(await send(room, await _named(room, call), body.type, call.entry)))


async def list_deliveries(room: Webhooks, call: Call) -> Reply:
    """The deliveries to a webhook endpoint, newest events first."""
    page = await deliveries.list_deliveries(room, await _named(room, call), call.query)
    return Reply(encode(page))


async def _named(room: Webhooks, call: Call) -> Endpoint:
    return await endpoints.get_endpoint(room, call.principal.reach, call.parameter)


async def _owner(room: Webhooks, endpoint_id: str) -> tuple[str, Mode]:
    endpoint = await endpoints.get_endpoint(room, DEPLOYMENT, endpoint_id)
    return endpoint.account_id, endpoint.mode


def _allow(attempt: Mapping[str, Any]) -> str:
    if attempt["outcome"] != Outcome.ADDRESS_REFUSED:
        return ""
    return (
        "The settings of this command do not allow that address, but the server's settings may. "
        "To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
    )


_SHOWN_ONCE: Final = (
    "Endpoint {endpoint_id}. Its secret for v1 signatures is shown only once;\n"
    "the public key for v1a signatures is {secrets[0][public_key]}"
)
_SECONDS: Final = "Running servers apply the change within seconds."
_NAMES: Final = {"event_types": "type", "every_event_type": "every-type"}
_route: Final = partial(Route, scope=Scope.WEBHOOKS_MANAGE)
_command: Final = partial(Command, owner=_owner)
_change: Final = partial(_command, says=_SECONDS, shows=("endpoint_id",))

ROUTES: Final = grouped(
    "Webhooks",
    Webhooks,
    _route(
        address="POST /v1/webhook_endpoints",
        handler=create,
        operation="createWebhookEndpoint",
        summary="Create a webhook endpoint",
        request=schemas.WebhookEndpointRequest,
        secret=True,
        response=schemas.NewWebhookEndpoint,
        refusals=(TooManyWebhookEndpoints,),
        links={"getWebhookEndpoint": {"endpoint_id": "/endpoint_id"}},
        commands=(
            Command(
                name="webhooks add", names=_NAMES, says=_SHOWN_ONCE, shows=("endpoint_id", "secret")
            ),
        ),
    ),
    _route(
        address="GET /v1/webhook_endpoints",
        handler=list_endpoints,
        operation="listWebhookEndpoints",
        summary="List the webhook endpoints, oldest first",
        query=EndpointsQuery,
        response=Page[schemas.WebhookEndpoint],
        commands=(
            Command(
                name="webhooks list",
                either_mode=True,
                shows=("endpoint_id", "livemode", "disabled_reason", "url"),
            ),
        ),
    ),
    _route(
        address="GET /v1/webhook_endpoints/{endpoint_id}",
        handler=get_endpoint,
        operation="getWebhookEndpoint",
        summary="Get one webhook endpoint",
        response=schemas.WebhookEndpoint,
        refusals=(NotFound,),
        commands=(_command(name="webhooks show"),),
    ),
    _route(
        address="PATCH /v1/webhook_endpoints/{endpoint_id}",
        handler=change,
        operation="changeWebhookEndpoint",
        summary="Change, disable or enable a webhook endpoint",
        request=schemas.WebhookEndpointChange,
        response=schemas.WebhookEndpoint,
        refusals=(NotFound,),
        request_examples={"disable": {"disabled": True}},
        commands=(
            _change(
                name="webhooks change",
                help="Change an endpoint. An option that is left out changes nothing.",
                takes=("url", "description", "event_types", "every_event_type"),
                names=_NAMES,
            ),
            _change(
                name="webhooks disable",
                help="Stop sending events to an endpoint, including waiting ones.",
                takes=(),
                sends={"disabled": True},
            ),
            _change(
                name="webhooks enable",
                help="Send new events to an endpoint again. `recover` sends the events that it "
                "missed.",
                takes=(),
                sends={"disabled": False},
            ),
        ),
    ),
    _route(
        address="DELETE /v1/webhook_endpoints/{endpoint_id}",
        fresh=True,
        handler=delete,
        operation="deleteWebhookEndpoint",
        summary="Delete a webhook endpoint",
        response=schemas.DeletedWebhookEndpoint,
        refusals=(NotFound,),
        commands=(
            _command(
                name="webhooks delete",
                asks="Delete the endpoint {endpoint_id}? This cannot be undone.",
                shows=("endpoint_id",),
            ),
        ),
    ),
    _route(
        address="POST /v1/webhook_endpoints/{endpoint_id}/rotate_secret",
        handler=rotate_secret,
        operation="rotateWebhookSecret",
        summary="Give a webhook endpoint a new secret",
        request=schemas.SecretRotation,
        secret=True,
        response=schemas.NewWebhookEndpoint,
        refusals=(NotFound,),
        request_examples={"a day of overlap": {"overlap_seconds": 86400}},
        commands=(
            _command(
                name="webhooks rotate-secret", says=_SHOWN_ONCE, shows=("endpoint_id", "secret")
            ),
        ),
    ),
    _route(
        address="GET /v1/webhook_endpoints/{endpoint_id}/deliveries",
        handler=list_deliveries,
        operation="listWebhookDeliveries",
        summary="List deliveries and their attempts, newest first",
        query=schemas.DeliveriesQuery,
        response=Page[schemas.WebhookDelivery],
        refusals=(NotFound,),
        commands=(
            _command(
                name="webhooks deliveries",
                shows=("event.id", "event.type", "status", "attempts.outcome"),
            ),
        ),
    ),
    _route(
        address="POST /v1/webhook_endpoints/{endpoint_id}/resend",
        handler=resend,
        operation="resendEvent",
        summary="Deliver an event again",
        request=schemas.Resending,
        response=Event,
        refusals=(NotFound, WebhookEndpointDisabled),
        request_examples={"an event": {"event_id": EVENT_ID}},
        commands=(_command(name="webhooks resend", arguments=("event_id",), shows=("id",)),),
    ),
    _route(
        address="POST /v1/webhook_endpoints/{endpoint_id}/recover",
        handler=recover,
        operation="recoverWebhooks",
        summary="Deliver missed events since a time again",
        request=schemas.Recovery,
        response=schemas.WebhookEndpoint,
        refusals=(NotFound, WebhookEndpointDisabled),
        request_examples={"since yesterday": {"since": "2026-11-19T21:31:00Z"}},
        commands=(_change(name="webhooks recover"),),
    ),
    _route(
        address="POST /v1/webhook_endpoints/{endpoint_id}/send_example",
        handler=send_example,
        operation="sendWebhookExample",
        summary="Send a signed example immediately",
        request=schemas.ExampleRequest,
        response=schemas.WebhookAttempt,
        refusals=(NotFound,),
        request_examples={"an acknowledgment": {"type": "acknowledgment.created"}},
        commands=(
            _command(
                name="webhooks send-example",
                sends={"type": EventType.ACKNOWLEDGMENT_CREATED.value},
                says=_allow,
                shows=("outcome", "http_status", "duration_ms"),
            ),
        ),
    ),
)
