"""Sending mails with the link of a copy: a loop of each server, which takes one at a time.

Several servers share the work: one that claims a mail has it for the length of a lease. It never
runs inside another act's transaction, so an unreachable mail server delays no act.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Final

import structlog

from countersign.base.errors import CountersignError, DamagedValue
from countersign.base.loops import Backoff, forever
from countersign.base.values import Mode, from_ns
from countersign.core.checkout import store
from countersign.core.checkout.model import KEPT, Session
from countersign.core.vault.vault import Place
from countersign.hosted.pages import buyer, mails
from countersign.hosted.pages.cookies import copy_address
from countersign.hosted.pages.mails import (
    ATTEMPT_SECONDS,
    Attempt,
    ClaimedMail,
    CopyMails,
    MailClient,
    MailOutcome,
    composed,
)
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.toolkit.screens import words_of

IDLE_SECONDS: Final = 2.0
_LEASE: Final = timedelta(seconds=3 * ATTEMPT_SECONDS)
"""Longer than an attempt, including its reads."""
_ENDED: Final = Attempt(MailOutcome.GIVEN_UP)

_log: Final = structlog.get_logger("countersign.checkout")


def place_of(account_id: str, mail_id: str) -> Place:
    """The place of a mail's sealed address. It is sealed with the shred key of its session."""
    return Place(table="copy_mails", column="address", account=account_id, row_id=mail_id)


class SendMails:
    """The mails of one process: runs as long as the server."""

    def __init__(self, room: HostedPages, own: CopyMails) -> None:
        self._room = room
        self._mails = own
        self._client = MailClient(own)
        self._backoff = Backoff(room.access.clock.monotonic)
        self._sending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Send until cancelled; an attempt that has begun then has a while to end."""
        try:
            await forever("copy_mails", self.turn, IDLE_SECONDS, self._mails.wake)
        finally:
            if self._sending is not None:
                await asyncio.wait([self._sending], timeout=5.0)
                self._sending.cancel()

    async def turn(self) -> None:
        """Send due mails one by one while the mail server accepts them."""
        database = self._room.access.database
        while True:
            if not await database.scan(mails.is_due, self._now) or not self._backoff.ready:
                return
            now = self._now
            mail = await database.write(mails.claim, now, now + _LEASE)
            if mail is not None:
                self._sending = asyncio.create_task(self._send(mail))
                await asyncio.shield(self._sending)
                self._sending = None

    @property
    def _now(self) -> datetime:
        return from_ns(self._room.access.clock.time_ns())

    async def _send(self, mail: ClaimedMail) -> None:
        attempt = await self._attempt(mail)
        outcome = attempt.outcome
        self._mails.attempts[outcome] += 1
        self._backoff.record(pause=attempt.is_trouble, retry_after=None)
        if attempt.step:
            facts = {"outcome": outcome.value, "step": attempt.step, "code": attempt.code}
            _log.warning("copy_mail_not_sent", mail=mail.id, **facts)
        due_at = None
        if outcome in {MailOutcome.POSTPONED, MailOutcome.UNSURE}:
            wait = min(timedelta(minutes=1) * 2 ** min(mail.attempts - 1, 6), timedelta(hours=1))
            due_at = min(self._now + wait, mail.created_at + mails.TRIED)
        await self._room.access.database.write(mails.note, mail, outcome, due_at)

    async def _attempt(self, mail: ClaimedMail) -> Attempt:
        room = self._room
        try:
            session = await store.find_by_id(room, mail.session_id)
            if session is None or session.shred_key is None or session.ended_at is None:
                return _ENDED
            end = session.ended_at + KEPT
            if session.content is None or await store.clock_of(room, session) >= end:
                return _ENDED
            opened = await room.vault.open(
                mail.address,
                shred_key=session.shred_key,
                **place_of(mail.account_id, mail.id),
            )
            recipient = opened.decode()
            message = await self._message(mail, session, recipient, end)
        except DamagedValue:
            return Attempt(MailOutcome.GIVEN_UP, step="reading")
        except CountersignError:
            # The database or the key of the vault: that passes.
            return Attempt(MailOutcome.POSTPONED, is_trouble=True, step="reading")
        return await self._client.send(message, recipient)

    async def _message(
        self, mail: ClaimedMail, session: Session, recipient: str, end: datetime
    ) -> EmailMessage:
        """Fixed words and a link: nothing that a buyer has typed, and no part of the copy."""
        room, sender = self._room, self._mails.sender
        brand = await buyer.brand(room, session)
        words = words_of(mail.locale, " ".join(brand.name.split()))
        until = f"{end:%Y-%m-%d %H:%M} UTC"
        parts = [
            words["test_mode"] if session.mode is Mode.TEST else "",
            words["mail_intro"],
            f"{copy_address(room, session)}?lang={mail.locale}",
            words["mail_until"].replace("{time}", until),
            words["mail_not_you"],
            words["mail_operator"].replace("{operator}", brand.operator) if brand.operator else "",
        ]
        text = "\n\n".join(filter(None, parts))
        message = composed(self._mails, recipient, words["mail_subject"], text, self._now)
        # The same at each attempt, so a mailbox can recognise a duplicate.
        message["Message-ID"] = f"<{mail.id}@{sender.rpartition('@')[2]}>"
        message["Content-Language"] = mail.locale
        return message
