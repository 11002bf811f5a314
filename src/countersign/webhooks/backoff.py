"""When to send to a webhook endpoint again after signs of overload or absence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_RETRY_AFTER_SECONDS_MAX: Final = 3600.0


class Backoff:
    """Pauses an endpoint: for a second, then twice as long each time.

    During a pause deliveries wait without using up their attempts; then one of them goes first.
    Without this, all that waits would fail by the thousand when a receiver restarts.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until = float("-inf")
        self._seconds = 0.0

    @property
    def ready(self) -> bool:
        """Whether there is no pause now."""
        return self._monotonic() >= self._until

    @property
    def suspect(self) -> bool:
        """Whether the last result was such a sign: send one message first."""
        return self._seconds > 0

    def record(self, *, pause: bool, retry_after: timedelta | None) -> None:
        """Count a result; `pause`: it is such a sign."""
        if not pause:
            self._seconds = 0.0
        elif self.ready:  # the failures of one batch count once
            self.pause(retry_after)

    def pause(self, retry_after: timedelta | None = None) -> None:
        """Begin a pause, for as long as the endpoint has requested if that is longer."""
        self._seconds = min(max(2 * self._seconds, _FIRST_SECONDS), _LONGEST_SECONDS)
        requested = retry_after.total_seconds() if retry_after else 0.0
        seconds = max(self._seconds, min(requested, _RETRY_AFTER_SECONDS_MAX))
        self._until = self._monotonic() + seconds
