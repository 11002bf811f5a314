"""The review queue: waiting buyers, their visibility, and decisions on the record."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from countersign.base.errors import NotFound, ReviewRefused
from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.access.room import acting
from countersign.core.buyers import admin, review, started
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import AcceptedZip
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import PROOFS
from countersign.core.buyers.schemas import VerifyResult
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.identity.model import FactSource
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_settling import undecided

S = BuyerStatus
NEW_ZIP = "10001"
WITH_OPERATOR = (*PROOFS, FactSource.OPERATOR)
BILL = AcceptedZip(NEW_ZIP, "a utility bill", "case 7")
OPERATOR = Principal(
    key_id="operator", account_id="", mode=Mode.LIVE, scopes=frozenset(), credential=""
)
"""The user who types a command: of no account."""


def waiting(stage: Stage, of: Insider | None = None, *statuses: BuyerStatus) -> list[str]:
    """The buyers in the queue of an account, or in that of the deployment's operator."""
    reach = DEPLOYMENT if of is None else of.principal.reach
    return [one.cbid for one in queued(stage, reach, statuses=statuses or review.REVIEWED)]


def queued(
    stage: Stage,
    reach: Reach = DEPLOYMENT,
    **wanted: Any,  # noqa: ANN401 - as `queue` takes it
) -> list[review.Waiting]:
    """The live buyers in the queue."""
    scan = stage.opened.access.database.scan
    return stage.do(scan(review.queue, reach, Mode.LIVE, **wanted))


def room_of(stage: Stage, who: Principal) -> Buyers:
    """The room as the gate gives it: acts record the caller."""
    room = stage.opened.buyers
    return acting(room, room.access.audit.of(who.actor, who.reach))


def dismiss(stage: Stage, who: Principal, cbid: str) -> None:
    stage.do(review.dismiss(room_of(stage, who), who, cbid, "case 7"))


def accept(stage: Stage, who: Principal, cbid: str) -> VerifyResult:
    return stage.do(review.accept(room_of(stage, who), who, cbid, BILL))


@each_engine
def test_buyers_not_verified_by_their_last_attempt_wait_oldest_first(stage: Stage) -> None:
    """With status, reasons and provider; verified buyers do not wait."""
    vendor = stage.insider()
    verified = vendor.verify(vendor.part("verified")).cbid
    young = vendor.verify(vendor.part("underage")).cbid
    stage.clock.now += timedelta(minutes=1)
    _, _, pending = undecided(vendor)
    assert waiting(stage, vendor) == waiting(stage) == [young, pending]
    assert waiting(stage, vendor, S.FAILED) == [young]
    assert waiting(stage, vendor, S.PENDING, S.REQUIRES_INPUT) == [pending]
    [one, _] = queued(stage)
    assert (one.provider, one.status, one.reasons) == ("stripe", S.FAILED, ("age_below_minimum",))
    assert (one.account_id, one.reference) == (vendor.account_id, None)
    assert verified not in waiting(stage)


@each_engine
def test_a_page_of_the_queue_continues_after_the_one_before(stage: Stage) -> None:
    """By the verification of its last buyer."""
    vendor = stage.insider()
    for plays in ("underage", "requires_input", "no_date_of_birth"):
        vendor.verify(vendor.part(plays))
        stage.clock.now += timedelta(seconds=1)
    everyone = queued(stage)
    first = queued(stage, limit=2)
    rest = queued(stage, after=first[-1].verification_id)
    assert [*first, *rest] == everyone
    assert len(everyone) == 3


@each_engine
def test_an_account_sees_and_decides_on_its_own_attempts_alone(stage: Stage) -> None:
    """The buyer of another account is not found; the deployment's operator sees all."""
    vendor, other = stage.insider(zip_sources=WITH_OPERATOR), stage.insider()
    cbid = vendor.verify(vendor.part("verified"), NEW_ZIP).cbid
    assert (waiting(stage, vendor), waiting(stage, other)) == ([cbid], [])
    for who in (other.principal, replace_mode(vendor.principal)):
        with pytest.raises(NotFound):
            dismiss(stage, who, cbid)
        with pytest.raises(NotFound):
            accept(stage, who, cbid)
    assert waiting(stage) == [cbid]


def replace_mode(who: Principal) -> Principal:
    """The same account's test key."""
    return Principal(
        key_id=who.key_id,
        account_id=who.account_id,
        mode=Mode.TEST,
        scopes=who.scopes,
        credential=who.credential,
    )


