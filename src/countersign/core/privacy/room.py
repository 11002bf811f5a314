"""The room of privacy: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from countersign.base.config import Settings
from countersign.core.access.room import Access
from countersign.core.log.room import LogRoom


class EvidenceKept(NamedTuple):
    """How long the evidence of a check is kept, from the check."""

    verified: timedelta
    other: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Erasure, holds and retention."""

    access: Access
    log: LogRoom
    kept: EvidenceKept


def open_privacy(access: Access, log: LogRoom, settings: Settings) -> Privacy:
    """The room, with the retention periods of the settings."""
    verified = timedelta(days=settings.verification_days + settings.evidence_days)
    kept = EvidenceKept(verified, other=timedelta(days=settings.failed_evidence_days))
    return Privacy(access=access, log=log, kept=kept)
