"""The room of operations: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.operations.housekeeping import Housekeeping
from countersign.operations.readiness import Readiness


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Keeping a deployment in order."""

    access: Access
    housekeeping: Housekeeping
    readiness: Readiness
