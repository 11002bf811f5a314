"""The link of a copy by e-mail: the queue, its limits, and results of a mail server.

The deployment is in this process, and its clock stands still until the test moves it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import pytest

from countersign.base.values import Mode, from_ms
from countersign.core.access.account import create_account
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.checkout import store
from countersign.core.checkout.model import KEPT, Session
from countersign.core.checkout.schemas import CheckoutSessionRequest
from countersign.core.privacy.ending import close
from countersign.hosted.pages import buyer, mails
from countersign.hosted.pages.cookies import copy_address
from countersign.hosted.pages.mail_page import mail_address, request_mail
from countersign.hosted.pages.mails import CopyMails, MailAnswer, MailOutcome
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.pages.send_mails import SendMails
from countersign.operate.housekeeping import delete_outdated
from countersign_evidence.process import Surface
from tests.checkout.checks import created
from tests.clearances.desk import NO_ONE
from tests.support.acts import done
from tests.support.mail_server import MailServer, mail_server
from tests.verification.conftest import each_engine, stage
from tests.verification.inside import Stage

__all__ = ["stage"]

ADDRESS: Final = "ana.lopez@example.org"
SENDER: Final = "copies@countersign.example"
MINUTE: Final = timedelta(minutes=1)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Post:
    """An account whose buyers ask for mails."""

    stage: Stage
    who: Principal
    got: MailServer

    @property
    def room(self) -> HostedPages:
        return self.stage.opened.checkout

    @property
    def own(self) -> CopyMails:
        found = self.room.mails
        assert found is not None
        return found

    def completed(self, who: Principal | None = None) -> Session:
        """A session whose buyer has initialed every line, and agreed."""

        async def work() -> Session:
            asked = CheckoutSessionRequest(
                return_url="https://shop.example/back",
                session_id=f"cart-{next(_numbers)}",
                notice_id="ab1263",
            )
            room = self.room
            session = await created(room, who or self.who, asked)
            notice = await buyer.notice_of(room, session)
            initials = ["AB"] * len(notice.content.bullets)
            shown = await buyer.show(room, session, notice, Surface.PAGE, None, "en")
            typed = await buyer.initial(room, shown, notice.digest, initials, NO_ONE.client)
            return await buyer.accept(room, await buyer.review(room, typed, "en"), NO_ONE)

        return self.stage.do(work())

    def ask(
        self, session: Session, address: str = ADDRESS, locale: str = "en"
    ) -> MailAnswer | None:
        read = mail_address(address)
        assert read is not None
        return self.stage.do(request_mail(self.room, self.own, session, read, locale))

    def turn(self, sender: SendMails | None = None) -> None:
        """One turn of the loop of a server, perhaps another one than before."""
        self.stage.do((sender or SendMails(self.room, self.own)).turn())

    def later(self, step: timedelta) -> None:
        self.stage.clock.now += step
        self.turn()

    def states(self) -> list[tuple[str | None, bool, int]]:
        """Of each mail, the oldest first: outcome, whether the address is there, attempts."""
        rows = self.stage.rows("SELECT outcome, address, attempts FROM copy_mails ORDER BY id")
        return [(row["outcome"], row["address"] is not None, row["attempts"]) for row in rows]

    def account(self) -> Principal:
        access, name = self.stage.opened.access, f"shop {next(_numbers)}"
        account = self.stage.do(create_account(access, name))
        return replace(self.who, account_id=account.id)

    def keep_house(self) -> None:
        self.stage.do(delete_outdated(self.stage.opened.database, self.stage.clock.now))


@contextmanager
def posting(stage: Stage, got: MailServer, **settings: str) -> Iterator[Post]:
    own = {"SMTP_URL": f"smtp://127.0.0.1:{got.port}", "SMTP_SENDER": SENDER}
    stage.restart(**(own | settings))
    account = stage.do(create_account(stage.opened.access, f"shop {next(_numbers)}"))
    who = Principal(
        key_id="key",
        account_id=account.id,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )
    yield Post(stage, who, got)


@pytest.fixture
def post(stage: Stage) -> Iterator[Post]:
    with ExitStack() as opened:
        got = opened.enter_context(mail_server())
        yield opened.enter_context(posting(stage, got))


@each_engine
def test_a_buyer_is_sent_the_link_and_its_end_in_fixed_words(post: Post) -> None:
    """It contains no text typed by a person, and no part of the copy."""
    session = post.completed()
    assert post.ask(session, locale="es") is MailAnswer.QUEUED
    assert post.states() == [(None, True, 0)]
    post.turn()
    [got] = post.got.mails
    assert (got.sender, got.recipients) == (SENDER, [ADDRESS])
    headers = {name.lower(): value for name, value in got.message.items()}
    assert headers["subject"] == "El enlace a su copia"
    assert (headers["from"], headers["to"]) == (SENDER, ADDRESS)
    assert headers["auto-submitted"] == "auto-generated"
    assert headers["content-language"] == "es"
    assert headers["message-id"].endswith("@countersign.example>")
    assert session.ended_at is not None
    end = f"{session.ended_at + KEPT:%Y-%m-%d %H:%M} UTC"
    for part in (f"{copy_address(post.room, session)}?lang=es", end, "ensayo"):
        assert part in got.text
    assert session.ack_id is not None
    for part in (session.ack_id, "AB\n", "cart-", "https://shop.example"):
        assert part not in got.text
    assert not [*got.message.iter_attachments()]
    assert post.states() == [("sent", False, 1)]
    post.later(timedelta(days=1))
    assert len(post.got.mails) == 1


@each_engine
def test_a_mail_waits_for_a_mail_server_that_is_down(stage: Stage) -> None:
    """The buyer's request is accepted at once; the mail comes when the server does."""
    with mail_server() as gone:
        pass
    with posting(stage, gone) as post:
        session = post.completed()
        assert post.ask(session) is MailAnswer.QUEUED
        post.turn()
        assert post.states() == [(None, True, 1)]
        assert post.own.attempts == {MailOutcome.POSTPONED: 1}
        with mail_server(port=gone.port) as back:
            post.turn()
            assert back.mails == [], "it is not due yet"
            post.later(MINUTE)
            assert [got.recipients for got in back.mails] == [[ADDRESS]]
        assert post.states() == [("sent", False, 2)]


