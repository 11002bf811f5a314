"""The provider takes its decision back about the session that verified a buyer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from countersign.base.errors import InvalidArgument
from countersign.base.values import Reason
from countersign.core.buyers import admin
from countersign.core.buyers.model import BuyerStatus
from countersign_simulators.base import Session
from countersign_simulators.registry import SIMULATORS
from tests.support.acts import done
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_reasons import events_of
from tests.verification.test_review import queued
from tests.verification.test_settling import followed, playing_another
from tests.verification.test_standing import cleared, same_person, verified

S = BuyerStatus
SOON = timedelta(seconds=1)
WITHDRAWN = (Reason.VERIFICATION_WITHDRAWN,)
NO = {"stripe": "canceled"}
"""Sessions that have ended and verify no one; for providers without one, a failed one."""


def approved(vendor: Insider) -> tuple[Session, str]:
    """Verify a buyer by a session, by no reference; gives it and the cbid."""
    session = replace(vendor.part("verified"), subject_reference=None)
    return session, verified(vendor, session)


def declining(vendor: Insider, session: Session, plays: str = "") -> AbstractContextManager[None]:
    """Make the provider reject the session from now on, or simulate another outcome."""
    plays = plays or NO.get(vendor.playing.name, "failed")
    return playing_another(vendor, session, vendor.part(plays))


def held_against(vendor: Insider, cbid: str) -> set[str]:
    """The reasons against an order that concern the buyer's verification."""
    about = {"buyer_not_verified", "buyer_requires_input", "verification_withdrawn"}
    return about.intersection(cleared(vendor, cbid))


@pytest.mark.parametrize("provider", SIMULATORS)
def test_a_hint_about_a_verifying_session_is_polled_once(stage: Stage, provider: str) -> None:
    """By each provider's own message: status, event, review queue, record and clearance say so."""
    vendor, other = stage.insider(provider), stage.insider()
    session, cbid = approved(vendor)
    assert held_against(vendor, cbid) == set()
    with declining(vendor, session):
        asked = vendor.playing.asked(session)
        vendor.hint(session)
        assert stage.wait(SOON) == 1
        assert vendor.playing.asked(session) > asked
    standing = vendor.standing(cbid)
    assert (standing.status, standing.reasons) == (S.REQUIRES_INPUT, WITHDRAWN)
    assert (standing.verified_at, standing.expires_at) == (None, None)
    seen = other.standing(cbid)
    assert (seen.status, seen.reasons) == (S.REQUIRES_INPUT, ())
    assert held_against(vendor, cbid) == {"buyer_requires_input", "verification_withdrawn"}
    assert held_against(other, cbid) == {"buyer_requires_input"}
    assert events_of(stage, vendor.account_id) == [
        {"buyer.verified": []},
        {"buyer.requires_input": ["verification_withdrawn"]},
    ]
    (waiting,) = queued(stage, vendor.principal.reach)
    assert (waiting.cbid, waiting.reasons) == (cbid, WITHDRAWN)
    records = stage.rows("SELECT id FROM records WHERE type = 'verification' ORDER BY id")
    assert [row["id"] for row in records][-1] == waiting.verification_id
    assert followed(stage) == 0
    assert stage.wait(timedelta(days=30)) == 0


@each_engine
def test_a_vendor_that_reads_the_no_itself_ends_the_verification_too(stage: Stage) -> None:
    """The answer is about the attempt, the status about the buyer; once more changes nothing."""
    vendor, cleared_by = stage.insider("persona"), stage.insider()
    session, cbid = approved(vendor)
    with declining(vendor, session):
        for _ in range(2):
            outcome = vendor.verify(session)
            assert (outcome.cbid, outcome.view.status) == (cbid, S.FAILED)
            assert outcome.view.reasons[0] is Reason.IDENTITY_FAILED
            assert outcome.view.reasons[-1] is Reason.VERIFICATION_WITHDRAWN
            standing = vendor.standing(cbid)
            assert (standing.status, standing.reasons) == (S.REQUIRES_INPUT, WITHDRAWN)
    assert held_against(cleared_by, cbid) == {"buyer_requires_input"}
    assert len(events_of(stage, vendor.account_id)) == 2


@each_engine
def test_a_provider_that_says_yes_again_verifies_again(stage: Stage) -> None:
    """The decision of last counts, and validity still runs from the first one."""
    vendor = stage.insider("persona")
    session, cbid = approved(vendor)
    before = vendor.standing(cbid)
    with declining(vendor, session):
        vendor.hint(session)
        stage.wait(SOON)
    stage.clock.now += timedelta(days=3)
    vendor.hint(session)
    assert stage.wait(SOON) == 1
    again = vendor.standing(cbid)
    assert again.status is S.VERIFIED
    assert again.expires_at is not None
    assert before.expires_at is not None
    assert again.expires_at - before.expires_at < timedelta(hours=1)


