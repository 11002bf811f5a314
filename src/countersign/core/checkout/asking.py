"""Limit the provider queries of a session's browser: each costs the vendor's quota."""

from __future__ import annotations

from typing import Final

from countersign.base.values import Clock

ASKED_MAX: Final = 20
"""In a minute, for one session in one process."""
_SECONDS: Final = 60.0
_SESSIONS_MAX: Final = 10_000


class Asking:
    """Counts the recent queries of each session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked: dict[str, tuple[float, int]] = {}

    def may(self, session_id: str) -> bool:
        """Count one more, if there is room for it."""
        now = self._clock.monotonic()
        begun, number = self._asked.get(session_id, (now, 0))
        if now - begun >= _SECONDS:
            begun, number = now, 0
        if number >= ASKED_MAX:
            return False
        if len(self._asked) >= _SESSIONS_MAX:
            self._asked = {k: v for k, v in self._asked.items() if now - v[0] < _SECONDS}
        self._asked[session_id] = (begun, number + 1)
        return True