def test_a_temporary_refusal_is_retried_with_growing_pauses(
    post: Post,
) -> None:
    """After a minute, then twice as long each time, at most an hour; after two days it ends."""
    post.got.to_recipient = "451 4.7.1 Greylisted, try again"
    post.ask(post.completed())
    waits = []
    while True:
        post.turn()
        [mail] = post.stage.rows("SELECT due_at FROM copy_mails")
        if mail["due_at"] is None:
            break
        next_ = from_ms(mail["due_at"])
        waits.append(round((next_ - post.stage.clock.now) / MINUTE))
        post.stage.clock.now = next_
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert timedelta(days=2) <= sum(waits) * MINUTE < timedelta(days=2, hours=1)
    assert post.states() == [("given_up", False, len(post.got.tried))]


@pytest.mark.parametrize(
    ("to_recipient", "to_content"),
    [("550 5.1.1 No such user", "250 OK"), ("250 OK", "554 5.7.1 Refused")],
)
def test_a_permanent_refusal_is_not_retried(post: Post, to_recipient: str, to_content: str) -> None:
    post.got.to_recipient, post.got.to_content = to_recipient, to_content
    post.ask(post.completed())
    post.turn()
    assert post.states() == [("refused", False, 1)]
    post.later(timedelta(hours=1))
    assert len(post.got.tried) == 1


