"""The room of clearances: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.clearances.clear import ClearOrder
from countersign.clearances.fulfil import FulfilOrder
from countersign.clearances.keys import ClearanceKeys
from countersign.clearances.settings import ManageClearances
from countersign.notices.room import Notices


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearancesRoom:
    """Clearances, their tokens and fulfilments."""

    notices: Notices
    clear: ClearOrder
    fulfil: FulfilOrder
    keys: ClearanceKeys
    settings: ManageClearances
