"""The room of webhooks: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.webhooks.deliver import DeliverWebhooks
from countersign.webhooks.endpoints import WebhookEndpoints
from countersign.webhooks.secrets import WebhookSecrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Webhook endpoints and deliveries."""

    access: Access
    endpoints: WebhookEndpoints
    deliver: DeliverWebhooks
    secrets: WebhookSecrets
