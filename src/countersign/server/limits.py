"""Limits: requests by key, bytes by account."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from countersign.clock import Clock
from countersign.config import Rate
from countersign.errors import Overloaded
from countersign.http.reply import Header

_KEYS_MAX: Final = 10_000
_ROUNDING: Final = 1e-3
"""Of the time of one request, at most of a second: what sums of its time may be wrong by."""


class Arrivals:
    """When the bucket of each key is empty again, if nothing more comes."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def add(self, key_id: str, now: float, interval: float, most: float) -> float:
        """When it is after one request more, which counts if that is at most `most` from now."""
        arrival = max(self._times.get(key_id, now), now) + interval
        if arrival - now <= most:
            if len(self._times) >= _KEYS_MAX:
                self._times = {k: a for k, a in self._times.items() if a > now}
            self._times[key_id] = arrival
        return arrival


class RateLimiter:
    """A generic cell rate algorithm for each key.

    Lets through at most `rate.requests` at once, and their average from then on.

    Headers: draft-ietf-httpapi-ratelimit-headers, with `Retry-After` (RFC 6585) at 429.
    """

    def __init__(self, rate: Rate, clock: Clock, arrivals: Arrivals | None = None) -> None:
        """`arrivals` are shared with the other workers of a server, if there are any."""
        self._clock = clock
        self._interval = rate.seconds / rate.requests
        self._slack = min(self._interval, 1.0) * _ROUNDING
        self._most = rate.seconds + self._slack
        self._arrivals = arrivals or Arrivals()
        self._policy: Header = (
            b"ratelimit-policy",
            f'"default";q={rate.requests};w={rate.seconds}'.encode(),
        )

    def admit(self, key_id: str) -> tuple[int, tuple[Header, Header]]:
        """Count one request, if there is room for it.

        Gives the seconds to wait (0: it is let through) and the headers that state what is left.
        """
        now = self._clock.monotonic()
        ahead = self._arrivals.add(key_id, now, self._interval, self._most) - now
        if ahead > self._most:
            wait = max(1, math.ceil(ahead - self._most))
            return wait, (self._policy, self._state(0, wait))
        # As many as would be let through now.
        left = int((self._most - ahead) / self._interval)
        return 0, (self._policy, self._state(left, math.ceil(ahead - self._slack)))

    @staticmethod
    def _state(left: int, seconds: int) -> Header:
        return b"ratelimit", f'"default";r={left};t={seconds}'.encode()


class Held:
    """Bytes of bodies that are in memory before anything in them is authenticated.

    Bounded in all, so that strangers cannot fill the memory; and for each owner, so that those who
    know of one account keep out the messages of no other.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._sizes: Counter[str] = Counter()

    @contextmanager
    def share(self, owner: str) -> Iterator[Callable[[int], None]]:
        """Give what counts bytes for this owner; they are counted until the block ends.

        What it gives raises Overloaded beyond a bound.
        """
        held = 0

        def take(size: int) -> None:
            nonlocal held
            if self._sizes[owner] + size > self._each or self._sizes.total() + size > self._most:
                raise Overloaded
            held += size
            self._sizes[owner] += size

        try:
            yield take
        finally:
            self._sizes[owner] -= held
            if not self._sizes[owner]:
                del self._sizes[owner]
