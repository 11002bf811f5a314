"""The room of operations: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.config import Settings
from countersign.notices.room import Notices
from countersign.operations.housekeeping import Housekeeping
from countersign.operations.readiness import Readiness
from countersign.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Keeping a deployment in order."""

    settings: Settings
    clock: Clock
    access: Access
    notices: Notices
    housekeeping: Housekeeping
    readiness: Readiness
