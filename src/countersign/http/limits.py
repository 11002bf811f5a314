"""Rate limits: a generic cell rate algorithm per key, in this process's memory."""

from __future__ import annotations

import math
from typing import Final

from countersign.config import Rate
from countersign.http.reply import Header
from countersign.ports import Clock

_KEYS_MAX: Final = 10_000


class RateLimiter:
    """Lets through at most `rate.requests` at once, and their average from then on.

    Headers: draft-ietf-httpapi-ratelimit-headers, with `Retry-After` (RFC 6585) at 429.
    """

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._clock = clock
        self._interval = rate.seconds / rate.requests
        self._window = float(rate.seconds)
        self._arrivals: dict[str, float] = {}
        self._policy: Header = (
            b"ratelimit-policy",
            f'"default";q={rate.requests};w={rate.seconds}'.encode(),
        )

    def admit(self, key_id: str) -> tuple[int, tuple[Header, Header]]:
        """Count one request, if there is room for it.

        Gives the seconds to wait (0: it is let through) and the headers that tell what is left.
        """
        now = self._clock.monotonic()
        arrival = max(self._arrivals.get(key_id, now), now) + self._interval
        if arrival - now > self._window + self._interval / 1e6:
            wait = max(1, math.ceil(arrival - now - self._window))
            return wait, (self._policy, self._state(0, wait))
        if len(self._arrivals) >= _KEYS_MAX:
            self._arrivals = {k: a for k, a in self._arrivals.items() if a > now}
        self._arrivals[key_id] = arrival
        left = int((self._window - (arrival - now)) / self._interval)
        return 0, (self._policy, self._state(left, math.ceil(arrival - now)))

    @staticmethod
    def _state(left: int, seconds: int) -> Header:
        return b"ratelimit", f'"default";r={left};t={seconds}'.encode()
