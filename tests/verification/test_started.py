"""Identity checks that the service starts: bound to one reference, and nothing too early."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from countersign.base.db.tables import zip_attempts
from countersign.base.errors import (
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    RateLimited,
    VerificationNotConfigured,
)
from countersign.base.values import BUYER, VERIFICATION, Reason, is_id
from countersign.core.buyers import expiry
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.poll_sessions import FOLLOWED_FOR
from countersign_simulators.base import Reply, Request
from tests.support.providers import playing
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.starting import (
    ZIP,
    a_reference,
    counted,
    live_starter,
    starter_of,
    walk,
)
from tests.verification.test_review import queued

pytestmark = pytest.mark.long

S = BuyerStatus
OF_BUYERS = ("buyers", "verifications", "events", "records", "provider_sessions", "zip_attempts")
"""The tables about a buyer."""
OTHER_ZIP = "90210"


def settled(check: IdentityCheck | None) -> IdentityCheck:
    """A check that must exist."""
    assert check is not None
    return check


@each_engine
def test_a_started_check_verifies_the_buyer_who_completes_it(stage: Stage) -> None:
    """With a record, an event, and nothing left to follow."""
    vendor = live_starter(stage, subject_reference_required=True)
    made, check = vendor.verified()
    assert check.status is S.VERIFIED
    assert check.reasons == ()
    assert is_id(BUYER, check.cbid or "")
    assert is_id(VERIFICATION, check.verification or "")
    assert (check.provider, check.attempt) == ("stripe", 1)
    assert vendor.found(made) == (check, 1)
    assert counted(stage, "pending_sessions", "buyers", "verifications") == [0, 1, 1]
    assert vendor.ask(made) == check, "asked again, it stays"
    assert vendor.found(made) == (check, 1), "and is no new decision"


@each_engine
def test_nothing_is_written_about_a_buyer_who_has_submitted_nothing(stage: Stage) -> None:
    """However often the provider is asked: no buyer, no record, no event."""
    vendor = live_starter(stage)
    before = counted(stage, *OF_BUYERS)
    made = vendor.start()
    waiting = vendor.ask(made)
    assert (waiting.status, waiting.cbid) == (S.REQUIRES_INPUT, None)
    assert waiting.reasons == (Reason.IDENTITY_REQUIRES_INPUT,)
    assert sum(stage.wait(timedelta(hours=4)) for _ in range(3)) == 3
    assert counted(stage, *OF_BUYERS) == before
    assert vendor.found(made) == (None, 0)
    assert counted(stage, "pending_sessions", "started_checks") == [1, 1]


OUTCOMES = {
    "underage": (S.FAILED, (Reason.AGE_BELOW_MINIMUM,), True),
    "wrong_zip": (S.FAILED, (Reason.ZIP_MISMATCH,), True),
    "document_expired": (
        S.REQUIRES_INPUT,
        (Reason.IDENTITY_REQUIRES_INPUT, Reason.DOCUMENT_EXPIRED),
        True,
    ),
    "consent_declined": (
        S.REQUIRES_INPUT,
        (Reason.IDENTITY_REQUIRES_INPUT, Reason.CONSENT_DECLINED),
        False,
    ),
    "failed": (S.FAILED, (Reason.IDENTITY_FAILED, Reason.SELFIE_NOT_ACCEPTED), True),
    "later": (S.PENDING, (), True),
    "cancelled": (S.REQUIRES_INPUT, (Reason.SESSION_CANCELED,), False),
    "never": (S.VERIFIED, (), True),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_end_is_known_and_a_buyer_is_there_only_after_a_submission(
    stage: Stage, outcome: str
) -> None:
    """The reasons are the provider's, even without a buyer to give them to."""
    status, reasons, submitted = OUTCOMES[outcome]
    vendor = live_starter(stage)
    made = vendor.start()
    walk(made, outcome)
    check = vendor.ask(made)
    assert (check.status, check.reasons) == (status, reasons)
    assert (check.cbid is not None) == submitted
    assert (check.verification is not None) == submitted
    assert counted(stage, "buyers", "verifications") == [submitted, submitted]
    assert vendor.found(made) == (check, 1)


