"""The form that mails a buyer the copy's link: where it is, and its input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Form, Page, Surfer
from tests.http.backstage import Operator, another_deployment
from tests.support.mail_server import MailServer, mail_server, until
from tests.support.service import Deployment, Server, running_server

pytestmark = pytest.mark.one_engine

EN, ES = WORDS["en"], WORDS["es"]
ADDRESS: Final = "ana.lopez@example.org"


class Posted:
    """A shop whose service sends mails, its operator, and the mail server."""

    def __init__(self, shop: Shop, operator: Operator, got: MailServer) -> None:
        self.shop, self.operator, self.got = shop, operator, got

    def surfer(self, **changes: object) -> Surfer:
        return self.shop.opened.enter_context(Surfer(self.shop.server, self.shop.buyer(**changes)))

    @property
    def number(self) -> int:
        return len(self.operator.rows("SELECT id FROM copy_mails"))


@pytest.fixture(scope="module")
def posted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Posted]:
    """Run a server with a mail server for the whole file."""
    with ExitStack() as opened:
        got = opened.enter_context(mail_server())
        made = another_deployment(tmp_path_factory.mktemp("mails") / "data")
        own = {"SMTP_URL": f"smtp://127.0.0.1:{got.port}", "SMTP_SENDER": "copies@service.example"}
        configured = Deployment(data_dir=made.data_dir, settings=dict(made.settings) | own)
        operator = opened.enter_context(Operator(configured))
        server: Server = opened.enter_context(running_server(configured))
        vendor = opened.enter_context(operator.vendor(server))
        yield Posted(Shop(vendor, server, opened), operator, got)


def mail_form(page: Page) -> Form | None:
    return next((form for form in page.forms if form.action.endswith("/mail")), None)


def offered(page: Page) -> Form:
    found = mail_form(page)
    assert found is not None
    return found


def test_the_last_page_sends_the_link_and_says_that_it_will(posted: Posted) -> None:
    """The link in the mail opens the copy without a cookie, and nothing else of the session."""
    surfer = posted.surfer()
    done = surfer.complete()
    assert offered(done).fields["email"] == ""
    said = surfer.send(offered(done), email=ADDRESS)
    assert said.status == 200
    assert EN["mail_queued"] in said.text
    assert ADDRESS not in said.response.text
    assert str(said.response.url).endswith("?mail=queued#mail")
    until(lambda: posted.got.mails)
    [got] = posted.got.mails
    [link] = [word for word in got.text.split() if word.startswith("http")]
    with Surfer(posted.shop.server, surfer.buyer) as other:
        path = "/" + link.split("/", 3)[3]
        copy = other.open(path)
        assert copy.heading == EN["copy_title"]
        assert mail_form(copy) is None, "who has the copy sends no mails"
        assert not other.client.cookies


def test_an_invalid_address_is_reported_at_its_field(posted: Posted) -> None:
    """First in the title, and the field names the error; the address is not stored."""
    surfer, before = posted.surfer(), posted.number
    wrong = surfer.send(
        offered(surfer.complete()), email="ana@example.org\r\nBcc: mallory@x.example"
    )
    assert wrong.status == 200
    assert f"<title>{EN['mail_wrong']}" in wrong.response.text
    [field] = wrong.having(id="email")
    assert field["aria-invalid"] == "true"
    assert field["aria-describedby"].split() == ["mail-hint", "email-error"]
    [problem] = wrong.having(id="email-error")
    assert problem["class"] == "problem"
    assert "mallory" not in wrong.response.text
    assert "mallory" not in str(wrong.response.url)
    assert posted.number == before
    assert EN["mail_queued"] in surfer.send(offered(wrong), email="bea@example.org").text


def test_the_mail_has_the_language_of_the_page(posted: Posted) -> None:
    surfer = posted.surfer(locale="es")
    page = surfer.send(offered(surfer.complete()), email="bea@example.org")
    assert ES["mail_queued"] in page.text
    until(lambda: any(ES["mail_subject"] == got.message["subject"] for got in posted.got.mails))


def test_after_three_mails_the_page_says_that_there_are_no_more(posted: Posted) -> None:
    """The third is still confirmed; an old form says the same."""
    surfer = posted.surfer()
    form = offered(surfer.complete())
    page, *_ = [surfer.send(form, email=f"c{number}@example.org") for number in (0, 1, 2)][::-1]
    assert EN["mail_queued"] in page.text
    assert EN["mail_enough"] in page.text
    assert mail_form(page) is None
    before = posted.number
    again = surfer.send(form, email="c3@example.org")
    assert EN["mail_queued"] not in again.text
    assert EN["mail_enough"] in again.text
    assert posted.number == before


def test_an_address_cannot_make_the_page_claim_anything_false(posted: Posted) -> None:
    """Somebody else may have made it."""
    surfer = posted.surfer()
    surfer.complete()
    assert EN["mail_queued"] not in surfer.open(f"{surfer.root}?mail=queued").text


def test_only_the_form_of_this_session_and_browser_is_accepted(posted: Posted) -> None:
    """Not one of another session or browser, without a cookie, or from another site."""
    one, other = posted.surfer(), posted.surfer()
    form, foreign = offered(one.complete()), offered(other.complete())
    second = Surfer(posted.shop.server, one.buyer)
    before = posted.number
    sent = form.fields | {"email": ADDRESS}
    with second:
        assert second.client.post(form.action, data=sent).status_code == 404
    for changes in ({"csrf": foreign.fields["csrf"]}, {"csrf": ""}, {"csrf": None}):
        assert one.send(form, email=ADDRESS, **changes).status == 403
    from_elsewhere = one.client.post(
        form.action,
        data=form.fields | {"email": ADDRESS},
        headers={"Origin": "https://evil.example"},
    )
    assert from_elsewhere.status_code == 403
    assert other.client.post(form.action, data=sent).status_code == 404
    assert posted.number == before


def test_no_mail_is_sent_before_the_end_or_without_a_copy(posted: Posted) -> None:
    """Not for an open session, a declined one, or one for the identity alone."""
    surfer, before = posted.surfer(), posted.number
    notice = surfer.open()
    assert mail_form(notice) is None
    form = Form(f"{surfer.root}/mail", "post", dict(notice.form.fields) | {"email": ADDRESS})
    assert surfer.send(form).heading == EN["title"]
    assert surfer.buyer.decline().status_code == 200
    ended = surfer.open(surfer.root)
    assert mail_form(ended) is None
    assert surfer.send(form).heading == EN["declined_title"]
    assert posted.number == before


def test_a_get_of_the_forms_address_redirects_to_the_page(posted: Posted) -> None:
    """For example after Back, or a reload."""
    surfer = posted.surfer()
    surfer.complete()
    assert surfer.open(f"{surfer.root}/mail").heading == EN["done_title"]


def test_without_a_mail_server_there_is_neither_form_nor_address(
    shop: Shop,
) -> None:
    """The response is that of any unknown address."""
    with Surfer(shop.server, shop.buyer()) as surfer:
        done = surfer.complete()
        assert mail_form(done) is None
        assert EN["mail_title"] not in done.text
        fields = {"csrf": done.form.fields["csrf"] if done.forms else "", "email": ADDRESS}
        answers = [
            [surfer.client.get(path), surfer.client.post(path, data=fields)]
            for path in (f"{surfer.root}/mail", f"{surfer.root}/unknown")
        ]
        ours, others = ([(one.status_code, one.text) for one in two] for two in answers)
        assert ours == others
        assert [status for status, _ in ours] == [404, 404]
