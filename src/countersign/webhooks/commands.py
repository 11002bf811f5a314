"""`countersign webhooks`: manage endpoints and deliveries, and receive events on a laptop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from countersign.access.account import find_account
from countersign.cli.support import Duration, asking, command, field_lines, say, show, with_room
from countersign.errors import InvalidArgument
from countersign.events.model import EventType
from countersign.instant import parse_rfc3339
from countersign.mode import Mode
from countersign.webhooks import deliveries as sent
from countersign.webhooks import endpoints as acts
from countersign.webhooks.deliver import send_example as send
from countersign.webhooks.listen import listen
from countersign.webhooks.model import DeliveryStatus, Endpoint, Outcome
from countersign.webhooks.room import Webhooks
from countersign.webhooks.schemas import (
    DeliveriesQuery,
    WebhookAttempt,
    WebhookEndpointChange,
    WebhookEndpointRequest,
    endpoint_body,
)

_MODES: Final = click.Choice([mode.value for mode in Mode])
_TYPES: Final = click.Choice([type_.value for type_ in EventType])
_STATUSES: Final = click.Choice([status.value for status in DeliveryStatus])
_types: Final = click.option(
    "--type",
    "types",
    type=_TYPES,
    multiple=True,
    help="Send only events of this type; may be repeated.",
)


def _of_endpoint(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Makes a command about the endpoint that its first argument names."""

    @click.argument("endpoint_id")
    @command
    @with_room(Webhooks)
    @wraps(work)
    async def run(room: Webhooks, /, endpoint_id: str, **options: Any) -> None:  # noqa: ANN401
        await work(room, await acts.get_endpoint(room, endpoint_id), **options)

    return run


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
    lines = [f"{e.id}  {e.mode}  {_state(e)}  {e.url}" for e in found]
    show([_view(endpoint) for endpoint in found], "\n".join(lines), as_json=as_json)


@webhooks.command("show")
@_of_endpoint
async def show_one(_: Webhooks, endpoint: Endpoint, *, as_json: bool) -> None:
    """Show an endpoint, except its secret."""
    view = _view(endpoint)
    show(view, field_lines(view), as_json=as_json)


@webhooks.command("add")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option("--mode", required=True, type=_MODES, help="test or live.")
@click.option("--url", required=True, help="The https URL that gets the events.")
@_types
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
    """Add an endpoint, and print its id and its secret. The secret is shown only once.

    Without --type, all events are sent.
    """
    owner = await find_account(room.access, account)
    wanted = WebhookEndpointRequest(url=url, description=description, event_types=_wanted(types))
    audit = room.access.audit
    made = await acts.create_endpoint(room, owner.id, Mode(mode), wanted, audit=audit)
    _show_secret(made, as_json=as_json)


@webhooks.command("change")
@click.option("--url", help="The new URL.")
@_types
@click.option("--every-type", is_flag=True, help="Send all types again.")
@click.option("--description", help="For people.")
@_of_endpoint
async def change(
    room: Webhooks,
    endpoint: Endpoint,
    *,
    url: str | None,
    types: tuple[str, ...],
    every_type: bool,
    description: str | None,
    as_json: bool,
) -> None:
    """Change an endpoint. An option that is left out changes nothing."""
    if types and every_type:
        raise InvalidArgument("Give either --type or --every-type, not both.")
    changes = WebhookEndpointChange(
        url=url,
        description=description,
        event_types=_wanted(types),
        every_event_type=every_type or None,
    )
    await _change(room, endpoint, changes, as_json=as_json)


@webhooks.command("disable")
@_of_endpoint
async def disable(room: Webhooks, endpoint: Endpoint, *, as_json: bool) -> None:
    """Stop sending events to an endpoint, including waiting ones."""
    await _change(room, endpoint, WebhookEndpointChange(disabled=True), as_json=as_json)


@webhooks.command("enable")
@_of_endpoint
async def enable(room: Webhooks, endpoint: Endpoint, *, as_json: bool) -> None:
    """Send new events to an endpoint again. `recover` sends the events that it missed."""
    await _change(room, endpoint, WebhookEndpointChange(disabled=False), as_json=as_json)


@webhooks.command("delete")
@asking("Delete the endpoint {endpoint_id}? This cannot be undone.")
@_of_endpoint
async def delete(room: Webhooks, endpoint: Endpoint, *, as_json: bool) -> None:
    """Delete an endpoint and its secrets."""
    await acts.delete_endpoint(room, endpoint, room.access.audit)
    show({"endpoint_id": endpoint.id, "deleted": True}, endpoint.id, as_json=as_json)


@webhooks.command("rotate-secret")
@click.option(
    "--overlap",
    type=Duration(),
    default="24h",
    show_default=True,
    help="How long the old secret signs together with the new one.",
)
@_of_endpoint
async def rotate_secret(
    room: Webhooks, endpoint: Endpoint, *, overlap: timedelta, as_json: bool
) -> None:
    """Give an endpoint a new secret, and print it.

    Messages have both signatures until the overlap ends.
    """
    rotated = await acts.rotate_secret(room, endpoint, overlap, audit=room.access.audit)
    _show_secret(rotated, as_json=as_json)


