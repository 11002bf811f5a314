"""Identity checks in the same link: started by the service, and decided by what providers say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import msgspec
import pytest

from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidRequest,
    ProviderSessionNotFound,
)
from countersign.core.acknowledgments.find import find_one
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout import checks as rules
from countersign.core.checkout import expiry, model, sessions, store
from countersign.core.checkout.model import (
    ATTEMPTS_MAX,
    Collected,
    Session,
    Status,
)
from countersign.core.checkout.schemas import CheckoutSession
from countersign.hosted.pages import identity
from countersign.hosted.pages.cookies import return_code
from countersign_evidence.process import Binding, Process
from tests.checkout.checks import Checks, checks_at, submit
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

pytestmark = each_engine


@pytest.fixture
def checks(stage: Stage) -> Iterator[Checks]:
    """Give an account whose buyers are checked at two providers."""
    with ExitStack() as stack:
        yield checks_at(stage, stack)


def seen(checks: Checks, session: Session) -> CheckoutSession:
    """The session as the vendor reads it."""
    return sessions.view(checks.room, checks.read(session.id), checks.stage.clock.now)


def test_a_buyer_who_continues_gets_an_unused_address(checks: Checks) -> None:
    """Links of Persona and Stripe work once: the session and the attempt stay the same."""
    session = checks.begin(checks.create(Collected.IDENTITY), "persona")
    again = checks.begin(session, "persona")
    first, second = session.asked.check, again.asked.check
    assert first is not None
    assert second is not None
    assert second.url != first.url
    assert msgspec.structs.replace(second, url=first.url) == first
    made = [r for r in checks.providers[1].served.requests if r.path == "/api/v1/inquiries"]
    assert len({request.headers["idempotency-key"] for request in made}) == 1


def test_a_check_belongs_to_the_browser_that_has_begun_it(checks: Checks) -> None:
    """Another one begins a check of its own."""
    session = checks.create(Collected.IDENTITY)
    for _ in range(2):
        assert checks.begin(session, browser="a").asked.attempts == 1
    assert checks.begin(session, browser="b").asked.attempts == 2


@pytest.mark.parametrize("arrivals", ["a", "aa", "b", "", "ab", "ba", "a-", "-a"])
def test_if_two_browsers_return_from_a_check_neither_is_the_buyers(
    checks: Checks, arrivals: str
) -> None:
    """`a` began it, `b` has the link, and `-` has not."""
    session = checks.begin(checks.create(Collected.IDENTITY), browser="a")
    key = return_code(checks.room, session.id, 1)
    assert identity.returned_from(checks.room, session, key) == 1
    early = checks.do(identity.came_back(checks.room, session, 1, "a")).asked.check_at(1)
    assert early is not None
    assert (early.browser, early.is_back, early.back_at) == ("a", None, None)
    checks.submit(session, "verified")
    session = checks.follow(session)
    for one in arrivals:
        arrived = identity.came_back(checks.room, session, 1, one.replace("-", ""))
        session = checks.do(arrived)
    [begun] = session.asked.checks
    expected = None if not arrivals else {*arrivals} == {"a"}
    assert (begun.browser, begun.is_back) == ("a", expected)


def test_a_return_from_a_rejection_does_not_count_for_a_later_approval(checks: Checks) -> None:
    """The provider's page may be at somebody else by then."""
    session = checks.begin(checks.create(Collected.IDENTITY), browser="a")
    checks.submit(session, "document_expired")
    session = checks.follow(session)
    session = checks.do(identity.came_back(checks.room, session, 1, "a"))
    checks.submit(session, "verified")
    session = checks.follow(session)
    [known] = session.asked.checks
    assert (known.browser, known.is_back, known.back_at) == ("a", None, None)
    session = checks.do(identity.came_back(checks.room, session, 1, "a"))
    begun = session.asked.check_at(1)
    assert begun is not None
    assert begun.is_back is True
    assert begun.back_at is not None


