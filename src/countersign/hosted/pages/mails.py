"""Mails with the link of a buyer's copy, in the database: accepted, claimed, and ended.

A mail is due at a time. Claiming a mail moves that time to the end of a lease, and counts the
attempt as possibly sent until its outcome is recorded. A mail with an unknown outcome is attempted
once more, then never again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import Connection, exists, func, insert, or_, select, update

from countersign.base.db.tables import accounts, checkout_sessions, copy_mails
from countersign.base.errors import InvalidConfiguration
from countersign.base.setting_values import MailServer
from countersign.base.values import Mode
from countersign.core.checkout.model import Status

PER_SESSION: Final = 3
"""Mails: the first, and two for a slip in the address or a second device."""
PER_ADDRESS: Final = 5
"""Mails a day to one mailbox, from all sessions of all accounts: the page may flood no one."""
DAY: Final = timedelta(days=1)
TRIED: Final = timedelta(days=2)
"""How long a mail is retried: a mail server may be down for a weekend. Later the buyer, who has
the link on the page, does not expect it any more."""
SENDINGS_MAX: Final = 2
"""How many attempts may have sent a mail, if their outcome is not known."""
_c: Final = copy_mails.c


class MailAnswer(StrEnum):
    """The outcome of a buyer's request, as shown in the page's address."""

    QUEUED = "queued"
    """Also for a withheld mail: telling would reveal how many mails an address gets."""
    ENOUGH = "enough"
    """The session has had its mails."""
    BUSY = "busy"
    """The account has had its mails of the day."""


class MailOutcome(StrEnum):
    """The outcome of an attempt; all but the last two are also final for the mail."""

    SENT = "sent"
    REFUSED = "refused"
    """The mail server does not take it, for good."""
    GIVEN_UP = "given_up"
    UNKNOWN = "unknown"
    """Each of two attempts may have sent it."""
    WITHHELD = "withheld"
    """Its address has had enough: it was never to be sent."""
    POSTPONED = "postponed"
    UNSURE = "unsure"
    """The attempt may have sent it."""


class NewMail(NamedTuple):
    """A mail that a buyer asks for."""

    id: str
    account_id: str
    mode: Mode
    checkout_session_id: str
    created_at: datetime
    locale: str
    address: bytes
    """Sealed."""
    address_index: bytes


class ClaimedMail(NamedTuple):
    """A mail that this process has claimed."""

    id: str
    account_id: str
    session_id: str
    locale: str
    address: bytes
    attempts: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMails:
    """Settings of copies by e-mail: transport, sender and limits."""

    server: MailServer
    sender: str
    daily_limit: int
    """Of an account and mode."""
    attempts: Counter[MailOutcome] = field(default_factory=Counter)
    """Of this process, by outcome."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to send."""


def accept(connection: Connection, new: NewMail, daily_limit: int) -> MailAnswer | None:
    """Put a mail into the queue, within all limits; None: the session's copy no longer exists."""
    # Until the commit, no other transaction counts for this account or erases this session.
    owner = select(accounts.c.id).where(accounts.c.id == new.account_id)
    s = checkout_sessions.c
    session = select(s.id).where(s.id == new.checkout_session_id, s.content.is_not(None))
    for there in (
        owner.where(accounts.c.closed_at.is_(None)),
        session.where(s.status == Status.COMPLETED),
    ):
        if connection.execute(there.with_for_update(key_share=True)).first() is None:
            return None
    own = _c.checkout_session_id == new.checkout_session_id
    waits = exists().where(own, _c.address_index == new.address_index, _c.due_at.is_not(None))
    if connection.execute(select(waits)).scalar_one():
        return MailAnswer.QUEUED  # two clicks are one request
    if count(connection, new.checkout_session_id) >= PER_SESSION:
        return MailAnswer.ENOUGH
    was_sent = or_(_c.outcome.is_(None), _c.outcome != MailOutcome.WITHHELD)
    lately = (
        select(func.count()).select_from(copy_mails).where(_c.created_at > new.created_at - DAY)
    )
    of_account = lately.where(_c.account_id == new.account_id, _c.mode == new.mode, was_sent)
    if connection.execute(of_account).scalar_one() >= daily_limit:
        return MailAnswer.BUSY
    to_address = lately.where(_c.address_index == new.address_index, was_sent)
    is_too_much = connection.execute(to_address).scalar_one() >= PER_ADDRESS
    row = new._asdict() | {
        # A withheld mail waits like the others, so the page's next response does not differ.
        "due_at": new.created_at,
        "attempts": 0,
        "unsure": 0,
        "outcome": MailOutcome.WITHHELD if is_too_much else None,
    }
    connection.execute(insert(copy_mails), row)
    return MailAnswer.QUEUED


def count(connection: Connection, session_id: str) -> int:
    """How many mails a session has had."""
    own = select(func.count()).select_from(copy_mails).where(_c.checkout_session_id == session_id)
    return connection.execute(own).scalar_one()


def is_due(connection: Connection, now: datetime) -> bool:
    """Whether a mail is to be sent now."""
    return connection.execute(select(exists().where(_c.due_at <= now))).scalar_one()


