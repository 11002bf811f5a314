"""The room of webhooks: what its acts work with."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from countersign.base.config import Settings
from countersign.base.values import WEBHOOK_SECRET, Clock, Entropy, from_ns, timed_id
from countersign.core.access.room import Access
from countersign.core.events.room import Events
from countersign.core.vault.vault import SealedColumn, Vault
from countersign.core.webhooks.address_guard import AddressGuard
from countersign.core.webhooks.model import (
    SECRET_BYTES,
    SEED_BYTES,
    Endpoint,
    EndpointSecret,
    Outcome,
    PrivateKey,
    SharedSecret,
    SigningKey,
)
from countersign.core.webhooks.sender import WebhookSender

_CACHED_MAX: Final = 1024


class WebhookSecrets:
    """The secrets of endpoints: made here, kept sealed in the vault, opened to sign."""

    def __init__(self, vault: Vault, clock: Clock, entropy: Entropy) -> None:
        self._column = SealedColumn(vault, entropy, "webhook_secrets", "sealed")
        self._clock = clock
        self._entropy = entropy
        self._opened: OrderedDict[str, tuple[SigningKey, ...]] = OrderedDict()

    async def make(self, account_id: str) -> tuple[EndpointSecret, SharedSecret]:
        """A new secret; its shared part is shown now and never again."""
        time_ns = self._clock.time_ns()
        drawn = self._entropy(SECRET_BYTES + SEED_BYTES)
        shared, private = SharedSecret(drawn[:SECRET_BYTES]), PrivateKey(drawn[SECRET_BYTES:])
        id_ = timed_id(WEBHOOK_SECRET, time_ns, self._entropy(8))
        sealed = await self._column.seal(drawn, account=account_id, row_id=id_, time_ns=time_ns)
        made = EndpointSecret(
            id=id_,
            public_key=private.public_key,
            sealed=sealed,
            created_at=from_ns(time_ns),
            expires_at=None,
        )
        return made, shared

    async def signing_keys(self, endpoint: Endpoint, now: datetime) -> Sequence[SigningKey]:
        """The endpoint's current signing keys: newest first, each of both kinds."""
        return [
            key
            for secret in endpoint.secrets
            if secret.expires_at is None or now < secret.expires_at
            for key in await self._open(endpoint.account_id, secret)
        ]

    async def _open(self, account_id: str, secret: EndpointSecret) -> tuple[SigningKey, ...]:
        known = self._opened.get(secret.id)
        if known is None:
            drawn = await self._column.open(secret.sealed, account=account_id, row_id=secret.id)
            known = (SharedSecret(drawn[:SECRET_BYTES]), PrivateKey(drawn[SECRET_BYTES:]))
            self._opened[secret.id] = known
            if len(self._opened) > _CACHED_MAX:
                self._opened.popitem(last=False)
        return known


@dataclass(slots=True)
class DeliveryActivity:
    """Finished and current deliveries of this process."""

    attempts: Counter[Outcome] = field(default_factory=Counter)
    """The number of attempts, by outcome."""
    examples: Counter[str] = field(default_factory=Counter)
    """The number of examples being sent, by endpoint id and by account id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Webhook endpoints and deliveries."""

    access: Access
    events: Events
    secrets: WebhookSecrets
    responses: SealedColumn
    """What endpoints returned; a row is named by its event."""
    sender: WebhookSender
    private: bool
    """Whether plain HTTP and private addresses are allowed."""
    timeout_seconds: float
    """How long the sender takes for a message at most."""
    activity: DeliveryActivity = field(default_factory=DeliveryActivity)

    @property
    def now(self) -> datetime:
        return from_ns(self.access.clock.time_ns())


def open_webhooks(access: Access, events: Events, vault: Vault, settings: Settings) -> Webhooks:
    """The room, with a sender that has no connections yet."""
    private, timeout = settings.webhook_allow_private, settings.webhook_timeout_seconds
    return Webhooks(
        access=access,
        events=events,
        secrets=WebhookSecrets(vault, access.clock, access.entropy),
        responses=SealedColumn(vault, access.entropy, "webhook_deliveries", "response"),
        sender=WebhookSender(AddressGuard(private=private), timeout_seconds=timeout),
        private=private,
        timeout_seconds=timeout,
    )
