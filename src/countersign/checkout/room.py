"""The room of checkout sessions: what its acts work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from countersign.access.room import Access
from countersign.acknowledgments.room import Acknowledgments
from countersign.buyers.room import Buyers
from countersign.checkout.asking import Asking
from countersign.checkout.mails import CopyMails
from countersign.checkout.qr_codes import QrCodes
from countersign.checkout.updates import Updates
from countersign.clearances.room import Clearances
from countersign.host import Network
from countersign.lines import Lines, Looks
from countersign.remembered.room import Remembered
from countersign.vault.vault import Vault

CHANGES_WAITING_MAX: Final = 32
COPIES_WAITING_MAX: Final = 2
"""Of one session, in one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """Checkout sessions, and what they collect."""

    access: Access
    vault: Vault
    acknowledgments: Acknowledgments
    buyers: Buyers
    clearances: Clearances
    remembered: Remembered
    updates: Updates
    asking: Asking
    public_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    mails: CopyMails | None = None
    """None: copies are not sent by e-mail."""
    changes: Lines = field(default_factory=lambda: Lines(CHANGES_WAITING_MAX, of_database=True))
    """Those who change a session, one after the other: else each would undo the others' work."""
    copies: Lines = field(default_factory=lambda: Lines(COPIES_WAITING_MAX))
    """Those who have the certificate of a session made for its buyer."""
    qr_codes: QrCodes = field(default_factory=QrCodes)
    looks: Looks = field(default_factory=Looks)
    """Those who only look at a session, and leave the time of it."""
