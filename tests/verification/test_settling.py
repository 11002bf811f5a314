"""Sessions that are not decided: settled by a hint or by the clock, once, and never lost."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from countersign.base.errors import ProviderSessionNotFound, WebhookRefused
from countersign.base.values import Reason
from countersign.core.buyers import admin, poll_sessions
from countersign.core.buyers import settings as verification_settings
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.poll_sessions import FOLLOWED_FOR, GONE_AFTER, POLLS
from countersign.core.buyers.session_evidence import FIRST_POLL
from countersign_simulators.base import Reply, Request, Session
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.veriff import SHARED_SECRET
from tests.support.providers import Mood
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage, poll_due

pytestmark = pytest.mark.long

S = BuyerStatus
DAY = timedelta(days=1)


def answers_as(vendor: Insider, session: Session, other: Session) -> Mood:
    """Respond to one session as to the other."""
    simulator = vendor.playing.simulator

    def mood(request: Request, reply: Reply) -> Reply:
        mine, its = session.session_id, other.session_id
        if mine not in request.path and mine.encode() not in request.body:
            return reply
        swapped = replace(
            request,
            path=request.path.replace(mine, its),
            headers={**request.headers, "x-hmac-signature": signed(its.encode())},
            body=request.body.replace(mine.encode(), its.encode()),
        )
        answered = simulator.simulator.answer(swapped)
        body = answered.body.replace(its.encode(), mine.encode())
        kept = [pair for pair in answered.headers if pair[0].lower() != "x-hmac-signature"]
        headers = (*kept, ("x-hmac-signature", signed(body)))
        return replace(answered, body=body, headers=headers)

    return mood


@contextmanager
def playing_another(vendor: Insider, session: Session, other: Session) -> Iterator[None]:
    """Answer so inside this block: the provider has decided meanwhile."""
    with vendor.playing.mood(answers_as(vendor, session, other)):
        yield


def signed(words: bytes) -> str:
    """As Veriff signs requests and responses; the others ignore the header."""
    return hmac.new(SHARED_SECRET.encode(), words, "sha256").hexdigest()


def undecided(vendor: Insider) -> tuple[Session, Session, str]:
    """Verify an undecided session; returns it, a decided one, and the cbid."""
    decided = vendor.part("verified")
    session = replace(
        vendor.part("pending"),
        shipping_zip=decided.shipping_zip,
        # Two invented people have two references; the one below becomes the other.
        subject_reference=None,
    )
    outcome = vendor.verify(session)
    assert outcome.view.status is S.PENDING
    assert vendor.standing(outcome.cbid).status is S.PENDING
    return session, decided, outcome.cbid


def followed(stage: Stage) -> int:
    """How many sessions are followed."""
    return len(stage.rows("SELECT id FROM pending_sessions"))


def events_of(stage: Stage, cbid: str) -> list[str]:
    """The events that tell of a buyer."""
    query = "SELECT type FROM events WHERE object_id = :cbid ORDER BY seq"
    return [row["type"] for row in stage.rows(query, cbid=cbid)]


@each_engine
def test_the_clock_settles_a_session_and_the_cbid_stays(stage: Stage) -> None:
    """No one calls: the status changes by itself when the provider has decided."""
    vendor = stage.insider()
    session, decided, cbid = undecided(vendor)
    assert stage.wait(FIRST_POLL) == 1
    assert vendor.standing(cbid).status is S.PENDING
    with playing_another(vendor, session, decided):
        assert stage.wait(POLLS[1]) == 1
        answer = vendor.standing(cbid)
        assert answer.status is S.VERIFIED
        assert vendor.verify(session).cbid == cbid
    assert followed(stage) == 0
    assert stage.wait(DAY) == 0


def test_the_poller_survives_a_restart(stage: Stage) -> None:
    """Polled sessions are stored with the data, including the request."""
    vendor = stage.insider()
    session, decided, cbid = undecided(vendor)
    stage.restart()
    with playing_another(vendor, session, decided):
        assert stage.wait(FIRST_POLL) == 1
    assert vendor.standing(cbid).status is S.VERIFIED


def test_a_session_is_polled_ever_more_seldom_and_not_forever(stage: Stage) -> None:
    """After 14 days it is given up, and the buyer has to make a new session."""
    vendor = stage.insider()
    session, _, cbid = undecided(vendor)
    for number, wait in enumerate(POLLS):
        assert stage.wait(wait - timedelta(milliseconds=1)) == 0, number
        assert stage.wait(timedelta(milliseconds=1)) == 1, number
        assert vendor.standing(cbid).status is S.PENDING
    asked = vendor.playing.asked(session)
    days = 0
    while followed(stage):
        stage.wait(DAY)
        days += 1
        assert days < 20
    assert days in {FOLLOWED_FOR.days, FOLLOWED_FOR.days + 1}
    assert vendor.playing.asked(session) <= asked + days
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT
    assert reasons_of(stage, cbid) == [Reason.SESSION_UNDECIDED]
    assert events_of(stage, cbid) == ["buyer.requires_input"]


def reasons_of(stage: Stage, cbid: str) -> list[str]:
    """Why the buyer is not verified, as the operator is shown."""
    return list(stage.do(admin.show(stage.opened.buyers, cbid))[0].reasons)


@pytest.mark.parametrize("provider", SIMULATORS)
def test_a_hint_settles_a_session_at_once(stage: Stage, provider: str) -> None:
    """By each provider's own message; the schedule would be much later."""
    vendor = stage.insider(provider)
    session, decided, cbid = undecided(vendor)
    for wait in POLLS:
        stage.wait(wait)
    with playing_another(vendor, session, decided):
        assert stage.wait(timedelta(seconds=1)) == 0
        vendor.hint(session)
        assert stage.wait(timedelta()) == 1
    assert vendor.standing(cbid).status is S.VERIFIED


