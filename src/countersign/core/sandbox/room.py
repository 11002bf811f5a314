"""The room of the test helpers: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.core.access.room import Access
from countersign.core.buyers.room import Buyers
from countersign.core.events.room import Events


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRoom:
    """Manual control by test keys."""

    buyers: Buyers
    events: Events

    @property
    def access(self) -> Access:
        return self.buyers.access