def test_a_return_before_a_rejection_does_not_count_for_a_later_approval(checks: Checks) -> None:
    """The browser returned before the decision; the check then continues at the same page."""
    session = checks.begin(checks.create(Collected.IDENTITY), browser="a")
    now, seen_before = checks.stage.clock.now, session.check_revision

    def decided(session: Session, status: BuyerStatus, seen: int) -> Session:
        check = IdentityCheck(
            cbid="cb_1",
            status=status,
            reasons=(),
            verification=None,
            binding=Binding.IDENTITY_SESSION,
            attempt=1,
        )
        return rules.take_over(session, now, check, seen_before + seen)

    session = rules.come_back(decided(session, BuyerStatus.PENDING, 1), now, 1, "a")
    [begun] = session.asked.checks
    assert begun.is_back is True
    session = decided(session, BuyerStatus.REQUIRES_INPUT, 2)
    session = decided(session, BuyerStatus.VERIFIED, 3)
    assert session.status is Status.COMPLETED
    [begun] = session.asked.checks
    assert (begun.browser, begun.is_back, begun.back_at) == ("a", None, None)


def test_a_verified_outcome_stays_until_its_buyer_is_revoked(checks: Checks) -> None:
    """Whatever the provider says of it later; the decisions are counted all the same."""
    session = checks.begin(checks.create(Collected.IDENTITY, Collected.ACKNOWLEDGMENT))
    now = checks.stage.clock.now
    verified = IdentityCheck(attempt=1, status=BuyerStatus.VERIFIED, cbid="cb_1")
    session = rules.take_over(session, now, verified, 1)
    revoked = msgspec.structs.replace(verified, status=BuyerStatus.REVOKED)
    others = [
        *(msgspec.structs.replace(verified, status=s) for s in BuyerStatus if s != "revoked"),
        msgspec.structs.replace(revoked, cbid="cb_2"),
    ]
    for seen, other in enumerate(others, 2):
        session = rules.take_over(session, now, other, seen)
        assert (session.asked.identity, session.check_revision) == (verified, seen)
    assert rules.take_over(session, now, revoked, 99).asked.identity == revoked


def test_a_buyer_who_continues_after_the_end_gets_the_decision(checks: Checks) -> None:
    """Stripe has no page for a submission in another window."""
    session = checks.begin(checks.create(Collected.IDENTITY), "stripe")
    checks.submit(session, "verified")
    assert checks.begin(session).status is Status.COMPLETED


def test_a_positive_decision_completes_a_session_of_the_identity_alone(checks: Checks) -> None:
    """The vendor gets the buyer, and one event."""
    session = checks.begun()
    check = session.asked.check
    assert check is not None
    began = seen(checks, session)
    assert began.provider_identity_session_id == check.provider_session
    assert (began.status, began.identity_status) == ("open", None)
    checks.submit(session, "verified")
    after = checks.follow(session)
    found = seen(checks, session)
    assert (found.status, found.identity_status, found.reasons) == ("completed", "verified", [])
    assert found.cbid == after.cbid is not None
    assert after.asked.identity is not None
    assert after.asked.identity.binding is Binding.IDENTITY_SESSION
    assert after.asked.identity.verification is not None
    assert checks.events(session.id) == ["checkout_session.completed"]


def test_a_buyer_who_never_returns_is_still_verified(checks: Checks) -> None:
    """The provider is polled, and the loop completes the session."""
    session = checks.begun()
    checks.submit(session, "never")
    assert checks.sweep() == 0
    checks.stage.wait(timedelta(minutes=1))
    assert checks.sweep() == 1
    assert seen(checks, session).status == "completed"
    assert checks.sweep() == 0
    assert checks.events(session.id) == ["checkout_session.completed"]


