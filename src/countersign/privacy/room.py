"""The room of privacy: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.privacy.erase import Erase
from countersign.privacy.finish_restore import FinishRestore


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Erasure, holds and retention."""

    access: Access
    erase: Erase
    finish_restore: FinishRestore
