"""Who acts at the command line, and the entries that tell of it."""

from __future__ import annotations

from typing import Final

from countersign.domain.audit import AuditAction, AuditEntry
from countersign.domain.instant import from_ns
from countersign.ids import timed_id
from countersign.ports import Clock, Entropy

_AUDIT: Final = "aud"


class Audit:
    """Makes entries for the record of what operators did."""

    def __init__(self, clock: Clock, entropy: Entropy, actor: str) -> None:
        self._clock = clock
        self._entropy = entropy
        self._actor = actor

    def entry(self, action: AuditAction, subject: str, **details: object) -> AuditEntry:
        """An act of now; `details` hold no secret, and nothing personal."""
        time_ns = self._clock.time_ns()
        return AuditEntry(
            id=timed_id(_AUDIT, time_ns, self._entropy(8)),
            at=from_ns(time_ns),
            actor=self._actor,
            action=action,
            subject=subject,
            details=details,
        )
