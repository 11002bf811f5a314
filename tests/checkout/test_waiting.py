"""A session whose check is being decided waits for the decision, also after its ordinary end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from countersign.base.values import from_ms, to_ms
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.poll_sessions import FOLLOWED_FOR
from countersign.core.checkout import checks as rules
from countersign.core.checkout import expiry, sessions, store
from countersign.core.checkout.model import (
    LIFETIME,
    LIFETIME_MAX,
    UNDECIDED_MAX,
    Collected,
    Session,
    Status,
    cancelled,
)
from countersign.hosted.pages import identity
from countersign_evidence.process import Binding
from countersign_simulators.base import Reply, Request
from tests.checkout.checks import Checks, checks_at
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = each_engine
IDENTITY, BOTH = (Collected.IDENTITY,), (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)
HOURS = timedelta(hours=9)


@pytest.fixture
def checks(stage: Stage) -> Iterator[Checks]:
    with ExitStack() as stack:
        yield checks_at(stage, stack)


def _submitted(checks: Checks, *collect: Collected, outcome: str = "later") -> Session:
    """A session whose buyer has submitted, and that the provider decides about."""
    session = checks.begin(checks.create(*collect))
    checks.submit(session, outcome)
    return checks.follow(session)


def _later(checks: Checks, step: timedelta) -> None:
    """Let time pass without polls, and end due checks."""
    checks.stage.clock.now += step
    checks.do(expiry.sweep(checks.room))


def _left(checks: Checks, session: Session) -> timedelta:
    """How much of its time a session has."""
    return session.expires_at - from_ms(to_ms(checks.stage.clock.now))


@pytest.mark.parametrize("collect", [IDENTITY, BOTH])
def test_a_session_outlives_its_end_while_the_provider_decides(
    checks: Checks, collect: tuple[Collected, ...]
) -> None:
    """The vendor reads until when; the decision then counts as ever."""
    session = _submitted(checks, *collect)
    _later(checks, HOURS)
    found = checks.read(session.id)
    assert (found.status, checks.events(session.id)) == (Status.OPEN, [])
    assert found.expires_at >= session.created_at + UNDECIDED_MAX
    after = checks.follow(found)
    assert after.asked.identity is not None
    assert after.asked.identity.verified
    if collect == IDENTITY:
        assert checks.events(session.id) == ["checkout_session.completed"]
        return
    # The buyer has the time for the initials that a new link would give.
    assert _left(checks, after) == LIFETIME
    assert checks.acknowledge(after).status is Status.COMPLETED
    assert checks.events(session.id) == ["checkout_session.completed"]


def test_the_decision_arrives_without_the_buyer(checks: Checks) -> None:
    session = _submitted(checks, *IDENTITY)
    _later(checks, HOURS)
    checks.stage.wait(timedelta(minutes=1))
    assert checks.sweep() == 1
    assert checks.events(session.id) == ["checkout_session.completed"]


def test_an_undecided_check_leaves_the_buyer_time_to_try_again(
    checks: Checks,
) -> None:
    """The service stops asking before the session ends, and says so as after any other no."""
    replies = list[Reply]()

    def kept(_: Request, reply: Reply) -> Reply:
        replies.append(reply)
        return reply

    session = checks.begin(checks.create(*IDENTITY))
    checks.submit(session, "later")
    with checks.providers[0].mood(kept):
        assert checks.follow(session).asked.ordinary_end is not None
    with checks.providers[0].mood(lambda *_: replies[-1]):
        checks.stage.wait(FOLLOWED_FOR + timedelta(hours=1))
    assert checks.sweep() == 1
    undecided = checks.read(session.id)
    seen = sessions.view(checks.room, undecided, checks.stage.clock.now)
    assert (seen.identity_status, seen.reasons) == ("requires_input", ["session_undecided"])
    assert _left(checks, undecided) == LIFETIME
    again = checks.begin(undecided)
    checks.submit(again, "verified")
    assert checks.follow(again).status is Status.COMPLETED


def test_a_session_with_a_negative_decision_ends_at_its_time(checks: Checks) -> None:
    session = _submitted(checks, *IDENTITY, outcome="underage")
    assert session.expires_at == session.created_at + LIFETIME
    _later(checks, LIFETIME)
    assert checks.events(session.id) == ["checkout_session.expired"]


def test_a_decision_within_the_time_takes_none_of_it(checks: Checks) -> None:
    session = _submitted(checks, *BOTH)
    decided = checks.follow(session)
    assert decided.asked.ordinary_end is None
    assert _left(checks, decided) == LIFETIME
    _later(checks, LIFETIME)
    assert checks.events(session.id) == ["checkout_session.expired"]


def test_a_session_waits_only_as_long_as_the_provider_is_polled(checks: Checks) -> None:
    """Giving up is a decision, too: it comes first, and the buyer may begin again after it."""
    assert FOLLOWED_FOR < UNDECIDED_MAX
    session = _submitted(checks, *IDENTITY)
    _later(checks, UNDECIDED_MAX - timedelta(seconds=1))
    assert checks.read(session.id).status is Status.OPEN
    _later(checks, timedelta(seconds=1))
    assert checks.read(session.id).status is Status.EXPIRED
    assert checks.events(session.id) == ["checkout_session.expired"]


def test_a_session_that_waits_can_be_cancelled(checks: Checks) -> None:
    session = _submitted(checks, *BOTH)
    _later(checks, HOURS)
    ended = checks.do(store.change(checks.room, checks.read(session.id), cancelled))
    assert ended.status is Status.CANCELLED
    assert checks.follow(ended) == ended
    _later(checks, UNDECIDED_MAX)
    assert checks.events(session.id) == ["checkout_session.cancelled"]


def test_a_session_without_a_submission_does_not_wait(checks: Checks) -> None:
    session = checks.follow(checks.begun())
    assert session.expires_at == session.created_at + LIFETIME
    _later(checks, LIFETIME)
    assert checks.events(session.id) == ["checkout_session.expired"]


def test_a_newer_abandoned_check_removes_no_decision(checks: Checks) -> None:
    """Another browser with the link began it, while the provider decides about the first."""
    session = checks.begin(checks.create(*IDENTITY), browser="a")
    other = checks.begin(session, browser="b")
    checks.submit(session, "later")
    session = checks.do(identity.follow(checks.room, other, 1))
    assert session.asked.is_undecided
    checks.submit(other, "cancelled")
    after = checks.follow(session)
    assert after.asked.identity == session.asked.identity
    assert after.expires_at == session.expires_at
    _later(checks, HOURS)
    assert checks.do(identity.follow(checks.room, checks.read(session.id), 1)).status is (
        Status.COMPLETED
    )


def test_while_a_provider_decides_another_browser_can_begin_a_check_of_its_own(
    checks: Checks,
) -> None:
    """Otherwise anyone with the link could keep the buyer from a check for days."""
    session = checks.begin(checks.create(*IDENTITY), browser="a")
    checks.submit(session, "later")
    session = checks.follow(session)
    assert checks.begin(session, browser="a").asked.attempts == 1
    own = checks.begin(session, browser="b")
    assert own.asked.attempts == 2
    checks.submit(own, "verified")
    assert checks.follow(own).status is Status.COMPLETED


def test_all_waiting_of_a_session_together_has_an_end(checks: Checks) -> None:
    """However often something is submitted that the provider has to decide about."""
    session = checks.begin(checks.create(*IDENTITY))
    last = session.created_at + LIFETIME_MAX + UNDECIDED_MAX
    now, seen = session.created_at, session.check_revision
    for status in (BuyerStatus.PENDING, BuyerStatus.REQUIRES_INPUT) * 40:
        check = IdentityCheck(
            cbid="cb_1",
            status=status,
            reasons=(),
            verification=None,
            binding=Binding.IDENTITY_SESSION,
            attempt=1,
        )
        seen += 1
        session = rules.take_over(session, now, check, seen)
        now = max(now, session.expires_at - timedelta(minutes=1))
    assert session.expires_at == last + LIFETIME
