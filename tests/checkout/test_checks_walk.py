"""Whatever happens to identity checks, in whatever order: without a decision none verifies.

Histories are random: sessions, checks that begin at two providers and again, buyers who submit or
not, polls, the loop, remembered buyers, ends, and a clock that moves. A few simple rules say which
provider sessions were decided positively for which session; after every step each session is
compared with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from countersign.base.errors import CheckoutSessionClosed
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout import expiry, model, store
from countersign.core.checkout.model import ATTEMPTS_MAX, Collected, Session, Status, cancelled
from countersign.hosted.pages import identity
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.remembered import KnownBy, inform
from countersign_evidence.process import Binding
from tests.checkout.checks import Checks, checks_at, submit
from tests.support.depth import drawn
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = [pytest.mark.long, pytest.mark.both_engines]

SESSIONS_MAX: Final = 4
POSITIVE: Final = frozenset({"verified", "later", "never"})
OUTCOMES: Final = ["verified", "verified", "later", "never", "underage", "wrong_zip", "cancelled"]
KINDS: Final = [(Collected.IDENTITY,), (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)]

which = st.integers(0, SESSIONS_MAX - 1)


async def _remembered(room: HostedPages, session: Session, cbid: str, binding: Binding) -> Session:
    at = session.created_at
    known = KnownBy(
        id="rem_1",
        mode=session.mode,
        cbid=cbid,
        kind=Binding.COOKIE,
        created_at=at,
        last_used_at=at,
        expires_at=at,
    )
    informing = await inform(room.remembered, session.account_id, known, None)
    return await identity.remembered(room, session, informing, binding)


@dataclass(kw_only=True)
class Attempt:
    """A session at a provider, and what its buyer chose there."""

    url: str
    outcome: str | None = None


@dataclass(kw_only=True)
class Expected:
    """The expected state of one session."""

    id: str
    collect: tuple[Collected, ...]
    expires_at: datetime
    attempts: dict[int, Attempt] = field(default_factory=dict)
    remembered: bool = False
    has_waited: bool = False
    """Whether a provider had to decide."""
    verified: bool = False
    ended: Session | None = None
    """The state at its end."""

    @property
    def may_be_verified(self) -> bool:
        return self.remembered or any(a.outcome in POSITIVE for a in self.attempts.values())


class Walk(RuleBasedStateMachine):
    """A generated history of the sessions of one account with two providers."""

    checks: Checks

    @initialize(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
    def start(self, kinds: list[tuple[Collected, ...]]) -> None:
        self.all: list[Expected] = []
        self.known: set[str] = set()
        for kind in kinds:
            self.create(kind)

    # --- what happens ---------------------------------------------------------------------------

    @precondition(lambda self: len(self.all) < SESSIONS_MAX)
    @rule(kind=st.sampled_from(KINDS))
    def create(self, kind: tuple[Collected, ...]) -> None:
        made = self.checks.create(*kind)
        one = Expected(id=made.id, collect=kind, expires_at=made.expires_at)
        self.all.append(one)
        self._note(one, made)

    @rule(number=which, provider=st.sampled_from([None, "stripe", "persona"]), again=st.booleans())
    def begin(self, number: int, provider: str | None, *, again: bool) -> None:
        one = self._pick(number)
        used = len(one.attempts)
        after = self._done(
            one, lambda s: identity.begin(self.checks.room, s, provider, again=again)
        )
        if after is None:
            return
        check = after.asked.check
        assert check is not None
        assert provider in {None, check.provider}
        assert after.asked.reserved is None
        assert check.attempt in {used, used + 1}
        if again and used:
            assert check.attempt == used + 1

    @rule(number=which, provider=st.sampled_from([None, "stripe", "persona"]), again=st.booleans())
    def two_tabs_begin(self, number: int, provider: str | None, *, again: bool) -> None:
        """They go on at the same session of the provider."""
        one = self._pick(number)
        session, room = self.checks.read(one.id), self.checks.room

        async def both() -> list[object]:
            tabs = [identity.begin(room, session, provider, again=again) for _ in "ab"]
            return [*await asyncio.gather(*tabs, return_exceptions=True)]

        found = self.checks.do(both())
        after = self.checks.read(one.id)
        self._note(one, after)
        checks = [s.asked.check for s in found if isinstance(s, Session)]
        assert len({check.provider_session for check in checks if check}) <= 1
        assert all(isinstance(s, (Session, CheckoutSessionClosed)) for s in found), found
        assert after.content is not None
        assert after.asked.attempts <= session.asked.attempts + 1

    @rule(number=which, attempt=st.integers(1, ATTEMPTS_MAX), outcome=st.sampled_from(OUTCOMES))
    def submit(self, number: int, attempt: int, outcome: str) -> None:
        """The buyer of any attempt, also of an old one, goes through the provider's page."""
        one = self._pick(number).attempts.get(attempt)
        if one is not None and one.outcome is None:
            submit(one.url, outcome)
            one.outcome = outcome

    @rule(number=which)
    def follow(self, number: int) -> None:
        one = self._pick(number)
        before = self.checks.read(one.id)
        after = self.checks.follow(before)
        self._note(one, after)
        newest = one.attempts.get(len(one.attempts))
        at_identity = self._is_open(one) and before.step is Collected.IDENTITY
        if at_identity and newest is not None and newest.outcome in {"verified", "never"}:
            assert after.asked.identity is not None
            assert after.asked.identity.verified

    @rule(number=which)
    def take_over(self, number: int) -> None:
        one = self._pick(number)
        self._note(one, self.checks.do(identity.take_over(self.checks.room, self._read(one))))

    @rule(step=st.sampled_from([timedelta(seconds=20), timedelta(minutes=2)]))
    def polls_and_the_loop(self, step: timedelta) -> None:
        """A second look finds nothing that the first one left."""
        self.checks.stage.wait(step)
        self.checks.sweep()
        assert self.checks.sweep() == 0
        for one in self.all:
            self._note(one, self._read(one))

    @rule(number=which, binding=st.sampled_from([Binding.PASSKEY, Binding.COOKIE]))
    def remember(self, number: int, binding: Binding) -> None:
        """A buyer who was verified in another session comes back."""
        one = self._pick(number)
        if not self.known:
            return
        cbid = min(self.known)
        before = self._read(one)
        after = self._done(one, lambda s: _remembered(self.checks.room, s, cbid, binding))
        if after is not None:
            assert before.step is Collected.IDENTITY
            one.remembered = True
            self._note(one, after)

    @rule(number=which)
    def a_stranger_is_remembered(self, number: int) -> None:
        """An unverified person passes nowhere."""
        one, stranger = self._pick(number), f"cbid_{'0' * 26}"
        with pytest.raises(CheckoutSessionClosed):
            self.checks.do(
                _remembered(self.checks.room, self._read(one), stranger, Binding.PASSKEY)
            )

    @rule(number=which)
    def acknowledge(self, number: int) -> None:
        one = self._pick(number)
        before = self._read(one)
        if self._is_open(one) and before.step is Collected.ACKNOWLEDGMENT:
            after = self.checks.acknowledge(before)
            assert after.status is Status.COMPLETED
            self._note(one, after)

    @rule(number=which)
    def decline(self, number: int) -> None:
        self._done(self._pick(number), lambda s: store.change(self.checks.room, s, model.declined))

    @rule(number=which)
    def cancel(self, number: int) -> None:
        self._done(self._pick(number), lambda s: store.change(self.checks.room, s, cancelled))

    @rule(number=which)
    def cancel_while_it_is_followed(self, number: int) -> None:
        """One of the two ends it."""
        one = self._pick(number)
        session, room = self._read(one), self.checks.room

        async def both() -> list[object]:
            acts = identity.follow(room, session), store.change(room, session, cancelled)
            return [*await asyncio.gather(*acts, return_exceptions=True)]

        found = self.checks.do(both())
        assert all(isinstance(s, (Session, CheckoutSessionClosed)) for s in found), found
        self._note(one, self._read(one))

    @rule(step=st.sampled_from([timedelta(minutes=5), timedelta(minutes=31), timedelta(days=16)]))
    def time_passes(self, step: timedelta) -> None:
        self.checks.stage.clock.now += step
        self.checks.do(expiry.sweep(self.checks.room))
        for one in self.all:
            self._note(one, self._read(one))

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def no_session_is_completed_without_a_positive_decision_of_its_own(self) -> None:
        for one in self.all:
            session = self._read(one)
            check = session.asked.identity
            waits = check is not None and check.status is BuyerStatus.PENDING
            assert (session.asked.ordinary_end is not None) == waits
            if one.verified:
                assert check is not None
                assert check.verified, "what is verified stays so"
            if check is not None and check.verified:
                one.verified = True
                assert one.may_be_verified
                if check.binding is Binding.IDENTITY_SESSION:
                    assert one.attempts[check.attempt].outcome in POSITIVE
                    assert check.verification is not None
                else:
                    assert one.remembered
            if session.status is Status.COMPLETED:
                assert check is not None
                assert check.verified
                assert (session.ack_id is not None) == (Collected.ACKNOWLEDGMENT in one.collect)
            assert session.asked.attempts <= ATTEMPTS_MAX

    @invariant()
    def an_end_is_the_end(self) -> None:
        """And it has one event."""
        for one in self.all:
            session = self._read(one)
            if one.ended is not None:
                assert (session.status, session.asked.identity) == (
                    one.ended.status,
                    one.ended.asked.identity,
                )
                heard = [e.partition(".")[2] for e in self.checks.events(one.id)]
                assert heard == [session.status.value]
            else:
                assert session.status is Status.OPEN
                assert self.checks.events(one.id) == []

    # --- how ------------------------------------------------------------------------------------

    def _pick(self, number: int) -> Expected:
        return self.all[number % len(self.all)]

    def _read(self, one: Expected) -> Session:
        return self.checks.read(one.id)

    def _is_open(self, one: Expected) -> bool:
        return one.ended is None and self.checks.stage.clock.now < one.expires_at

    def _note(self, one: Expected, session: Session) -> None:
        """Remember started checks, verified buyers, and the outcome."""
        check, found = session.asked.check, session.asked.identity
        if check is not None and check.attempt not in one.attempts:
            one.attempts[check.attempt] = Attempt(url=check.url)
        if found is not None and found.verified and found.cbid is not None:
            self.known.add(found.cbid)
        if session.status is not Status.OPEN and one.ended is None:
            one.ended = session
        if one.ended is None and session.expires_at != one.expires_at:
            # It waits for a decision, or has waited for one.
            waits = found is not None and found.status is BuyerStatus.PENDING
            assert waits == (session.expires_at > one.expires_at) or one.has_waited
            one.expires_at, one.has_waited = session.expires_at, True

    def _done(self, one: Expected, act: Callable[[Session], Awaitable[Session]]) -> Session | None:
        """Do it from the state as it is now; None if it was refused."""
        is_open = self._is_open(one)
        try:
            after = self.checks.do(act(self._read(one)))
        except CheckoutSessionClosed:
            return None
        assert is_open or after.status is Status.DECLINED
        self._note(one, after)
        return after


@pytest.mark.later
@pytest.mark.timeout(300)
@each_engine
def test_no_history_of_identity_checks_verifies_without_a_positive_decision(stage: Stage) -> None:
    with ExitStack() as stack:

        class Here(Walk):
            checks = checks_at(stage, stack)

        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=drawn(36),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[*HealthCheck],
            ),
        )
