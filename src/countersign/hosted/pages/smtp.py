"""Send one mail to a mail server: accepted, refused, or outcome unknown.

No text of a mail server is kept or logged: it may repeat the address.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from countersign.base.errors import InvalidConfiguration
from countersign.hosted.pages.mails import CopyMails, MailOutcome

if TYPE_CHECKING:
    import aiosmtplib

ATTEMPT_SECONDS: Final = 60.0
"""From the name of the mail server to its answer. RFC 5321 §4.5.3.2 would wait for half an hour; we
retry later instead."""
_REPLY_SECONDS: Final = 30.0
_GOODBYE_SECONDS: Final = 2.0
_CONTENT: Final = "content"
_OF_ONE_MAIL: Final = frozenset({"recipient", _CONTENT})


class Attempt(NamedTuple):
    """How an attempt ended, and what is known of why."""

    outcome: MailOutcome
    is_trouble: bool = False
    """Whether other mails would meet the same: the server, and not this mail, was the reason."""
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


class MailClient:
    """Hands mails to the mail server of the settings, each over a connection of its own."""

    def __init__(self, mails: CopyMails) -> None:
        self._mails = mails
        self._tls: ssl.SSLContext | None = None

    async def send(self, message: EmailMessage, recipient: str) -> Attempt:
        """Try once to hand a message over."""
        import aiosmtplib  # noqa: PLC0415 - an extra

        at = ["connection"]
        code = None
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                client = self._client(aiosmtplib.SMTP)
                try:
                    await self._hand_over(client, message, recipient, at)
                finally:
                    client.close()
        except aiosmtplib.SMTPResponseException as error:
            code = error.code
        except (aiosmtplib.SMTPException, OSError, ValueError):
            pass  # by the step it is known what that means
        else:
            return Attempt(MailOutcome.SENT)
        [step] = at
        outcome = MailOutcome.POSTPONED
        if code is None and step == _CONTENT:
            outcome = MailOutcome.UNSURE
        elif code is not None and code >= 500 and step in _OF_ONE_MAIL:
            outcome = MailOutcome.REFUSED
        return Attempt(outcome, code is None or step not in _OF_ONE_MAIL, step, code)

    async def _hand_over(
        self, client: aiosmtplib.SMTP, message: EmailMessage, recipient: str, at: list[str]
    ) -> None:
        await client.connect()
        at[0] = "sender"
        await client.mail(self._mails.sender)
        at[0] = "recipient"
        await client.rcpt(recipient)
        at[0] = _CONTENT
        await client.data(message.as_bytes())
        # The mail is accepted; later responses do not matter.
        with suppress(Exception):
            await client.quit(timeout=_GOODBYE_SECONDS)

    def _client(self, kind: Any) -> Any:  # noqa: ANN401 - of an extra
        server = self._mails.server
        if self._tls is None and server.tls != "none":
            self._tls = ssl.create_default_context()
        return kind(
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            # Otherwise the name server would be queried.
            local_hostname=self._mails.sender.rpartition("@")[2],
            timeout=_REPLY_SECONDS,
            use_tls=server.tls == "tls",
            start_tls=server.tls == "starttls",
            tls_context=self._tls,
        )
