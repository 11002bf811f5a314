"""Rate limits, by a clock that a test moves."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import RateLimited
from countersign.base.setting_values import Rate
from countersign.server import limits
from countersign.server.limits import Admission, RateLimiter, Visits
from tests.unit.support import HandClock, run


def admit(limiter: RateLimiter, key: str = "key_1") -> Admission:
    """Count a request, which waits for nothing on a single server."""
    counting = limiter.count(key)
    with pytest.raises(StopIteration) as counted:
        counting.send(None)
    found: Admission = counted.value.value
    return found


def admitted(limiter: RateLimiter, key: str = "key_1") -> bool:
    wait, *_ = admit(limiter, key)
    return wait == 0


def visits_at(clock: HandClock, rate: Rate) -> Visits:
    """The limits of a single server."""
    return Visits(rate, lambda _, own: RateLimiter(own, clock))


@given(st.integers(1, 50), st.integers(1, 100))
def test_the_quota_is_admitted_at_once_and_not_one_more(requests: int, seconds: int) -> None:
    """The rate allows a burst up to the quota."""
    limiter = RateLimiter(Rate(requests, seconds), HandClock())
    assert [admitted(limiter) for _ in range(requests + 3)] == [True] * requests + [False] * 3


@given(
    st.integers(1, 10),
    st.integers(1, 20),
    st.lists(st.integers(0, 16).map(lambda quarter: quarter / 4), min_size=1, max_size=60),
)
def test_no_window_admits_more_than_the_average_and_one_burst(
    requests: int, seconds: int, pauses: list[float]
) -> None:
    """Whenever requests come: from any request on, at most a full burst plus what time gives."""
    clock = HandClock(seconds=0.0)
    limiter = RateLimiter(Rate(requests, seconds), clock)
    passed = []
    for pause in pauses:
        clock.advance(pause)
        if admitted(limiter):
            passed.append(clock.seconds)
    for first, start in enumerate(passed):
        for count, end in enumerate(passed[first:], 1):
            assert count <= requests + (end - start) * requests / seconds + 1e-6


@given(st.integers(1, 20), st.integers(1, 50), st.integers(0, 200))
def test_retry_after_is_long_enough_and_whole_seconds(
    requests: int, seconds: int, tenths: int
) -> None:
    """A client that waits as long as the answer says gets through."""
    clock = HandClock()
    limiter = RateLimiter(Rate(requests, seconds), clock)
    for _ in range(requests):
        admit(limiter)
    clock.advance(tenths / 201 * seconds / requests)
    wait, *left = admit(limiter)
    assert wait >= 1
    assert left == [0, wait]
    clock.advance(wait)
    assert admitted(limiter)


def test_a_refused_request_costs_nothing() -> None:
    """Hammering does not lengthen the wait."""
    clock = HandClock()
    limiter = RateLimiter(Rate(1, 10), clock)
    admit(limiter)
    for _ in range(100):
        assert not admitted(limiter)
    clock.advance(10)
    assert admitted(limiter)


def test_keys_do_not_share_their_quota() -> None:
    """One vendor's load never refuses another's checkout."""
    limiter = RateLimiter(Rate(1, 60), HandClock())
    assert admitted(limiter, "key_1")
    assert admitted(limiter, "key_2")
    assert not admitted(limiter, "key_1")


def test_the_remaining_requests_are_stated() -> None:
    """A client can slow down before it is refused."""
    clock = HandClock()
    limiter = RateLimiter(Rate(4, 8), clock)
    assert [admit(limiter)[1:] for _ in range(4)] == [(3, 2), (2, 4), (1, 6), (0, 8)]
    clock.advance(4)
    assert admit(limiter)[1:] == (1, 6)


def test_the_policy_is_quota_and_window() -> None:
    limiter = RateLimiter(Rate(1, 60), HandClock())
    assert limiter.policy == (b"ratelimit-policy", b'"default";q=1;w=60')
    assert [admit(limiter) for _ in range(2)] == [(0, 0, 60), (60, 0, 60)]


def test_idle_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the keys in use, and forgetting gives no one a second burst."""
    monkeypatch.setattr(limits, "_KEYS_MAX", 3)
    clock = HandClock()
    limiter = RateLimiter(Rate(1, 10), clock)
    for key in ("a", "b", "c"):
        admit(limiter, key)
    clock.advance(9)
    admit(limiter, "d")
    assert not admitted(limiter, "c")
    clock.advance(2)
    # Not with each new key: if most are in use, that would be all the work.
    for key in ("e", "f", "g"):
        admit(limiter, key)
    assert set(limiter._arrivals._times) == {"d", "e", "f", "g"}
    assert not admitted(limiter, "d")


def test_a_session_has_a_hundredth_of_its_account_and_that_twenty_times_a_key() -> None:
    """A request refused for its session does not count for its account."""
    clock = HandClock()
    visits = visits_at(clock, Rate(6000, 60))

    async def passed(session: str) -> int:
        number = 0
        with suppress(RateLimited):
            while True:
                await visits.count(session, "account")
                number += 1
        return number

    async def act() -> None:
        assert [await passed(f"session {n}") for n in range(102)] == [1200] * 100 + [0, 0]
        with pytest.raises(RateLimited) as refused:
            await visits.count("another session", "account")
        assert refused.value.retry_after == 1
        await visits.count("a session", "another account")

    run(act())


@pytest.mark.parametrize("rate", [Rate(10, 60), Rate(100, 3600), Rate(1, 1)])
def test_a_session_has_never_less_than_sixty_in_a_minute(rate: Rate) -> None:
    """However little a key may ask: a buyer goes through a few pages."""
    visits = visits_at(HandClock(), rate)
    passed = [admit(visits._sessions, "session")[0] == 0 for _ in range(61)]
    assert passed == [True] * 60 + [False]


@given(
    st.integers(1, 300),
    st.integers(1, 3600),
    st.floats(0, 1e8),
    st.lists(st.floats(0, 100), max_size=5),
)
def test_as_many_requests_are_admitted_as_are_left(
    requests: int, seconds: int, start: float, pauses: list[float]
) -> None:
    """As many requests as the header says are admitted now, despite rounding."""
    clock = HandClock(seconds=start)
    limiter = RateLimiter(Rate(requests, seconds), clock)
    assert admit(limiter)[1:] == (requests - 1, math.ceil(seconds / requests))
    for pause in pauses:
        clock.advance(pause)
        _, remaining, _ = admit(limiter)
        passed = [admit(limiter) for _ in range(remaining + 1)]
        assert [wait == 0 for wait, *_ in passed] == [True] * remaining + [False]
        assert [left for _, left, _ in passed] == [*reversed(range(remaining)), 0]
