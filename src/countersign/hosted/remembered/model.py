"""Passkeys and cookies of buyers, their lifetimes, and requests about buyers."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from countersign.base.values import Mode
from countersign_evidence.process import Binding

COOKIE_KEPT: Final = timedelta(days=90)
PASSKEY_KEPT: Final = timedelta(days=400)
"""How long a passkey is kept that is not used."""
USES_KEPT: Final = timedelta(days=365)
"""How long a buyer can see who asked."""
KEPT_MAX: Final = 10
"""Passkeys and cookies of one buyer: one more removes the one that was used least recently."""


class Kind(StrEnum):
    """The means to remember a buyer."""

    PASSKEY = "passkey"
    COOKIE = "cookie"

    @property
    def binding(self) -> Binding:
        """Its name in the evidence."""
        return Binding(self.value)


class KnownBy(Struct, frozen=True, kw_only=True):
    """A passkey or a cookie of a buyer."""

    id: str
    mode: Mode
    cbid: str
    kind: Kind
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class NotKnown(StrEnum):
    """Why a buyer is not known by what a browser presents; that browser alone learns it."""

    UNKNOWN = "unknown"
    """Never known here, or removed, erased or expired since."""
    REFUSED = "refused"
    """Wrong challenge: signed for another page, in another way, or earlier."""
    COPIED = "copied"
    """There is a copy of the passkey, which was removed therefore."""


class Use(Struct, frozen=True, kw_only=True):
    """One time that somebody asked about a remembered buyer, with the buyer's consent."""

    account_id: str
    kind: Kind
    verified: bool
    """Whether the account was informed that the buyer is verified; otherwise it learned nothing."""
    at: datetime
