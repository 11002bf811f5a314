"""How far long work has come, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from countersign_evidence.cli.support import say

Report: TypeAlias = Callable[[int, int, str], None]
"""Is given after each step how much is done, of how much, and of what."""
_PERIOD_SECONDS: Final = 5.0


class SaidProgress:
    """Says how far work has come, at most once in a period: short work says nothing."""

    def __init__(
        self,
        what: str,
        period: float = _PERIOD_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._period, self._now = what, period, now
        self._said = now()

    def __call__(self, done: int, total: int, unit: str) -> None:
        """`done` of `total` are finished, each counted in `unit`."""
        if self._now() - self._said >= self._period:
            self._said = self._now()
            say(f"{self._what}: {100 * done // max(total, 1)} % ({done:,} of {total:,} {unit})")
