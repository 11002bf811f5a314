"""Limits over several servers, by a clock that a test moves, next to a single bucket."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.base.errors import StorageUnavailable
from countersign.base.setting_values import Rate
from countersign.server.limits import RateLimiter
from countersign.server.shares import LEASE_SECONDS, Ask, Share, SharedLimiter
from tests.unit.support import HandClock, run

KEY = "key_1"
RATES = (Rate(1000, 10), Rate(600, 60), Rate(400, 1))
TOLERATED = 0.1
"""Of the limit."""


@dataclass
class Bucket:
    """The database, in the plainest words: its statement is tested on PostgreSQL."""

    clock: HandClock
    empty_at: float = 0.0
    asked: int = 0
    is_away: bool = False

    async def lease(self, ask: Ask) -> Share:
        self.asked += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise StorageUnavailable(retry_after=1)
        now = self.clock.seconds
        ahead = max(self.empty_at - now, 0)
        left = int((ask.most - ahead) / ask.interval)
        given_ = min(ask.want, -(-left // 2))
        self.empty_at = now + ahead + given_ * ask.interval
        return Share(given_, self.empty_at - now)


@dataclass
class Site:
    """Some processes over one bucket, and a limiter that sees every request."""

    rate: Rate
    processes: int
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.bucket = Bucket(self.clock)
        self.shared = [self._process() for _ in range(self.processes)]
        self.oracle = RateLimiter(self.rate, self.clock)
        self.passed = self.due = 0
        self._looked = self.clock.seconds

    def _process(self) -> SharedLimiter:
        return SharedLimiter("key", self.rate, self.clock, self.bucket.lease)

    async def ask(self, process: int, pause: float) -> bool:
        """A request arrives at a process this long after the last one; whether it passes."""
        self.clock.advance(pause)
        if self.clock.seconds - self._looked > LEASE_SECONDS / 2:
            self._looked = self.clock.seconds
            for one in self.shared:
                one.return_idle()
            await settled()
        wait, *_ = await self.shared[process].count(KEY)
        await settled()
        self.passed += wait == 0
        self.due += (await self.oracle.count(KEY))[0] == 0
        return wait == 0

    def kill(self, process: int) -> None:
        """Another one starts in its place, without its shares."""
        self.shared[process] = self._process()


async def settled() -> None:
    """Let what runs next to requests go on."""
    for _ in range(4):
        await asyncio.sleep(0)


@st.composite
def loads(draw: st.DrawFn) -> tuple[Rate, int, list[tuple[float, Sequence[float]]]]:
    """A limit, a number of processes, and phases: how long, and each one's load by the rate.

    If only one process has load, it has all of it; a phase without load is a pause.
    """
    rate = draw(st.sampled_from(RATES))
    number = draw(st.integers(2, 6))
    parts = st.sampled_from((0.0, 0.0, 0.02, 0.3, 2.0))
    window = rate.seconds / 4
    lengths = st.floats(0.1, 1.0).map(lambda part: part * window)
    each = st.lists(parts, min_size=number, max_size=number)
    return rate, number, draw(st.lists(st.tuples(lengths, each), min_size=1, max_size=4))


def arrivals(
    rate: Rate, phases: list[tuple[float, Sequence[float]]]
) -> Iterator[tuple[float, int]]:
    """Times and places of requests: each process has its own regular ones."""
    begun = 0.0
    for length, parts in phases:
        waiting: list[tuple[float, int, float]] = []
        for process, part in enumerate(parts):
            if part:
                step = rate.seconds / rate.requests / part
                heapq.heappush(waiting, (begun + step * (process + 1) / len(parts), process, step))
        while waiting and waiting[0][0] < begun + length:
            at, process, step = heapq.heappop(waiting)
            yield at, process
            heapq.heappush(waiting, (at + step, process, step))
        begun += length


@settings(max_examples=40)
@given(loads())
def test_all_servers_together_admit_as_many_as_one_within_a_tenth_of_the_limit(
    load: tuple[Rate, int, list[tuple[float, Sequence[float]]]],
) -> None:
    """At each moment, neither more nor less, however unevenly requests arrive."""
    rate, number, phases = load

    async def act() -> None:
        site, now = Site(rate, number), 0.0
        for at, process in arrivals(rate, phases):
            await site.ask(process, at - now)
            now = at
            assert abs(site.passed - site.due) <= TOLERATED * rate.requests

    run(act())


@given(st.sampled_from(RATES), st.integers(1, 4))
def test_a_burst_at_one_server_gets_nine_tenths_at_once(rate: Rate, number: int) -> None:
    """The other servers hold nothing of it, and the database is rarely asked."""

    async def act() -> None:
        site = Site(rate, number)
        for _ in range(rate.requests):
            await site.ask(0, 0.0)
        assert 0.9 * rate.requests <= site.passed <= rate.requests
        assert site.bucket.asked <= 120

    run(act())


@settings(max_examples=10)
@given(st.data())
def test_a_server_that_dies_takes_no_more_than_a_hundredth_along(data: st.DataObject) -> None:
    """Its share is lost once, and time fills the bucket again."""
    rate = Rate(6000, 60)

    async def act() -> None:
        site = Site(rate, 2)
        for _ in range(data.draw(st.integers(1, 5))):
            for _ in range(data.draw(st.integers(1, 500))):
                await site.ask(0, 0.001)
            site.kill(0)
        before = site.bucket.empty_at - site.clock.seconds
        site.clock.advance(before)
        passed = 0
        for _ in range(rate.requests):
            passed += await site.ask(1, 0.0)
        assert passed >= 0.9 * rate.requests

    run(act())


def test_a_steady_caller_costs_few_questions() -> None:
    """Half of the rate, at two servers in turn: none is refused, and 2 % ask the database."""

    async def act() -> None:
        site = Site(Rate(6000, 60), 2)
        answers = [await site.ask(n % 2, 0.02) for n in range(6000)]
        assert all(answers)
        assert site.bucket.asked <= 0.02 * len(answers) + 20

    run(act())


def test_refused_requests_query_the_database_four_times_a_second() -> None:
    """A caller without measure is refused from memory."""

    async def act() -> None:
        site = Site(Rate(6000, 60), 1)
        for _ in range(6000):
            await site.ask(0, 0.0)
        site.bucket.asked = 0
        for _ in range(5000):
            await site.ask(0, 0.001)
        assert site.bucket.asked <= 5 * 5

    run(act())


def test_unused_shares_are_returned() -> None:
    """The next one may have all of it."""

    async def act() -> None:
        site = Site(Rate(6000, 60), 2)
        for _ in range(500):
            await site.ask(0, 0.001)
        site.clock.advance(LEASE_SECONDS)
        site.shared[0].return_idle()
        await settled()
        site.clock.advance(60)
        assert site.bucket.empty_at <= site.clock.seconds
        assert site.shared[0]._held == {}

    run(act())


def test_without_the_database_each_server_counts_for_itself() -> None:
    """As much as the limit at each, and it asks again after a second."""

    async def act() -> None:
        rate = Rate(600, 60)
        site = Site(rate, 2)
        site.bucket.is_away = True
        for process in range(2):
            passed = [await site.ask(process, 0.0) for _ in range(rate.requests + 5)]
            assert passed == [True] * rate.requests + [False] * 5
        assert site.bucket.asked <= 2 * 2
        site.bucket.is_away = False
        site.clock.advance(1.1)
        asked = site.bucket.asked
        assert await site.ask(0, 0.0)
        assert site.bucket.asked > asked

    run(act())
