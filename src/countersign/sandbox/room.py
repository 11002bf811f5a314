"""The room of sandbox: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.buyers.room import Buyers
from countersign.events.room import Events


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRoom:
    """What test keys may do by hand."""

    buyers: Buyers
    events: Events
