"""A provider's whole response is kept while a reviewer may need it, and then the facts alone."""

from __future__ import annotations

from base64 import b64decode
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import admin
from countersign.core.buyers.model import RESPONSE_KEPT, BuyerStatus
from countersign.core.privacy.retention import retain
from countersign_simulators.base import Reply, Request
from tests.support.holding import place_hold, release_hold
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_operators import keep_responses
from tests.verification.test_review import dismiss

DAY = timedelta(days=1)


def shown(stage: Stage, cbid: str) -> dict[str, Any]:
    """The provider's response in the newest evidence of a buyer."""
    looked = admin.evidence(stage.opened.buyers, DEPLOYMENT, cbid, "a test")
    content = stage.do(looked).checks[-1].content
    assert content is not None
    answer: dict[str, Any] = content["answer"]
    return answer


def whole(stage: Stage) -> list[str]:
    """The checks with a whole response."""
    found = stage.rows("SELECT record_id FROM verification_evidence WHERE response IS NOT NULL")
    return [row["record_id"] for row in found]


def retained(stage: Stage, after: timedelta) -> None:
    """Retention, so much later."""
    stage.clock.now += after
    stage.do(retain(stage.opened.privacy))


@each_engine
def test_a_final_decision_keeps_facts_and_a_salted_digest(stage: Stage) -> None:
    """What the decision read stays; who has the response can show that it is this one."""
    vendor, replies = stage.insider(), list[Reply]()

    def record(_: Request, reply: Reply) -> Reply:
        replies.append(reply)
        return reply

    with vendor.playing.mood(record):
        cbid = vendor.verify(vendor.part("verified")).cbid
    answer = shown(stage, cbid)
    assert whole(stage) == []
    assert not {"body", "sha256", "text"} & answer.keys()
    digests = {
        sha256(bytes.fromhex(one["salt"]) + reply.body).hexdigest()
        for reply in replies
        for one in [answer, *answer["further"]]
    }
    assert answer["salted_sha256"] in digests


def failed(vendor: Insider) -> str:
    """A buyer who waits for review."""
    found = vendor.verify(vendor.part("verified"), "10001")
    assert found.view.status is BuyerStatus.FAILED
    return found.cbid


@each_engine
def test_a_waiting_review_has_the_whole_response_for_thirty_days(stage: Stage) -> None:
    vendor = stage.insider()
    cbid = failed(vendor)
    assert b64decode(shown(stage, cbid)["body"]).startswith(b"{")
    retained(stage, RESPONSE_KEPT - DAY)
    assert len(whole(stage)) == 1
    retained(stage, 2 * DAY)
    assert whole(stage) == []


@each_engine
def test_a_decision_of_a_reviewer_ends_the_whole_response(stage: Stage) -> None:
    vendor = stage.insider()
    cbid = failed(vendor)
    retained(stage, timedelta())
    assert len(whole(stage)) == 1
    dismiss(stage, vendor.principal, cbid)
    retained(stage, timedelta())
    assert whole(stage) == []
    assert "salted_sha256" in shown(stage, cbid)


@each_engine
@pytest.mark.parametrize("on", ["buyer", "check", "account"])
def test_a_hold_keeps_the_whole_response(stage: Stage, on: str) -> None:
    """Until it is released."""
    vendor = stage.insider()
    cbid = failed(vendor)
    [check] = whole(stage)
    subject = {"buyer": cbid, "check": check, "account": vendor.account_id}[on]
    hold = stage.do(place_hold(stage.opened.privacy, subject, "litigation"))
    dismiss(stage, vendor.principal, cbid)
    retained(stage, RESPONSE_KEPT + DAY)
    assert whole(stage) == [check]
    stage.do(release_hold(stage.opened.privacy, hold.id))
    retained(stage, timedelta())
    assert whole(stage) == []


@each_engine
def test_an_account_keeps_whole_responses_until_its_time(stage: Stage) -> None:
    """With a reason; not those of before, and no other account's."""
    vendor = stage.insider()
    vendor.verify(vendor.part("verified"))
    keep_responses(stage, vendor)
    other = stage.insider(vendor.playing)
    other.verify(other.part("verified", 2))
    cbid = vendor.verify(vendor.part("verified", 1)).cbid
    assert "text" in shown(stage, cbid)
    retained(stage, 100 * DAY)
    assert len(whole(stage)) == 1
    retained(stage, 270 * DAY)
    assert whole(stage) == []
