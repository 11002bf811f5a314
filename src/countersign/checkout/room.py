"""The room of checkout sessions: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from countersign.access.room import Access
from countersign.acknowledgments.room import Acknowledgments
from countersign.buyers.room import Buyers
from countersign.checkout.asking import Asking
from countersign.checkout.updates import Updates
from countersign.clearances.room import Clearances
from countersign.host import Network
from countersign.single_flight import KeyedLocks
from countersign.vault.vault import Vault

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
