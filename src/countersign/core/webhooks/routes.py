"""Webhook endpoints and their deliveries."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final

from sqlalchemy import Connection

from countersign.base.db.tables import webhook_endpoints
from countersign.base.errors import (
    InvalidRequest,
    NotFound,
    TooManyWebhookEndpoints,
    WebhookEndpointDisabled,
)
from countersign.base.http.schemas import ENDPOINT_ID, EVENT_ID, Listing, Page, cursor, page_of
from countersign.base.values import Mode
from countersign.core.access.audit import Audit
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.events.model import EventType
from countersign.core.events.routes import Event
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Call, Command
from countersign.core.webhooks import deliveries, endpoints, schemas
from countersign.core.webhooks.deliver import send_example
from countersign.core.webhooks.model import OVERLAP, Endpoint, Outcome
from countersign.core.webhooks.room import Webhooks
from countersign.core.webhooks.schemas import (
    DeletedWebhookEndpoint,
    NewWebhookEndpoint,
    WebhookEndpoint,
    endpoint_body,
)

EndpointsQuery = Listing[Annotated[str, cursor("the id of that page's last endpoint", ENDPOINT_ID)]]


def _find(webhooks: Webhooks, reach: Reach, endpoint_id: str) -> Awaitable[Endpoint]:
    return webhooks.access.database.read(endpoints.get_endpoint, reach, endpoint_id)


def _named(webhooks: Webhooks, call: Call) -> Awaitable[Endpoint]:
    return _find(webhooks, call.principal.reach, call.parameter)


async def _owner(webhooks: Webhooks, endpoint_id: str) -> tuple[str, Mode]:
    endpoint = await _find(webhooks, DEPLOYMENT, endpoint_id)
    return endpoint.account_id, endpoint.mode


def _allow(attempt: Mapping[str, Any]) -> str:
    if attempt["outcome"] != Outcome.ADDRESS_REFUSED:
        return ""
    return (
        "The settings of this command do not allow that address, but the server's settings may. "
        "To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
    )


WEBHOOKS: Final = Acts("Webhooks", Webhooks, {Endpoint: _named}, scope=Scope.WEBHOOKS_MANAGE)
_SHOWN_ONCE: Final = (
    "Endpoint {endpoint_id}. Its secret for v1 signatures is shown only once;\n"
    "the public key for v1a signatures is {secrets[0][public_key]}"
)
_SECONDS: Final = "Running servers apply the change within seconds."
_NAMES: Final = {"event_types": "type", "every_event_type": "every-type"}
_command: Final = partial(Command, owner=_owner)
_change: Final = partial(_command, says=_SECONDS, shows=("endpoint_id",))


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints",
    "Create a webhook endpoint",
    secret=True,
    refusals=(TooManyWebhookEndpoints,),
    links={"getWebhookEndpoint": {"endpoint_id": "/endpoint_id"}},
    commands=(
        Command(
            name="webhooks add", names=_NAMES, says=_SHOWN_ONCE, shows=("endpoint_id", "secret")
        ),
    ),
)
async def create_webhook_endpoint(
    webhooks: Webhooks,
    who: Principal,
    wanted: schemas.WebhookEndpointRequest,
    audit: Audit | None,
    write: Writing,
) -> NewWebhookEndpoint:
    """Create an endpoint that gets events from now on. Its secret is returned only once."""
    endpoints.check(webhooks, wanted.url, wanted.description)
    reach = AccountReach(who.account_id, who.mode)
    secret = await webhooks.secrets.make(who.account_id)
    return await write(endpoints.create_endpoint, webhooks, reach, wanted, secret, audit=audit)


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints",
    "List the webhook endpoints, oldest first",
    commands=(
        Command(
            name="webhooks list",
            either_mode=True,
            shows=("endpoint_id", "livemode", "disabled_reason", "url"),
        ),
    ),
)
def list_webhook_endpoints(
    connection: Connection, reach: Reach, query: EndpointsQuery
) -> Page[WebhookEndpoint]:
    """The webhook endpoints of this account and mode, oldest first."""
    found = endpoints.find_endpoints(connection, reach.rows(webhook_endpoints))
    rest = [endpoint_body(endpoint) for endpoint in found if endpoint.id > (query.after or "")]
    return page_of(rest, query.limit, lambda e: e.endpoint_id)


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints/{endpoint_id}",
    "Get one webhook endpoint",
    refusals=(NotFound,),
    commands=(_command(name="webhooks show"),),
)
async def get_webhook_endpoint(endpoint: Endpoint) -> WebhookEndpoint:
    """One webhook endpoint, without its secret."""
    return endpoint_body(endpoint)


@WEBHOOKS.act(
    "PATCH /v1/webhook_endpoints/{endpoint_id}",
    "Change, disable or enable a webhook endpoint",
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
            help="Send new events to an endpoint again. `recover` sends the events that it missed.",
            takes=(),
            sends={"disabled": False},
        ),
    ),
)
async def change_webhook_endpoint(
    webhooks: Webhooks,
    changes: schemas.WebhookEndpointChange,
    endpoint: Endpoint,
    audit: Audit | None,
    write: Writing,
) -> WebhookEndpoint:
    """Change a webhook endpoint, disable it, or enable it again.

    Running servers apply the change within seconds. Events from the time while the endpoint was
    disabled are not sent automatically: use recover.
    """
    if changes.event_types is not None and changes.every_event_type:
        raise InvalidRequest(
            "Name some types or ask for all of them, not both - at `$.every_event_type`."
        )
    endpoints.check(webhooks, changes.url, changes.description)
    return await write(endpoints.change_endpoint, webhooks, endpoint, changes, audit=audit)


@WEBHOOKS.act(
    "DELETE /v1/webhook_endpoints/{endpoint_id}",
    "Delete a webhook endpoint",
    fresh=True,
    refusals=(NotFound,),
    commands=(
        _command(
            name="webhooks delete",
            asks="Delete the endpoint {endpoint_id}? This cannot be undone.",
            shows=("endpoint_id",),
        ),
    ),
)
async def delete_webhook_endpoint(
    webhooks: Webhooks, endpoint: Endpoint, audit: Audit | None, write: Writing
) -> DeletedWebhookEndpoint:
    """Delete a webhook endpoint and its secrets. It gets no more events."""
    return await write(endpoints.delete_endpoint, webhooks, endpoint, audit=audit)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/rotate_secret",
    "Give a webhook endpoint a new secret",
    secret=True,
    refusals=(NotFound,),
    request_examples={"a day of overlap": {"overlap_seconds": 86400}},
    commands=(
        _command(name="webhooks rotate-secret", says=_SHOWN_ONCE, shows=("endpoint_id", "secret")),
    ),
)
async def rotate_webhook_secret(
    webhooks: Webhooks,
    wanted: schemas.SecretRotation,
    endpoint: Endpoint,
    audit: Audit | None,
    write: Writing,
) -> NewWebhookEndpoint:
    """Create a new secret, returned only once. Both secrets sign until the overlap ends."""
    seconds = wanted.overlap_seconds
    overlap = OVERLAP if seconds is None else timedelta(seconds=seconds)
    secret = await webhooks.secrets.make(endpoint.account_id)
    return await write(endpoints.rotate_secret, webhooks, endpoint, overlap, secret, audit=audit)


@WEBHOOKS.act(
    "GET /v1/webhook_endpoints/{endpoint_id}/deliveries",
    "List deliveries and their attempts, newest first",
    refusals=(NotFound,),
    commands=(
        _command(
            name="webhooks deliveries",
            shows=("event.id", "event.type", "status", "attempts.outcome"),
        ),
    ),
)
def list_webhook_deliveries(
    connection: Connection,
    webhooks: Webhooks,
    query: schemas.DeliveriesQuery,
    endpoint: Endpoint,
) -> Page[schemas.WebhookDelivery]:
    """The deliveries to a webhook endpoint, newest events first."""
    return deliveries.list_deliveries(connection, webhooks, endpoint, query)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/resend",
    "Deliver an event again",
    refusals=(NotFound, WebhookEndpointDisabled),
    request_examples={"an event": {"event_id": EVENT_ID}},
    commands=(_command(name="webhooks resend", arguments=("event_id",), shows=("id",)),),
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
    commands=(_change(name="webhooks recover"),),
)
async def recover_webhooks(
    webhooks: Webhooks, wanted: schemas.Recovery, endpoint: Endpoint, write: Writing
) -> WebhookEndpoint:
    """Deliver all events since a time that were not delivered."""
    return await write(deliveries.recover, webhooks, endpoint, wanted.since)


@WEBHOOKS.act(
    "POST /v1/webhook_endpoints/{endpoint_id}/send_example",
    "Send a signed example immediately",
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
)
async def send_webhook_example(
    webhooks: Webhooks, wanted: schemas.ExampleRequest, endpoint: Endpoint
) -> schemas.WebhookAttempt:
    """Send a signed example immediately, and return the result. The example is sent only once."""
    return await send_example(webhooks, endpoint, wanted.type)


ROUTES: Final = WEBHOOKS.routes
