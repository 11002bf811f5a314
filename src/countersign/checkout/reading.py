"""How far a buyer is with one text of a notice: what was served, came back, and is claimed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from countersign_evidence.process import Surface, Viewport


class ClaimedEvent(StrEnum):
    """What a browser says that the buyer did."""

    SHOWN = "shown"
    INITIALED = "initialed"
    CHANGED = "changed"
    REVIEWED = "reviewed"


class LineSeen(Struct, frozen=True, kw_only=True):
    """What this service saw of one line of the notice."""

    shown_at: datetime
    initialed_at: datetime | None = None
    changed_at: datetime | None = None
    changes: int = 0


class BrowserClaim(Struct, frozen=True, kw_only=True):
    """What the browser claims, with the time when the claim was received."""

    line: int | None
    event: ClaimedEvent
    at: datetime


class Reading(Struct, frozen=True, kw_only=True):
    """How far the buyer is with one text of the notice."""

    notice_version: str
    notice_digest: str
    surface: Surface
    rendered_digest: str | None
    locale: str
    opened_at: datetime
    lines: tuple[LineSeen, ...]
    typed: tuple[str, ...] | None = None
    """What was sent last, where something is wrong with it: no initials yet."""
    initials: tuple[str, ...] | None = None
    reviewed_at: datetime | None = None
    script: bool | None = None
    viewport: Viewport | None = None
    claimed: tuple[BrowserClaim, ...] = ()