def test_an_error_of_the_sender_ends_no_mail(post: Post) -> None:
    """An operator can put it right, and others would meet the same: the queue pauses."""
    post.got.to_sender = "553 5.7.1 Not your address"
    post.ask(post.completed())
    post.ask(post.completed(), "bea@example.org")
    sender = SendMails(post.room, post.own)
    post.turn(sender)
    assert {attempts for _, _, attempts in post.states()} == {0, 1}
    post.got.to_sender = "250 OK"
    post.later(MINUTE)
    assert {got.recipients[0] for got in post.got.mails} == {ADDRESS, "bea@example.org"}


def test_a_mail_that_may_have_been_sent_is_repeated_at_most_once(post: Post) -> None:
    """The mail server has it, and the connection ends before it says so."""
    post.got.hang_up = True
    post.ask(post.completed())
    post.turn()
    assert post.states() == [(None, True, 1)]
    for _ in range(5):
        post.later(timedelta(hours=1))
    assert len(post.got.mails) == 2
    assert post.states() == [("unknown", False, 2)]
    ids = {got.message["message-id"] for got in post.got.mails}
    assert len(ids) == 1, "a mailbox may know it by its id"


@each_engine
def test_two_servers_send_a_mail_once(post: Post) -> None:
    """A server that has claimed it keeps it for a while, whatever the other does."""
    post.ask(post.completed())
    now = post.stage.clock.now
    database = post.room.access.database
    claimed = post.stage.do(database.write(mails.claim, now, now + 3 * MINUTE))
    assert claimed is not None
    post.turn()
    assert post.got.tried == []
    assert post.stage.do(database.write(mails.claim, now, now + 3 * MINUTE)) is None
    post.later(3 * MINUTE)
    assert len(post.got.mails) == 1, "the first one died with it"
    post.stage.do(database.write(mails.note, claimed, MailOutcome.POSTPONED, now))
    assert post.states() == [("sent", False, 2)], "and says nothing of it any more"


@each_engine
def test_a_session_has_three_mails(post: Post) -> None:
    session, other = post.completed(), post.completed()
    for number in range(3):
        assert post.ask(session, f"a{number}@example.org") is MailAnswer.QUEUED
        post.turn()
    assert post.ask(session, "a3@example.org") is MailAnswer.ENOUGH
    post.stage.clock.now += timedelta(days=2)
    assert post.ask(session, "a3@example.org") is MailAnswer.ENOUGH, "not three a day"
    assert post.ask(other, "a3@example.org") is MailAnswer.QUEUED
    post.turn()
    assert len(post.got.mails) == 4


def test_two_clicks_send_one_mail(post: Post) -> None:
    session = post.completed()
    assert post.ask(session) is MailAnswer.QUEUED
    assert post.ask(session, ADDRESS.upper()) is MailAnswer.QUEUED
    assert len(post.states()) == 1


@each_engine
def test_one_mailbox_gets_five_mails_a_day_in_total_and_no_one_learns_of_it(post: Post) -> None:
    """Whichever shops, sessions and spellings are used: who asks is answered as ever."""
    spellings = itertools.cycle(
        (ADDRESS, "Ana.Lopez@EXAMPLE.org", "analopez+1@example.org", "a.n.a.lopez+x+y@example.org")
    )
    for shop in (post.who, post.account(), post.account()):
        for _ in range(3):
            session, spelling = post.completed(shop), next(spellings)
            for _ in range(mails.PER_SESSION + 1):  # as often as would show that nothing waits
                assert post.ask(session, spelling) is MailAnswer.QUEUED
    post.turn()
    assert len(post.got.mails) == mails.PER_ADDRESS
    assert post.states().count(("withheld", False, 0)) == 4
    assert post.ask(post.completed(), "bea@example.org") is MailAnswer.QUEUED
    post.stage.clock.now += timedelta(days=1)
    assert post.ask(post.completed()) is MailAnswer.QUEUED
    post.turn()
    assert len(post.got.mails) == mails.PER_ADDRESS + 2


