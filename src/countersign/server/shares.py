"""Limits shared by several servers: each process leases shares of the remainder.

PostgreSQL has a bucket for each name, as `Arrivals` has one in memory. A process leases some
requests at once, admits them by itself, and leases more when few are left. Unused shares are
returned. A process that dies holds at most a hundredth of the burst, which refills with time. See
docs/decisions/operations.md.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

import structlog
from msgspec import Struct
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from countersign.base.config import Settings
from countersign.base.db.database import Database
from countersign.base.db.engine import is_deadlock, is_embedded, translate
from countersign.base.db.workers import isolated
from countersign.base.deadline import detached
from countersign.base.errors import CountersignError, Overloaded
from countersign.base.loops import Throttle
from countersign.base.setting_values import Rate
from countersign.base.values import Clock
from countersign.server.limits import Admission, Arrivals, RateLimiter

LEASE_SECONDS: Final = 5.0
"""About how long a share lasts; an unused one is returned after that time."""
_PARTS: Final = 100
"""A share is at most this part of the burst."""
_PAUSE: Final = 0.02
_PAUSE_SECONDS_MAX: Final = 0.25
"""After a share smaller than requested, pause for this part of the window."""
_EARLY: Final = 4
"""A share of at least this many requests is renewed when at most one in this many is left."""
_WAIT_SECONDS: Final = 1.0
"""How long a request waits for a share; after a failure the process counts alone for the same
time."""

_NOW: Final = "(extract(epoch FROM statement_timestamp()) * 1e6)::bigint"
_LEASE: Final = f"""
INSERT INTO rate_shares AS kept (name, empty_at, granted)
SELECT name, {_NOW} + (want * %(interval)s)::bigint, want
FROM (SELECT set_config('lock_timeout', '500ms', true) OFFSET 0) AS patience,
  unnest(%(names)s::bytea[], %(wants)s::integer[]) AS asked (name, want) ORDER BY name
ON CONFLICT (name) DO UPDATE SET (empty_at, granted) = (
  SELECT {_NOW} + ahead + (given * %(interval)s)::bigint, given
  FROM (
    -- At most full, even if the clock differs after a failover.
    SELECT least(greatest(kept.empty_at - {_NOW}, 0), %(most)s::bigint) AS ahead
  ) AS bucket,
  -- When few are left, only a part: other processes ask for them, too.
  LATERAL (
    SELECT least(excluded.granted, ceil(floor((%(most)s - ahead) / %(interval)s) / 2)::integer)
      AS given
  ) AS share
)
RETURNING name, granted, empty_at - {_NOW}
"""  # noqa: S608 - a constant
_MICROSECONDS: Final = 1e6

_log: Final = structlog.get_logger("countersign.http")


class Ask(NamedTuple):
    """Requests to take from the bucket of a name; negative: to return."""

    name: bytes
    want: int
    interval: float
    """The seconds of one request."""
    most: float
    """The seconds of a full bucket."""


class Share(NamedTuple):
    """The granted requests, and the seconds until the bucket is empty."""

    granted: int
    ahead: float


Lease: TypeAlias = Callable[[Ask], Awaitable[Share]]


@isolated
def lease_together(
    connection: Connection, asks: Sequence[Ask]
) -> Sequence[Share | CountersignError]:
    """The shares of these, on PostgreSQL; no two of a name in one statement.

    By rate and name: in one transaction, all servers lock in the same order. Overloaded if another
    transaction keeps one of the rows locked for half a second: by then the batch's reads have their
    responses.
    """
    found: dict[int, Share] = {}
    left = dict(enumerate(asks))
    while left:
        rate = min(ask[2:] for ask in left.values())
        now = {ask.name: place for place, ask in reversed(left.items()) if ask[2:] == rate}
        wants = [left.pop(place).want for place in now.values()]
        interval, most = (seconds * _MICROSECONDS for seconds in rate)
        given = {"names": [*now], "wants": wants, "interval": interval, "most": most}
        try:
            rows = connection.exec_driver_sql(_LEASE, given).all()
        except OperationalError as error:
            refusal = translate(error)
            if isinstance(refusal, Overloaded) and not is_deadlock(error):
                return [refusal] * len(asks)  # a transaction is rolled back when it ends
            raise
        for name, granted, ahead in rows:
            found[now[bytes(name)]] = Share(granted, ahead / _MICROSECONDS)
    return [found[place] for place in range(len(asks))]


class Limiters:
    """Makes limiters: shared ones, if servers share a directory for heads.

    Several servers need shared ones; a single server counts alone.
    """

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._is_alone = (
            is_embedded(database.url) or settings.log_head_dir == settings.data_dir / "heads"
        )
        self._lease = partial(database.read_batched, lease_together)
        self._clock = clock
        self.leases: Counter[str] = Counter()
        """How often the database was asked for a share, by outcome."""

    def __call__(self, arrivals: Arrivals | None, kind: str, rate: Rate) -> RateLimiter:
        """The limiter for a kind of names; `arrivals` are shared by this server's workers."""
        if self._is_alone:
            return RateLimiter(rate, self._clock, arrivals)
        return SharedLimiter(kind, rate, self._clock, self._lease, arrivals, self.leases)


