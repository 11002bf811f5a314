"""A mail server on the loopback that is not ours, and answers as a test wants.

aiosmtpd speaks the protocol; it runs in a thread of its own, so that its callers may block.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Final

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.support.service import free_port

OK: Final = "250 OK"
PASSWORD: Final = "p@ss word"


@dataclass(frozen=True)
class Received:
    """A mail that the server has accepted."""

    sender: str
    recipients: list[str]
    raw: bytes
    is_encrypted: bool
    user: str | None

    @property
    def message(self) -> EmailMessage:
        found = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found

    @property
    def text(self) -> str:
        content = self.message.get_content()
        assert isinstance(content, str)
        return content


@dataclass
class MailServer:
    """The server's received mails, and its behaviour. `hold` keeps it from answering content."""

    port: int
    mails: list[Received] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    """The recipients, accepted or not."""
    to_sender: str = OK
    to_recipient: str = OK
    to_content: str = OK
    hold: threading.Event | None = None
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set once content has come, before it is answered."""
    hang_up: bool = False
    """Whether it ends the connection in the place of an answer to content."""

    async def handle_MAIL(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.to_sender == OK:
            envelope.mail_from = address
        return self.to_sender

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.tried.append(address)
        if self.to_recipient == OK:
            envelope.rcpt_tos.append(address)
        return self.to_recipient

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.to_content == OK:
            raw = envelope.original_content or b""
            known: Any = session.auth_data
            user = known.login.decode() if known else None
            transport: Any = server.transport
            tls = transport.get_extra_info("ssl_object") is not None
            got = Received(envelope.mail_from or "", [*envelope.rcpt_tos], raw, tls, user)
            self.mails.append(got)
        self.arrived.set()
        if self.hold is not None:
            await server.loop.run_in_executor(None, self.hold.wait, 60)
        if self.hang_up:
            connection: Any = server.transport
            connection.abort()
        return self.to_content


class _Login:
    def __call__(
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        mechanism: str,
        data: Any,  # noqa: ANN401 - of the library
    ) -> AuthResult:
        is_right = (data.login, data.password) == (b"copies", PASSWORD.encode())
        return AuthResult(success=is_right, handled=False, auth_data=data)


@contextmanager
def mail_server(
    *,
    port: int | None = None,
    starttls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    login: bool = False,
) -> Iterator[MailServer]:
    """Run a mail server until the block ends."""
    made = MailServer(port or free_port())
    options: dict[str, Any] = {"tls_context": starttls, "require_starttls": starttls is not None}
    if login:
        options |= {"authenticator": _Login(), "auth_required": True}
        options["auth_require_tls"] = starttls is not None
    controller = Controller(
        made, hostname="127.0.0.1", port=made.port, ssl_context=tls, ready_timeout=30.0, **options
    )
    controller.start()
    try:
        yield made
    finally:
        if made.hold is not None:
            made.hold.set()
        controller.stop()


def until(what: Callable[[], object]) -> None:
    """Wait until this is so; a timeout fails the test by name."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