@webhooks.command("deliveries")
@click.option("--status", type=_STATUSES, help="Only deliveries with this status.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="The maximum number of deliveries.",
)
@_of_endpoint
async def deliveries(
    room: Webhooks, endpoint: Endpoint, *, status: str | None, limit: int, as_json: bool
) -> None:
    """Show the deliveries to an endpoint, newest events first."""
    only = None if status is None else DeliveryStatus(status)
    page = await sent.list_deliveries(room, endpoint, DeliveriesQuery(status=only, limit=limit))
    lines = [
        f"{d.event.id}  {d.event.type}  {d.status}  {', '.join(map(_in_words, d.attempts))}"
        for d in page.data
    ]
    view = [
        {"event_id": d.event.id, "type": d.event.type} | _json_of(d, without=("event",))
        for d in page.data
    ]
    show(view, "\n".join(lines), as_json=as_json)


@webhooks.command("resend")
@_of_endpoint
@click.argument("event_id")
async def resend(room: Webhooks, endpoint: Endpoint, event_id: str, *, as_json: bool) -> None:
    """Deliver an event again with the same webhook-id. A running server sends it."""
    view = await sent.resend(room, endpoint, event_id)
    show({"event_id": view.id, "endpoint_id": endpoint.id}, view.id, as_json=as_json)


@webhooks.command("recover")
@click.option("--since", required=True, help="A time, such as 2026-11-20T00:00:00Z.")
@_of_endpoint
async def recover(room: Webhooks, endpoint: Endpoint, *, since: str, as_json: bool) -> None:
    """Deliver all events since a time that were not delivered."""
    try:
        start = parse_rfc3339(since)
    except ValueError as error:
        raise InvalidArgument(f"--since: {error}.") from None
    await sent.recover(room, endpoint, start)
    _show_changed(endpoint, as_json=as_json)


@webhooks.command("send-example")
@click.option(
    "--type",
    "type_",
    type=_TYPES,
    default=EventType.ACKNOWLEDGMENT_CREATED.value,
    show_default=True,
    help="The type of the example.",
)
@_of_endpoint
async def send_example(room: Webhooks, endpoint: Endpoint, *, type_: str, as_json: bool) -> None:
    """Send a signed example from this machine immediately, and print the result."""
    try:
        attempt = await send(room, endpoint, EventType(type_))
    finally:
        await room.sender.close()
    if attempt.outcome is Outcome.ADDRESS_REFUSED:
        say(
            "The settings of this command do not allow that address, but the server's settings "
            "may. To allow it, set COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE=true for this command too."
        )
    show(_json_of(attempt), _in_words(attempt), as_json=as_json)


webhooks.add_command(listen)


def _wanted(types: tuple[str, ...]) -> list[EventType] | None:
    return [EventType(type_) for type_ in types] or None


async def _change(
    room: Webhooks, endpoint: Endpoint, changes: WebhookEndpointChange, *, as_json: bool
) -> None:
    changed = await acts.change_endpoint(room, endpoint, changes, audit=room.access.audit)
    _show_changed(changed, as_json=as_json)


def _show_changed(endpoint: Endpoint, *, as_json: bool) -> None:
    say("Running servers apply the change within seconds.")
    show(_view(endpoint), endpoint.id, as_json=as_json)


def _show_secret(endpoint: Endpoint, *, as_json: bool) -> None:
    secret = endpoint.new_secret
    assert secret is not None  # noqa: S101 - it has just been made
    say(f"Endpoint {endpoint.id}. Its secret for v1 signatures is shown only once;")
    say(f"the public key for v1a signatures is {endpoint.secrets[0].public_key}")
    plain = f"{endpoint.id}\n{secret.text}"
    show(_view(endpoint) | {"secret": secret.text}, plain, as_json=as_json)


def _view(endpoint: Endpoint) -> dict[str, Any]:
    """As the API shows it, with the account; when a secret was made is left out."""
    body = endpoint_body(endpoint)
    owner = {"account_id": endpoint.account_id, "mode": endpoint.mode}
    secrets = [_json_of(secret, without=("created_at",)) for secret in body.secrets]
    return owner | _json_of(body, without=("livemode",)) | {"secrets": secrets}


def _json_of(body: Struct, without: tuple[str, ...] = ()) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(body)
    return {name: value for name, value in members.items() if name not in without}


def _state(endpoint: Endpoint) -> str:
    return "enabled" if endpoint.disabled_reason is None else f"disabled:{endpoint.disabled_reason}"


def _in_words(attempt: WebhookAttempt) -> str:
    status = "" if attempt.http_status is None else f" {attempt.http_status}"
    return f"{attempt.outcome}{status} in {attempt.duration_ms} ms"
