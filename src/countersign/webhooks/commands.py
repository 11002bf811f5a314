"""`countersign webhooks`: manage endpoints and deliveries, and receive events on a laptop."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import click

from countersign.access.account import find_account
from countersign.access.audit import AuditAction
from countersign.cli.support import Duration, command, confirm, say, show, with_room
from countersign.errors import InvalidArgument
from countersign.events.model import EventType
from countersign.instant import parse_rfc3339
from countersign.mode import Mode
from countersign.webhooks import endpoints as acts
from countersign.webhooks.attempt import send_example as send
from countersign.webhooks.command_views import (
    attempt_json,
    in_words,
    show_changed,
    show_deliveries,
    show_endpoint,
    show_endpoints,
    show_secret,
)
from countersign.webhooks.listen import listen
from countersign.webhooks.model import DeliveryStatus, EndpointChanges, Outcome
from countersign.webhooks.room import Webhooks

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
@with_room(Webhooks)
async def list_(room: Webhooks, account: str, *, mode: str | None, as_json: bool) -> None:
    """List the endpoints of an account, oldest first."""
    owner = await find_account(room.access, account)
    found = await acts.list_endpoints(room, owner.id, None if mode is None else Mode(mode))
    show_endpoints(found, as_json=as_json)


@webhooks.command("show")
@click.argument("endpoint_id")
@command
@with_room(Webhooks)
async def show_one(room: Webhooks, endpoint_id: str, *, as_json: bool) -> None:
    """Show an endpoint, except its secret."""
    show_endpoint(await acts.get_any_endpoint(room, endpoint_id), as_json=as_json)


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
@with_room(Webhooks)
async def add(
    room: Webhooks,
    account: str,
    mode: str,
    *,
    url: str,
    types: tuple[str, ...],
    description: str,
    as_json: bool,
) -> None:
    """Add an endpoint, and print its id and its secret. The secret is shown only once."""
    changes = EndpointChanges(url=url, description=description, event_types=_wanted(types))
    owner = await find_account(room.access, account)
    view = await acts.create_endpoint(room, owner.id, Mode(mode), changes)
    await room.access.audit.note(
        AuditAction.WEBHOOK_ENDPOINT_CREATED, view.endpoint.id, account_id=owner.id, mode=mode
    )
    show_secret(view, as_json=as_json)


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
@with_room(Webhooks)
async def change(
    room: Webhooks,
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
    await _change(room, endpoint_id, changes, as_json=as_json)


@webhooks.command("disable")
@click.argument("endpoint_id")
@command
@with_room(Webhooks)
async def disable(room: Webhooks, endpoint_id: str, *, as_json: bool) -> None:
    """Stop sending events to an endpoint, including waiting ones."""
    await _change(room, endpoint_id, EndpointChanges(disabled=True), as_json=as_json)


@webhooks.command("enable")
@click.argument("endpoint_id")
@command
@with_room(Webhooks)
async def enable(room: Webhooks, endpoint_id: str, *, as_json: bool) -> None:
    """Send new events to an endpoint again. `recover` sends the events that it missed."""
    await _change(room, endpoint_id, EndpointChanges(disabled=False), as_json=as_json)


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
@with_room(Webhooks)
async def rotate_secret(
    room: Webhooks, endpoint_id: str, *, overlap: timedelta, as_json: bool
) -> None:
    """Give an endpoint a new secret, and print it.

    Messages have both signatures until the overlap ends.
    """
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    view = await acts.rotate_secret(room, endpoint, overlap)
    await room.access.audit.note(AuditAction.WEBHOOK_SECRET_ROTATED, endpoint_id)
    show_secret(view, as_json=as_json)


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
@with_room(Webhooks)
async def deliveries(
    room: Webhooks, endpoint_id: str, *, status: str | None, limit: int, as_json: bool
) -> None:
    """Show the deliveries to an endpoint, newest events first."""
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    only = None if status is None else DeliveryStatus(status)
    found, _ = await acts.list_deliveries(room, endpoint, status=only, limit=limit)
    show_deliveries(found, as_json=as_json)


@webhooks.command("resend")
@click.argument("endpoint_id")
@click.argument("event_id")
@command
@with_room(Webhooks)
async def resend(room: Webhooks, endpoint_id: str, event_id: str, *, as_json: bool) -> None:
    """Deliver an event again with the same webhook-id. A running server sends it."""
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    view = await acts.resend(room, endpoint, event_id)
    show({"event_id": view.id, "endpoint_id": endpoint_id}, view.id, as_json=as_json)


@webhooks.command("recover")
@click.argument("endpoint_id")
@click.option("--since", required=True, help="A time, such as 2026-11-20T00:00:00Z.")
@command
@with_room(Webhooks)
async def recover(room: Webhooks, endpoint_id: str, *, since: str, as_json: bool) -> None:
    """Deliver all events since a time that were not delivered."""
    try:
        start = parse_rfc3339(since)
    except ValueError as error:
        msg = f"--since: {error}."
        raise InvalidArgument(msg) from None
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    show_changed(await acts.recover(room, endpoint, start), as_json=as_json)


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
@with_room(Webhooks)
async def send_example(room: Webhooks, endpoint_id: str, *, type_: str, as_json: bool) -> None:
    """Send a signed example from this machine immediately, and print the result."""
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    try:
        attempt = await send(room, endpoint, EventType(type_))
    finally:
        await room.sender.close()
    if attempt.outcome is Outcome.ADDRESS_REFUSED:
        say(
            "The settings of this command do not allow that address, but the server's settings "
            "may. To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
        )
    show(attempt_json(attempt), in_words(attempt), as_json=as_json)


webhooks.add_command(listen)


def _wanted(types: tuple[str, ...]) -> frozenset[EventType] | None:
    return frozenset(EventType(type_) for type_ in types) or None


@with_room(Webhooks)
async def _delete(room: Webhooks, endpoint_id: str) -> None:
    endpoint = await acts.get_any_endpoint(room, endpoint_id)
    await acts.delete_endpoint(room, endpoint)
    await room.access.audit.note(
        AuditAction.WEBHOOK_ENDPOINT_DELETED, endpoint_id, account_id=endpoint.account_id
    )


async def _change(
    room: Webhooks, endpoint_id: str, changes: EndpointChanges, *, as_json: bool
) -> None:
    view = await acts.change_endpoint(room, await acts.get_any_endpoint(room, endpoint_id), changes)
    # Which members, and not the URL itself: it may contain a secret of the vendor.
    given = [one.name for one in fields(changes) if getattr(changes, one.name) != one.default]
    await room.access.audit.note(AuditAction.WEBHOOK_ENDPOINT_CHANGED, endpoint_id, changed=given)
    show_changed(view, as_json=as_json)