@each_engine
def test_a_dismissed_buyer_leaves_the_queue_until_the_next_attempt(stage: Stage) -> None:
    """The status stays, and the audit log has who dismissed which attempt, and why."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    cbid = vendor.verify(vendor.part("verified"), NEW_ZIP).cbid
    [one] = queued(stage)
    dismiss(stage, vendor.principal, cbid)
    assert waiting(stage) == waiting(stage, vendor) == []
    assert vendor.standing(cbid).status is S.FAILED
    [entry] = stage.do(admin.audit_log(stage.opened.buyers, cbid))
    assert (entry.action, entry.actor) == ("buyer_review_dismissed", vendor.principal.key_id)
    assert entry.details == {"reason": "case 7", "verification": one.verification_id}
    with pytest.raises(NotFound):
        dismiss(stage, vendor.principal, cbid)
    stage.clock.now += timedelta(minutes=1)
    vendor.verify(vendor.part("verified"), "60601")
    assert waiting(stage) == [cbid]
    dismiss(stage, OPERATOR, cbid)
    assert waiting(stage) == []


@each_engine
def test_an_accepted_zip_code_verifies_with_the_evidence_of_the_operator(stage: Stage) -> None:
    """As `buyers accept-zip` does; the audit log names the key."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    cbid = vendor.verify(vendor.part("verified"), NEW_ZIP).cbid
    result = accept(stage, vendor.principal, cbid)
    assert (result.cbid, result.view.status) == (cbid, S.VERIFIED)
    assert vendor.standing(cbid).status is S.VERIFIED
    assert waiting(stage) == []
    [basis, made] = stage.rows("SELECT id FROM verifications ORDER BY status")
    [record] = stage.rows("SELECT body FROM records WHERE id = :id", id=made["id"])
    assert json.loads(bytes(record["body"]))["override"] == "zip"
    [entry] = stage.do(admin.audit_log(stage.opened.buyers, cbid))
    assert (entry.action, entry.actor) == ("buyer_zip_accepted", vendor.principal.key_id)
    assert entry.details == {
        "reason": "case 7",
        "document": BILL.document,
        "verification": basis["id"],
    }


@pytest.mark.parametrize("plays", ["underage", "redacted", "requires_input"])
def test_no_decision_relaxes_another_rule(stage: Stage, plays: str) -> None:
    """The buyer stays in the queue, and nothing is written."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    cbid = vendor.verify(vendor.part(plays)).cbid
    before = stage.rows("SELECT * FROM audit_log"), stage.rows("SELECT * FROM verifications")
    with pytest.raises(ReviewRefused):
        accept(stage, vendor.principal, cbid)
    after = stage.rows("SELECT * FROM audit_log"), stage.rows("SELECT * FROM verifications")
    assert after == before
    assert waiting(stage) == [cbid]


def test_a_rule_of_the_account_decides_whether_an_operators_word_counts(stage: Stage) -> None:
    """Without the source `operator` the decision is refused, with the setting to change."""
    vendor = stage.insider()
    cbid = vendor.verify(vendor.part("verified"), NEW_ZIP).cbid
    with pytest.raises(ReviewRefused, match="sources of a ZIP code"):
        accept(stage, vendor.principal, cbid)


def test_a_providers_response_to_another_account_is_no_ground_to_accept(stage: Stage) -> None:
    """Each account decides on a provider's responses to itself."""
    first = stage.insider(zip_sources=WITH_OPERATOR)
    second = stage.insider(first.playing, zip_sources=WITH_OPERATOR)
    cbid = first.verify(first.part("verified"), NEW_ZIP).cbid
    with pytest.raises(NotFound):
        accept(stage, second.principal, cbid)
    second.verify(second.part("verified"), NEW_ZIP)
    assert (waiting(stage, first), waiting(stage, second)) == ([], [cbid])
    assert accept(stage, second.principal, cbid).view.status is S.VERIFIED


@each_engine
def test_an_erased_buyer_is_in_no_queue(stage: Stage) -> None:
    """Nor can anything be decided on them."""
    vendor = stage.insider()
    cbid = vendor.verify(vendor.part("underage")).cbid
    privacy = stage.opened.privacy
    plan = stage.do(plan_erasure(privacy, cbid, DEPLOYMENT))
    stage.do(erase_planned(privacy, plan, ErasureReason.REQUEST))
    assert waiting(stage) == []
    with pytest.raises(NotFound):
        dismiss(stage, OPERATOR, cbid)


def proves(vendor: Insider, cbid: str) -> bool:
    """Whether the new ZIP code is proved for this account."""
    reach = AccountReach(vendor.account_id, Mode.LIVE)
    judging = started.judge_known(vendor.stage.opened.buyers, reach, cbid, NEW_ZIP)
    return vendor.stage.do(judging).status is S.VERIFIED


@each_engine
def test_a_zip_code_accepted_by_a_reviewer_counts_for_that_account_alone(stage: Stage) -> None:
    """That of the deployment's operator counts for every account with the source `operator`."""
    first = stage.insider(zip_sources=WITH_OPERATOR)
    second = stage.insider(first.playing, zip_sources=WITH_OPERATOR)
    cbid = first.verify(first.part("verified"), NEW_ZIP).cbid
    accept(stage, first.principal, cbid)
    assert (proves(first, cbid), proves(second, cbid)) == (True, False)
    bill = {"document": BILL.document, "reason": BILL.reason}
    stage.do(admin.accept_zip(stage.opened.buyers, cbid, NEW_ZIP, **bill))
    assert (proves(first, cbid), proves(second, cbid)) == (True, True)
