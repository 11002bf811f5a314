"""In any order of events, checkout sessions end once, and only when complete.

Histories are random: sessions, acts of buyers and vendors on them, also from an outdated state or
concurrently; new versions of the notice, erasures, and a clock that moves. After every step, each
session is compared with the expectation of a few simple rules.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final

import msgspec
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
from sqlalchemy import Connection, select

from countersign.base.db.tables import events, records
from countersign.base.errors import (
    CheckoutSessionClosed,
    NoticeVersionMismatch,
    ProviderSessionNotBound,
)
from countersign.core.acknowledgments.find import find_one
from countersign.core.checkout import expiry, model, sessions, store
from countersign.core.checkout.model import (
    ATTEMPTS_MAX,
    Collected,
    Session,
    Status,
    cancelled,
)
from countersign.core.checkout.order import ClaimedEvent
from countersign.core.checkout.schemas import CheckoutSessionRequest
from countersign.hosted.pages import buyer, identity
from countersign_evidence.process import Process, Surface
from tests.checkout.checks import created
from tests.clearances.desk import NO_ONE, Desk
from tests.http.backstage import notice_file
from tests.support.depth import drawn

pytestmark = [pytest.mark.long, pytest.mark.both_engines]

ZIP: Final = "94110"
LINES: Final = 2
SESSIONS_MAX: Final = 6
STEPS: Final = [timedelta(seconds=1), timedelta(minutes=4), timedelta(minutes=16)]
UNDECIDED: Final = timedelta(days=15)
HALF_AN_HOUR: Final = timedelta(minutes=30)
PARTS: Final = ["failed", "requires_input", "later", "cancelled"]
ENDS: Final = {Status.COMPLETED, Status.DECLINED, Status.CANCELLED}

_numbers = itertools.count(1)
which = st.integers(0, SESSIONS_MAX - 1)
initials_ = st.sampled_from([("AB", "AB"), ("AB", "CD"), ("CD", "CD")])
collected = st.sampled_from(
    [{Collected.ACKNOWLEDGMENT}, {Collected.IDENTITY}, {*Collected}],
)
surfaces = st.sampled_from([*Surface])


@dataclass(kw_only=True)
class Expected:
    """The expected state of one session."""

    id: str
    collect: frozenset[Collected]
    cbid: str | None
    zip_: str | None
    expires_at: datetime
    ordinary_end: datetime | None = None
    """Its end without the wait for a decision, while it waits."""
    ended: Status | None = None
    verified: bool = False
    attempts: int = 0
    undecided: bool = False
    """Whether the provider has not decided about the last attempt yet."""
    shown: tuple[str, Surface] | None = None
    """The digest of the text that was shown last, and where."""
    initials: tuple[str, ...] | None = None
    changes: list[int] = field(default_factory=list)
    reviewed: bool = False
    ack_id: str | None = None
    erased: bool = False
    swept: bool = False
    seen: list[Session] = field(default_factory=list)
    """Its earlier states, for acts on an outdated one."""

    def status(self, now: datetime) -> Status:
        if self.ended is not None:
            return self.ended
        return Status.EXPIRED if self.erased or now >= self.expires_at else Status.OPEN

    @property
    def step(self) -> Collected | None:
        if Collected.IDENTITY in self.collect and not self.verified:
            return Collected.IDENTITY
        return Collected.ACKNOWLEDGMENT if Collected.ACKNOWLEDGMENT in self.collect else None

    def decided_or_not(self, now: datetime) -> None:
        """It waits for a provider, and has half an hour from the decision on."""
        if self.undecided and self.ordinary_end is None:
            self.ordinary_end, self.expires_at = self.expires_at, now + UNDECIDED
        elif not self.undecided and self.ordinary_end is not None:
            self.expires_at = max(self.ordinary_end, now + HALF_AN_HOUR)
            self.ordinary_end = None

    @property
    def may_be_accepted(self) -> bool:
        if self.shown is None or self.initials is None:
            return False
        return self.reviewed or self.shown[1] is Surface.COMPONENT


class Walk(RuleBasedStateMachine):
    """A generated history of the sessions of one account."""

    desk: Desk

    @initialize(collects=st.lists(collected, min_size=2, max_size=3), known=st.booleans())
    def begin(self, collects: list[set[Collected]], *, known: bool) -> None:
        self.room = self.desk.deployment.checkout
        self.who = self.desk.account()
        self.notice_id = f"walk-{next(_numbers)}"
        self.versions = itertools.count(1)
        self.all: list[Expected] = []
        self._publish()
        for collect in collects:
            self._create(collect, known=known)

    # --- what happens ---------------------------------------------------------------------------

    @precondition(lambda self: len(self.all) < SESSIONS_MAX)
    @rule(collect=collected, known=st.booleans())
    def create(self, collect: set[Collected], *, known: bool) -> None:
        self._create(collect, known=known)

    def _create(self, collect: set[Collected], *, known: bool) -> None:
        cbid = None
        if known:
            cbid = self.desk.sandbox_buyer(self.who, f"walk_{next(_numbers)}", ZIP)
        wanted = CheckoutSessionRequest(
            return_url="https://shop.example/",
            session_id=f"cart-{next(_numbers)}",
            notice_id=self.notice_id,
            collect=sorted(collect),
            cbid=cbid,
            shipping_zip=ZIP,
        )
        made = self.desk.do(created(self.room, self.who, wanted))
        self.all.append(
            Expected(
                id=made.id,
                collect=frozenset(collect),
                cbid=cbid,
                zip_=ZIP,
                expires_at=made.expires_at,
                seen=[made],
            )
        )

    @rule(step=st.sampled_from(STEPS))
    def time_passes(self, step: timedelta) -> None:
        self.desk.clock.advance(step)

    @rule()
    def publish(self) -> None:
        self._publish()

    @rule()
    def sweep(self) -> None:
        self.desk.do(expiry.sweep(self.room))
        self._swept()

    @rule(number=which, surface=surfaces, stale=st.booleans())
    def show(self, number: int, surface: Surface, *, stale: bool) -> None:
        one = self._pick(number)
        if not self._done(one, stale, lambda s: self._show(s, surface), Collected.ACKNOWLEDGMENT):
            return
        if one.shown != (self.digest, surface):
            one.initials, one.reviewed = None, False
        one.shown = (self.digest, surface)

    @rule(number=which, steps=st.integers(2, 6), surface=surfaces, initials=initials_)
    def go_on(self, number: int, steps: int, surface: Surface, initials: tuple[str, ...]) -> None:
        """The buyer does the next steps, some times."""
        one = self._pick(number)
        for _ in range(steps):
            if one.step is Collected.IDENTITY:
                self.identify(number, "verified", stale=False)
            elif one.shown is None or one.shown[0] != self.digest:
                self.show(number, surface, stale=False)
            elif one.initials is None:
                self.initial(number, initials, stale=False)
            elif not one.may_be_accepted:
                self.review(number, stale=False)
            else:
                self.accept(number, stale=False)

    @rule(number=which, stale=st.booleans())
    def claim(self, number: int, *, stale: bool) -> None:
        claims = [(1, ClaimedEvent.SHOWN)]
        claimed = partial(model.claimed, events=claims, viewport=None)
        self._done(self._pick(number), stale, lambda s: store.change(self.room, s, claimed))

    @rule(number=which, initials=initials_, stale=st.booleans())
    def initial(self, number: int, initials: tuple[str, ...], *, stale: bool) -> None:
        one = self._pick(number)
        allowed = one.shown is not None and one.shown[0] == self.digest
        digest = self.digest

        def act(session: Session) -> Awaitable[Session]:
            return buyer.initial(self.room, session, digest, initials, NO_ONE.client)

        if not self._done(one, stale, act, Collected.ACKNOWLEDGMENT, allowed=allowed):
            return
        if one.initials is None:
            one.initials, one.changes, one.reviewed = initials, [0] * LINES, False
        elif one.initials != initials:
            one.changes = [
                changes + (old != new)
                for changes, old, new in zip(one.changes, one.initials, initials, strict=True)
            ]
            one.initials, one.reviewed = initials, False

    @rule(number=which, stale=st.booleans())
    def review(self, number: int, *, stale: bool) -> None:
        one = self._pick(number)
        allowed = one.initials is not None
        act = self._done(
            one,
            stale,
            lambda s: buyer.review(self.room, s, "en"),
            Collected.ACKNOWLEDGMENT,
            allowed=allowed,
        )
        one.reviewed |= act

    @rule(number=which, stale=st.booleans())
    def accept(self, number: int, *, stale: bool) -> None:
        one = self._pick(number)
        allowed = one.may_be_accepted and one.shown is not None and one.shown[0] == self.digest
        if self._done(one, stale, self._accept, Collected.ACKNOWLEDGMENT, allowed=allowed):
            self._acknowledged(one)

    @rule(number=which, part=st.sampled_from(["verified"] * 3 + PARTS), stale=st.booleans())
    def identify(self, number: int, part: str, *, stale: bool) -> None:
        one = self._pick(number)

        def act(session: Session) -> Awaitable[Session]:
            return identity.play(self.room, session, part)

        allowed = one.undecided or one.attempts < ATTEMPTS_MAX
        if self._done(one, stale, act, Collected.IDENTITY, allowed=allowed):
            one.cbid = one.seen[-1].cbid
            one.attempts += not one.undecided
            one.undecided = part == "later"
            one.decided_or_not(self.desk.clock.now)
            one.verified = part == "verified"
            if one.step is None:
                one.ended = Status.COMPLETED

    @rule(number=which, stale=st.booleans())
    def decline(self, number: int, *, stale: bool) -> None:
        one = self._pick(number)
        if one.ended is not Status.DECLINED and self._done(one, stale, self._decline):
            one.ended = Status.DECLINED

    @rule(number=which, stale=st.booleans())
    def cancel(self, number: int, *, stale: bool) -> None:
        one = self._pick(number)
        if self._done(one, stale, self._cancel):
            one.ended = Status.CANCELLED

    @rule(number=which, others=st.permutations(["accept", "accept", "decline", "cancel", "sweep"]))
    def end_at_once(self, number: int, others: list[str]) -> None:
        """Several want to end it at the same moment: one of them succeeds."""
        one = self._pick(number)
        if one.erased:
            return
        session, was = self._read(one), one.status(self.desk.clock.now)
        acts = {"accept": self._accept, "decline": self._decline, "cancel": self._cancel}

        async def all_of_them() -> list[object]:
            return await asyncio.gather(
                *(
                    expiry.sweep(self.room) if name == "sweep" else acts[name](session)
                    for name in others[:3]
                ),
                return_exceptions=True,
            )

        outcomes = self.desk.do(all_of_them())
        after = self._read(one)
        if was is Status.OPEN:
            ended = [o.status for o in outcomes if isinstance(o, Session)]
            assert ended == ([after.status] if after.status in ENDS else [])
            one.ended = after.status if ended else None
            if after.status is Status.COMPLETED:
                assert one.may_be_accepted
                self._acknowledged(one)
        else:
            # A buyer who has declined gets the same response again.
            assert {o.status for o in outcomes if isinstance(o, Session)} <= {Status.DECLINED}
        refused = {type(o) for o in outcomes if isinstance(o, BaseException)}
        assert refused <= {CheckoutSessionClosed, NoticeVersionMismatch}
        if "sweep" in others[:3]:
            self._swept()

    @rule(number=which)
    def erase_the_acknowledgment(self, number: int) -> None:
        one = self._pick(number)
        if one.ack_id is not None:
            self.desk.erase(one.ack_id)
            one.erased = True

    @rule(number=which)
    def erase_the_buyer(self, number: int) -> None:
        one = self._pick(number)
        if one.cbid is None or one.erased:
            return
        self.desk.erase(one.cbid)
        for other in self.all:
            other.erased |= other.cbid == one.cbid

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def every_session_is_as_expected(self) -> None:
        now = self.desk.clock.now
        for one in self.all:
            session = self._read(one)
            found = sessions.view(self.room, session, now)
            assert (found.status, found.ack_id) == (one.status(now), one.ack_id)
            assert (found.session_id is None) == one.erased
            assert found.cbid == (None if one.erased else one.cbid)
            if not one.erased:
                is_due = one.ack_id is not None and None not in {one.cbid, one.zip_}
                assert (found.cleared is not None) == is_due
                assert (found.ended_at is None) == (found.status is Status.OPEN)
            if found.status is Status.COMPLETED:
                assert (one.ack_id is not None) == (Collected.ACKNOWLEDGMENT in one.collect)
                assert one.verified == (Collected.IDENTITY in one.collect)
            expected = [f"checkout_session.{one.ended}"] if one.ended in ENDS else []
            expected += ["checkout_session.expired"] if one.swept else []
            assert self._events(one.id) == expected

    @invariant()
    def there_is_one_acknowledgment_of_each_session_that_has_one(self) -> None:
        expected = {one.ack_id for one in self.all} - {None}
        assert set(self._acknowledgments()) == expected

    # --- how ------------------------------------------------------------------------------------

    def _publish(self) -> None:
        number = next(self.versions)
        effective = date(2020, 1, 1) + timedelta(days=number)
        file = notice_file(
            self.notice_id, str(number), lines=LINES, effective_from=effective.isoformat()
        )
        self.desk.publish(file)
        self.desk.clock.advance(timedelta(seconds=1))
        self.notice = self.desk.do(
            self.desk.deployment.notices.registry.in_force(self.notice_id, self.who.mode)
        )
        self.digest = self.notice.digest

    def _swept(self) -> None:
        for one in self.all:
            one.swept |= one.ended is None and self.desk.clock.now >= one.expires_at

    def _pick(self, number: int) -> Expected:
        return self.all[number % len(self.all)]

    def _read(self, one: Expected) -> Session:
        return self.desk.do(store.find(self.room, self.who.reach, one.id))

    def _show(self, session: Session, surface: Surface) -> Awaitable[Session]:
        return buyer.show(self.room, session, self.notice, surface, None, "en")

    def _accept(self, session: Session) -> Awaitable[Session]:
        return buyer.accept(self.room, session, NO_ONE)

    def _decline(self, session: Session) -> Awaitable[Session]:
        return store.change(self.room, session, model.declined)

    def _cancel(self, session: Session) -> Awaitable[Session]:
        return store.change(self.room, session, cancelled)

    def _done(
        self,
        one: Expected,
        stale: bool,
        act: Callable[[Session], Awaitable[Session]],
        step: Collected | None = None,
        *,
        allowed: bool = True,
    ) -> bool:
        """Whether it succeeded, which it must if it is allowed now.

        Acts on an outdated state may be refused, and never do anything forbidden.
        """
        is_open = one.status(self.desk.clock.now) is Status.OPEN and not one.erased
        allowed = allowed and is_open and (step is None or one.step is step)
        session = one.seen[0] if stale else self._read(one)
        try:
            after = self.desk.do(act(session))
        except (CheckoutSessionClosed, NoticeVersionMismatch, ProviderSessionNotBound):
            if allowed and not stale:
                raise
            return False
        if stale and after is session:
            return False  # it was so at that time
        assert allowed
        one.seen = [*one.seen[-2:], after]
        return True

    def _acknowledged(self, one: Expected) -> None:
        """The record has the initials and how they came."""
        session = self._read(one)
        assert session.ack_id is not None
        one.ended, one.ack_id = Status.COMPLETED, session.ack_id
        principal = sessions.principal_of(session)
        found = self.desk.do(
            find_one(self.desk.deployment.acknowledgments, principal, session.ack_id)
        )
        process = msgspec.convert(found.process, Process)
        assert found.initials_per_line == list(one.initials or ())
        assert [line.changes for line in process.lines] == one.changes
        assert (process.reviewed_at is not None) == one.reviewed
        assert process.checkout_session == one.id
        assert found.notice_version == self.notice.content.version

    def _events(self, session_id: str) -> list[str]:
        def found(connection: Connection) -> list[str]:
            own = select(events.c.type).where(events.c.object_id == session_id)
            return [*connection.execute(own.order_by(events.c.seq)).scalars()]

        return self.desk.do(self.desk.deployment.database.read(found))

    def _acknowledgments(self) -> list[str]:
        def found(connection: Connection) -> list[str]:
            own = select(records.c.id).where(
                records.c.account_id == self.who.account_id, records.c.type == "acknowledgment"
            )
            return [*connection.execute(own).scalars()]

        return self.desk.do(self.desk.deployment.database.read(found))


@pytest.mark.timeout(300)
def test_a_session_ends_once_and_completes_only_with_all_that_was_to_be_collected(
    desk: Desk,
) -> None:
    class Here(Walk):
        pass

    Here.desk = desk
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=drawn(24),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