def test_the_review_queue_names_the_session_in_which_a_buyer_failed(stage: Stage) -> None:
    vendor = live_starter(stage)
    reference = a_reference()
    made = vendor.start(reference)
    walk(made, "underage")
    vendor.ask(made)
    [waiting] = queued(stage)
    assert waiting.reference == reference


@pytest.mark.parametrize("settles", ["clock", "webhook"])
def test_a_buyer_who_never_comes_back_is_found_verified(stage: Stage, settles: str) -> None:
    """By a poll, or because the provider sent a message, without a question from here."""
    insider = stage.insider()
    vendor = starter_of(insider)
    made = vendor.start()
    walk(made, "never")
    if settles == "webhook":
        insider.hint_of(made.provider_session)
        assert stage.wait(timedelta(0)) == 1
    else:
        assert stage.wait(timedelta(seconds=15)) == 1
    check, seen = vendor.found(made)
    assert settled(check).status is S.VERIFIED
    assert seen == 1
    assert counted(stage, "pending_sessions") == [0]


def test_pending_becomes_verified_and_each_decision_is_counted(stage: Stage) -> None:
    """So that a session can apply each of them once."""
    vendor = live_starter(stage)
    made = vendor.start()
    walk(made, "later")
    assert vendor.ask(made).status is S.PENDING
    assert vendor.found(made)[1] == 1
    assert vendor.ask(made).status is S.VERIFIED
    assert vendor.found(made)[1] == 2


def test_an_undecided_check_is_given_up_in_the_end(stage: Stage) -> None:
    """The buyer may begin again; still there is no buyer."""
    vendor = live_starter(stage)
    made = vendor.start()
    stage.wait(FOLLOWED_FOR + timedelta(days=1))
    check = settled(vendor.found(made)[0])
    assert (check.status, check.cbid) == (S.REQUIRES_INPUT, None)
    assert check.reasons == (Reason.SESSION_UNDECIDED,)
    assert counted(stage, "pending_sessions", "buyers", "shred_keys") == [0, 0, 0]


@each_engine
def test_a_session_of_one_reference_never_verifies_another(stage: Stage) -> None:
    """Neither of the same account nor of another one at the same provider."""
    insider = stage.insider()
    vendor, other = starter_of(insider), live_starter(stage, insider.playing)
    made, innocent = vendor.start(), vendor.start()
    walk(made, "verified")
    for asking, reference in (
        (vendor, vendor.references[innocent.provider_session]),
        (vendor, a_reference()),
        (other, vendor.references[made.provider_session]),
    ):
        with pytest.raises(ProviderSessionNotFound):
            asking.ask(made, reference)
    assert counted(stage, "buyers") == [0]
    assert vendor.found(innocent) == (None, 0)


def test_a_session_that_names_another_subject_verifies_no_one(stage: Stage) -> None:
    """The provider's subject decides, not only the stored one."""
    insider = stage.insider()
    vendor = starter_of(insider)
    made = vendor.start()
    walk(made, "verified")
    reference = vendor.references[made.provider_session].encode()

    def swapped(_: Request, reply: Reply) -> Reply:
        return replace(reply, body=reply.body.replace(reference, a_reference().encode()))

    with insider.playing.mood(swapped), pytest.raises(ProviderSessionNotBound):
        vendor.ask(made)

    def unnamed(_: Request, reply: Reply) -> Reply:
        return replace(reply, body=reply.body.replace(b'"' + reference + b'"', b"null"))

    with insider.playing.mood(unnamed), pytest.raises(ProviderSessionNotBound):
        vendor.ask(made)
    assert counted(stage, "buyers") == [0]
    assert vendor.found(made) == (None, 0)