class _Held(Struct, eq=False):
    """A process's share of one bucket, and its knowledge of the bucket."""

    used_at: float
    tokens: int = 0
    size: int = 1
    """Size of the next share."""
    leased_at: float = -math.inf
    ahead: float = 0.0
    """Seconds until the bucket is empty, when the last share was leased."""
    closed_until: float = -math.inf
    """No request for a share before this time."""
    waiting: int = 0
    asking: asyncio.Task[None] | None = None


class SharedLimiter(RateLimiter):
    """A limit over all servers of a database; over this server alone if the database fails."""

    def __init__(  # noqa: PLR0917 - that of `RateLimiter`, and where it asks
        self,
        kind: str,
        rate: Rate,
        clock: Clock,
        lease: Lease,
        arrivals: Arrivals | None = None,
        leases: Counter[str] | None = None,
    ) -> None:
        """`kind` is the kind of names, `lease` asks the database, `leases` counts outcomes."""
        super().__init__(rate, clock, arrivals)
        self._leases = Counter() if leases is None else leases
        self._kind = kind
        self._lease = lease
        self._share_max = max(1, rate.requests // _PARTS)
        self._pause = min(_PAUSE_SECONDS_MAX, rate.seconds * _PAUSE)
        self._held: dict[str, _Held] = {}
        self._alone_until = -math.inf
        self._returning = set[asyncio.Task[None]]()
        self._is_looking = False
        self._throttle = Throttle(clock.monotonic)

    async def count(self, key_id: str) -> Admission:
        """See `RateLimiter`. Waits for the database only when the share is used up."""
        now = self._clock.monotonic()
        held = self._held.get(key_id)
        if held is None:
            held = self._held[key_id] = _Held(now)
            self._look_later()
        while not held.tokens:
            if now < self._alone_until:
                return await super().count(key_id)
            if now < held.closed_until:
                ahead = held.ahead - (now - held.leased_at)
                wait = max(1, math.ceil(ahead + self._interval - self._most))
                return wait, 0, wait
            held.waiting += 1
            asking = held.asking or self._ask_for_more(key_id, held)
            try:
                await asyncio.wait({asking}, timeout=_WAIT_SECONDS)
            finally:
                held.waiting -= 1
            if not asking.done():
                self._go_alone("timeout")
            now = self._clock.monotonic()
        held.tokens -= 1
        held.used_at = now
        is_low = held.size >= _EARLY and held.tokens <= held.size // _EARLY
        if is_low and held.asking is None and now >= held.closed_until:
            _ = self._ask_for_more(key_id, held)
        ahead = max(0.0, held.ahead - (now - held.leased_at))
        left = held.tokens + max(0, int((self._most - ahead) / self._interval))
        return 0, left, math.ceil(ahead - self._slack)

    def return_idle(self) -> None:
        """Return shares unused for long."""
        now = self._clock.monotonic()
        for key_id, held in [*self._held.items()]:
            is_idle = held.asking is None and not held.waiting
            if is_idle and now - held.used_at >= LEASE_SECONDS:
                del self._held[key_id]
                if held.tokens:
                    task = detached(self._return(key_id, held.tokens))
                    self._returning.add(task)
                    task.add_done_callback(self._returning.discard)

    async def _return(self, key_id: str, tokens: int) -> None:
        try:
            await self._lease(self._ask(key_id, -tokens))
        except CountersignError as error:
            self._go_alone(error.code)

    def _look_later(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(LEASE_SECONDS / 2, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self.return_idle()
        if self._held:
            self._look_later()

    def _ask(self, key_id: str, want: int) -> Ask:
        name = sha256(f"{self._kind} {key_id}".encode()).digest()[:16]
        return Ask(name, want, self._interval, self._most)

    def _ask_for_more(self, key_id: str, held: _Held) -> asyncio.Task[None]:
        """Lease more; at most one request at a time for each name."""
        held.asking = task = detached(self._get(key_id, held))
        return task

    async def _get(self, key_id: str, held: _Held) -> None:
        want = min(max(held.size, held.waiting), self._share_max)
        try:
            granted, ahead = await self._lease(self._ask(key_id, want))
        except CountersignError as error:
            self._go_alone(error.code)
            return
        finally:
            held.asking = None
        now = self._clock.monotonic()
        if now - held.leased_at < LEASE_SECONDS:
            held.size = min(2 * want, self._share_max)
        elif now - held.leased_at > 2 * LEASE_SECONDS:
            held.size = max(want // 2, 1)
        held.tokens += granted
        held.ahead, held.leased_at = ahead, now
        self._leases["granted" if granted == want else "less"] += 1
        if granted < want:
            held.closed_until = now + max(self._pause, ahead + self._interval - self._most)

    def _go_alone(self, why: str) -> None:
        """Count on this server alone for a while."""
        self._leases["failed"] += 1
        self._alone_until = self._clock.monotonic() + _WAIT_SECONDS
        unsaid = self._throttle(why)
        if unsaid is not None:
            _log.warning("rate_limit_alone", reason=why, unsaid=unsaid)