def test_without_a_submission_the_session_stays_open(checks: Checks) -> None:
    session = checks.begun()
    after = checks.follow(session)
    checks.stage.wait(timedelta(minutes=1))
    checks.sweep()
    assert seen(checks, session).status == "open"
    assert address_of(checks.begin(after)) == address_of(session)


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        ("underage", "failed", "age_below_minimum"),
        ("wrong_zip", "failed", "zip_mismatch"),
        ("document_expired", "requires_input", "identity_requires_input"),
        ("consent_declined", "requires_input", "consent_declined"),
        ("cancelled", "requires_input", "session_canceled"),
    ],
)
def test_after_a_negative_decision_the_buyer_may_try_again(
    checks: Checks, outcome: str, status: str, reason: str
) -> None:
    """With another session of the provider; the vendor reads why."""
    session = checks.begun()
    checks.submit(session, outcome)
    after = checks.follow(session)
    found = seen(checks, session)
    assert (found.status, found.identity_status, found.cbid) == ("open", status, None)
    assert reason in found.reasons
    again = checks.begin(after)
    assert again.asked.check != session.asked.check
    assert seen(checks, session).identity_status is None
    checks.submit(again, "verified")
    assert checks.follow(again).status is Status.COMPLETED


def test_a_verified_session_names_no_other_buyer(checks: Checks) -> None:
    """Otherwise a person who was too young in an earlier attempt could not be erased."""
    session = checks.begin(checks.create(Collected.IDENTITY, Collected.ACKNOWLEDGMENT))
    checks.submit(session, "underage")
    session = checks.follow(session)
    assert len(session.asked.young) == 1
    checks.submit(again := checks.begin(session), "verified")
    session = checks.follow(again)
    assert session.asked.identity is not None
    assert session.asked.identity.verified
    assert session.asked.young == ()


def test_a_slow_decision_is_pending_until_it_is_made(checks: Checks) -> None:
    session = checks.begun()
    checks.submit(session, "later")
    after = checks.follow(session)
    assert seen(checks, session).identity_status == "pending"
    assert address_of(checks.begin(after)) == address_of(session)
    assert checks.follow(after).status is Status.COMPLETED


def test_attempts_of_one_session_are_limited(checks: Checks) -> None:
    session = checks.create(Collected.IDENTITY)
    for _ in range(ATTEMPTS_MAX):
        checks.submit(session := checks.begin(session), "underage")
        session = checks.follow(session)
    with pytest.raises(CheckoutSessionClosed):
        checks.begin(session)
    assert session.asked.attempts == ATTEMPTS_MAX
    assert len({one.url for one in [checks.read(session.id).asked.check] if one}) == 1


def test_another_provider_is_another_attempt_and_either_may_verify(checks: Checks) -> None:
    """The first one's decision still counts."""
    session = checks.begun()
    other = checks.begin(session, "persona")
    assert other.asked.check is not None
    assert (other.asked.check.provider, other.asked.check.attempt) == ("persona", 2)
    checks.submit(session, "verified")
    assert checks.follow(other).status is Status.OPEN
    checks.stage.wait(timedelta(minutes=1))
    assert checks.sweep() == 1
    found = checks.read(session.id)
    assert found.status is Status.COMPLETED
    assert found.asked.identity is not None
    assert found.asked.identity.attempt == 1


def test_a_provider_that_the_account_does_not_have_is_refused(checks: Checks) -> None:
    with pytest.raises(InvalidRequest):
        checks.begin(checks.create(Collected.IDENTITY), "veriff")


@pytest.mark.parametrize("again", [False, True])
def test_two_tabs_that_begin_at_once_share_one_session_of_the_provider(
    checks: Checks, again: bool
) -> None:
    session = checks.create(Collected.IDENTITY, Collected.ACKNOWLEDGMENT)
    if again:
        session = checks.begin(session)

    async def both() -> list[Session]:
        begin = partial(identity.begin, checks.room, session, again=again)
        return [*await asyncio.gather(begin(), begin(), begin())]

    urls = {s.asked.check.url for s in checks.do(both()) if s.asked.check}
    assert len(urls) == 1
    assert checks.read(session.id).asked.attempts == 1 + again


