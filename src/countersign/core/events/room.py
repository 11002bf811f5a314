"""The room of events: what reading them works with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.core.access.room import Access
from countersign.core.events.model import EventIds


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """The events of all accounts."""

    access: Access
    ids: EventIds
