"""Who acts at the command line, and the entries that tell of it."""

from __future__ import annotations

from typing import Final

from countersign.access.audit_entry import AuditAction, AuditEntry
from countersign.ids import timed_id
from countersign.instant import from_ns
from countersign.ports import AuditStore, Clock, Entropy

_AUDIT: Final = "aud"


class Audit:
    """Makes entries for the record of what operators did."""

    def __init__(self, store: AuditStore, clock: Clock, entropy: Entropy, actor: str) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._actor = actor

    async def note(self, action: AuditAction, subject: str, **details: object) -> None:
        """Write down an act that has no transaction of its own."""
        await self._store.add(self.entry(action, subject, **details))

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
