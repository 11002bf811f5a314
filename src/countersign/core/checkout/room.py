"""The room of checkout sessions: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from countersign.base.host import Network
from countersign.base.snapshot import KeyedLocks
from countersign.core.access.room import Access
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.buyers.room import Buyers
from countersign.core.checkout.asking import Asking
from countersign.core.checkout.updates import Updates
from countersign.core.clearances.room import Clearances
from countersign.core.vault.vault import Vault

CHANGES_WAITING_MAX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """Checkout sessions, and what they collect."""

    access: Access
    vault: Vault
    acknowledgments: Acknowledgments
    buyers: Buyers
    clearances: Clearances
    updates: Updates
    asking: Asking
    public_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    changes: KeyedLocks = field(
        default_factory=lambda: KeyedLocks(CHANGES_WAITING_MAX, of_database=True)
    )
    """Those who change a session, one after the other: else each would undo the others' work."""