def test_a_provider_that_returns_one_session_twice_is_not_trusted(stage: Stage) -> None:
    """The second reference would share the session, and its buyer, with the first."""
    insider = stage.insider()
    vendor = starter_of(insider)
    made = vendor.start()
    first, second = vendor.references[made.provider_session], a_reference()

    def same(request: Request, reply: Reply) -> Reply:
        if request.method != "POST":
            return reply
        body = re.sub(rb"vs_1Sim[A-Za-z0-9]+(?=\")", made.provider_session.encode(), reply.body)
        return replace(reply, body=body)

    with insider.playing.mood(same), pytest.raises(ProviderUnavailable):
        vendor.start(second)
    assert [row["reference"] for row in stage.rows("SELECT reference FROM started_checks")] == [
        first
    ]


@each_engine
def test_a_repeated_start_returns_a_working_session(stage: Stage) -> None:
    """The same one where the provider recognises the repetition; another attempt gets its own."""
    vendor = live_starter(stage)
    reference = a_reference()
    made, again = vendor.start(reference), vendor.start(reference)
    assert again.provider_session == made.provider_session
    assert counted(stage, "started_checks", "pending_sessions") == [1, 1]
    second = vendor.start(reference, attempt=2)
    assert second.provider_session != made.provider_session
    walk(again, "underage")
    walk(second, "verified")
    vendor.ask(second)
    vendor.ask(made)
    best, seen = vendor.found(made)
    assert (settled(best).status, settled(best).attempt) == (S.VERIFIED, 2)
    assert seen == 2


def test_a_failed_start_leaves_nothing(stage: Stage) -> None:
    """And an account without a provider has none to start at."""
    insider = stage.insider()
    vendor = starter_of(insider)

    def down(_: Request, reply: Reply) -> Reply:
        return replace(reply, status=503, body=b"{}")

    with insider.playing.mood(down), pytest.raises(ProviderUnavailable):
        vendor.start()
    with pytest.raises(VerificationNotConfigured):
        vendor.start(provider="persona")
    assert counted(stage, "started_checks", "pending_sessions", "shred_keys") == [0, 0, 0]


def test_verifying_by_the_session_id_counts_as_bound(stage: Stage) -> None:
    """The reference is our own; a vendor's must be the same."""
    insider = stage.insider(subject_reference_required=True)
    vendor = starter_of(insider)
    made = vendor.start()
    walk(made, "verified")
    session = replace(
        insider.part("verified"),
        session_id=made.provider_session,
        shipping_zip=ZIP,
        subject_reference=None,
    )
    with pytest.raises(ProviderSessionNotBound):
        insider.verify(session, subject_reference="customer-42")
    result = insider.verify(session)
    assert result.view.status is S.VERIFIED
    assert settled(vendor.found(made)[0]).cbid == result.cbid


def test_another_zip_code_says_nothing_about_a_started_check(stage: Stage) -> None:
    """A checkout session for one place is not completed by a question about another one."""
    insider = stage.insider()
    vendor = starter_of(insider)
    made = vendor.start(shipping_zip=OTHER_ZIP)
    walk(made, "never", ZIP)
    session = replace(
        insider.part("verified"),
        session_id=made.provider_session,
        shipping_zip=ZIP,
        subject_reference=None,
    )
    assert insider.verify(session).view.status is S.VERIFIED
    assert vendor.found(made) == (None, 0)
    stage.wait(timedelta(seconds=15))
    check = settled(vendor.found(made)[0])
    assert (check.status, check.reasons) == (S.FAILED, (Reason.ZIP_MISMATCH,))


def test_a_revoked_buyer_stays_revoked(stage: Stage) -> None:
    """Results from before the revocation do not count either."""
    vendor = live_starter(stage)
    made, check = vendor.verified()
    stage.revoke(check.cbid or "")
    assert settled(vendor.found(made)[0]).status is S.REVOKED
    assert vendor.ask(made).status is S.REVOKED
    assert vendor.judge(check.cbid or "", ZIP).status is S.REVOKED


def test_an_expired_verification_completes_nothing(stage: Stage) -> None:
    """Not even if it is applied late, as after servers were down."""
    vendor = live_starter(stage, validity_days=1)
    made, _ = vendor.verified()
    stage.clock.now += timedelta(days=1)
    stage.do(expiry.sweep(stage.opened.buyers))
    assert settled(vendor.found(made)[0]).status is S.EXPIRED


