"""A circuit breaker: a provider that is down does not delay every checkout."""

from __future__ import annotations

from typing import Final

from countersign.clock import Clock

FAILURES: Final = 8
"""Failures in a row that open it."""
OPEN_SECONDS: Final = 5.0


class Breaker:
    """Closed; open after FAILURES in a row; after OPEN_SECONDS one request tries whether it works.

    It belongs to one event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._closed_again_at: float | None = None
        self._trying = False

    def lets_through(self) -> bool:
        """Whether a request may be sent now; each that is must end in one of the three below."""
        if self.is_open():
            return False
        self._trying = self._closed_again_at is not None
        return True

    def is_open(self) -> bool:
        """Whether no request may be sent now; asking this lets none through."""
        if self._closed_again_at is None:
            return False
        return self._trying or self._clock.monotonic() < self._closed_again_at

    def seconds_left(self) -> int:
        """Whole seconds until the next try, at least 1."""
        if self._closed_again_at is None:
            return 1
        return max(1, int(self._closed_again_at - self._clock.monotonic()) + 1)

    def succeeded(self) -> None:
        """The provider responded."""
        self._failures, self._closed_again_at, self._trying = 0, None, False

    def failed(self) -> None:
        """The provider did not respond, or with an error of its server."""
        self._failures += 1
        self._trying = False
        if self._failures >= FAILURES:
            self._closed_again_at = self._clock.monotonic() + OPEN_SECONDS

    def let_go(self) -> None:
        """The request was given up by our side."""
        self._trying = False
