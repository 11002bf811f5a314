"""A buyer's progress with one text of a notice: served, received, and claimed by the browser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from countersign_evidence.process import Method, Surface, Viewport


class ClaimedEvent(StrEnum):
    """What a browser says that the buyer did."""

    SHOWN = "shown"
    INITIALED = "initialed"
    CHANGED = "changed"
    REVIEWED = "reviewed"


class LineSeen(Struct, frozen=True, kw_only=True):
    """The service's observations of one line of the notice."""

    shown_at: datetime
    initialed_at: datetime | None = None
    changed_at: datetime | None = None
    changes: int = 0
    method: Method | None = None
    """How the initials came that it has; None: it has none, or from an earlier release."""

    def received(self, now: datetime, method: Method) -> LineSeen:
        """This line after its first initials came, or others than it had."""
        if self.initialed_at is None:
            return replace(self, initialed_at=now, method=method)
        return replace(self, changed_at=now, changes=self.changes + 1, method=method)


class Press(NamedTuple):
    """A press of the button of a line, which said that it puts the first line's initials there."""

    line: int
    """Counted from 1."""
    initials: str
    """The initials on the button."""


class BrowserClaim(Struct, frozen=True, kw_only=True):
    """The browser's claims, with the time of receipt."""

    line: int | None
    event: ClaimedEvent
    at: datetime


class Reading(Struct, frozen=True, kw_only=True):
    """How far the buyer is with one text of the notice."""

    browser: str | None = None
    """The browser that it belongs to, by its cookie; "" for a client with the token alone, such as
    the component. None, from an earlier release: no one's, as it may be of several."""
    notice_version: str
    notice_digest: str
    surface: Surface
    rendered_digest: str | None
    locale: str
    opened_at: datetime
    lines: tuple[LineSeen, ...]
    typed: tuple[str, ...] | None = None
    """The last rejected input: not initials yet."""
    kept: tuple[str, ...] | None = None
    """The initials of some lines, "" for the others: each line may be a request of its own."""
    initials: tuple[str, ...] | None = None
    """Initials of all lines."""
    reviewed_at: datetime | None = None
    script: bool | None = None
    viewport: Viewport | None = None
    claimed: tuple[BrowserClaim, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The initials of each line; "" for one that has none yet."""
        return self.initials or self.kept or ("",) * len(self.lines)

    def with_initials(
        self, now: datetime, texts: Sequence[str], surface: Surface, press: Press | None = None
    ) -> Reading:
        """This reading after these initials came, one for each line; "" leaves a line as it is.

        A press counts only if the first line has what its button showed, before and after; then
        it decides about its line. Another surface has sent what it leaves as it is, too.
        """
        before, after = self.known, list(texts)
        adopted = 0
        if press is not None and before[0] == press.initials == (texts[0] or before[0]):
            adopted, after[press.line - 1] = press.line, press.initials
        after = [new or old for old, new in zip(before, after, strict=True)]
        lines = self.lines
        if surface is not self.surface:
            lines = tuple(replace(line, method=line.method and Method.TYPED) for line in lines)
        numbered = enumerate(zip(lines, before, after, strict=True), 1)
        lines = tuple(
            line
            if old == new
            else line.received(now, Method.ADOPTED if number == adopted else Method.TYPED)
            for number, (line, old, new) in numbered
        )
        is_whole = all(after)
        return replace(
            self,
            typed=None,
            kept=None if is_whole else tuple(after),
            initials=tuple(after) if is_whole else None,
            lines=lines,
            surface=surface,
        )
