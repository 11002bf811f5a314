"""One person, one cbid: lasting data, ended data, and other accounts' view."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from countersign.base.errors import (
    InvalidArgument,
    InvalidRequest,
    NotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    RateLimited,
    UnknownSubject,
)
from countersign.base.values import BUYER, Mode, Reason
from countersign.core.buyers import admin
from countersign.core.buyers import routes as verifying
from countersign.core.buyers import settings as verification_settings
from countersign.core.buyers.model import BuyerStatus, BuyerStatusView
from countersign.core.buyers.rules import DocumentExpiry
from countersign.core.buyers.schemas import BuyerVerificationRequest
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign_simulators.base import Reply, Request, Session
from tests.clearances.desk import order
from tests.support.acts import done
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage

S, R = BuyerStatus, Reason
DAY = timedelta(days=1)
MS = timedelta(milliseconds=1)


def verified(vendor: Insider, session: Session, shipping_zip: str | None = None) -> str:
    """Verify the buyer of a session, who must be verified; gives the cbid."""
    outcome = vendor.verify(session, shipping_zip)
    assert outcome.view.status is S.VERIFIED, outcome.view
    return outcome.cbid


def same_person(vendor: Insider) -> tuple[Session, Session]:
    """Two sessions with the same document."""
    simulator = vendor.playing.simulator
    twice = [s for s in simulator.sessions if "samedocument" in str(s.subject_reference)]
    assert len(twice) == 2
    return twice[0], twice[1]


def to_the_day(view: BuyerStatusView) -> BuyerStatusView:
    """Other accounts' view of it: its times, rounded down to the beginning of the day."""
    assert view.verified_at is not None
    assert view.expires_at is not None
    verified_at, expires_at = (
        datetime.combine(at.date(), time.min, UTC) for at in (view.verified_at, view.expires_at)
    )
    return msgspec.structs.replace(view, verified_at=verified_at, expires_at=expires_at)


def document_ending(vendor: Insider, last: date) -> AbstractContextManager[None]:
    """Have the provider name this last day of every document."""
    parts = f'"day":{last.day},"month":{last.month},"year":{last.year}'.encode()

    def ending(_: Request, reply: Reply) -> Reply:
        date = rb'("expiration_date":\s*\{)[^}]+'
        return replace(reply, body=re.sub(date, rb"\g<1>" + parts, reply.body))

    return vendor.playing.mood(ending)


def cleared(vendor: Insider, cbid: str, shipping_zip: str | None = None) -> tuple[str, ...]:
    """The reasons against an order of this buyer, which also lacks an acknowledgment."""
    zip_ = shipping_zip or vendor.part("verified").shipping_zip
    asked = order("ack_unknown", cbid, "cs_1", zip_)
    item = prepare_order(vendor.stage.opened.clearances, vendor.principal, asked)
    return vendor.stage.do(clear_order(vendor.stage.do(item))).decision.reasons


@each_engine
def test_a_verification_ends_with_its_document_for_each_account_that_requires_it(
    stage: Stage,
) -> None:
    """Also if the account that verified ignores the document's end; by the asking account's day."""
    ignoring = stage.insider(document_expiry=DocumentExpiry.IGNORED)
    zone = "America/New_York"
    strict = stage.insider(ignoring.playing, document_expiry=DocumentExpiry.UNEXPIRED, zone=zone)
    usual = stage.insider(ignoring.playing, zone=zone)
    also_ignoring = stage.insider(ignoring.playing, document_expiry=DocumentExpiry.IGNORED)
    last = (stage.clock.now + 3 * DAY).date()
    with document_ending(ignoring, last):
        cbid = verified(ignoring, ignoring.part("verified"))
    own = ignoring.standing(cbid)
    ends = datetime.combine(last + DAY, time.min, ZoneInfo(zone)).astimezone(UTC)
    until_then = to_the_day(msgspec.structs.replace(own, expires_at=ends))
    assert until_then.expires_at is not None
    assert own.expires_at is not None
    assert own.expires_at > ends
    stage.clock.now = until_then.expires_at - MS
    for asking in (strict, usual):
        assert asking.standing(cbid) == until_then
        assert "buyer_expired" not in cleared(asking, cbid)
    for now in (until_then.expires_at, ends, ends + 200 * DAY):
        stage.clock.now = now
        for asking in (strict, usual):
            assert asking.standing(cbid) == msgspec.structs.replace(until_then, status=S.EXPIRED)
            assert "buyer_expired" in cleared(asking, cbid)
        assert (ignoring.standing(cbid), also_ignoring.standing(cbid)) == (own, to_the_day(own))
        for asking in (ignoring, also_ignoring):
            assert "buyer_expired" not in cleared(asking, cbid)