@each_engine
def test_a_known_buyer_is_judged_by_the_rules_of_the_asking_account(stage: Stage) -> None:
    """And now: by time, by ZIP code, and by the proofs."""
    insider = stage.insider()
    vendor = starter_of(insider)
    _, check = vendor.verified()
    cbid = check.cbid or ""
    known = vendor.judge(cbid, f"{ZIP}-1234")
    assert (known.status, known.cbid, known.attempt) == (S.VERIFIED, cbid, 0)
    assert vendor.judge(cbid).status is S.VERIFIED
    other = vendor.judge(cbid, OTHER_ZIP)
    assert (other.status, other.reasons) == (S.FAILED, (Reason.ZIP_MISMATCH,))
    strict = live_starter(stage, insider.playing, minimum_age=50)
    refused = strict.judge(cbid, ZIP)
    assert (refused.status, refused.reasons) == (S.REQUIRES_INPUT, (Reason.AGE_NOT_PROVED,))
    assert live_starter(stage, insider.playing).judge(cbid, ZIP).status is S.VERIFIED
    unknown = vendor.judge(f"{BUYER}_{'0' * 26}", ZIP)
    assert (unknown.status, unknown.cbid) == (S.REQUIRES_INPUT, None)
    stage.clock.now += timedelta(days=366)
    assert vendor.judge(cbid, ZIP).status is S.EXPIRED


def test_zip_codes_of_a_known_buyer_cannot_be_guessed(stage: Stage) -> None:
    """They count separately from other checks, which would reveal who has agreed to be known."""
    vendor = live_starter(stage)
    _, check = vendor.verified()
    cbid, account_id = check.cbid or "", vendor.who.account_id
    assert vendor.judge(cbid, ZIP).status is S.VERIFIED
    for number in range(4):
        vendor.judge(cbid, f"9000{number}")
    with pytest.raises(RateLimited):
        vendor.judge(cbid, OTHER_ZIP)
    assert vendor.judge(cbid, ZIP).status is S.VERIFIED
    access = stage.opened.access
    index = access.secret.blind_index(account_id, "buyer", cbid)
    tried = select(zip_attempts).where(zip_attempts.c.subject_index == index)
    assert len(stage.do(access.database.read(lambda c: c.execute(tried).all()))) == 1


def test_two_providers_are_offered_and_each_polls_its_own_sessions(stage: Stage) -> None:
    """The first one is from the settings; the session id identifies it."""
    with playing("stripe", clock=stage.clock.monotonic) as second:
        insider = stage.insider("veriff")
        vendor = starter_of(insider)
        assert vendor.names() == ("veriff",)
        vendor.add(second)
        assert vendor.names() == ("veriff", "stripe")
        made = vendor.start(provider="stripe")
        walk(made, "never")
        assert stage.wait(timedelta(seconds=15)) == 1
        assert settled(vendor.found(made)[0]).status is S.VERIFIED
        # The old way: a session of either.
        old = second.part("verified")
        assert insider.verify(old).view.status is S.VERIFIED
        first = insider.part("verified")
        assert insider.verify(first).view.status is S.VERIFIED
        assert vendor.drop("stripe")
        assert vendor.names() == ("veriff",)
        with pytest.raises(VerificationNotConfigured):
            vendor.ask(made)


@each_engine
def test_a_vendor_who_asks_too_early_changes_no_check(stage: Stage) -> None:
    """The buyer keeps the link to the provider, and is found verified in the end."""
    insider = stage.insider()
    vendor = starter_of(insider)
    made = vendor.start()
    session = replace(
        insider.part("verified"),
        session_id=made.provider_session,
        shipping_zip=ZIP,
        subject_reference=None,
    )
    assert insider.verify(session).view.status is S.REQUIRES_INPUT
    assert vendor.found(made) == (None, 0)
    walk(made, "verified")
    stage.wait(timedelta(seconds=15))
    assert settled(vendor.found(made)[0]).status is S.VERIFIED
