"""Two people decide if an account requires it: one person decides nothing, in any order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Final, NamedTuple

import pytest

from countersign.base.errors import CountersignError, NotFound, SecondPersonRequired
from countersign.base.values import Mode, timed_id
from countersign.core.access.account import set_settings
from countersign.core.access.audit import AuditAction, AuditEntry
from countersign.core.access.key import PersonAsking, Principal
from countersign.core.access.reach import DEPLOYMENT, AccountReach
from countersign.core.buyers import admin, review
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import AcceptedZip
from countersign.core.buyers.schemas import VerifyResult
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from tests.support.acts import done
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_review import NEW_ZIP, OPERATOR, WITH_OPERATOR, queued, room_of

PEOPLE: Final = {
    name: timed_id("per", 0, bytes([number] * 8))
    for number, name in enumerate(("ada", "bob", "eve"))
}
DISMISS: Final = "dismiss"
DECISIONS: Final = (DISMISS, NEW_ZIP)
"""To dismiss, or to accept this ZIP code."""


class Case(NamedTuple):
    """A waiting buyer in an account where two people decide."""

    stage: Stage
    vendor: Insider
    cbid: str

    def who(self, name: str) -> Principal:
        """The person with this name, in a session; a key if there is none."""
        asking = PersonAsking(
            id=PEOPLE.get(name, ""), role="owner", looks=frozenset(), sees_personal_data=False,
            is_fresh=True,
        )  # fmt: skip
        person = asking if name in PEOPLE else None
        return replace(self.vendor.principal, key_id=f"key_{name}", person=person)

    async def deciding(self, name: str, decision: str) -> VerifyResult:
        who = self.who(name)
        room = room_of(self.stage, who)
        if decision == DISMISS:
            return await review.dismiss(room, who, self.cbid, f"case of {name}")
        bill = AcceptedZip(decision, "a utility bill", f"case of {name}")
        return await review.accept(room, who, self.cbid, bill)

    def decide(self, name: str, decision: str) -> str:
        """`proposed`, `final`, or the code of the refusal."""
        self.stage.clock.now += timedelta(seconds=1)
        try:
            return said(self.stage.do(self.deciding(name, decision)))
        except CountersignError as refused:
            return refused.code

    def waits(self) -> review.Waiting | None:
        found = queued(self.stage, self.vendor.principal.reach)
        return next((one for one in found if one.cbid == self.cbid), None)

    def noted(self) -> list[AuditEntry]:
        return [*self.stage.do(admin.audit_log(self.stage.opened.buyers, self.cbid))]


def said(result: VerifyResult) -> str:
    return "proposed" if json.loads(result.body).get("proposed") else "final"


def a_case(stage: Stage, vendor: Insider | None = None, number: int = 0) -> Case:
    vendor = vendor or stage.insider(zip_sources=WITH_OPERATOR)
    stage.do(done(set_settings, stage.opened.access, vendor.account_id, reviewers=2))
    stage.clock.now += timedelta(seconds=1)
    return Case(stage, vendor, vendor.verify(vendor.part("verified", number), "10002").cbid)


class Oracle:
    """The rule in plain words: two who decide the same, one after the other."""

    def __init__(self) -> None:
        self.proposed: tuple[str, str] | None = None
        self.done = False

    def decide(self, name: str, decision: str) -> str:
        if self.done:
            return NotFound.code
        if self.proposed is None or self.proposed[1] != decision:
            self.proposed = (name, decision)
            return "proposed"
        if self.proposed[0] == name:
            return SecondPersonRequired.code
        self.done = True
        return "final"


@each_engine
def test_every_order_of_decisions_follows_the_rule(stage: Stage) -> None:
    """Two people, two decisions, three steps: all of them, each compared with a plain oracle."""
    vendors = [stage.insider(zip_sources=WITH_OPERATOR) for _ in range(4)]
    steps = list(product(("ada", "bob"), DECISIONS))
    for number, (first, *rest) in enumerate(product(DECISIONS, steps, steps)):
        case, oracle = a_case(stage, vendors[number % 4], number // 4), Oracle()
        order = [("ada", first), *rest]
        for name, decision in order:
            assert case.decide(name, decision) == oracle.decide(name, decision), order
            waiting = case.waits()
            assert (waiting is None) == oracle.done, order
            if waiting is not None:
                assert waiting.proposal is not None
                assert waiting.proposal.by == PEOPLE[oracle.proposed[0]]  # type: ignore[index]


@each_engine
def test_of_two_concurrent_reviewers_one_proposes_and_one_confirms(stage: Stage) -> None:
    """And a third is too late: there is no proposal on a buyer who has left the queue."""
    for decision in DECISIONS:
        case = a_case(stage)

        async def at_once(case: Case = case, decision: str = decision) -> list[str]:
            each = (case.deciding(name, decision) for name in ("ada", "bob", "eve"))
            found = await asyncio.gather(*each, return_exceptions=True)
            return sorted(
                said(one) if isinstance(one, VerifyResult) else getattr(one, "code", repr(one))
                for one in found
            )

        assert stage.do(at_once()) == ["final", "not_found", "proposed"]
        assert case.waits() is None


@each_engine
def test_both_people_are_in_the_audit(stage: Stage) -> None:
    """Each with the reason given; without the ZIP code."""
    case = a_case(stage)
    case.decide("ada", NEW_ZIP)
    case.decide("bob", NEW_ZIP)
    first, second = case.noted()
    assert (first.action, first.actor) == ("buyer_review_proposed", PEOPLE["ada"])
    assert (second.action, second.actor) == ("buyer_zip_accepted", PEOPLE["bob"])
    assert (first.details["reason"], second.details["reason"]) == ("case of ada", "case of bob")
    assert first.details["decision"] == "accept_zip"
    assert NEW_ZIP not in repr((first, second))
    assert case.vendor.standing(case.cbid).status is BuyerStatus.VERIFIED


@each_engine
def test_a_proposal_does_not_cover_a_newer_attempt(stage: Stage) -> None:
    """The proposal goes with its attempt; so does it with the erasure of the buyer's evidence."""
    case = a_case(stage)
    case.decide("ada", DISMISS)
    case.stage.clock.now += timedelta(minutes=1)
    case.vendor.verify(case.vendor.part("verified"), "60601")
    waiting = case.waits()
    assert waiting is not None
    assert waiting.proposal is None
    assert case.decide("bob", DISMISS) == "proposed"
    plan = stage.do(plan_erasure(stage.opened.privacy, waiting.verification_id, DEPLOYMENT))
    stage.do(erase_planned(stage.opened.privacy, plan, ErasureReason.REQUEST))
    assert stage.rows("SELECT cbid FROM buyers WHERE proposal IS NOT NULL") == []