@each_engine
def test_a_zip_code_counts_as_long_as_the_document_that_shows_it(stage: Stage) -> None:
    """Of two licences in one session: the one that ends first takes its ZIP code with it."""
    vendor, last = stage.insider("didit"), (stage.clock.now + 9 * DAY).date()
    ignoring = stage.insider(vendor.playing, document_expiry=DocumentExpiry.IGNORED)

    def with_an_older_licence(_: Request, reply: Reply) -> Reply:
        session = json.loads(reply.body)
        [licence] = session["id_verifications"]
        lived_at = licence["parsed_address"] | {"postal_code": "94999"}
        older = licence | {"expiration_date": f"{last}", "parsed_address": lived_at}
        return replace(
            reply, body=json.dumps(session | {"id_verifications": [older, licence]}).encode()
        )

    with vendor.playing.mood(with_an_older_licence):
        cbid = verified(vendor, vendor.part("verified"))
    for _ in range(2):
        for one in (vendor, ignoring):
            assert "zip_mismatch" not in cleared(one, cbid)
        assert "zip_mismatch" not in cleared(ignoring, cbid, "94999")
        lapsed = stage.clock.now.date() > last
        assert ("zip_mismatch" in cleared(vendor, cbid, "94999")) is lapsed
        stage.clock.now += 11 * DAY
    assert vendor.standing(cbid).status is S.VERIFIED


@each_engine
def test_a_verification_without_a_stored_day_counts_as_before(stage: Stage) -> None:
    """Its document's last day is not known."""
    ignoring = stage.insider(document_expiry=DocumentExpiry.IGNORED)
    strict = stage.insider(ignoring.playing, document_expiry=DocumentExpiry.UNEXPIRED)
    last = (stage.clock.now + 3 * DAY).date()
    with document_ending(ignoring, last):
        cbid = verified(ignoring, ignoring.part("verified"))
    kept = f',"document_expires_on":"{last}"'
    assert kept in stage.rows("SELECT proofs FROM buyers")[0]["proofs"]
    stage.execute("UPDATE buyers SET proofs = replace(proofs, :kept, '')", kept=kept)
    stage.clock.now += 200 * DAY
    assert strict.standing(cbid) == to_the_day(ignoring.standing(cbid))
    assert strict.standing(cbid).status is S.VERIFIED


def test_the_end_of_a_document_takes_no_days_from_a_shorter_validity(stage: Stage) -> None:
    """60 days at another account are 60 days from the decision there too."""
    vendor, other = stage.insider(), stage.insider(validity_days=60)
    with document_ending(vendor, (stage.clock.now + 40 * DAY).date()):
        cbid = verified(vendor, vendor.part("verified"))
    answer = other.standing(cbid)
    assert answer == to_the_day(vendor.standing(cbid))
    assert answer.status is S.VERIFIED
    assert answer.expires_at is not None
    assert answer.expires_at - stage.clock.now < 42 * DAY


