"""Log lines that many requests would write: one a second for each kind."""

from collections.abc import Callable
from typing import Final

_SECONDS: Final = 1.0


class Seldom:
    """Says when a line is due; otherwise anybody could fill the disk, without a key."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._said: dict[tuple[str | None, ...], tuple[float, int]] = {}

    def __call__(self, *kind: str | None) -> int | None:
        """How many lines of this kind were left out since the last one; None: leave this out."""
        now = self._monotonic()
        last, unsaid = self._said.get(kind, (float("-inf"), 0))
        if now - last < _SECONDS:
            self._said[kind] = (last, unsaid + 1)
            return None
        self._said[kind] = (now, 0)
        return unsaid
