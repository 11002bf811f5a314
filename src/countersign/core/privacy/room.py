"""The room of privacy: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from countersign.base.config import Settings
from countersign.core.access.room import Access
from countersign.core.log.room import LogRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """Erasure, holds and retention."""

    access: Access
    log: LogRoom
    verified_evidence_kept: timedelta
    """How long the evidence of a verified buyer is kept, from the verification."""
    other_evidence_kept: timedelta


def open_privacy(access: Access, log: LogRoom, settings: Settings) -> Privacy:
    """The room, with the retention periods of the settings."""
    return Privacy(
        access=access,
        log=log,
        verified_evidence_kept=timedelta(days=settings.verification_days + settings.evidence_days),
        other_evidence_kept=timedelta(days=settings.failed_evidence_days),
    )