def test_a_verification_ends_when_it_is_read_after_its_time(stage: Stage) -> None:
    """To the millisecond, without anything being written."""
    vendor = stage.insider(validity_days=30)
    cbid = verified(vendor, vendor.part("verified"))
    expires_at = vendor.standing(cbid).expires_at
    assert expires_at is not None
    before = stage.rows("SELECT * FROM buyers")
    stage.clock.now = expires_at - MS
    assert vendor.standing(cbid).status is S.VERIFIED
    stage.clock.now = expires_at
    answer = vendor.standing(cbid)
    assert (answer.status, answer.expires_at) == (S.EXPIRED, expires_at)
    assert stage.rows("SELECT * FROM buyers") == before


def test_the_same_session_does_not_make_a_verification_younger(stage: Stage) -> None:
    """Sent again and again, it ends when it would have ended."""
    vendor = stage.insider(validity_days=30)
    session, decided_at = vendor.part("verified"), stage.clock.monotonic()
    stage.provider_seconds = lambda: decided_at
    cbid = verified(vendor, session)
    first = vendor.standing(cbid)
    stage.clock.now += 20 * DAY
    assert verified(vendor, session) == cbid
    assert vendor.standing(cbid) == first
    stage.clock.now += 20 * DAY
    again = vendor.verify(session)
    assert (again.cbid, again.view.status) == (cbid, S.EXPIRED)
    assert vendor.standing(cbid).status is S.EXPIRED


@each_engine
def test_the_same_document_in_a_new_session_keeps_the_cbid(stage: Stage) -> None:
    """Re-verification: one person, one cbid, also at another vendor."""
    vendor = stage.insider()
    once, again = same_person(vendor)
    other = stage.insider(vendor.playing)
    assert verified(vendor, once) == verified(vendor, again) == verified(other, again)
    assert len(stage.rows("SELECT * FROM buyers")) == 1
    assert len(stage.rows("SELECT * FROM buyer_documents")) == 1


def test_a_new_session_makes_an_expired_verification_count_again(stage: Stage) -> None:
    """The cbid that a checkout has kept goes on."""
    vendor = stage.insider(validity_days=30)
    once, again = same_person(vendor)
    cbid = verified(vendor, once)
    stage.clock.now += 31 * DAY
    assert vendor.standing(cbid).status is S.EXPIRED
    # The simulated provider has just decided, whatever the time.
    assert verified(vendor, again) == cbid
    assert vendor.standing(cbid).status is S.VERIFIED


@each_engine
def test_one_session_never_makes_two_buyers_also_across_accounts(stage: Stage) -> None:
    """Also if the second account asks for more, or sends another ZIP code."""
    vendor = stage.insider()
    session = vendor.part("verified")
    cbid = verified(vendor, session)
    strict = stage.insider(vendor.playing, minimum_age=99)
    other = strict.verify(session)
    assert (other.cbid, other.view.status) == (cbid, S.FAILED)
    elsewhere = stage.insider(vendor.playing).verify(session, "10001")
    assert (elsewhere.cbid, elsewhere.view.reasons) == (cbid, (R.ZIP_MISMATCH,))
    assert len(stage.rows("SELECT * FROM buyers")) == 1


@each_engine
def test_verified_is_never_taken_away_by_a_failed_attempt(stage: Stage) -> None:
    """*verify* is about the attempt, *status* about the buyer."""
    vendor = stage.insider()
    session = vendor.part("verified")
    cbid = verified(vendor, session)
    before = vendor.standing(cbid)
    failed = vendor.verify(session, "10001")
    assert (failed.cbid, failed.view.status) == (cbid, S.FAILED)
    assert failed.view.reasons == (R.ZIP_MISMATCH,)
    assert vendor.standing(cbid) == before


def test_a_failed_buyer_is_verified_by_a_later_attempt(stage: Stage) -> None:
    """The same cbid, from the first failure on."""
    vendor = stage.insider()
    session = vendor.part("verified")
    failed = vendor.verify(session, "10001")
    assert vendor.standing(failed.cbid).status is S.FAILED
    assert verified(vendor, session) == failed.cbid
    assert vendor.standing(failed.cbid).status is S.VERIFIED


