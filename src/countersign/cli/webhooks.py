"""`countersign webhooks`: endpoints, deliveries, and receiving events on a laptop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from countersign.bootstrap import Deployment
from countersign.cli.listen import listen
from countersign.cli.support import Duration, command, confirm, say, show, with_deployment
from countersign.domain.event import EventType
from countersign.domain.instant import parse_rfc3339, rfc3339
from countersign.domain.mode import Mode
from countersign.domain.webhook import Attempt, Delivery, DeliveryStatus, WebhookEndpoint
from countersign.errors import InvalidArgument
from countersign.services.events import EventView
from countersign.services.webhook_endpoints import EndpointChanges, EndpointView

_MODES = click.Choice([mode.value for mode in Mode])
_TYPES = click.Choice([type_.value for type_ in EventType])
_STATUSES = click.Choice([status.value for status in DeliveryStatus])


@click.group()
def webhooks() -> None:
    """Webhooks: where events are sent, and what came of it."""


@webhooks.group()
def endpoints() -> None:
    """Where events are sent."""


@endpoints.command("list")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option("--mode", type=_MODES, help="Only those of this mode.")
@command
def list_(account: str, *, mode: str | None, as_json: bool) -> None:
    """List the endpoints of an account, oldest first."""
    found = _list(account, None if mode is None else Mode(mode))
    lines = [f"{e.id}  {e.mode}  {_state(e)}  {e.url}" for e in found]
    show([_view(endpoint) for endpoint in found], "\n".join(lines), as_json=as_json)


@endpoints.command("add")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option("--mode", required=True, type=_MODES, help="test or live.")
@click.option("--url", required=True, help="Where to send events, https.")
@click.option(
    "--type",
    "types",
    type=_TYPES,
    multiple=True,
    help="Send only events of this type; may be repeated. Without it: all.",
)
@click.option("--description", default="", help="For people.")
@command
def add(
    account: str, mode: str, url: str, types: tuple[str, ...], description: str, *, as_json: bool
) -> None:
    """Add an endpoint, and print its id and its secret: this once, never again."""
    wanted = frozenset(EventType(type_) for type_ in types) or None
    changes = EndpointChanges(url=url, description=description, event_types=wanted)
    _show_secret(_add(account, Mode(mode), changes), as_json=as_json)


@endpoints.command("disable")
@click.argument("endpoint_id")
@command
def disable(endpoint_id: str, *, as_json: bool) -> None:
    """Send nothing more to an endpoint; what waits for it is stopped."""
    _show_changed(_change(endpoint_id, EndpointChanges(disabled=True)), as_json=as_json)


@endpoints.command("enable")
@click.argument("endpoint_id")
@command
def enable(endpoint_id: str, *, as_json: bool) -> None:
    """Send events to an endpoint again, from now on; `recover` sends what it missed."""
    _show_changed(_change(endpoint_id, EndpointChanges(disabled=False)), as_json=as_json)


@endpoints.command("delete")
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
    help="How long the old secret signs beside the new one.",
)
@command
def rotate_secret(endpoint_id: str, *, overlap: timedelta, as_json: bool) -> None:
    """Give an endpoint a new secret, and print it; messages carry both signatures for a while."""
    _show_secret(_rotate(endpoint_id, overlap), as_json=as_json)


@webhooks.command("deliveries")
@click.argument("endpoint_id")
@click.option("--status", type=_STATUSES, help="Only deliveries that stand so.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many."
)
@command
def deliveries(endpoint_id: str, *, status: str | None, limit: int, as_json: bool) -> None:
    """Show what was sent to an endpoint, the newest events first."""
    found = _deliveries(endpoint_id, None if status is None else DeliveryStatus(status), limit)
    lines = [
        f"{view.id}  {view.event.type}  {delivery.status}  "
        + ", ".join(_told(attempt) for attempt in delivery.attempts)
        for view, delivery in found
    ]
    show([_delivery(*item) for item in found], "\n".join(lines), as_json=as_json)


@webhooks.command("resend")
@click.argument("endpoint_id")
@click.argument("event_id")
@command
def resend(endpoint_id: str, event_id: str, *, as_json: bool) -> None:
    """Deliver an event again; a running server does it, with the same webhook-id."""
    view = _resend(endpoint_id, event_id)
    show({"event_id": view.id, "endpoint_id": endpoint_id}, view.id, as_json=as_json)


@webhooks.command("recover")
@click.argument("endpoint_id")
@click.option("--since", required=True, help="A time, such as 2026-11-20T00:00:00Z.")
@command
def recover(endpoint_id: str, *, since: str, as_json: bool) -> None:
    """Deliver again what happened since a time and was not delivered."""
    try:
        start = parse_rfc3339(since)
    except ValueError as error:
        msg = f"--since: {error}."
        raise InvalidArgument(msg) from None
    _show_changed(_recover(endpoint_id, start), as_json=as_json)


@webhooks.command("send-example")
@click.argument("endpoint_id")
@click.option(
    "--type",
    "type_",
    type=_TYPES,
    default=EventType.ACKNOWLEDGMENT_CREATED.value,
    show_default=True,
    help="Which example.",
)
@command
def send_example(endpoint_id: str, *, type_: str, as_json: bool) -> None:
    """Send a signed example from here, at once, and tell what came of it."""
    attempt = _send_example(endpoint_id, EventType(type_))
    show(_attempt(attempt), _told(attempt), as_json=as_json)


webhooks.add_command(listen)


@with_deployment
async def _list(
    deployment: Deployment, account: str, mode: Mode | None
) -> Sequence[WebhookEndpoint]:
    owner = await deployment.accounts.get(account)
    return await deployment.webhook_endpoints.list(owner.id, mode)


@with_deployment
async def _add(
    deployment: Deployment, account: str, mode: Mode, changes: EndpointChanges
) -> EndpointView:
    owner = await deployment.accounts.get(account)
    return await deployment.webhook_endpoints.create(owner.id, mode, changes)


@with_deployment
async def _change(
    deployment: Deployment, endpoint_id: str, changes: EndpointChanges
) -> EndpointView:
    service = deployment.webhook_endpoints
    return await service.change(await service.by_id(endpoint_id), changes)


@with_deployment
async def _delete(deployment: Deployment, endpoint_id: str) -> None:
    service = deployment.webhook_endpoints
    await service.delete(await service.by_id(endpoint_id))


@with_deployment
async def _rotate(deployment: Deployment, endpoint_id: str, overlap: timedelta) -> EndpointView:
    service = deployment.webhook_endpoints
    return await service.rotate(await service.by_id(endpoint_id), overlap)


@with_deployment
async def _deliveries(
    deployment: Deployment, endpoint_id: str, status: DeliveryStatus | None, limit: int
) -> Sequence[tuple[EventView, Delivery]]:
    service = deployment.webhook_endpoints
    endpoint = await service.by_id(endpoint_id)
    found, _ = await service.deliveries(endpoint, status=status, before=None, limit=limit)
    return found


@with_deployment
async def _resend(deployment: Deployment, endpoint_id: str, event_id: str) -> EventView:
    service = deployment.webhook_endpoints
    return await service.resend(await service.by_id(endpoint_id), event_id)


@with_deployment
async def _recover(deployment: Deployment, endpoint_id: str, since: datetime) -> EndpointView:
    service = deployment.webhook_endpoints
    return await service.recover(await service.by_id(endpoint_id), since)


@with_deployment
async def _send_example(deployment: Deployment, endpoint_id: str, type_: EventType) -> Attempt:
    endpoint = await deployment.webhook_endpoints.by_id(endpoint_id)
    try:
        return await deployment.deliver_webhooks.send_example(endpoint, type_)
    finally:
        await deployment.deliver_webhooks.close()


def _show_secret(view: EndpointView, *, as_json: bool) -> None:
    endpoint, secret = view.endpoint, view.secret
    assert secret is not None  # noqa: S101 - it has just been made
    say(f"Endpoint {endpoint.id}. Its secret for v1 signatures is shown this once;")
    say(f"the public key for v1a signatures is {endpoint.secrets[0].public_key}")
    plain = f"{endpoint.id}\n{secret.text}"
    show(_view(endpoint) | {"secret": secret.text}, plain, as_json=as_json)


def _show_changed(view: EndpointView, *, as_json: bool) -> None:
    say("Running servers follow within seconds.")
    show(_view(view.endpoint), view.endpoint.id, as_json=as_json)


def _state(endpoint: WebhookEndpoint) -> str:
    return "enabled" if endpoint.disabled_reason is None else f"disabled:{endpoint.disabled_reason}"


def _told(attempt: Attempt) -> str:
    status = "" if attempt.status is None else f" {attempt.status}"
    return f"{attempt.outcome}{status} in {attempt.duration_ms} ms"


def _view(endpoint: WebhookEndpoint) -> dict[str, Any]:
    types = endpoint.event_types
    return {
        "endpoint_id": endpoint.id,
        "account_id": endpoint.account_id,
        "mode": endpoint.mode.value,
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": None if types is None else sorted(types),
        "created_at": rfc3339(endpoint.created_at),
        "disabled_at": _time(endpoint.disabled_at),
        "disabled_reason": endpoint.disabled_reason,
        "secrets": [
            {"public_key": s.public_key, "expires_at": _time(s.expires_at)}
            for s in endpoint.secrets
        ],
    }


def _delivery(view: EventView, delivery: Delivery) -> dict[str, Any]:
    return {
        "event_id": view.id,
        "type": view.event.type.value,
        "status": delivery.status.value,
        "next_attempt_at": _time(delivery.next_attempt_at),
        "attempts": [_attempt(attempt) for attempt in delivery.attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempted_at": rfc3339(attempt.at),
        "duration_ms": attempt.duration_ms,
        "outcome": attempt.outcome.value,
        "http_status": attempt.status,
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
