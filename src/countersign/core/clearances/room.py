"""The room of clearances: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.core.access.room import Access
from countersign.core.buyers.rules import VerificationRules
from countersign.core.clearances.keys import ClearanceKeys
from countersign.core.log.room import LogRoom
from countersign.core.notices.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearances:
    """Clearances, their tokens and fulfilments."""

    access: Access
    log: LogRoom
    registry: Registry
    keys: ClearanceKeys
    floor: VerificationRules
    """The deployment's requirements for every verification."""
    public_url: str