@each_engine
def test_a_zip_is_no_oracle_for_where_somebody_lives(stage: Stage) -> None:
    """Five different ones a day for one buyer and account; the right one, too, is refused then."""
    vendor = stage.insider()
    session = vendor.part("verified")
    for number in range(5):
        vendor.verify(session, f"1000{number}")
    before = stage.rows("SELECT * FROM verifications")
    with pytest.raises(RateLimited) as refused:
        vendor.verify(session)
    assert 0 < refused.value.retry_after <= 86401
    assert stage.rows("SELECT * FROM verifications") == before
    assert len(before) == 5
    # Nor by another session of the same document, and a session tried before is no news.
    assert vendor.verify(session, "10004").view.reasons == (R.ZIP_MISMATCH,)
    stage.clock.now += DAY
    verified(vendor, session)


# --- revocation --------------------------------------------------------------------------------


def revoke(stage: Stage, cbid: str) -> None:
    stage.do(done(admin.revoke, stage.opened.buyers, cbid, "case 7"))


@each_engine
def test_a_revoked_document_stays_revoked_under_a_new_session(stage: Stage) -> None:
    """At every account, until it is reinstated; then the buyer is as before."""
    vendor = stage.insider()
    once, again = same_person(vendor)
    other = stage.insider(vendor.playing)
    cbid = verified(vendor, once)
    before = vendor.standing(cbid)
    revoke(stage, cbid)
    for asking in (vendor, other):
        assert asking.standing(cbid).status is S.REVOKED
        for session in (once, again):
            outcome = asking.verify(session)
            assert (outcome.cbid, outcome.view.status) == (cbid, S.REVOKED)
    stage.do(done(admin.reinstate, stage.opened.buyers, cbid, "a mistake"))
    assert vendor.standing(cbid) == before
    assert verified(other, again) == cbid


@each_engine
def test_a_document_shown_first_after_the_revocation_is_revoked_too(stage: Stage) -> None:
    """The session leads to the revoked buyer: any document shown in it is a revoked person's."""
    vendor = stage.insider()
    once, again = same_person(vendor)
    waiting = vendor.verify(replace(vendor.part("pending"), subject_reference=None))
    revoke(stage, waiting.cbid)
    pending = vendor.part("pending").session_id

    def decided(request: Request, reply: Reply) -> Reply:
        if pending not in request.path:
            return reply
        path = request.path.replace(pending, once.session_id)
        answered = vendor.playing.simulator.simulator.answer(replace(request, path=path))
        body = answered.body.replace(once.session_id.encode(), pending.encode())
        return replace(answered, body=body)

    with vendor.playing.mood(decided):
        shown = vendor.verify(replace(vendor.part("pending"), subject_reference=None))
    assert (shown.cbid, shown.view.status) == (waiting.cbid, S.REVOKED)
    assert vendor.verify(again).view.status is S.REVOKED


def test_revoking_and_reinstating_are_written_down_with_their_reason(stage: Stage) -> None:
    """Who, when, why; impossible acts leave no entry."""
    vendor = stage.insider()
    cbid = verified(vendor, vendor.part("verified"))
    room = stage.opened.buyers
    with pytest.raises(InvalidArgument):
        stage.do(done(admin.reinstate, room, cbid, "case 7"))
    for reason in ("", " \t"):
        with pytest.raises(InvalidArgument):
            stage.do(done(admin.revoke, room, cbid, reason))
    with pytest.raises(UnknownSubject):
        stage.do(done(admin.revoke, room, f"{BUYER}_{'0' * 26}", "case 7"))
    stage.do(done(admin.revoke, room, cbid, "case 7"))
    stage.clock.now += DAY
    stage.do(done(admin.reinstate, room, cbid, "case 7 closed"))
    entries = stage.do(admin.audit_log(room, cbid))
    assert [(e.action, e.details["reason"]) for e in entries] == [
        ("buyer_revoked", "case 7"),
        ("buyer_reinstated", "case 7 closed"),
    ]