def claim(connection: Connection, now: datetime, lease_until: datetime) -> ClaimedMail | None:
    """Take a mail that is due, the oldest first; no other process gets it before the lease ends.

    Mails retried for too long, or possibly sent too often, are ended first.
    """
    end_old(connection, now)
    due = (
        select(_c.id)
        .where(_c.due_at <= now)
        .order_by(_c.due_at, _c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = connection.execute(
        update(copy_mails)
        .where(_c.id.in_(due))
        .values(attempts=_c.attempts + 1, unsure=_c.unsure + 1, due_at=lease_until)
        .returning(
            *(_c.id, _c.account_id, _c.checkout_session_id, _c.locale, _c.address, _c.attempts),
            _c.created_at,
        )
    ).one_or_none()
    return None if row is None else ClaimedMail(*row)


def note(
    connection: Connection, mail: ClaimedMail, outcome: MailOutcome, due_at: datetime | None
) -> None:
    """Write how the attempt of a claimed mail ended; with `due_at`, when the next one is."""
    # A result is ignored if the lease has expired and another process has claimed the mail.
    own = update(copy_mails).where(_c.id == mail.id, _c.attempts == mail.attempts)
    if due_at is None:
        connection.execute(own.values(_ended(outcome)))
        return
    unsure = _c.unsure if outcome is MailOutcome.UNSURE else _c.unsure - 1
    connection.execute(own.values(due_at=due_at, unsure=unsure))


def end_old(connection: Connection, now: datetime) -> None:
    """End mails that are withheld, retried too long, or possibly sent too often."""
    for outcome, over in (
        (MailOutcome.WITHHELD, _c.outcome == MailOutcome.WITHHELD),
        (MailOutcome.UNKNOWN, _c.unsure >= SENDINGS_MAX),
        (MailOutcome.GIVEN_UP, _c.created_at <= now - TRIED),
    ):
        ended = update(copy_mails).where(_c.due_at <= now, over)
        connection.execute(ended.values(_ended(outcome)))


def forget_indexes(connection: Connection, now: datetime, limit: int) -> int:
    """Destroy at most `limit` keyed hashes of addresses, a day old; returns how many."""
    old = select(_c.id).where(_c.address_index.is_not(None), _c.created_at <= now - DAY)
    bare = update(copy_mails).where(_c.id.in_(old.limit(limit))).values(address_index=None)
    return connection.execute(bare).rowcount


def _ended(outcome: MailOutcome) -> dict[str, object]:
    return {"outcome": outcome, "address": None, "due_at": None}


# Send one mail to a mail server: accepted, refused, or outcome unknown.
#
# No text of a mail server is kept or logged: it may repeat the address.

ATTEMPT_SECONDS: Final = 60.0
"""From the name of the mail server to its answer. RFC 5321 §4.5.3.2 would wait for half an hour; we
retry later instead."""
_CONTENT: Final = "content"
_OF_ONE_MAIL: Final = frozenset({"recipient", _CONTENT})


class Attempt(NamedTuple):
    """The outcome of an attempt, and the known cause."""

    outcome: MailOutcome
    is_trouble: bool = False
    """Whether the server, not this mail, was the cause: other mails would fail, too."""
    step: str = ""
    code: int | None = None
    """Of the reply; None: there was none."""


def load_client() -> None:
    """Find out whether the library is installed. InvalidConfiguration: the file cannot be used."""
    try:
        import aiosmtplib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise InvalidConfiguration(
            "COUNTERSIGN_SMTP_URL is set, and the extra that mail needs is not installed: "
            "pip install 'countersign-service[mail]'."
        ) from None


def composed(
    mails: CopyMails, recipient: str, subject: str, text: str, at: datetime
) -> EmailMessage:
    """A mail of this server, which no machine answers (RFC 3834)."""
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = mails.sender, recipient, subject
    message["Date"] = format_datetime(at)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"{text}\n", cte="quoted-printable")
    return message


class MailClient:
    """Hands mails to the mail server of the settings, each over a connection of its own."""

    def __init__(self, mails: CopyMails) -> None:
        self._mails = mails
        self._tls: ssl.SSLContext | None = None

    async def send(self, message: EmailMessage, recipient: str) -> Attempt:
        """Try once to hand a message over."""
        import aiosmtplib  # noqa: PLC0415 - an extra

        step, code, server = "connection", None, self._mails.server
        try:
            if self._tls is None and server.tls != "none":
                self._tls = ssl.create_default_context()
            client = aiosmtplib.SMTP(
                hostname=server.host,
                port=server.port,
                username=server.user,
                password=server.password,
                # Otherwise the name server would be queried.
                local_hostname=self._mails.sender.rpartition("@")[2],
                timeout=30.0,
                use_tls=server.tls == "tls",
                start_tls=server.tls == "starttls",
                tls_context=self._tls,
            )
            async with asyncio.timeout(ATTEMPT_SECONDS):
                with closing(client):
                    await client.connect()
                    step = "sender"
                    await client.mail(self._mails.sender)
                    step = "recipient"
                    await client.rcpt(recipient)
                    step = _CONTENT
                    await client.data(message.as_bytes())
                    # The mail is accepted; later responses do not matter.
                    with suppress(Exception):
                        await client.quit(timeout=2.0)
        except aiosmtplib.SMTPResponseException as error:
            code = error.code
        except (aiosmtplib.SMTPException, OSError, ValueError):
            pass  # by the step it is known what that means
        else:
            return Attempt(MailOutcome.SENT)
        outcome = MailOutcome.POSTPONED
        if code is None and step == _CONTENT:
            outcome = MailOutcome.UNSURE
        elif code is not None and code >= 500 and step in _OF_ONE_MAIL:
            outcome = MailOutcome.REFUSED
        return Attempt(outcome, code is None or step not in _OF_ONE_MAIL, step, code)