def test_a_hint_is_only_a_hint(stage: Stage) -> None:
    """Its content does not matter: the provider's response to the poll counts."""
    vendor = stage.insider()
    session, _, cbid = undecided(vendor)
    asked = vendor.playing.asked(session)
    vendor.hint(session)
    assert vendor.playing.asked(session) == asked
    assert stage.wait(timedelta()) == 1
    assert vendor.playing.asked(session) == asked + 1
    assert vendor.standing(cbid).status is S.PENDING


@each_engine
def test_a_message_is_acted_on_once(stage: Stage) -> None:
    """Any number of replays causes no further poll."""
    vendor = stage.insider()
    session, _, _ = undecided(vendor)
    message = vendor.playing.simulator.webhook(session.session_id)
    headers = {name.lower(): value for name, value in message.headers}
    room = stage.opened.buyers
    integration = stage.do(poll_sessions.webhook_integrations(room, "stripe", vendor.account_id))
    for number in range(4):
        stage.do(poll_sessions.take_webhook(room, integration, headers, message.body))
        assert stage.wait(timedelta()) == (1 if number == 0 else 0)
    assert len(stage.rows("SELECT * FROM provider_messages")) == 1


def test_a_forged_message_changes_nothing(stage: Stage) -> None:
    """Its signature is checked before anything in it is read."""
    vendor = stage.insider()
    session, _, _ = undecided(vendor)
    message = vendor.playing.simulator.webhook(session.session_id)
    headers = {name.lower(): value for name, value in message.headers}
    room = stage.opened.buyers
    integration = stage.do(poll_sessions.webhook_integrations(room, "stripe", vendor.account_id))
    before = stage.rows("SELECT * FROM pending_sessions")
    for forged in (message.body + b" ", message.body.replace(b"vs_", b"vx_"), b""):
        with pytest.raises(WebhookRefused):
            stage.do(poll_sessions.take_webhook(room, integration, headers, forged))
    assert stage.rows("SELECT * FROM pending_sessions") == before
    assert stage.rows("SELECT * FROM provider_messages") == []


def test_a_hint_about_a_session_that_no_one_sent_makes_no_buyer(stage: Stage) -> None:
    """The provider reports every session of the account, and some are not for us."""
    vendor = stage.insider()
    vendor.hint(vendor.part("verified"))
    assert stage.wait(timedelta()) == 0
    assert stage.rows("SELECT * FROM buyers") == []


def gone(request: Request, reply: Reply) -> Reply:
    """The provider has deleted the session."""
    body = b'{"error":{"code":"resource_missing","param":"session","type":"invalid_request_error"}}'
    return replace(reply, status=404, body=body)


def until_given_up(stage: Stage) -> None:
    """Let the poller ask until it gives up."""
    for _ in range(GONE_AFTER):
        assert followed(stage) == 1
        assert stage.wait(DAY) == 1


@each_engine
def test_a_running_poll_brings_no_erased_buyer_back(stage: Stage) -> None:
    """It was erased while the provider was being asked."""
    vendor = stage.insider()
    session, decided, _ = undecided(vendor)
    answering = answers_as(vendor, session, decided)

    def erased_meanwhile(request: Request, reply: Reply) -> Reply:
        for table in ("pending_sessions", "verification_evidence", "verifications"):
            stage.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        for table in ("provider_sessions", "buyers"):
            stage.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        return answering(request, reply)

    with vendor.playing.mood(erased_meanwhile):
        assert stage.wait(FIRST_POLL) == 1
    for table in ("buyers", "verifications", "verification_evidence", "buyer_documents"):
        assert stage.rows(f"SELECT * FROM {table}") == [], table  # noqa: S608 - our own names


def test_one_not_found_response_does_not_end_polling(stage: Stage) -> None:
    """It may be a mistake of the provider's; the next answer counts."""
    vendor = stage.insider()
    session, decided, cbid = undecided(vendor)
    with vendor.playing.mood(gone):
        assert stage.wait(FIRST_POLL) == 1
    assert followed(stage) == 1
    with playing_another(vendor, session, decided):
        stage.wait(DAY)
    assert vendor.standing(cbid).status is S.VERIFIED


