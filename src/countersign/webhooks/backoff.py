"""How soon a webhook endpoint is asked again when it does not answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_RETRY_AFTER_SECONDS_MAX: Final = 3600.0


class Pace:
    """Rests after signs of overload or absence: a second, then twice as long each time.

    Meanwhile deliveries wait without using up their attempts, and then one of them goes first.
    Without this, whatever waits would fail by the thousand as soon as a receiver restarts.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._rests_until = float("-inf")
        self._rest = 0.0

    @property
    def ready(self) -> bool:
        """Whether the endpoint may be asked now."""
        return self._monotonic() >= self._rests_until

    @property
    def tired(self) -> bool:
        """Whether the last answer was such a sign: ask with one message first."""
        return self._rest > 0

    def judge(self, *, rest: bool, retry_after: timedelta | None) -> None:
        """Take note of an answer; `rest`: it is such a sign."""
        if not rest:
            self._rest = 0.0
        elif self.ready:  # the failures of one batch count once
            self.rest(retry_after)

    def rest(self, retry_after: timedelta | None = None) -> None:
        """Begin to rest, for as long as the endpoint asked if that is longer."""
        self._rest = min(max(2 * self._rest, _FIRST_SECONDS), _LONGEST_SECONDS)
        asked = retry_after.total_seconds() if retry_after else 0.0
        seconds = max(self._rest, min(asked, _RETRY_AFTER_SECONDS_MAX))
        self._rests_until = self._monotonic() + seconds
