"""How the command line shows endpoints and deliveries: as text, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from countersign.cli.support import printable, say, show
from countersign.events.model import EventView
from countersign.instant import rfc3339
from countersign.webhooks.model import Delivery, DeliveryAttempt, Endpoint, EndpointView


def show_endpoints(endpoints: Sequence[Endpoint], *, as_json: bool) -> None:
    """A line for each."""
    lines = [f"{e.id}  {e.mode}  {_state(e)}  {e.url}" for e in endpoints]
    show([endpoint_json(endpoint) for endpoint in endpoints], "\n".join(lines), as_json=as_json)


def show_endpoint(endpoint: Endpoint, *, as_json: bool) -> None:
    """All fields of an endpoint except its secret."""
    types = endpoint.event_types
    lines = [
        f"endpoint     {endpoint.id}",
        f"account      {endpoint.account_id}, {endpoint.mode}",
        f"url          {endpoint.url}",
        f"description  {printable(endpoint.description, keep='')}",
        f"events       {'all' if types is None else ', '.join(sorted(types))}",
        f"state        {_state(endpoint)}",
        f"created      {rfc3339(endpoint.created_at)}",
    ]
    for secret in endpoint.secrets:
        until = "" if secret.expires_at is None else f", signs until {rfc3339(secret.expires_at)}"
        lines.append(f"public key   {secret.public_key}{until}")
    show(endpoint_json(endpoint), "\n".join(lines), as_json=as_json)


def show_secret(view: EndpointView, *, as_json: bool) -> None:
    """An endpoint with the secret that has just been made for it."""
    endpoint, secret = view.endpoint, view.secret
    assert secret is not None  # noqa: S101 - it has just been made
    say(f"Endpoint {endpoint.id}. Its secret for v1 signatures is shown only once;")
    say(f"the public key for v1a signatures is {endpoint.secrets[0].public_key}")
    plain = f"{endpoint.id}\n{secret.text}"
    show(endpoint_json(endpoint) | {"secret": secret.text}, plain, as_json=as_json)


def show_changed(view: EndpointView, *, as_json: bool) -> None:
    """An endpoint after a change."""
    say("Running servers apply the change within seconds.")
    show(endpoint_json(view.endpoint), view.endpoint.id, as_json=as_json)


def show_deliveries(found: Sequence[tuple[EventView, Delivery]], *, as_json: bool) -> None:
    """A line for each, with the results of its attempts."""
    lines = [
        f"{view.id}  {view.event.type}  {delivery.status}  "
        + ", ".join(in_words(attempt) for attempt in delivery.attempts)
        for view, delivery in found
    ]
    show([_delivery(*item) for item in found], "\n".join(lines), as_json=as_json)


def in_words(attempt: DeliveryAttempt) -> str:
    """The result of an attempt as text."""
    status = "" if attempt.status is None else f" {attempt.status}"
    return f"{attempt.outcome}{status} in {attempt.duration_ms} ms"


def attempt_json(attempt: DeliveryAttempt) -> dict[str, Any]:
    """The result of an attempt."""
    return {
        "attempted_at": rfc3339(attempt.at),
        "duration_ms": attempt.duration_ms,
        "outcome": attempt.outcome.value,
        "http_status": attempt.status,
    }


def endpoint_json(endpoint: Endpoint) -> dict[str, Any]:
    """All fields of an endpoint except its secret."""
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
        "attempts": [attempt_json(attempt) for attempt in delivery.attempts],
    }


def _state(endpoint: Endpoint) -> str:
    return "enabled" if endpoint.disabled_reason is None else f"disabled:{endpoint.disabled_reason}"


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
