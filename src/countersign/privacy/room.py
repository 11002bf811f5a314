"""The room of privacy: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.log.room import LogRoom
from countersign.privacy.model import EvidenceRetention


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Erasure, holds and retention."""

    access: Access
    log: LogRoom
    evidence_retention: EvidenceRetention
