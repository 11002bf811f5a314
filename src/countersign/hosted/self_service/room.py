"""The room of the buyers' own page: dependencies of its acts."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.core.privacy.room import Privacy
from countersign.hosted.pages.room import HostedPages


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfService:
    """A buyer's own access to stored data, without a vendor."""

    checkout: HostedPages
    privacy: Privacy
