"""The room in which buyers look after themselves: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.checkout.page_room import HostedPages
from countersign.privacy.room import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfService:
    """What a buyer sees and removes without a vendor."""

    checkout: HostedPages
    privacy: Privacy