@each_engine
def test_a_key_is_not_one_of_the_two_people(stage: Stage) -> None:
    """Neither the first nor the second: a key does not identify its holder."""
    for decision in DECISIONS:
        case = a_case(stage)
        assert case.decide("a key", decision) == SecondPersonRequired.code
        assert case.decide("ada", decision) == "proposed"
        assert case.decide("a key", decision) == SecondPersonRequired.code
        assert case.decide("bob", decision) == "final"


@each_engine
def test_an_earlier_proposal_of_a_key_does_not_count(stage: Stage) -> None:
    """The first person who decides after the upgrade is the first of two."""
    case = a_case(stage)
    case.decide("ada", DISMISS)
    earlier = "UPDATE buyers SET proposal = replace(proposal, :person, :key)"
    stage.execute(earlier, person=PEOPLE["ada"], key="key_ada")
    assert case.decide("bob", DISMISS) == "proposed"
    assert case.decide("ada", DISMISS) == "final"


def test_a_command_of_the_machine_is_not_one_of_the_two_people(stage: Stage) -> None:
    """It does not say who types it; `accounts reviewers ACCOUNT 1` is in the audit."""
    case = a_case(stage)
    room = stage.opened.buyers
    with pytest.raises(SecondPersonRequired):
        stage.do(review.dismiss(room, OPERATOR, case.cbid, "case 7"))
    with pytest.raises(SecondPersonRequired):
        stage.do(admin.accept_zip(room, case.cbid, NEW_ZIP, document="a bill", reason="case 7"))
    assert (case.noted(), case.waits() is None) == ([], False)
    stage.do(done(set_settings, stage.opened.access, case.vendor.account_id, reviewers=1))
    assert case.decide("ada", DISMISS) == "final"


def test_two_decide_on_an_approval_of_an_account_that_wants_two(stage: Stage) -> None:
    """Even if the last attempt was made at an account where one person decides."""
    other, case = stage.insider(zip_sources=WITH_OPERATOR), a_case(stage)
    owner = AccountReach(other.account_id, Mode.LIVE)
    room, said = stage.opened.buyers, {"reason": "case 7", "document": "a bill"}
    audit = room.access.audit.entry(AuditAction.BUYER_ZIP_ACCEPTED, case.cbid, owner, **said)
    accept = partial(admin.accept_zip_of, room, DEPLOYMENT, NEW_ZIP, audit, first=lambda _: None)
    with pytest.raises(SecondPersonRequired):
        stage.do(accept())
    stage.do(done(set_settings, stage.opened.access, case.vendor.account_id, reviewers=1))
    assert stage.do(accept()).view.status is BuyerStatus.VERIFIED
