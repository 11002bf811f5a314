"""Which of the entries that were read before are read again: a log could change them afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from secrets import randbelow
from typing import Final

from countersign_evidence.tiles import HEIGHT, WIDTH

SAMPLE: Final = 4
WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The parts to read again: a slice of the log that follows the clock, and a sample."""

    whole: timedelta = WEEK
    """The time in which everything is read again once."""
    sample: int = SAMPLE
    """Bundles that are drawn for each look, so that no change is safe until its turn comes."""
    pick: Callable[[int], int] = randbelow
    """Draws a number below this one."""

    def due(self, before: int, size: int, since: int, now: int) -> Sequence[int]:
        """The numbers of the bundles to read again in a look at a tree of this size.

        The last look went up to the time `since` (Unix seconds), when there were `before` entries.
        Of each look the part begins where that of the last one ended.
        """
        then, count = _bundles(before), _bundles(size)
        if not count:
            return []
        period = max(1, int(self.whole.total_seconds()))
        start, end = (since % period) * then // period, (now % period) * count // period
        if now - since >= period:
            part = {*range(count)}
        elif since // period == now // period:
            part = {*range(start, end)}
        else:
            part = {*range(start, count), *range(end)}
        return sorted(part | {self.pick(count) for _ in range(self.sample)})


def _bundles(size: int) -> int:
    return (size + WIDTH - 1) >> HEIGHT


WEEKLY: Final = Again()
"""The default."""
