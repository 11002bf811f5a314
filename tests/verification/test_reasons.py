"""The reasons against a buyer are known only to the account that asked."""

from __future__ import annotations

import json

from countersign.base.values import Reason
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.poll_sessions import GONE_AFTER, POLLS
from countersign.core.buyers.session_evidence import FIRST_POLL
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign_simulators.base import Reply
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_settling import playing_another, undecided

S = BuyerStatus


def events_of(stage: Stage, account_id: str) -> list[dict[str, object]]:
    """The content of an account's events about buyers."""
    query = "SELECT type, reasons FROM events WHERE account_id = :id ORDER BY seq"
    return [
        {row["type"]: json.loads(row["reasons"] or "[]")}
        for row in stage.rows(query, id=account_id)
        if row["type"].startswith("buyer.")
    ]


def fail_later(stage: Stage, vendor: Insider) -> str:
    """Have a session fail after it was pending; gives the cbid."""
    session, _, cbid = undecided(vendor)
    with playing_another(vendor, session, vendor.part("underage")):
        assert stage.wait(FIRST_POLL) == 1
    return cbid


@each_engine
def test_the_reason_of_a_later_verdict_is_in_status_and_event(stage: Stage) -> None:
    """A checkout has to know whether to ship elsewhere, to ask again, or not to sell."""
    vendor = stage.insider()
    cbid = fail_later(stage, vendor)
    standing = vendor.standing(cbid)
    assert (standing.status, standing.reasons) == (S.FAILED, (Reason.AGE_BELOW_MINIMUM,))
    assert events_of(stage, vendor.account_id) == [{"buyer.failed": ["age_below_minimum"]}]


def test_a_failure_at_once_is_remembered_with_its_reason(stage: Stage) -> None:
    """The response may be lost; the status says the same."""
    vendor = stage.insider()
    session = vendor.part("verified")
    outcome = vendor.verify(session, "99999")
    assert outcome.view.reasons == (Reason.ZIP_MISMATCH,)
    assert vendor.standing(outcome.cbid).reasons == (Reason.ZIP_MISMATCH,)


def test_another_account_learns_the_status_alone(stage: Stage) -> None:
    """An age or an address is the business of the vendor whose customer it is."""
    vendor, other = stage.insider(), stage.insider()
    cbid = fail_later(stage, vendor)
    seen = other.standing(cbid)
    assert (seen.status, seen.reasons) == (S.FAILED, ())


def test_a_missing_session_is_reported_to_its_account(stage: Stage) -> None:
    """Also where no verdict was ever written."""
    vendor, other = stage.insider(), stage.insider()
    _, _, cbid = undecided(vendor)
    missing = b'{"error":{"code":"resource_missing"}}'
    gone = Reply(status=404, body=missing, headers=(("Content-Type", "application/json"),))
    with vendor.playing.mood(lambda _, __: gone):
        for wait in POLLS[:GONE_AFTER]:
            stage.wait(wait)
    assert vendor.standing(cbid).reasons == (Reason.SESSION_UNDECIDED,)
    assert other.standing(cbid).reasons == ()
    assert events_of(stage, vendor.account_id) == [{"buyer.requires_input": ["session_undecided"]}]


def test_success_leaves_no_reason_behind(stage: Stage) -> None:
    """A buyer who returns with a valid session has no reasons left."""
    vendor = stage.insider()
    session = vendor.part("verified")
    cbid = vendor.verify(session, "99999").cbid
    assert vendor.verify(session).cbid == cbid
    standing = vendor.standing(cbid)
    assert (standing.status, standing.reasons) == (S.VERIFIED, ())
    assert events_of(stage, vendor.account_id)[-1] == {"buyer.verified": []}


def test_erasing_a_buyer_takes_the_reasons_out_of_its_events(stage: Stage) -> None:
    """That something happened stays until events end; why it happened is about the person."""
    vendor = stage.insider()
    cbid = fail_later(stage, vendor)
    plan = stage.do(plan_erasure(stage.opened.privacy, cbid, DEPLOYMENT))
    stage.do(erase_planned(stage.opened.privacy, plan, ErasureReason.REQUEST))
    assert events_of(stage, vendor.account_id) == [{"buyer.failed": []}]
