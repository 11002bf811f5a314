"""An identity check goes from state to state only as drawn, whoever says what, in any order.

Buyers begin, submit and come back; providers send messages and are polled; people review, revoke
and erase; time ends sessions and verifications. A few plain rules say what may follow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Container, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

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

from countersign.base.errors import NotFound, Refusal, ReviewRefused
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import expiry as expiry_of_buyers
from countersign.core.buyers import review
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.review import AcceptedZip
from countersign.core.checkout import expiry
from countersign.core.checkout.model import Collected, Session, Status
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.hosted.pages import identity
from countersign.hosted.pages.cookies import return_code
from tests.checkout.checks import ZIP, Checks, checks_at, submit
from tests.support.depth import drawn
from tests.verification.conftest import stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = pytest.mark.long

BROWSERS: Final = ["a", "a", "b"]
TRIED_AGAIN: Final = {None, "document_expired"}
"""The provider page's earlier input, before it is used again."""
POSITIVE: Final = frozenset({"verified", "later", "never"})
OUTCOMES: Final = [
    *("verified", "verified", "later", "never", "wrong_zip", "wrong_zip"),
    *("underage", "document_expired", "cancelled"),
]
SAID: Final = {"open", "pending", "ended", "refused", "verified", "revoked"}
"""Possible outcomes of a started check."""
MAY: Final[Mapping[str | None, set[str]]] = {
    None: {"open", *SAID},
    "open": SAID,
    "pending": SAID,
    "ended": SAID,
    "refused": SAID,
    "verified": {"verified", "revoked"},
    "revoked": SAID,
    # For a check without a decision; between two acts none is only reserved.
    "dropped": {"dropped"},
}
KINDS: Final = [(Collected.IDENTITY,), (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)]
which = st.integers(0, 1)
any_of = st.integers(0, 59)
"""One of the available ones."""


def state(check: IdentityCheck | None) -> str | None:
    """The state in this test's own words; None: unknown."""
    if check is None:
        return None
    if check.status is None:
        return "open" if check.url else "dropped"
    status = check.status.value
    if status == "requires_input":
        return "open" if "identity_requires_input" in check.reasons else "ended"
    return {"failed": "refused", "expired": "refused"}.get(status, status)


def _is_open(session: Session) -> bool:
    return session.status is Status.OPEN and session.content is not None


@dataclass
class Known:
    """The history of one session."""

    id: str
    owners: dict[int, str] = field(default_factory=dict)
    """The browser that has begun each check."""
    pages: dict[int, str] = field(default_factory=dict)
    outcomes: dict[int, str] = field(default_factory=dict)
    arrived: dict[int, set[str]] = field(default_factory=dict)
    last: Session | None = None