@each_engine
def test_an_account_has_its_mails_of_a_day(stage: Stage) -> None:
    """Its other mode and other accounts have their own; withheld mails do not count."""
    with mail_server() as got, posting(stage, got, SMTP_DAILY_LIMIT="2") as post:
        for number in range(2):
            assert post.ask(post.completed(), f"a{number}@example.org") is MailAnswer.QUEUED
        session = post.completed()
        assert post.ask(session) is MailAnswer.BUSY
        assert post.ask(post.completed(post.account())) is MailAnswer.QUEUED
        stage.clock.now += timedelta(days=1)
        assert post.ask(session) is MailAnswer.QUEUED


def test_no_address_can_be_read_in_the_database(post: Post) -> None:
    """It is sealed with the key of its session, and gone once the mail is."""
    post.ask(post.completed())
    post.ask(post.completed(), "bea@example.org")
    kept = [row["address"] for row in post.stage.rows("SELECT address FROM copy_mails")]
    assert not any(b"example" in address for address in kept)
    post.got.to_recipient = "550 5.1.1 No such user"
    post.turn()
    assert [there for _, there, _ in post.states()] == [False, False]


def test_the_keyed_hash_of_an_address_goes_after_a_day(post: Post) -> None:
    post.ask(post.completed())
    post.turn()
    query = "SELECT address_index FROM copy_mails"
    assert post.stage.rows(query)[0]["address_index"] is not None
    post.stage.clock.now += timedelta(days=1)
    post.keep_house()
    assert post.stage.rows(query)[0]["address_index"] is None
    assert post.states() == [("sent", False, 1)]


def test_waiting_mails_end_after_two_days_without_a_sender(post: Post) -> None:
    """An operator who takes the setting away keeps no addresses."""
    post.ask(post.completed())
    post.stage.clock.now += timedelta(days=2)
    post.keep_house()
    assert post.states() == [("given_up", False, 0)]
    post.turn()
    assert post.got.tried == []


def test_no_address_is_kept_beyond_two_days_even_after_a_late_attempt(stage: Stage) -> None:
    """The page promises it: what fails shortly before has no further hour."""
    with mail_server() as gone:
        pass
    with posting(stage, gone) as post:
        post.ask(post.completed())
        for step in (timedelta(0), timedelta(hours=47), timedelta(minutes=59)):
            post.later(step)
        assert post.states() == [(None, True, 3)]
        post.later(MINUTE)
        assert post.states() == [("given_up", False, 3)]


@each_engine
def test_a_mail_is_erased_with_its_session(post: Post) -> None:
    """Erased or deleted: nothing is sent, no row is left, and no new mail is accepted."""
    erased, deleted = post.completed(), post.completed()
    post.ask(erased)
    post.ask(deleted, "bea@example.org")
    database = post.room.access.database
    post.stage.do(database.write(store.erase_contents, [erased.id]))
    assert post.ask(erased) is None
    post.stage.execute("UPDATE checkout_sessions SET ended_at = 1 WHERE id = :id", id=deleted.id)
    assert post.stage.do(database.write(store.delete_ended, post.stage.clock.now, 9)) == 1
    assert post.ask(deleted) is None
    assert post.states() == []
    post.turn()
    assert post.got.tried == []


def test_a_claimed_mail_of_an_erased_session_is_not_sent(post: Post) -> None:
    """The session is read again right before."""
    session = post.completed()
    post.ask(session)
    now, database = post.stage.clock.now, post.room.access.database
    claimed = post.stage.do(database.write(mails.claim, now, now + MINUTE))
    assert claimed is not None
    post.stage.do(database.write(store.erase_contents, [session.id]))
    post.stage.do(SendMails(post.room, post.own)._send(claimed))
    assert post.got.tried == []