@each_engine
def test_other_proofs_of_the_buyer_stay(stage: Stage) -> None:
    """Each is a separate session: the buyer is verified by the one that was not withdrawn."""
    vendor = stage.insider("persona")
    first, second = (replace(one, subject_reference=None) for one in same_person(vendor))
    cbid = verified(vendor, first)
    stage.clock.now += timedelta(days=2)
    assert verified(vendor, second) == cbid
    later = vendor.standing(cbid)
    with declining(vendor, second):
        vendor.hint(second)
        stage.wait(SOON)
    standing = vendor.standing(cbid)
    assert standing.status is S.VERIFIED
    assert standing.verified_at != later.verified_at
    assert held_against(vendor, cbid) == set()
    with declining(vendor, first):
        vendor.hint(first)
        stage.wait(SOON)
    assert vendor.standing(cbid).reasons == WITHDRAWN


@pytest.mark.parametrize("plays", ["redacted", "server_error", "unknown_status", "pending"])
def test_only_a_final_no_changes_anything(stage: Stage, plays: str) -> None:
    """Redaction is no decision, and neither is trouble or a review that goes on."""
    vendor = stage.insider("persona")
    session, cbid = approved(vendor)
    before = vendor.standing(cbid)
    with declining(vendor, session, plays):
        vendor.hint(session)
        stage.wait(SOON)
        stage.wait(timedelta(days=15))
    assert vendor.standing(cbid) == before
    assert held_against(vendor, cbid) == set()


def test_a_no_after_a_review_is_noticed(stage: Stage) -> None:
    """A session that is under review again is followed until it is decided again."""
    vendor = stage.insider("persona")
    session, cbid = approved(vendor)
    with declining(vendor, session, "review"):
        vendor.hint(session)
        stage.wait(SOON)
        assert vendor.standing(cbid).status is S.VERIFIED
    with declining(vendor, session):
        assert stage.wait(timedelta(hours=1)) == 1
    assert vendor.standing(cbid).reasons == WITHDRAWN


def test_a_hint_about_a_still_approved_session_is_no_news(stage: Stage) -> None:
    """The provider is asked once, and nothing is written."""
    decided = stage.clock.monotonic()
    stage.provider_seconds = lambda: decided
    vendor = stage.insider("persona")
    session, cbid = approved(vendor)
    before = vendor.standing(cbid)
    vendor.hint(session)
    assert stage.wait(SOON) == 1
    after = vendor.standing(cbid)
    assert (after.status, after.verified_at) == (S.VERIFIED, before.verified_at)
    assert len(stage.rows("SELECT id FROM verifications")) == 1
    assert followed(stage) == 0


def test_a_failed_attempt_of_another_session_takes_nothing_away(stage: Stage) -> None:
    """Only the session that the verification rests on can withdraw it."""
    vendor = stage.insider("persona")
    first, second = (replace(one, subject_reference=None) for one in same_person(vendor))
    cbid = verified(vendor, first)
    before = vendor.standing(cbid)
    with declining(vendor, second):
        vendor.verify(second)
    assert vendor.standing(cbid) == before


def test_reinstating_a_buyer_does_not_bring_a_withdrawn_verification_back(stage: Stage) -> None:
    """A verification withdrawn while the buyer is revoked does not count afterwards."""
    vendor = stage.insider("persona")
    session, cbid = approved(vendor)
    stage.revoke(cbid)
    with declining(vendor, session):
        vendor.hint(session)
        stage.wait(SOON)
    assert vendor.standing(cbid).status is S.REVOKED
    stage.do(done(admin.reinstate, stage.opened.buyers, cbid, "a test"))
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT


def test_an_operator_accepts_no_zip_code_on_a_withdrawn_decision(stage: Stage) -> None:
    """A withdrawn decision of the provider is no ground for anything."""
    vendor = stage.insider("persona", zip_sources=("document", "operator"))
    session, cbid = approved(vendor)
    with declining(vendor, session):
        vendor.hint(session)
        stage.wait(SOON)
    accepting = admin.accept_zip(
        stage.opened.buyers, cbid, "94999", document="a bill", reason="moved"
    )
    with pytest.raises(InvalidArgument, match="No provider has approved"):
        stage.do(accepting)
