"""An identity check goes from state to state only as drawn, whoever says what, in any order.

Buyers begin, submit and come back; providers send messages and are polled; people review, revoke
and erase; time ends sessions and verifications. A few plain rules say what may follow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
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
    rule,
    run_state_machine_as_test,
)

from countersign.access.reach import DEPLOYMENT
from countersign.buyers import expiry as expiry_of_buyers
from countersign.buyers import review
from countersign.buyers.identity_check import IdentityCheck
from countersign.buyers.review import AcceptedZip
from countersign.checkout import expiry, identity
from countersign.checkout.cookies import return_code
from countersign.checkout.model import Collected, Session, Status
from countersign.errors import NotFound, Refusal, ReviewRefused
from countersign.privacy.erase import erase_planned, plan_erasure
from countersign.privacy.model import ErasureReason
from tests.checkout.checks import ZIP, Checks, checks_at, submit
from tests.support.depth import drawn
from tests.verification.conftest import stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = pytest.mark.long

BROWSERS: Final = ("a", "b")
POSITIVE: Final = frozenset({"verified", "later", "never"})
OUTCOMES: Final = [*sorted(POSITIVE), "underage", "wrong_zip", "document_expired", "cancelled"]
SAID: Final = {"open", "pending", "ended", "refused", "verified", "revoked"}
"""What can come of a check that was started."""
MAY: Final[Mapping[str | None, set[str]]] = {
    None: {"open", *SAID},
    "open": SAID,
    "pending": SAID,
    "ended": SAID,
    "refused": SAID,
    "verified": {"verified", "revoked"},
    "revoked": SAID,
    # Of a check without a decision; between two acts none is only reserved.
    "dropped": {"dropped"},
}
KINDS: Final = [(Collected.IDENTITY,), (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)]
which = st.integers(0, 1)
attempts = st.sampled_from([1, 1, 1, 2])


def state(check: IdentityCheck | None) -> str | None:
    """The state in this test's own words; None: nothing is known."""
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
    """What has happened to one session."""

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

    # --- what happens ---------------------------------------------------------------------------

    @rule(number=which)
    def begin_another_session(self, number: int) -> None:
        """In the place of one that has ended."""
        if not _is_open(self._read(self.all[number])):
            self.all[number] = Known(self.checks.create(*KINDS[number]).id)

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

    @rule(number=which, attempt=attempts, outcome=st.sampled_from(OUTCOMES))
    def submit(self, number: int, attempt: int, outcome: str) -> None:
        one = self.all[number]
        if attempt in one.pages and one.outcomes.get(attempt) in {None, "document_expired"}:
            submit(one.pages[attempt], outcome)
            one.outcomes[attempt] = outcome

    @rule(number=which, attempt=attempts, browser=st.sampled_from([*BROWSERS, ""]))
    def come_back(self, number: int, attempt: int, browser: str) -> None:
        """A browser arrives at the return address, where the provider is asked."""
        one, room = self.all[number], self.checks.room
        session = self._read(one)
        if attempt not in one.pages or session.content is None:
            return
        key = return_code(room, one.id, attempt)
        assert identity.returned_from(room, session, key) == attempt
        self._try(identity.look(room, session, attempt, is_back=bool(browser)))
        self._try(identity.came_back(room, self._read(one), attempt, browser))
        one.arrived.setdefault(attempt, set()).add(browser)

    @rule(number=which, attempt=attempts)
    def message(self, number: int, attempt: int) -> None:
        """The provider's webhook only hurries a poll."""
        session = self._read(self.all[number])
        check = None if session.content is None else session.asked.check_at(attempt)
        if check is not None and check.url:
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
        """Verifications expire, and what is not decided is given up."""
        sessions = [self._read(one) for one in self.all]
        if any(_is_open(one) and not one.asked.is_undecided for one in sessions):
            return
        self.checks.stage.wait(step)
        self.checks.do(expiry_of_buyers.sweep(self.checks.room.buyers))
        self.checks.do(expiry.sweep(self.checks.room))

    @rule(number=which, accepts=st.booleans())
    def review(self, number: int, *, accepts: bool) -> None:
        """A person accepts the ZIP code, or dismisses the buyer."""
        cbid = self._buyer(number)
        if cbid is None:
            return
        room, who = self.checks.room.buyers, self.checks.who
        try:
            if accepts:
                self.checks.do(review.accept(room, who, cbid, AcceptedZip(ZIP, "a bill", "case")))
                self.accepted.add(cbid)
            else:
                self.checks.do(review.dismiss(room, who, cbid, "case"))
        except (NotFound, ReviewRefused):
            pass

    @rule(number=which)
    def revoke(self, number: int) -> None:
        cbid = self._buyer(number)
        if cbid is not None:
            self.checks.stage.revoke(cbid)
            self.revoked.add(cbid)

    @rule(number=which)
    def erase(self, number: int) -> None:
        """With the buyer goes all that is known of the checks; nothing brings it back."""
        cbid, privacy = self._buyer(number), self.checks.stage.opened.privacy
        if cbid is None:
            return
        plan = self.checks.do(plan_erasure(privacy, cbid, DEPLOYMENT))
        self.checks.do(erase_planned(privacy, plan, ErasureReason.REQUEST))
        assert self._read(self.all[number]).content is None
        for table in ("started_checks", "pending_sessions", "buyers"):
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

    def _read(self, one: Known) -> Session:
        return self.checks.read(one.id)

    def _rows(self, query: str, of: str = "") -> list[Mapping[str, Any]]:
        return [*self.checks.stage.rows(query, **({"of": of} if of else {}))]

    def _buyer(self, number: int) -> str | None:
        """The buyer of a session."""
        return self._read(self.all[number]).subject

    def _try(self, act: Awaitable[Session | tuple[Session, bool]]) -> Session | None:
        """What comes of it; None if it was refused."""
        try:
            found = self.checks.do(act)
        except Refusal:
            return None
        return found if isinstance(found, Session) else found[0]


@pytest.mark.later
@pytest.mark.timeout(300)
def test_an_identity_check_goes_only_where_its_states_lead(stage: Stage) -> None:
    with ExitStack() as stack:

        class Here(Walk):
            checks = checks_at(stage, stack)

        sources = ["document", "database", "proof_of_address", "operator"]
        Here.checks.insider.configure(zip_sources=sources, validity_days=1)
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=drawn(60),
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[*HealthCheck],
            ),
        )
