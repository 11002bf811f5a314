"""Another session of the same document shows a younger person than the verification rests on."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from countersign.base.errors import NotFound, ReviewRefused
from countersign.base.values import Reason
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import review
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import AcceptedZip
from countersign_simulators.base import Reply, Request, Session
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_reasons import events_of
from tests.verification.test_review import queued
from tests.verification.test_standing import same_person, verified
from tests.verification.test_withdrawn import held_against

S = BuyerStatus
WITHDRAWN = (Reason.VERIFICATION_WITHDRAWN,)


def born_later(vendor: Insider, session: Session, year: int = 2015) -> AbstractContextManager[None]:
    """Have the provider read another year of birth in this session."""

    def read_again(request: Request, reply: Reply) -> Reply:
        if session.session_id not in request.path:
            return reply
        birth = rb'("birthdate":\s*")[0-9-]{10}'
        return replace(reply, body=re.sub(birth, rb"\g<1>%d-01-02" % year, reply.body))

    return vendor.playing.mood(read_again)


def two_sessions(vendor: Insider) -> tuple[Session, Session]:
    first, second = (replace(one, subject_reference=None) for one in same_person(vendor))
    return first, second


@each_engine
def test_it_changes_the_status_at_the_account_of_that_session_alone(stage: Stage) -> None:
    """Status, event, review queue, record and clearance say so there; nothing elsewhere."""
    vendor, other = stage.insider("persona"), stage.insider("stripe")
    doubting = stage.insider(vendor.playing)
    first, second = two_sessions(vendor)
    cbid = verified(vendor, first)
    before = [one.standing(cbid) for one in (vendor, other)]
    with born_later(vendor, second):
        for _ in range(2):
            outcome = doubting.verify(second)
            assert (outcome.cbid, outcome.view.status) == (cbid, S.FAILED)
            assert outcome.view.reasons == (Reason.AGE_BELOW_MINIMUM, *WITHDRAWN)
    seen = doubting.standing(cbid)
    assert (seen.status, seen.reasons, seen.expires_at) == (S.REQUIRES_INPUT, WITHDRAWN, None)
    assert held_against(doubting, cbid) == {"buyer_requires_input", "verification_withdrawn"}
    for one, view in zip((vendor, other), before, strict=True):
        assert one.standing(cbid).status is S.VERIFIED
        assert one.standing(cbid).expires_at == view.expires_at
        assert held_against(one, cbid) == set()
    assert events_of(stage, doubting.account_id) == [
        {"buyer.requires_input": ["verification_withdrawn"]}
    ]
    assert events_of(stage, vendor.account_id) == [{"buyer.verified": []}]
    (waiting,) = queued(stage, doubting.principal.reach)
    assert (waiting.cbid, waiting.status, waiting.reasons) == (cbid, S.REQUIRES_INPUT, WITHDRAWN)
    assert queued(stage, vendor.principal.reach) == []
    assert [one.cbid for one in queued(stage, DEPLOYMENT)] == [cbid]
    records = stage.rows("SELECT id FROM verifications WHERE status = 'failed'")
    assert [row["id"] for row in records] == [waiting.verification_id]


@each_engine
def test_a_new_verification_of_that_account_counts_there_again(stage: Stage) -> None:
    """The decision of last counts, and the review has nothing left to decide."""
    vendor = stage.insider("persona")
    doubting = stage.insider(vendor.playing)
    first, second = two_sessions(vendor)
    cbid = verified(vendor, first)
    with born_later(vendor, second):
        doubting.verify(second)
    assert verified(doubting, second) == cbid
    assert doubting.standing(cbid).status is S.VERIFIED
    assert queued(stage, doubting.principal.reach) == []


@each_engine
def test_the_session_itself_read_as_of_a_younger_person_ends_its_proof(stage: Stage) -> None:
    """At every account: nothing is left that the verification rests on."""
    vendor, other = stage.insider("persona"), stage.insider()
    first, _ = two_sessions(vendor)
    cbid = verified(vendor, first)
    with born_later(vendor, first):
        vendor.verify(first)
    assert vendor.standing(cbid).reasons == WITHDRAWN
    assert other.standing(cbid).status is S.REQUIRES_INPUT
    (waiting,) = queued(stage, vendor.principal.reach)
    assert waiting.reasons == WITHDRAWN


def test_an_account_with_a_higher_age_contradicts_nothing(stage: Stage) -> None:
    """A buyer of nineteen is too young for twenty-one, and was never said to be older."""
    vendor = stage.insider("persona")
    strict = stage.insider(vendor.playing, minimum_age=21)
    first, second = two_sessions(vendor)
    year = stage.clock.now.year - 20
    with born_later(vendor, first, year):
        cbid = verified(vendor, first)
    with born_later(vendor, second, year):
        assert strict.verify(second).view.reasons == (Reason.AGE_BELOW_MINIMUM,)
    assert strict.standing(cbid).reasons == (Reason.AGE_NOT_PROVED,)
    assert vendor.standing(cbid).status is S.VERIFIED
    assert queued(stage, strict.principal.reach) == []


def test_a_contradicted_buyer_is_dismissed_and_gets_no_zip_code(stage: Stage) -> None:
    """No provider has approved the person for this account."""
    vendor = stage.insider("persona")
    doubting = stage.insider(vendor.playing, zip_sources=("document", "operator"))
    first, second = two_sessions(vendor)
    cbid = verified(vendor, first)
    with born_later(vendor, second):
        doubting.verify(second)
    room, who = stage.opened.buyers, replace(doubting.principal, credential="restricted_key")
    bill = AcceptedZip("94999", "a bill", "moved")
    with pytest.raises(ReviewRefused):
        stage.do(review.accept(room, who, cbid, bill))
    stage.do(review.dismiss(room, who, cbid, "a misread card"))
    assert queued(stage, doubting.principal.reach) == []
    assert doubting.standing(cbid).status is S.REQUIRES_INPUT
    with pytest.raises(NotFound):
        stage.do(review.dismiss(room, who, cbid, "again"))
