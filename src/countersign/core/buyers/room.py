"""The room of buyers: what its acts work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from countersign.core.access.room import Access
from countersign.core.buyers.providers import FIRST, FURTHER, Providers, WatchVerifications
from countersign.core.buyers.rules import VerificationRules
from countersign.core.log.journal import Journal
from countersign.core.log.room import LogRoom
from countersign.core.vault.vault import SealedColumn, Vault
from countersign.identity.registry import IdentityProviders


@dataclass(frozen=True, slots=True, kw_only=True)
class Buyers:
    """Buyers, their verifications, and how accounts verify."""

    access: Access
    vault: Vault
    journal: Journal
    providers: Providers
    watch: WatchVerifications
    public_url: str
    hurried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a provider's webhook: a session is due now."""
    polling: set[str] = field(default_factory=set)
    """The accounts whose sessions are being polled in this process."""


def open_buyers(
    log: LogRoom, factory: IdentityProviders, floor: VerificationRules, public_url: str
) -> Buyers:
    """The room above an open log."""
    access, vault = log.access, log.vault.vault
    sealed = {
        table: SealedColumn(vault, access.entropy, table, "credentials")
        for table in (FIRST, FURTHER)
    }
    return Buyers(
        access=access,
        vault=vault,
        journal=log.journal,
        providers=Providers(access.database, sealed, factory, floor),
        watch=WatchVerifications(access.clock),
        public_url=public_url,
    )