def test_a_never_verified_person_has_to_verify_after_being_reinstated(
    stage: Stage,
) -> None:
    """There is no earlier state to return to."""
    vendor = stage.insider()
    failed = vendor.verify(vendor.part("underage"))
    revoke(stage, failed.cbid)
    assert vendor.verify(vendor.part("underage")).view.status is S.REVOKED
    buyer = stage.do(done(admin.reinstate, stage.opened.buyers, failed.cbid, "a mistake"))
    assert buyer.status is S.REQUIRES_INPUT
    assert vendor.verify(vendor.part("underage")).view.status is S.FAILED


# --- whose session -----------------------------------------------------------------------------


@pytest.mark.parametrize("plays", ["other_subject", "test_mode"])
def test_another_persons_session_or_a_test_session_writes_nothing(stage: Stage, plays: str) -> None:
    """With a live key the provider's test mode proves nothing."""
    vendor = stage.insider()
    with pytest.raises(ProviderSessionNotBound):
        vendor.verify(vendor.part(plays))
    for table in ("buyers", "verifications", "provider_sessions", "buyer_documents"):
        assert stage.rows(f"SELECT * FROM {table}") == [], table  # noqa: S608 - our own names


def test_a_subject_reference_must_be_the_sessions(stage: Stage) -> None:
    """Given: compared. Required: also given."""
    vendor = stage.insider()
    session = vendor.part("verified")
    unnamed = replace(session, subject_reference=None)
    with pytest.raises(ProviderSessionNotBound):
        vendor.verify(session, subject_reference="buyer-somebody-else")
    cbid = verified(vendor, unnamed)
    vendor.configure(subject_reference_required=True)
    with pytest.raises(InvalidRequest, match=r"subject_reference"):
        vendor.verify(unnamed)
    with pytest.raises(ProviderSessionNotBound):
        vendor.verify(session, subject_reference="buyer-somebody-else")
    assert verified(vendor, session) == cbid


@pytest.mark.parametrize("session_id", ["", "vs_", "../x", "vs_1?x=y", "inq_1", "vs_" + "é"])
def test_an_invalid_session_id_is_never_sent(stage: Stage, session_id: str) -> None:
    """It is refused before anything leaves the house."""
    vendor = stage.insider()
    with pytest.raises(ProviderSessionNotFound):
        vendor.verify(replace(vendor.part("verified"), session_id=session_id))
    assert vendor.playing.served.requests == []


# --- other accounts ----------------------------------------------------------------------------


def test_each_account_sees_the_status_by_its_own_rules(stage: Stage) -> None:
    """Proofs cross accounts; an account's requirements do not."""
    vendor = stage.insider(validity_days=365)
    cbid = verified(vendor, vendor.part("verified"))
    own = vendor.standing(cbid)
    plain = stage.insider(vendor.playing)
    assert plain.standing(cbid) == to_the_day(own)
    older = stage.insider(vendor.playing, minimum_age=99)
    answer = older.standing(cbid)
    assert (answer.status, answer.reasons) == (S.REQUIRES_INPUT, (R.AGE_NOT_PROVED,))
    assert (answer.verified_at, answer.expires_at) == (None, None)
    elsewhere = stage.insider(vendor.playing, zip_sources=("proof_of_address",))
    assert elsewhere.standing(cbid).reasons == (R.ADDRESS_NOT_PROVED,)
    shorter = stage.insider(vendor.playing, validity_days=1)
    assert own.expires_at is not None
    shown = shorter.standing(cbid).expires_at
    assert shown is not None
    assert to_the_day(own).expires_at == shown + 364 * DAY


