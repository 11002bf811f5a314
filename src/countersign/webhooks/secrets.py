"""What signs for a webhook endpoint: made here, kept sealed in the vault, opened to sign."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from countersign.clock import Clock, Entropy
from countersign.ids import WEBHOOK_SECRET, timed_id
from countersign.instant import from_ns
from countersign.vault.sealed_column import SealedColumn
from countersign.vault.vault import Vault
from countersign.webhooks.model import Endpoint, EndpointSecret
from countersign.webhooks.signature import (
    SECRET_BYTES,
    SEED_BYTES,
    PrivateKey,
    SharedSecret,
    SigningKey,
)

_CACHED_MAX: Final = 1024


class WebhookSecrets:
    """Makes and opens the secrets of endpoints."""

    def __init__(self, vault: Vault, clock: Clock, entropy: Entropy) -> None:
        self._column = SealedColumn(vault, entropy, "webhook_secrets", "sealed")
        self._clock = clock
        self._entropy = entropy
        self._opened: OrderedDict[str, tuple[SigningKey, ...]] = OrderedDict()

    async def make(self, account_id: str) -> tuple[EndpointSecret, SharedSecret]:
        """A new secret; the shared part of it is shown now and never again."""
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
        """Those that sign for the endpoint now: the newest first, each in both ways."""
        return [
            key
            for secret in endpoint.secrets
            if secret.signs_at(now)
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
