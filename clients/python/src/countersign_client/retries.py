"""When a call is sent again, and after how long: the policy of stamina, and `Retry-After`.

Nothing in here sends or waits. `clients/behaviour.json` says what both clients do with it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from countersign_client.failure import ConnectionFailed, CountersignError, TimedOut

_SERVER_ERRORS = frozenset({500, 502, 503, 504})
_NOTHING_DONE = frozenset({"rate_limited", "overloaded", "blocked"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How often and how patiently a failed call is sent again."""

    attempts: int = 4
    """At most so many in all; 1: never again."""
    wait_initial: float = 0.2
    """Seconds before the second attempt; each further wait is twice as long."""
    wait_max: float = 5.0
    """The longest of these waits, in seconds."""
    wait_jitter: float = 0.3
    """Up to so many seconds are added at random."""
    waits_max: float = 45.0
    """All waits of a call together, in seconds. A wait that does not fit raises the error."""


def wait_before_next(
    policy: Retries, error: CountersignError, *, attempt: int, waited: float, repeatable: bool
) -> float | None:
    """The seconds to wait before the call is sent again, or None if the error is final.

    `attempt` counts from 1; `waited` is the sum of the waits so far. A call that is not
    `repeatable` is retried only if the server did not act on it.
    """
    if attempt >= policy.attempts:
        return None
    if not (_may_pass(error) if repeatable else _nothing_done(error)):
        return None
    wait = min(policy.wait_max, policy.wait_initial * 2.0 ** (attempt - 1))
    wait = max(wait, error.retry_after or 0.0)
    wait += random.uniform(0, policy.wait_jitter)  # noqa: S311 - it only spreads the load
    return wait if waited + wait <= policy.waits_max else None


def _may_pass(error: CountersignError) -> bool:
    """Whether the same call may succeed later."""
    lost = isinstance(error, ConnectionFailed | TimedOut)
    return lost or error.retry_after is not None or error.status in _SERVER_ERRORS


def _nothing_done(error: CountersignError) -> bool:
    """Whether the server certainly did not act on the call."""
    if isinstance(error, ConnectionFailed):
        return not error.sent
    return error.code in _NOTHING_DONE
