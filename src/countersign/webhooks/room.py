"""The room of webhooks: what its acts work with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from countersign.access.room import Access
from countersign.config import Settings
from countersign.events.room import Events
from countersign.instant import from_ns
from countersign.vault.vault import Vault
from countersign.webhooks.address_guard import AddressGuard
from countersign.webhooks.model import Outcome
from countersign.webhooks.secrets import WebhookSecrets
from countersign.webhooks.sender import WebhookSender


@dataclass(slots=True)
class DeliveryActivity:
    """What this process has sent and is sending."""

    attempts: Counter[Outcome] = field(default_factory=Counter)
    """The number of attempts, by outcome."""
    endpoints_waiting: int = 0
    """For how many endpoints there was work at the last look."""
    examples: Counter[str] = field(default_factory=Counter)
    """The number of examples being sent, by endpoint id and by account id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Webhook endpoints and deliveries."""

    access: Access
    events: Events
    secrets: WebhookSecrets
    sender: WebhookSender
    private: bool
    """Whether plain HTTP and private addresses are allowed."""
    timeout_seconds: float
    """How long the sender takes for a message at most."""
    activity: DeliveryActivity = field(default_factory=DeliveryActivity)

    @property
    def now(self) -> datetime:
        """The time of the server's clock."""
        return from_ns(self.access.clock.time_ns())


def open_webhooks(access: Access, events: Events, vault: Vault, settings: Settings) -> Webhooks:
    """The room, with a sender that has no connections yet."""
    private, timeout = settings.webhook_allow_private, settings.webhook_timeout_seconds
    return Webhooks(
        access=access,
        events=events,
        secrets=WebhookSecrets(vault, access.clock, access.entropy),
        sender=WebhookSender(AddressGuard(private=private), timeout_seconds=timeout),
        private=private,
        timeout_seconds=timeout,
    )