def test_a_session_of_somebody_else_never_counts(checks: Checks) -> None:
    """Not even in place of the buyer's own session."""
    mine, yours = checks.begun(), checks.begun()
    checks.submit(yours, "verified")
    swapped = msgspec.structs.replace(
        mine, content=msgspec.structs.replace(mine.asked, checks=yours.asked.checks)
    )
    with pytest.raises(ProviderSessionNotFound):
        checks.follow(swapped)
    checks.stage.wait(timedelta(minutes=1))
    checks.sweep()
    assert seen(checks, mine).status == "open"
    assert seen(checks, yours).status == "completed"


def test_after_its_end_nothing_changes_a_session(checks: Checks) -> None:
    """Whatever the provider decides then."""
    cancelled, declined, expired = (checks.begun() for _ in range(3))
    checks.do(store.change(checks.room, cancelled, model.cancelled))
    checks.do(store.change(checks.room, declined, model.declined))
    checks.stage.clock.now += timedelta(minutes=31)
    checks.do(expiry.sweep(checks.room))
    before = [checks.read(one.id) for one in (cancelled, declined, expired)]
    for one in before:
        checks.submit(one, "verified")
        assert checks.follow(one) == one
    checks.stage.wait(timedelta(minutes=1))
    checks.sweep()
    for one in before:
        assert checks.do(identity.take_over(checks.room, one)) == one
    assert [checks.read(one.id) for one in before] == before
    ends = ("cancelled", "declined", "expired")
    assert tuple(seen(checks, one).status for one in before) == ends
    assert [checks.events(one.id) for one in before] == [[f"checkout_session.{e}"] for e in ends]


def test_an_unreadable_session_delays_no_other(checks: Checks) -> None:
    """Neither when sessions expire, nor when decisions are applied."""
    damaged, whole = checks.begun(), checks.begun()
    for one in (damaged, whole):
        checks.submit(one, "verified")
    checks.stage.wait(timedelta(minutes=1))
    checks.stage.execute(
        "UPDATE shred_keys SET key = :key WHERE record_id = :id", key=bytes(32), id=damaged.id
    )
    assert checks.sweep() == 1
    assert seen(checks, whole).status == "completed"
    late = checks.begun()
    checks.stage.clock.now += timedelta(minutes=31)
    assert checks.do(expiry.sweep(checks.room)) == 1
    assert seen(checks, late).status == "expired"


def test_both_halves_are_in_one_link_and_the_record_says_how_they_belong_together(
    checks: Checks,
) -> None:
    """The identity first; then the initials, bound to the check with its record."""
    session = checks.create(Collected.IDENTITY, Collected.ACKNOWLEDGMENT)
    assert session.asked.check is None
    session = checks.begin(session)
    checks.submit(session, "verified")
    session = checks.follow(session)
    assert (session.status, session.step) == (Status.OPEN, Collected.ACKNOWLEDGMENT)
    ended = checks.acknowledge(session)
    assert ended.status is Status.COMPLETED
    assert ended.ack_id is not None
    room, who = checks.stage.opened.acknowledgments, checks.who
    found = checks.do(find_one(room, who, ended.ack_id))
    process = msgspec.convert(found.process, Process)
    assert ended.asked.identity is not None
    assert process.binding == "identity_session"
    assert process.verification == ended.asked.identity.verification
    assert found.cbid == ended.cbid
    assert ended.clearance_id is not None
    assert checks.events(session.id) == ["checkout_session.completed"]


def test_a_page_of_an_older_attempt_can_still_be_used(checks: Checks) -> None:
    """A buyer begins again in one tab, and continues in the other."""
    session = checks.begun()
    assert session.asked.check is not None
    again = checks.begin(session, again=True)
    assert again.asked.check != session.asked.check
    submit(session.asked.check.url, "verified")
    checks.stage.wait(timedelta(minutes=1))
    assert checks.sweep() == 1
    assert seen(checks, session).status == "completed"


def address_of(session: Session) -> str | None:
    """The URL where its buyer continues the newest check."""
    return None if session.asked.check is None else session.asked.check.url


_STORED_AT = "2026-11-20T21:30:00Z"