def test_an_account_without_a_provider_is_judged_by_the_deployments_floor(stage: Stage) -> None:
    """It has no rules of its own."""
    vendor = stage.insider()
    cbid = verified(vendor, vendor.part("verified"))
    bare = stage.insider(vendor.playing)
    stage.do(verification_settings.remove(stage.opened.buyers, bare.account_id))
    assert bare.standing(cbid) == to_the_day(vendor.standing(cbid))


@each_engine
def test_an_account_sees_the_time_of_day_of_only_its_own_verifications(stage: Stage) -> None:
    """Also by the same session of the provider, and also once the buyer is revoked."""
    vendor = stage.insider()
    other, never = stage.insider(vendor.playing), stage.insider(vendor.playing)
    cbid = verified(vendor, vendor.part("verified"))
    own = vendor.standing(cbid)
    assert other.standing(cbid) == never.standing(cbid) == to_the_day(own)
    before = stage.rows("SELECT type FROM events")
    assert verified(other, vendor.part("verified")) == cbid
    assert stage.rows("SELECT type FROM events") == before
    assert other.standing(cbid) == vendor.standing(cbid) == own
    assert never.standing(cbid) == to_the_day(own)
    stage.do(done(admin.revoke, stage.opened.buyers, cbid, "stolen"))
    revoked = msgspec.structs.replace(own, status=S.REVOKED)
    assert vendor.standing(cbid) == revoked
    assert never.standing(cbid) == to_the_day(revoked)
    answer = never.verify(vendor.part("verified"))
    assert (answer.view.status, answer.view.expires_at) == (
        S.REVOKED,
        to_the_day(own).expires_at,
    )


def test_a_simulated_verification_counts_nowhere_else_and_in_no_other_mode(stage: Stage) -> None:
    """Whatever a test key verified."""
    vendor, other = stage.insider(), stage.insider()
    tester = replace(vendor.principal, mode=Mode.TEST)
    request = BuyerVerificationRequest(
        provider_identity_session_id="vs_1",
        shipping_zip="94110",
        test_mode=True,
        subject_reference=None,
    )
    cbid = stage.do(verifying.verify(stage.opened.buyers, tester, request)).cbid
    room = stage.opened.buyers
    assert stage.do(verifying.buyer_status(room, tester, cbid)).status is S.VERIFIED
    elsewhere = stage.do(
        verifying.buyer_status(room, replace(other.principal, mode=Mode.TEST), cbid)
    )
    assert (elsewhere.status, elsewhere.reasons) == (S.REQUIRES_INPUT, (R.SIMULATED_ELSEWHERE,))
    for live in (vendor, other):
        with pytest.raises(NotFound):
            live.standing(cbid)


def test_the_minimum_rules_of_the_deployment_apply_to_older_settings(stage: Stage) -> None:
    """The operator has tightened it since: stored settings are judged by the new one."""
    vendor = stage.insider(validity_days=365)
    session = vendor.part("verified")
    cbid = verified(vendor, session)
    stage.restart(MINIMUM_AGE="99", VERIFICATION_DAYS="10")
    assert vendor.standing(cbid).reasons == (R.AGE_NOT_PROVED,)
    assert vendor.verify(session).view.reasons == (R.AGE_BELOW_MINIMUM,)
    with pytest.raises(InvalidArgument):
        vendor.configure(minimum_age=98, validity_days=10)
    with pytest.raises(InvalidArgument):
        vendor.configure(minimum_age=99, validity_days=11)


def test_a_proof_by_looser_rules_is_not_lost_for_a_stricter_account(
    stage: Stage,
) -> None:
    """The same session, judged by both: each relies on the proof by its own rules."""
    vendor = stage.insider()
    session = vendor.part("verified")
    strict = stage.insider(vendor.playing, minimum_age=23)
    cbid = verified(strict, session)
    assert strict.standing(cbid).status is S.VERIFIED
    verified(vendor, session)
    assert strict.standing(cbid).status is S.VERIFIED
    assert vendor.standing(cbid).status is S.VERIFIED
