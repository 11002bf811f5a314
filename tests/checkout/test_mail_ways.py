"""How mails reach a mail server: encrypted, with a password, and with a process that is killed."""

from __future__ import annotations

import ssl
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from countersign.hosted.pages.mails import MailOutcome
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.checkout.test_copy_mails import ADDRESS, SENDER, posting
from tests.http.backstage import Operator, another_deployment
from tests.support.mail_server import PASSWORD, mail_server, until
from tests.support.service import Deployment, start_server
from tests.verification.conftest import stage
from tests.verification.inside import Stage

__all__ = ["stage"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the certificate of an authority that serves 127.0.0.1 itself, and its key."""
    file = tmp_path_factory.mktemp("authority") / "ca.pem"
    subprocess.run(
        (
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(file.with_suffix(".key")), "-out", str(file)),
        ),
        check=True,
        capture_output=True,
    )
    return file


@pytest.fixture
def served(authority: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, authority.with_suffix(".key"))
    return context


@pytest.mark.openssl
# aiosmtpd does not see that the whole connection is encrypted.
@pytest.mark.filterwarnings("ignore:Requiring AUTH")
@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
def test_a_mail_goes_encrypted_and_under_a_password(
    stage: Stage,
    authority: Path,
    served: ssl.SSLContext,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To a server whose certificate an authority of this machine has signed."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    ways: dict[str, Any] = {"starttls": served} if scheme == "smtp+starttls" else {"tls": served}
    with mail_server(login=True, **ways) as got:
        url = f"{scheme}://copies:{quote(PASSWORD, safe='')}@127.0.0.1:{got.port}"
        with posting(stage, got, SMTP_URL=url) as post:
            assert PASSWORD not in repr(post.own)
            post.ask(post.completed())
            post.turn()
            assert post.states() == [("sent", False, 1)]
    [mail] = got.mails
    assert mail.user == "copies"
    assert mail.is_encrypted


@pytest.mark.openssl
@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
def test_a_server_with_a_certificate_of_no_known_authority_gets_no_mail(
    stage: Stage, served: ssl.SSLContext, scheme: str
) -> None:
    ways: dict[str, Any] = {"starttls": served} if scheme == "smtp+starttls" else {"tls": served}
    with (
        mail_server(**ways) as got,
        posting(stage, got, SMTP_URL=f"{scheme}://127.0.0.1:{got.port}") as post,
    ):
        post.ask(post.completed())
        post.turn()
        assert got.tried == []
        assert post.states() == [(None, True, 1)]


def test_a_server_that_offers_no_encryption_gets_no_mail(stage: Stage) -> None:
    """Someone on the way may have taken the offer away."""
    with (
        mail_server() as got,
        posting(stage, got, SMTP_URL=f"smtp+starttls://127.0.0.1:{got.port}") as post,
    ):
        post.ask(post.completed())
        post.turn()
        assert got.tried == []
        assert post.own.attempts == {MailOutcome.POSTPONED: 1}


@pytest.mark.crash
@pytest.mark.one_engine
def test_a_kill_between_sending_and_noting_repeats_the_mail_once(
    tmp_path: Path,
) -> None:
    """Twice: the third server does not send it, and the row says that no one knows."""
    made = another_deployment(tmp_path / "data")
    with ExitStack() as opened:
        got = opened.enter_context(mail_server())
        own = {"SMTP_URL": f"smtp://127.0.0.1:{got.port}", "SMTP_SENDER": SENDER}
        configured = Deployment(data_dir=made.data_dir, settings=dict(made.settings) | own)
        operator = opened.enter_context(Operator(configured))
        got.hold = threading.Event()
        for number in (1, 2):
            got.arrived.clear()
            server = start_server(configured)
            if number == 1:
                vendor = opened.enter_context(operator.vendor(server))
                shop = Shop(vendor, server, opened)
                surfer = opened.enter_context(Surfer(server, shop.buyer()))
                form = next(f for f in surfer.complete().forms if f.action.endswith("/mail"))
                surfer.send(form, email=ADDRESS)
            assert got.arrived.wait(60)
            server.kill()
            assert len(got.mails) == number
            # Its lease is over at once, not in three minutes.
            operator.execute("UPDATE copy_mails SET due_at = 1")
        got.hold.set()
        server = start_server(configured)
        query = "SELECT outcome, address FROM copy_mails"
        until(lambda: operator.rows(query)[0]["outcome"])
        [row] = operator.rows(query)
        assert (row["outcome"], row["address"]) == ("unknown", None)
        assert len(got.mails) == 2
        assert server.stop() == 0
