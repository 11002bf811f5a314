"""The room of sandbox: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.access.test_clocks import ManageTestClock
from countersign.buyers.room import Buyers
from countersign.sandbox.helpers import MoveBuyer, TriggerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRoom:
    """What test keys may do by hand."""

    access: Access
    buyers: Buyers
    clock: ManageTestClock
    move_buyer: MoveBuyer
    trigger_event: TriggerEvent