def test_a_copy_that_cannot_be_opened_any_more_is_not_sent(post: Post) -> None:
    session = post.completed()
    post.ask(session)
    post.stage.execute("UPDATE checkout_sessions SET content = :x", x=b"damaged")
    post.turn()
    assert post.got.tried == []
    assert post.states() == [("given_up", False, 1)]


def test_an_account_that_is_closed_sends_no_more(post: Post) -> None:
    session = post.completed()
    post.stage.do(done(close, post.stage.opened.privacy, post.who.account_id))
    assert post.ask(session) is None
    assert post.states() == []


def test_no_one_is_sent_a_mail_before_the_session_is_completed(post: Post) -> None:
    asked = CheckoutSessionRequest(
        return_url="https://shop.example/back", session_id="cart", notice_id="ab1263"
    )
    session = post.stage.do(created(post.room, post.who, asked))
    assert post.ask(session) is None


def test_the_log_has_no_address_and_no_text_of_the_mail_server(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    """For example of a mail server whose refusal repeats the recipient."""
    post.got.to_recipient = f"550 5.1.1 <{ADDRESS}> is unknown"
    post.ask(post.completed())
    post.turn()
    said = "".join(capsys.readouterr())
    assert "copy_mail_not_sent" in said
    assert "550" in said
    assert ADDRESS not in said
    assert "unknown" not in said


ADDRESSES: Final = {
    "ana@example.org": "ana@example.org",
    " Ana.B+c@Example.ORG ": "Ana.B+c@example.org",
    "o'hara_1@mail.example.co.uk": "o'hara_1@mail.example.co.uk",
    "ana@bücher.example": "ana@xn--bcher-kva.example",
    "ana@straße.example": "ana@xn--strae-oqa.example",
    "ana@xn--bcher-kva.example": "ana@xn--bcher-kva.example",
    f"{'a' * 64}@example.org": f"{'a' * 64}@example.org",
}
NO_ADDRESSES: Final = (
    "",
    "@",
    "ana",
    "ana@",
    "@example.org",
    "ana@example",
    "ana@127.0.0.1",
    "ana@[127.0.0.1]",
    "ana@localhost",
    "ana @example.org",
    "ana@exam ple.org",
    "ana@example.org\r\nBcc: eve@example.org",
    "ana\r\n@example.org",
    "ana@example.org\nRCPT TO:<eve@example.org>",
    "ana@example.org>\x00",
    "ana@example.org,eve@example.org",
    "ana@example.org eve@example.org",
    "ana@eve@example.org",
    '"ana b"@example.org',
    '"ana\\r\\nBcc: eve"@example.org',
    "Ana <ana@example.org>",
    "ana(comment)@example.org",
    ".ana@example.org",
    "ana.@example.org",
    "a..b@example.org",
    "aná@example.org",
    "ana@-example.org",
    "ana@exam_ple.org",
    "ana@example..org",
    "ana@example.org.",
    "ana@xn--a.example",
    f"{'a' * 65}@example.org",
    f"ana@{'a' * 64}.org",
    f"ana@{'a.' * 130}org",
    f"ana@{'é' * 200}.org",
    "a" * 100_000 + "@example.org",
    "ana@" + "ß." * 50_000 + "org",
    "=?utf-8?q?eve=40example.net=2C?=@example.org",
    "=?utf-8?q??=@example.org",
    "ana.=?utf-8?q?=0D=0ABcc?=@example.org",
    "ana@\u202egro.elpmaxe",
    "ana@example\u3002org\u3002",
)


def test_valid_addresses_are_normalised_for_mail_servers() -> None:
    """A domain of other letters by the rules that registries have now."""
    assert {text: mail_address(text) for text in ADDRESSES} == ADDRESSES


def test_anything_but_a_plain_address_is_refused() -> None:
    """No hidden second address, header or command can get into a mail."""
    assert {text: mail_address(text) for text in NO_ADDRESSES if mail_address(text)} == {}
