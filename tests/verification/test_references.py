"""The buyer of a session: another reference never reaches that buyer."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from countersign.base.errors import ProviderSessionNotBound
from countersign.base.values import Reason
from countersign.core.buyers import admin
from countersign.core.buyers.model import BuyerStatus
from countersign_simulators.base import Reply, Request, Session
from tests.support.acts import done
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_standing import same_person, verified

S, R = BuyerStatus, Reason
STRANGER = "somebody-else"
FIRST_POLLS = timedelta(minutes=5)


def answering_as(
    vendor: Insider, session: Session, other: str, *, nameless: bool = False
) -> AbstractContextManager[None]:
    """Respond to this session as to the other one.

    `nameless`: without the reference, as some providers do while they have not decided.
    """
    played = vendor.part(other).session_id

    def mood(request: Request, reply: Reply) -> Reply:
        if session.session_id not in request.path:
            return reply
        path = request.path.replace(session.session_id, played)
        answered = vendor.playing.simulator.simulator.answer(replace(request, path=path))
        body = json.loads(answered.body.replace(played.encode(), session.session_id.encode()))
        if nameless:
            body["client_reference_id"] = None
        return replace(answered, body=json.dumps(body).encode())

    return vendor.playing.mood(mood)


def undecided(vendor: Insider, session: Session) -> AbstractContextManager[None]:
    """Respond like a provider that names no one until it has decided."""
    return answering_as(vendor, session, "pending", nameless=True)


@each_engine
def test_an_undecided_session_leads_each_reference_to_a_separate_buyer(stage: Stage) -> None:
    """Once the provider names its subject, only that one is verified."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with undecided(vendor, session):
        theirs = vendor.verify(session, subject_reference=STRANGER)
        mine = vendor.verify(session)
    assert {theirs.view.status, mine.view.status} == {S.PENDING}
    assert verified(vendor, session) == mine.cbid != theirs.cbid
    assert vendor.standing(theirs.cbid).status is S.PENDING
    with pytest.raises(ProviderSessionNotBound):
        vendor.verify(session, subject_reference=STRANGER)
    stage.wait(FIRST_POLLS)
    answer = vendor.standing(theirs.cbid)
    assert (answer.status, answer.reasons) == (S.REQUIRES_INPUT, (Reason.SESSION_UNDECIDED,))
    assert vendor.standing(mine.cbid).status is S.VERIFIED


@each_engine
@pytest.mark.parametrize("hurried", [False, True])
def test_the_poller_settles_the_buyer_of_the_right_reference(stage: Stage, hurried: bool) -> None:
    """By the clock, or after a message of the provider, which names the session only."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with undecided(vendor, session):
        waiting = vendor.verify(session)
    if hurried:
        vendor.hint(session)
    stage.wait(timedelta(0) if hurried else FIRST_POLLS)
    assert vendor.standing(waiting.cbid).status is S.VERIFIED
    assert stage.rows("SELECT * FROM pending_sessions") == []


@each_engine
def test_requests_with_and_without_a_reference_lead_to_one_buyer_in_the_end(stage: Stage) -> None:
    """Both identifiers that were handed out work."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with undecided(vendor, session):
        named = vendor.verify(session)
        plain = vendor.verify(replace(session, subject_reference=None))
    assert named.cbid != plain.cbid
    cbid = verified(vendor, session)
    for known in (named, plain):
        assert vendor.standing(known.cbid).status is S.VERIFIED
    assert cbid in {named.cbid, plain.cbid}
    assert verified(vendor, replace(session, subject_reference=None)) == cbid


def test_a_redacted_session_does_not_lead_another_reference_to_its_buyer(stage: Stage) -> None:
    """A subject named once is remembered, even if the provider no longer names it."""
    vendor = stage.insider()
    session = vendor.part("verified")
    mine = verified(vendor, session)
    with answering_as(vendor, session, "redacted"):
        with pytest.raises(ProviderSessionNotBound):
            vendor.verify(session, subject_reference=STRANGER)
        gone = vendor.verify(session)
    assert (gone.cbid, gone.view.reasons) == (mine, (R.SESSION_REDACTED,))
    assert vendor.standing(mine).status is S.VERIFIED


def test_a_session_redacted_before_it_was_seen_leads_to_no_known_buyer(
    stage: Stage,
) -> None:
    """Two references, two buyers, neither verified."""
    vendor = stage.insider()
    session = vendor.part("verified")
    with answering_as(vendor, session, "redacted"):
        one = vendor.verify(session)
        other = vendor.verify(session, subject_reference=STRANGER)
    assert one.cbid != other.cbid
    assert {one.view.status, other.view.status} == {S.FAILED}


@each_engine
def test_a_revocation_holds_for_the_person_that_a_session_turns_out_to_be_about(
    stage: Stage,
) -> None:
    """A waiting buyer is revoked; the document shows that it is somebody known: both are."""
    vendor = stage.insider()
    once, again = same_person(vendor)
    with undecided(vendor, again):
        waiting = vendor.verify(again)
    assert waiting.view.status is S.PENDING
    stage.do(done(admin.revoke, stage.opened.buyers, waiting.cbid, "case 7"))
    known = verified(vendor, once)
    # A failed attempt shows no one to be anybody.
    assert vendor.verify(again, "99950").view.status is S.REVOKED
    assert vendor.standing(known).status is S.VERIFIED
    assert vendor.verify(again).view.status is S.REVOKED
    assert vendor.standing(known).status is S.REVOKED
    assert vendor.standing(waiting.cbid).status is S.REVOKED
    assert vendor.verify(once).view.status is S.REVOKED
