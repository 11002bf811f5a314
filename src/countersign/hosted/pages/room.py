"""The room of the hosted pages: checkout sessions, and what only a buyer's browser needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from countersign.base.snapshot import KeyedLocks, SingleFlight
from countersign.core.checkout.room import Checkout
from countersign.hosted.pages.mails import CopyMails
from countersign.hosted.remembered.room import Remembered
from countersign.hosted.toolkit.qr_codes import QrCodes

COPIES_WAITING_MAX: Final = 2
"""Of one session, in one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedPages(Checkout):
    """Checkout sessions, as buyers meet them in a browser."""

    remembered: Remembered
    mails: CopyMails | None = None
    """None: copies are not sent by e-mail."""
    copies: KeyedLocks = field(default_factory=lambda: KeyedLocks(COPIES_WAITING_MAX))
    """Certificates in the making, by session."""
    qr_codes: QrCodes = field(default_factory=QrCodes)
    looks: SingleFlight = field(default_factory=SingleFlight)
    """Concurrent views of a session by one browser: each is recorded once."""
