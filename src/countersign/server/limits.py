"""Limits: requests by key, visits by session and account, bytes by their owners."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from countersign.base.errors import Overloaded, RateLimited
from countersign.base.setting_values import Rate
from countersign.base.values import Clock
from countersign.core.gate.route import Header

_KEYS_MAX: Final = 10_000
_ACCOUNT_TIMES: Final = 20
_SESSIONS: Final = 100
_ROUNDING: Final = 1e-3
"""Share of one request's time, at most of a second: the tolerated rounding error of sums."""

Admission: TypeAlias = "tuple[int, int, int]"
"""The seconds to wait (0: admitted), the requests left, and the seconds until a full quota."""


class Arrivals:
    """When the bucket of each key will be empty without further requests."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._tidy_at = _KEYS_MAX

    def add(self, key_id: str, now: float, interval: float, most: float) -> float:
        """When the bucket is empty after one more request; it counts if at most `most` from now."""
        arrival = max(self._times.get(key_id, now), now) + interval
        if arrival - now <= most:
            if len(self._times) >= self._tidy_at:
                self._times = {k: a for k, a in self._times.items() if a > now}
                # If most are in use, do not sweep again with the next one.
                self._tidy_at = max(_KEYS_MAX, 2 * len(self._times))
            self._times[key_id] = arrival
        return arrival


class RateLimiter:
    """A generic cell rate algorithm for each key.

    Lets through at most `rate.requests` at once, and their average from then on.

    Headers: draft-ietf-httpapi-ratelimit-headers, with `Retry-After` (RFC 6585) at 429.
    """

    def __init__(self, rate: Rate, clock: Clock, arrivals: Arrivals | None = None) -> None:
        """`arrivals` are shared with the other workers of a server."""
        self._clock = clock
        self._interval = rate.seconds / rate.requests
        self._slack = min(self._interval, 1.0) * _ROUNDING
        self._most = rate.seconds + self._slack
        self._arrivals = arrivals or Arrivals()
        self.policy: Header = (
            b"ratelimit-policy",
            f'"default";q={rate.requests};w={rate.seconds}'.encode(),
        )

    async def count(self, key_id: str) -> Admission:
        """Count one request, if there is room for it, wherever requests of this key are counted."""
        now = self._clock.monotonic()
        ahead = self._arrivals.add(key_id, now, self._interval, self._most) - now
        wait = max(1, math.ceil(ahead - self._most)) if ahead > self._most else 0
        # The number of requests that would pass now.
        left = 0 if wait else int((self._most - ahead) / self._interval)
        return wait, left, wait or math.ceil(ahead - self._slack)


class Visits:
    """How often pages and client tokens may be used: by session, and by account and mode.

    An account has twenty times as much as a key, and a session at most a hundredth of that, but
    never less than once a second: one link takes no account's pages away.
    """

    def __init__(self, rate: Rate, limiter: Callable[[str, Rate], RateLimiter]) -> None:
        """`rate` is the rate of a key; `limiter` makes the limiter for a kind of names."""
        of_account = Rate(rate.requests * _ACCOUNT_TIMES, rate.seconds)
        of_session = Rate(of_account.requests // _SESSIONS, rate.seconds)
        if of_session.requests < of_session.seconds:
            of_session = Rate(60, 60)
        self._sessions = limiter("session", of_session)
        self._accounts = limiter("account", of_account)

    async def count(self, session: str, account: str) -> None:
        """Count one request; one refused for its session does not count against its account."""
        for limiter, name in ((self._sessions, session), (self._accounts, account)):
            wait, *_ = await limiter.count(name)
            if wait:
                raise RateLimited(retry_after=wait)


class Held:
    """Bytes of bodies that are in memory before anything in them is authenticated.

    Bounded in total, so that strangers cannot fill the memory; and for each owner, such as a
    session and its account, so that clients of one session cannot block another.
    """

    def __init__(self, most: int, *each: int) -> None:
        """`most` is for all, `each` for an owner: the first for the narrowest, and so on."""
        self._most = most
        self._each = each
        self._all = 0
        self._sizes: Counter[str] = Counter()

    @contextmanager
    def share(self, owners: Sequence[str]) -> Iterator[Callable[[int], None]]:
        """Give what counts bytes for these owners; they are counted until the block ends.

        The yielded function raises Overloaded beyond a bound.
        """
        held = 0

        def take(size: int) -> None:
            nonlocal held
            full = any(
                self._sizes[owner] + size > each
                for owner, each in zip(owners, self._each, strict=False)
            )
            if full or self._all + size > self._most:
                raise Overloaded
            held += size
            self._all += size
            self._sizes.update(dict.fromkeys(owners, size))

        try:
            yield take
        finally:
            self._all -= held
            self._sizes -= Counter(dict.fromkeys(owners, held))  # without those at zero
