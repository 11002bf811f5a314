"""The room of remembered buyers: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.buyers.room import Buyers
from countersign.remembered.model import RelyingParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Passkeys and cookies of buyers, and who asked about them."""

    buyers: Buyers
    party: RelyingParty | None
    """None: there are no passkeys at the address of this deployment, only cookies."""
