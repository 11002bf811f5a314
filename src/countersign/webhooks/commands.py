"""`countersign webhooks`: manage endpoints and deliveries, and receive events on a laptop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta

import click

from countersign.access.account import find_account
from countersign.access.audit import AuditAction
from countersign.bootstrap import Deployment
from countersign.cli.support import Duration, command, confirm, say, show, with_deployment
from countersign.errors import InvalidArgument
from countersign.events.model import EventType
from countersign.events.read_events import EventView
from countersign.instant import parse_rfc3339
from countersign.mode import Mode
from countersign.webhooks.command_views import (
    attempt_json,
    show_changed,
    show_deliveries,
    show_endpoint,
    show_endpoints,
    show_secret,
    told,
)
from countersign.webhooks.endpoints import EndpointView
from countersign.webhooks.listen import listen
from countersign.webhooks.model import (
    Attempt,
    Delivery,
    DeliveryStatus,
    EndpointChanges,
    Outcome,
    WebhookEndpoint,
)

_MODES = click.Choice([mode.value for mode in Mode])
_TYPES = click.Choice([type_.value for type_ in EventType])
_STATUSES = click.Choice([status.value for status in DeliveryStatus])


@click.group()
def webhooks() -> None:
    """Webhook endpoints and their deliveries."""


@webhooks.command("list")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option("--mode", type=_MODES, help="Only endpoints of this mode.")
@command
def list_(account: str, *, mode: str | None, as_json: bool) -> None:
    """List the endpoints of an account, oldest first."""
    found = _list(account, None if mode is None else Mode(mode))
    show_endpoints([*found], as_json=as_json)


@webhooks.command("show")
@click.argument("endpoint_id")
@command
def show_one(endpoint_id: str, *, as_json: bool) -> None:
    """Show an endpoint, except its secret."""
    show_endpoint(_get(endpoint_id), as_json=as_json)


@webhooks.command("add")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option("--mode", required=True, type=_MODES, help="test or live.")
@click.option("--url", required=True, help="The https URL that gets the events.")
@click.option(
    "--type",
    "types",
    type=_TYPES,
    multiple=True,
    help="Send only events of this type; may be repeated. Left out: all types.",
)
@click.option("--description", default="", help="A note for your own use.")
@command
def add(
    account: str, mode: str, url: str, types: tuple[str, ...], description: str, *, as_json: bool
) -> None:
    """Add an endpoint, and print its id and its secret. The secret is shown only once."""
    changes = EndpointChanges(url=url, description=description, event_types=_wanted(types))
    show_secret(_add(account, Mode(mode), changes), as_json=as_json)


@webhooks.command("change")
@click.argument("endpoint_id")
@click.option("--url", help="The new URL.")
@click.option(
    "--type",
    "types",
    type=_TYPES,
    multiple=True,
    help="Send only events of this type; may be repeated.",
)
@click.option("--every-type", is_flag=True, help="Send all types again.")
@click.option("--description", help="For people.")
@command
def change(
    endpoint_id: str,
    *,
    url: str | None,
    types: tuple[str, ...],
    every_type: bool,
    description: str | None,
    as_json: bool,
) -> None:
    """Change an endpoint. An option that is left out changes nothing."""
    if types and every_type:
        msg = "Give either --type or --every-type, not both."
        raise InvalidArgument(msg)
    changes = EndpointChanges(
        url=url, description=description, event_types=_wanted(types), every_event_type=every_type
    )
    show_changed(_change(endpoint_id, changes), as_json=as_json)


@webhooks.command("disable")
@click.argument("endpoint_id")
@command
def disable(endpoint_id: str, *, as_json: bool) -> None:
    """Stop sending events to an endpoint, including waiting ones."""
    show_changed(_change(endpoint_id, EndpointChanges(disabled=True)), as_json=as_json)


@webhooks.command("enable")
@click.argument("endpoint_id")
@command
def enable(endpoint_id: str, *, as_json: bool) -> None:
    """Send new events to an endpoint again. `recover` sends the events that it missed."""
    show_changed(_change(endpoint_id, EndpointChanges(disabled=False)), as_json=as_json)


@webhooks.command("delete")
@click.argument("endpoint_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def delete(endpoint_id: str, *, yes: bool, as_json: bool) -> None:
    """Delete an endpoint and its secrets."""
    confirm(f"Delete the endpoint {endpoint_id}? This cannot be undone.", yes=yes)
    _delete(endpoint_id)
    show({"endpoint_id": endpoint_id, "deleted": True}, endpoint_id, as_json=as_json)


@webhooks.command("rotate-secret")
@click.argument("endpoint_id")
@click.option(
    "--overlap",
    type=Duration(),
    default="24h",
    show_default=True,
    help="How long the old secret signs together with the new one.",
)
@command
def rotate_secret(endpoint_id: str, *, overlap: timedelta, as_json: bool) -> None:
    """Give an endpoint a new secret, and print it.

    Messages have both signatures until the overlap ends.
    """
    show_secret(_rotate(endpoint_id, overlap), as_json=as_json)


@webhooks.command("deliveries")
@click.argument("endpoint_id")
@click.option("--status", type=_STATUSES, help="Only deliveries with this status.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="The maximum number of deliveries.",
)
@command
def deliveries(endpoint_id: str, *, status: str | None, limit: int, as_json: bool) -> None:
    """Show the deliveries to an endpoint, newest events first."""
    found = _deliveries(endpoint_id, None if status is None else DeliveryStatus(status), limit)
    show_deliveries([*found], as_json=as_json)


@webhooks.command("resend")
@click.argument("endpoint_id")
@click.argument("event_id")
@command
def resend(endpoint_id: str, event_id: str, *, as_json: bool) -> None:
    """Deliver an event again with the same webhook-id. A running server sends it."""
    view = _resend(endpoint_id, event_id)
    show({"event_id": view.id, "endpoint_id": endpoint_id}, view.id, as_json=as_json)


@webhooks.command("recover")
@click.argument("endpoint_id")
@click.option("--since", required=True, help="A time, such as 2026-11-20T00:00:00Z.")
@command
def recover(endpoint_id: str, *, since: str, as_json: bool) -> None:
    """Deliver all events since a time that were not delivered."""
    try:
        start = parse_rfc3339(since)
    except ValueError as error:
        msg = f"--since: {error}."
        raise InvalidArgument(msg) from None
    show_changed(_recover(endpoint_id, start), as_json=as_json)


@webhooks.command("send-example")
@click.argument("endpoint_id")
@click.option(
    "--type",
    "type_",
    type=_TYPES,
    default=EventType.ACKNOWLEDGMENT_CREATED.value,
    show_default=True,
    help="The type of the example.",
)
@command
def send_example(endpoint_id: str, *, type_: str, as_json: bool) -> None:
    """Send a signed example from this machine immediately, and print the result."""
    attempt = _send_example(endpoint_id, EventType(type_))
    if attempt.outcome is Outcome.ADDRESS_REFUSED:
        say(
            "The settings of this command do not allow that address, but the server's settings "
            "may. To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
        )
    show(attempt_json(attempt), told(attempt), as_json=as_json)


webhooks.add_command(listen)


def _wanted(types: tuple[str, ...]) -> frozenset[EventType] | None:
    return frozenset(EventType(type_) for type_ in types) or None


@with_deployment
async def _list(
    deployment: Deployment, account: str, mode: Mode | None
) -> Sequence[WebhookEndpoint]:
    owner = await find_account(deployment.access, account)
    return await deployment.webhooks.endpoints.list(owner.id, mode)


@with_deployment
async def _get(deployment: Deployment, endpoint_id: str) -> WebhookEndpoint:
    return await deployment.webhooks.endpoints.by_id(endpoint_id)


@with_deployment
async def _add(
    deployment: Deployment, account: str, mode: Mode, changes: EndpointChanges
) -> EndpointView:
    owner = await find_account(deployment.access, account)
    made = await deployment.webhooks.endpoints.create(owner.id, mode, changes)
    await deployment.access.audit.note(
        AuditAction.WEBHOOK_ENDPOINT_CREATED, made.endpoint.id, account_id=owner.id, mode=mode.value
    )
    return made


@with_deployment
async def _change(
    deployment: Deployment, endpoint_id: str, changes: EndpointChanges
) -> EndpointView:
    service = deployment.webhooks.endpoints
    changed = await service.change(await service.by_id(endpoint_id), changes)
    # Which members, and not the URL itself: it may hold a secret of the vendor's.
    given = [one.name for one in fields(changes) if getattr(changes, one.name) != one.default]
    await deployment.access.audit.note(
        AuditAction.WEBHOOK_ENDPOINT_CHANGED, endpoint_id, changed=given
    )
    return changed


@with_deployment
async def _delete(deployment: Deployment, endpoint_id: str) -> None:
    service = deployment.webhooks.endpoints
    endpoint = await service.by_id(endpoint_id)
    await service.delete(endpoint)
    await deployment.access.audit.note(
        AuditAction.WEBHOOK_ENDPOINT_DELETED, endpoint_id, account_id=endpoint.account_id
    )


@with_deployment
async def _rotate(deployment: Deployment, endpoint_id: str, overlap: timedelta) -> EndpointView:
    service = deployment.webhooks.endpoints
    rotated = await service.rotate(await service.by_id(endpoint_id), overlap)
    await deployment.access.audit.note(AuditAction.WEBHOOK_SECRET_ROTATED, endpoint_id)
    return rotated


@with_deployment
async def _deliveries(
    deployment: Deployment, endpoint_id: str, status: DeliveryStatus | None, limit: int
) -> Sequence[tuple[EventView, Delivery]]:
    service = deployment.webhooks.endpoints
    endpoint = await service.by_id(endpoint_id)
    found, _ = await service.deliveries(endpoint, status=status, before=None, limit=limit)
    return found


@with_deployment
async def _resend(deployment: Deployment, endpoint_id: str, event_id: str) -> EventView:
    service = deployment.webhooks.endpoints
    return await service.resend(await service.by_id(endpoint_id), event_id)


@with_deployment
async def _recover(deployment: Deployment, endpoint_id: str, since: datetime) -> EndpointView:
    service = deployment.webhooks.endpoints
    return await service.recover(await service.by_id(endpoint_id), since)


@with_deployment
async def _send_example(deployment: Deployment, endpoint_id: str, type_: EventType) -> Attempt:
    endpoint = await deployment.webhooks.endpoints.by_id(endpoint_id)
    try:
        return await deployment.webhooks.deliver.send_example(endpoint, type_)
    finally:
        await deployment.webhooks.deliver.close()
