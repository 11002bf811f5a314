"""Bodies of webhook endpoints and deliveries, with examples, and how responses are made."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict

from countersign.base.http.schemas import (
    STORABLE,
    EndpointId,
    Listing,
    Opaque,
    Request,
    Timestamp,
    view,
)
from countersign.core.events.model import EventType
from countersign.core.events.routes import AfterEvent, Event
from countersign.core.webhooks.model import (
    DESCRIPTION_LENGTH_MAX,
    OVERLAP_MAX,
    URL_LENGTH_MAX,
    DeliveryStatus,
    Disabled,
    Endpoint,
    Outcome,
    SharedSecret,
)

_URL: Final = "https://shop.example.com/countersign"
_TYPES: Final = [EventType.ACKNOWLEDGMENT_CREATED, EventType.BUYER_VERIFIED]
_OVERLAP_SECONDS_MAX: Final = int(OVERLAP_MAX.total_seconds())

Url = Annotated[str, Meta(max_length=URL_LENGTH_MAX, examples=[_URL], extra_json_schema=STORABLE)]
Description = Annotated[str, Meta(max_length=DESCRIPTION_LENGTH_MAX, extra_json_schema=STORABLE)]
EventTypes = Annotated[
    list[EventType], Meta(min_length=1, max_length=len(EventType), examples=[_TYPES])
]


def chosen(types: list[EventType] | None) -> frozenset[EventType] | None:
    """The types to send; None: all."""
    return None if types is None else frozenset(types)


class WebhookEndpointRequest(Request, frozen=True, kw_only=True):
    """A new webhook endpoint."""

    url: Url
    """The https URL that gets the events."""
    description: Description | None = None
    """A note for your own use."""
    event_types: EventTypes | None = None
    """The event types to send. Left out: all, including types of later releases."""


class WebhookEndpointChange(Request, frozen=True, kw_only=True):
    """The changes to a webhook endpoint. A field that is left out does not change."""

    url: Url | None = None
    """The https URL that gets the events."""
    description: Description | None = None
    """A note for your own use."""
    event_types: EventTypes | None = None
    """The only event types to send from now on."""
    every_event_type: bool | None = None
    """Send all types again, in the place of `event_types`."""
    disabled: bool | None = None

    def apply(self, endpoint: Endpoint, now: datetime) -> Endpoint:
        """The endpoint after the changes, made at this time."""
        said = {"url": self.url, "description": self.description}
        changes: dict[str, Any] = {name: new for name, new in said.items() if new is not None}
        if self.every_event_type or self.event_types is not None:
            changes["event_types"] = chosen(self.event_types)
        if self.disabled and endpoint.disabled_at is None:
            changes |= {"disabled_at": now, "disabled_reason": Disabled.REQUESTED}
        if self.disabled is False:
            changes |= {"disabled_at": None, "disabled_reason": None}
        return replace(endpoint, **changes)


class SecretRotation(Request, frozen=True, kw_only=True):
    """How to rotate a secret."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=_OVERLAP_SECONDS_MAX)] | None = None
    """How long the old secret signs together with the new one. Left out: a day (86400 s)."""


class Recovery(Request, frozen=True, kw_only=True):
    """The events to deliver again."""

    since: Timestamp
    """Events since this time that were not delivered are sent again."""


class Resending(Request, frozen=True, kw_only=True):
    """Which event to send again."""

    event_id: Opaque


class ExampleRequest(Request, frozen=True, kw_only=True):
    """Which example to send."""

    type: EventType


class DeliveriesQuery(Listing[AfterEvent], frozen=True, kw_only=True):
    status: Annotated[DeliveryStatus | None, Meta(examples=[DeliveryStatus.PENDING])] = None
    """Only deliveries with this status."""


class Secret(Struct, frozen=True, kw_only=True):
    """A secret that signs the messages to an endpoint. The newest one comes first."""

    public_key: Annotated[str, Meta(examples=["whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="])]
    """Verifies the `v1a` signatures (Ed25519): `whpk_` and base64."""
    created_at: Timestamp
    expires_at: Timestamp | None
    """The time when the secret stops signing."""


class WebhookEndpoint(Struct, frozen=True, kw_only=True):
    """A webhook endpoint."""

    endpoint_id: EndpointId
    livemode: bool
    url: Annotated[str, Meta(examples=[_URL])]
    description: Annotated[str, Meta(examples=["The shop's orders"])]
    event_types: Annotated[list[EventType] | None, Meta(examples=[_TYPES])]
    """null: all types."""
    created_at: Timestamp
    disabled_at: Timestamp | None
    disabled_reason: Disabled | None
    """`gone`: the endpoint returned 410."""
    secrets: list[Secret]


class NewWebhookEndpoint(WebhookEndpoint, frozen=True, kw_only=True):
    """A webhook endpoint and its new secret, which is returned only once."""

    secret: Annotated[str, Meta(examples=[SharedSecret(bytes(range(32))).text])]
    """Verifies the `v1` signatures (HMAC-SHA256): `whsec_` and base64."""


class DeletedWebhookEndpoint(Struct, frozen=True, kw_only=True):
    """The webhook endpoint is deleted."""

    endpoint_id: EndpointId
    deleted: Annotated[bool, Meta(examples=[True])]


class WebhookAttempt(Struct, frozen=True, kw_only=True):
    """One attempt to deliver an event."""

    attempted_at: Timestamp
    duration_ms: Annotated[int, Meta(examples=[41])]
    outcome: Annotated[Outcome, Meta(examples=[Outcome.DELIVERED])]
    http_status: Annotated[int | None, Meta(examples=[204])]


class WebhookDelivery(Struct, frozen=True, kw_only=True):
    """The delivery of an event to an endpoint."""

    event: Event
    status: Annotated[DeliveryStatus, Meta(examples=[DeliveryStatus.SUCCEEDED])]
    next_attempt_at: Timestamp | None
    attempts: list[WebhookAttempt]
    response: str | None
    """At most 1,024 bytes of what the endpoint returned with the last attempt, if it refused.

    For seven days, and until the account, or staff, erases any buyer."""


def with_secret(endpoint: Endpoint, made: SharedSecret) -> NewWebhookEndpoint:
    """The endpoint and its new secret, which is shown now and never again."""
    return NewWebhookEndpoint(**asdict(endpoint_body(endpoint)), secret=made.text)


def endpoint_body(endpoint: Endpoint) -> WebhookEndpoint:
    """The endpoint as the API shows it, without secrets."""
    types = endpoint.event_types
    return view(
        WebhookEndpoint,
        endpoint,
        endpoint_id=endpoint.id,
        event_types=None if types is None else sorted(types),
        secrets=[view(Secret, secret) for secret in endpoint.secrets],
    )