@each_engine
def test_a_deleted_session_leaves_no_one_waiting_forever(stage: Stage) -> None:
    """The buyer has to make a new session, which then verifies under the same document."""
    vendor = stage.insider()
    session, decided, cbid = undecided(vendor)
    with vendor.playing.mood(gone):
        until_given_up(stage)
        with pytest.raises(ProviderSessionNotFound):
            vendor.verify(session)
    assert followed(stage) == 0
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT
    assert reasons_of(stage, cbid) == [Reason.SESSION_UNDECIDED]
    assert events_of(stage, cbid) == ["buyer.requires_input"]
    assert vendor.verify(decided).view.status is S.VERIFIED


def test_another_buyers_session_leaves_no_one_waiting(stage: Stage) -> None:
    """Some providers name the subject of a session only with the decision."""
    vendor = stage.insider()
    session, _, cbid = undecided(vendor)
    with playing_another(vendor, session, vendor.part("test_mode")):
        assert stage.wait(FIRST_POLL) == 1
    assert followed(stage) == 0
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT
    # Nothing of the other person is stored under this name.
    assert len(stage.rows("SELECT * FROM verification_evidence")) == 1
    assert stage.rows("SELECT * FROM buyer_documents") == []


def test_an_account_without_verification_leaves_no_one_waiting(stage: Stage) -> None:
    """Its settings were removed while a session was followed."""
    vendor = stage.insider()
    _, _, cbid = undecided(vendor)
    assert stage.do(verification_settings.remove(stage.opened.buyers, vendor.account_id))
    assert stage.wait(FIRST_POLL) == 1
    assert followed(stage) == 0
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT


@each_engine
def test_a_deleted_session_takes_nothing_from_a_verified_buyer(stage: Stage) -> None:
    """The pending session belongs to a buyer who is verified by another one."""
    vendor = stage.insider()
    decided = vendor.part("verified")
    session, _, cbid = undecided(vendor)
    with playing_another(vendor, session, decided):
        assert vendor.verify(session).cbid == cbid
    waiting = vendor.verify(session)
    assert (waiting.cbid, waiting.view.status) == (cbid, S.PENDING)
    assert followed(stage) == 1
    with vendor.playing.mood(gone):
        until_given_up(stage)
    assert followed(stage) == 0
    assert vendor.standing(cbid).status is S.VERIFIED
    assert vendor.verify(decided).cbid == cbid


def test_a_failing_provider_does_not_end_the_following(stage: Stage) -> None:
    """A poll that fails is made up for later."""
    vendor = stage.insider()
    session, decided, cbid = undecided(vendor)
    with vendor.playing.mood(lambda _, reply: replace(reply, status=503, body=b"{}")):
        assert stage.wait(FIRST_POLL) == 1
    assert vendor.standing(cbid).status is S.PENDING
    assert followed(stage) == 1
    with playing_another(vendor, session, decided):
        stage.wait(DAY)
    assert vendor.standing(cbid).status is S.VERIFIED


def test_an_unreachable_provider_leaves_no_one_waiting_forever(stage: Stage) -> None:
    """After twice the time that a session is followed, the buyer has to begin again."""
    vendor = stage.insider()
    _, _, cbid = undecided(vendor)
    with vendor.playing.mood(lambda _, reply: replace(reply, status=401, body=b"{}")):
        stage.wait(FIRST_POLL)
        stage.wait(2 * FOLLOWED_FOR - FIRST_POLL)
        assert vendor.standing(cbid).status is S.PENDING
        stage.wait(DAY)
    assert followed(stage) == 0
    assert vendor.standing(cbid).status is S.REQUIRES_INPUT


@each_engine
def test_a_pending_session_of_a_known_person_continues_as_the_known_buyer(stage: Stage) -> None:
    """Both identifiers stay valid and tell the same."""
    vendor = stage.insider()
    session, decided, waiting = undecided(vendor)
    known = vendor.verify(decided).cbid
    assert known != waiting
    with playing_another(vendor, session, decided):
        stage.wait(FIRST_POLL)
    assert vendor.standing(waiting) == vendor.standing(known)
    assert vendor.standing(waiting).status is S.VERIFIED
    assert events_of(stage, waiting) == ["buyer.verified"]


@each_engine
def test_two_accounts_wait_for_one_session_and_each_gets_an_event(stage: Stage) -> None:
    """Both ask, one buyer comes of it."""
    first = stage.insider()
    second = stage.insider(first.playing)
    session, decided, cbid = undecided(first)
    assert second.verify(session).cbid == cbid
    assert followed(stage) == 2
    with playing_another(first, session, decided):
        assert stage.wait(FIRST_POLL) == 2
    assert followed(stage) == 0
    assert first.standing(cbid).status is second.standing(cbid).status is S.VERIFIED


@each_engine
def test_two_processes_do_not_ask_twice(stage: Stage) -> None:
    """The next time is fixed before a session is polled."""
    vendor = stage.insider()
    session, _, _ = undecided(vendor)
    stage.clock.now += FIRST_POLL
    asked = vendor.playing.asked(session)
    room = stage.opened.buyers

    async def both() -> tuple[int, int]:
        first, second = await asyncio.gather(poll_due(room), poll_due(room))
        return first, second

    assert sorted(stage.do(both())) == [0, 1]
    assert vendor.playing.asked(session) == asked + 1