class Walk(RuleBasedStateMachine):
    """A generated history of two sessions of an account."""

    checks: Checks

    @initialize()
    def start(self) -> None:
        self.all = [Known(self.checks.create(*kind).id) for kind in KINDS]
        self.revoked: set[str] = set()
        self.accepted: set[str] = set()
        for number in range(len(self.all)):
            self.begin(number, "a", again=False)

    # --- what happens ---------------------------------------------------------------------------

    @precondition(lambda self: not all(_is_open(self._read(one)) for one in self.all))
    @rule()
    def begin_other_sessions(self) -> None:
        """Replaces the ended ones."""
        for number, one in enumerate(self.all):
            if not _is_open(self._read(one)):
                self.all[number] = Known(self.checks.create(*KINDS[number]).id)
                self.begin(number, "a", again=False)

    @rule(number=which, browser=st.sampled_from(BROWSERS), again=st.booleans())
    def begin(self, number: int, browser: str, *, again: bool) -> None:
        one = self.all[number]
        session = self._read(one)
        begun = identity.begin(self.checks.room, session, browser=browser, again=again)
        after = self._try(begun)
        check = None if after is None or after.content is None else after.asked.check
        if check is not None and check.attempt not in one.owners:
            one.owners[check.attempt] = browser
        if check is not None:
            assert check.browser == one.owners[check.attempt]
            one.pages[check.attempt] = check.url

    @precondition(lambda self: self._pages(TRIED_AGAIN))
    @rule(pick=any_of, outcome=st.sampled_from(OUTCOMES), returns=st.booleans())
    def submit(self, pick: int, outcome: str, *, returns: bool) -> None:
        one, attempt = self._pages(TRIED_AGAIN, pick)[0]
        submit(one.pages[attempt], outcome)
        one.outcomes[attempt] = outcome
        if returns:
            self._arrive(one, attempt, one.owners[attempt])

    @precondition(lambda self: self._pages())
    @rule(pick=any_of, browser=st.sampled_from(["a", "a", "b", ""]))
    def come_back(self, pick: int, browser: str) -> None:
        """A browser arrives at the return address, where the provider is asked."""
        one, attempt = self._pages(pick=pick)[0]
        self._arrive(one, attempt, browser)

    @precondition(lambda self: self._pages())
    @rule(pick=any_of)
    def message(self, pick: int) -> None:
        """The provider's webhook only hurries a poll."""
        one, attempt = self._pages(pick=pick)[0]
        check = self._read(one).asked.check_at(attempt)
        if check is not None:
            self.checks.insider.hint_of(check.provider_session)
            self.checks.stage.wait(timedelta(0))

    @rule(number=which)
    def follow(self, number: int) -> None:
        self._try(identity.follow(self.checks.room, self._read(self.all[number])))

    @rule(step=st.sampled_from([timedelta(seconds=20), timedelta(minutes=2), timedelta(minutes=9)]))
    def poll(self, step: timedelta) -> None:
        self.checks.stage.wait(step)
        self.checks.sweep()
        self.checks.do(expiry.sweep(self.checks.room))

    @rule(step=st.sampled_from([timedelta(hours=25), timedelta(days=16)]))
    def much_later(self, step: timedelta) -> None:
        """Verifications expire, and undecided sessions are given up."""
        sessions = [self._read(one) for one in self.all]
        if any(_is_open(one) and not one.asked.is_undecided for one in sessions):
            return
        self.checks.stage.wait(step)
        self.checks.do(expiry_of_buyers.sweep(self.checks.room.buyers))
        self.checks.do(expiry.sweep(self.checks.room))

    @precondition(lambda self: self._buyers(0, "refused"))
    @rule(pick=any_of, accepts=st.sampled_from([True, True, False]))
    def review(self, pick: int, *, accepts: bool) -> None:
        """A person accepts the ZIP code, or dismisses the buyer."""
        _, cbid = self._buyers(pick, "refused")[0]
        room, who = self.checks.room.buyers, self.checks.who
        try:
            if accepts:
                self.checks.do(review.accept(room, who, cbid, AcceptedZip(ZIP, "a bill", "case")))
                self.accepted.add(cbid)
            else:
                self.checks.do(review.dismiss(room, who, cbid, "case"))
        except (NotFound, ReviewRefused):
            pass

    @precondition(lambda self: self._buyers())
    @rule(pick=any_of)
    def revoke(self, pick: int) -> None:
        _, cbid = self._buyers(pick)[0]
        self.checks.stage.revoke(cbid)
        self.revoked.add(cbid)

    @precondition(lambda self: self._buyers())
    @rule(pick=any_of)
    def erase(self, pick: int) -> None:
        """All data of the buyer's checks is erased; nothing brings it back."""
        (one, cbid), privacy = self._buyers(pick)[0], self.checks.stage.opened.privacy
        plan = self.checks.do(plan_erasure(privacy, cbid, DEPLOYMENT))
        self.checks.do(erase_planned(privacy, plan, ErasureReason.REQUEST))
        assert self._read(one).content is None
        # A revocation stays.
        tables = [
            "started_checks",
            "pending_sessions",
            *([] if cbid in self.revoked else ["buyers"]),
        ]
        for table in tables:
            of_buyer = f"SELECT 1 FROM {table} WHERE cbid = :of"  # noqa: S608 - our own names
            assert self._rows(of_buyer, cbid) == [], table

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def each_state_follows_on_the_one_before(self) -> None:
        for one in self.all:
            session, before = self._read(one), one.last
            one.last = session
            if session.content is None:
                assert (
                    self._rows("SELECT 1 FROM started_checks WHERE reference = :of", one.id) == []
                )
                continue
            assert before is None or before.content is not None, "what was erased stays so"
            for check in session.asked.checks:
                known = before.asked.check_at(check.attempt) if before else None
                assert state(check) in {"open", "dropped"} & MAY[state(known)]
            outcome, known = session.asked.identity, before.asked.identity if before else None
            if outcome is not None:
                assert state(outcome) in MAY[state(known)]
            if before is not None and before.status is not Status.OPEN:
                assert (session.status, outcome) == (before.status, known), "an end is the end"

    @invariant()
    def only_a_positive_decision_verifies_and_only_a_revocation_takes_it_away(self) -> None:
        for one in self.all:
            session = self._read(one)
            outcome = None if session.content is None else session.asked.identity
            if outcome is None:
                continue
            if state(outcome) == "verified":
                was_said = one.outcomes.get(outcome.attempt) in POSITIVE
                assert was_said or outcome.cbid in self.accepted
            if state(outcome) == "revoked":
                assert outcome.cbid in self.revoked

    @invariant()
    def only_who_began_a_check_and_alone_came_back_from_it_is_its_buyer(self) -> None:
        for one in self.all:
            session = self._read(one)
            for check in session.asked.checks if session.content else ():
                if check.is_back:
                    assert one.arrived.get(check.attempt) == {one.owners[check.attempt]}

    @invariant()
    def what_is_not_decided_is_followed(self) -> None:
        rows = self._rows("SELECT * FROM started_checks")
        followed = {row["session_index"] for row in self._rows("SELECT * FROM pending_sessions")}
        for row in rows:
            asks = "identity_requires_input" in (row["reasons"] or "")
            if row["status"] in {None, "pending"} or (row["status"] == "requires_input" and asks):
                assert row["session_index"] in followed

    # --- how ------------------------------------------------------------------------------------

    def _arrive(self, one: Known, attempt: int, browser: str) -> None:
        session, room = self._read(one), self.checks.room
        key = return_code(room, one.id, attempt)
        assert identity.returned_from(room, session, key) == attempt
        self._try(identity.look(room, session, attempt, is_back=bool(browser)))
        self._try(identity.came_back(room, self._read(one), attempt, browser))
        one.arrived.setdefault(attempt, set()).add(browser)

    def _read(self, one: Known) -> Session:
        return self.checks.read(one.id)

    def _rows(self, query: str, of: str = "") -> list[Mapping[str, Any]]:
        return [*self.checks.stage.rows(query, **({"of": of} if of else {}))]

    def _pages(
        self, outcomes: Container[str | None] | None = None, pick: int = 0
    ) -> list[tuple[Known, int]]:
        """The checks that have a page, whose buyers did this there; the picked one first."""
        known = [one for one in self.all if self._read(one).content is not None]
        found = [(one, attempt) for one in known for attempt in one.pages]
        found = [(o, a) for o, a in found if outcomes is None or o.outcomes.get(a) in outcomes]
        first = pick % max(1, len(found))
        return found[first:] + found[:first]

    def _buyers(self, pick: int = 0, where: str | None = None) -> list[tuple[Known, str]]:
        """The buyers of sessions, in this state if one is named; the picked one first."""
        found = []
        for one in self.all:
            session = self._read(one)
            cbid = session.subject
            if cbid is not None and where in {None, state(session.asked.identity)}:
                found.append((one, cbid))
        first = pick % max(1, len(found))
        return found[first:] + found[:first]

    def _try(self, act: Awaitable[Session | tuple[Session, bool]]) -> Session | None:
        """The result; None if it was refused."""
        try:
            found = self.checks.do(act)
        except Refusal:
            return None
        return found if isinstance(found, Session) else found[0]


@pytest.mark.later
@pytest.mark.timeout(300)
def test_an_identity_check_moves_only_to_allowed_states(stage: Stage) -> None:
    with ExitStack() as stack:

        class Here(Walk):
            checks = checks_at(stage, stack)

        sources = ["document", "database", "proof_of_address", "operator"]
        Here.checks.insider.configure(zip_sources=sources, validity_days=1)
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=drawn(36),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[*HealthCheck],
            ),
        )
