"""The room of notices: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.core.access.room import Access
from countersign.core.log.room import LogRoom
from countersign.core.notices.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notice versions, their lifecycle, and which is in force."""

    log: LogRoom
    registry: Registry
    reviewers: int
    """How many people a publication with its review needs: 1 or 2."""

    @property
    def access(self) -> Access:
        """Accounts and keys, the audit, and the database."""
        return self.log.access
