"""The bodies of responses about webhooks."""

from __future__ import annotations

from countersign.events.model import EventView
from countersign.events.schemas import event_body
from countersign.http.reply import encode
from countersign.instant import to_the_second
from countersign.mode import Mode
from countersign.webhooks import schemas
from countersign.webhooks.model import Delivery, DeliveryAttempt, Endpoint, EndpointView


def render_endpoint(view: EndpointView) -> bytes:
    """An endpoint, with its secret if that has just been made."""
    plain = endpoint_body(view.endpoint)
    if view.secret is None:
        return encode(plain)
    members = {name: getattr(plain, name) for name in plain.__struct_fields__}
    return encode(schemas.NewWebhookEndpoint(**members, secret=view.secret.text))


def endpoint_body(endpoint: Endpoint) -> schemas.WebhookEndpoint:
    """The endpoint as the API shows it, without secrets."""
    types = endpoint.event_types
    return schemas.WebhookEndpoint(
        endpoint_id=endpoint.id,
        livemode=endpoint.mode is Mode.LIVE,
        url=endpoint.url,
        description=endpoint.description,
        event_types=None if types is None else sorted(types),
        created_at=endpoint.created_at.replace(microsecond=0),
        disabled_at=to_the_second(endpoint.disabled_at),
        disabled_reason=endpoint.disabled_reason,
        secrets=[
            schemas.Secret(
                public_key=secret.public_key,
                created_at=secret.created_at.replace(microsecond=0),
                expires_at=to_the_second(secret.expires_at),
            )
            for secret in endpoint.secrets
        ],
    )


def delivery_body(view: EventView, delivery: Delivery) -> schemas.WebhookDelivery:
    """The delivery of an event as the API shows it."""
    return schemas.WebhookDelivery(
        event=event_body(view),
        status=delivery.status,
        next_attempt_at=to_the_second(delivery.next_attempt_at),
        attempts=[attempt_body(attempt) for attempt in delivery.attempts],
    )


def attempt_body(attempt: DeliveryAttempt) -> schemas.WebhookAttempt:
    """One attempt as the API shows it."""
    return schemas.WebhookAttempt(
        attempted_at=attempt.at.replace(microsecond=0),
        duration_ms=attempt.duration_ms,
        outcome=attempt.outcome,
        http_status=attempt.status,
    )


def render_attempt(attempt: DeliveryAttempt) -> bytes:
    """One attempt as the body of a response."""
    return encode(attempt_body(attempt))
