"""The identity step of the hosted page in a browser without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import segno

from countersign.base.values import Mode
from countersign.core.buyers import settings
from countersign.core.checkout.model import ATTEMPTS_MAX
from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.base import Reply, Request
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.provider import (
    Counter,
    address,
    arrive,
    begin,
    check,
    come_back,
    counter,
    finish,
    go_on,
    send,
)
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client
from tests.support.providers import playing

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]
BOTH = ["identity", "acknowledgment"]
FULL = 60 * 1024
DOWN = EN["provider_down"].replace("{provider}", "Stripe")


def ends(words: str) -> str:
    """The end of these words after the name of the shop, if they have it."""
    return words.rpartition("{vendor}")[2]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


def form(page: Page, what: str) -> int:
    """How many forms lead there."""
    return sum(one.action.endswith(f"/{what}") for one in page.forms)


def test_a_successful_check_continues_to_the_notice(desk: Counter) -> None:
    surfer = desk.buyer()
    page = surfer.open()
    assert page.heading == EN["identity_title"]
    assert EN["identity_how"].replace("{provider}", "Stripe") in page.text
    notice = check(surfer, "verified", page)
    assert notice.heading == EN["title"]
    surfer.agree(surfer.initial(notice))
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["cleared"]) == ("completed", True)
    acknowledgment = desk.shop.client.get(f"/v1/acknowledgments/{found['ack_id']}").json()
    assert acknowledgment["process"]["binding"] == "identity_session"
    assert acknowledgment["process"]["verification"].startswith("ver_")


@pytest.mark.parametrize("name", SIMULATORS)
def test_every_provider_is_a_way_through(shop: Shop, operator: Operator, name: str) -> None:
    with counter(shop, operator, name) as desk:
        assert ends(EN["reason_age_below_minimum"]) in check(desk.buyer(), "underage").text
        assert check(desk.buyer(), "verified").heading == EN["title"]
        later = desk.buyer(collect=["identity"], notice_id=None)
        deciding = check(later, "later")
        assert EN["identity_deciding"] in deciding.text
        assert send(later, deciding, "check").heading == EN["done_title"]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("underage", "reason_age_below_minimum"),
        ("wrong_zip", "reason_zip_mismatch"),
        ("document_expired", "reason_document_expired"),
        ("photo_blurred", "reason_document_not_accepted"),
        ("consent_declined", "reason_consent_declined"),
        ("cancelled", "reason_session_canceled"),
    ],
)
def test_a_check_that_fails_says_why_and_can_be_repeated(
    desk: Counter, outcome: str, said: str
) -> None:
    surfer = desk.buyer()
    failed = check(surfer, outcome)
    assert (failed.heading, ends(EN[said]) in failed.text) == (EN["identity_title"], True), (
        failed.text
    )
    assert EN["reason_identity_requires_input"] not in failed.text
    assert len(failed.having(role="alert")) == 1
    assert desk.status(surfer) == "open"
    assert check(surfer, "verified", failed).heading == EN["title"]


@pytest.mark.parametrize(
    ("name", "other", "said"),
    [
        ("stripe", None, {"identity_zip_document": "Stripe"}),
        ("veriff", None, {"identity_zip_document": "Veriff"}),
        ("onfido", None, {"identity_zip_document": "Onfido"}),
        ("persona", None, {"identity_zip_database": "Persona"}),
        ("plaid", None, {"identity_zip_database": "Plaid"}),
        ("didit", None, {"identity_zip_proof": "Didit"}),
        (
            "stripe",
            "didit",
            {"identity_zip_document": "Stripe", "identity_zip_elsewhere": "Didit"},
        ),
    ],
)
def test_another_zip_code_is_explained_by_what_this_provider_can_check(
    shop: Shop, operator: Operator, name: str, other: str | None, said: dict[str, str]
) -> None:
    """The way back to the shop comes first: the same document ends the same way, and is paid."""
    with ExitStack() as stack:
        desk = stack.enter_context(counter(shop, operator, name))
        surfer = desk.buyer()
        begun = begin(surfer)
        if other is not None:
            desk.use(stack.enter_context(playing(other)))
        page = arrive(surfer, finish(begun, "wrong_zip"))
        shown = {
            text: title
            for text in (one for one in EN if one.startswith("identity_zip_"))
            for title in ("Stripe", "Veriff", "Onfido", "Persona", "Plaid", "Didit")
            if EN[text].replace("{provider}", title) in page.text
        }
        assert shown == said
        back = page.response.text.index(f'class="button" href="{SHOP}')
        assert back < page.response.text.index('name="provider"')


def test_the_time_until_when_it_is_waited_is_the_readers_own(desk: Counter) -> None:
    """A script shows it in the zone of the browser; without one, it is in UTC."""
    surfer = desk.buyer(collect=["identity"], notice_id=None)
    deciding = check(surfer, "later")
    [time] = [have for name, have in deciding.elements if name == "time"]
    assert time["datetime"] == desk.shop.read(surfer.buyer)["expires_at"]
    assert "data-local" in time
    assert " UTC (20" in deciding.text


def test_a_later_decision_of_a_check_is_applied_by_itself(desk: Counter) -> None:
    surfer = desk.buyer(collect=["identity"], notice_id=None)
    deciding = check(surfer, "later")
    assert EN["identity_deciding"] in deciding.text
    assert "{vendor}" not in deciding.text
    assert '<noscript><meta http-equiv="refresh" content="10;url=' in deciding.response.text
    done = send(surfer, deciding, "check")
    assert (done.heading, EN["done_identity"] in done.text) == (EN["done_title"], True)
    assert desk.shop.events(surfer.buyer) == ["checkout_session.completed"]


def test_a_buyer_without_a_redirect_from_the_provider_reports_being_done(desk: Counter) -> None:
    surfer = desk.buyer()
    assert finish(begin(surfer), "never") is None
    waiting = surfer.open(surfer.root)
    assert EN["identity_waiting"].replace("{provider}", "Stripe") in waiting.text
    assert send(surfer, waiting, "check").heading == EN["title"]


def test_a_check_that_is_not_finished_says_so_and_can_be_continued(desk: Counter) -> None:
    surfer = desk.buyer()
    url = begin(surfer)
    waiting = surfer.open(surfer.root)
    assert go_on(surfer, waiting) == url
    unfinished = send(surfer, waiting, "check")
    assert EN["identity_unfinished"].replace("{provider}", "Stripe") in unfinished.text
    assert go_on(surfer, unfinished) == url
    assert come_back(surfer, finish(url, "verified")).heading == EN["title"]


def test_the_waiting_page_shows_the_address_for_another_device(desk: Counter) -> None:
    surfer = desk.buyer()
    url = begin(surfer)
    before = surfer.open(surfer.root)
    # The address is spent: another device gets one of its own.
    assert "<svg" not in before.response.text
    waiting = surfer.send(next(form for form in before.forms if "device" in form.fields))
    drawn = segno.make(url, error="l", micro=False).svg_inline(border=4, light="#fff")
    assert "<details open>" in waiting.response.text
    path = drawn.rpartition('d="')[2].partition('"')[0]
    assert path in waiting.response.text
    assert EN["identity_qr"] in waiting.text
    finish(url, "verified")
    with make_client(desk.shop.server) as phone:
        answer = phone.get(f"{surfer.root}/return")
        check_headers(answer)
    assert (answer.status_code, EN["elsewhere_title"] in answer.text) == (200, True)
    assert send(surfer, waiting, "check").heading == EN["title"]


def test_two_tabs_have_one_check_and_a_buyer_may_begin_again(desk: Counter) -> None:
    surfer = desk.buyer()
    first = surfer.open()
    url = begin(surfer, first)
    assert begin(surfer, first) == url
    waiting = surfer.open(surfer.root)
    again = begin(surfer, waiting)
    assert again != url
    assert begin(surfer, waiting) == again
    # The first was finished, in the tab that was left.
    assert come_back(surfer, finish(url, "verified")).heading == EN["title"]


def test_attempts_are_used_up_in_the_end(desk: Counter) -> None:
    surfer = desk.buyer()
    page = surfer.open()
    for _ in range(ATTEMPTS_MAX):
        assert form(page, "start") == 1
        page = check(surfer, "photo_blurred", page)
    assert EN["reason_document_not_accepted"] in page.text
    assert "ask what to do" in page.text
    assert page.forms == []
    assert surfer.follow(page, EN["decline"]).heading == EN["decline_identity_title"]


def test_a_provider_that_does_not_respond_is_tried_again(desk: Counter) -> None:
    surfer = desk.buyer()
    page = surfer.open()

    def down(request: Request, reply: Reply) -> Reply:
        return Reply(status=500, headers=(), body=b"")

    with desk.provider.mood(down):
        unavailable = send(surfer, page, "start")
        assert (unavailable.status, DOWN in unavailable.text) == (200, True)
    url = begin(surfer, unavailable)
    location = finish(url, "verified")
    with desk.provider.mood(down):
        waiting = send(surfer, surfer.open(surfer.root), "check")
        assert (DOWN in waiting.text, form(waiting, "start")) == (True, 3)
        assert come_back(surfer, location).status == 200
    assert send(surfer, waiting, "check").heading == EN["title"]


def test_the_buyer_chooses_among_several_providers(desk: Counter) -> None:
    with playing("persona") as other:
        desk.use(other)
        surfer = desk.buyer()
        page = surfer.open()
        assert EN["identity_choose"] in page.text
        names = [have["value"] for have in page.having(name="provider")]
        assert names == ["persona", "stripe"]
        start = next(one for one in page.forms if one.action.endswith("/start"))
        assert address(surfer.send(start, provider="stripe")).startswith(desk.provider.url)
        assert surfer.send(start, provider="nobody").status == 400
    waiting = surfer.open(surfer.root)
    offered = [have["value"] for have in waiting.having(name="provider")]
    assert offered == ["stripe", "stripe", *names]


def test_every_state_is_in_spanish_and_light(desk: Counter) -> None:
    surfer = desk.buyer(locale="es")
    page = surfer.open()
    assert page.heading == ES["identity_title"]
    leaving = surfer.send(page.form)
    url = leaving.links[ES["identity_continue"].replace("{provider}", "Stripe")]
    waiting = surfer.open(surfer.root)
    assert ES["identity_waiting"].replace("{provider}", "Stripe") in waiting.text
    deciding = come_back(surfer, finish(url, "later"))
    assert ES["identity_deciding"] in deciding.text
    other = desk.buyer(locale="es")
    leaving = other.send(other.open().form)
    url = leaving.links[ES["identity_continue"].replace("{provider}", "Stripe")]
    failed = come_back(other, finish(url, "underage"))
    assert ends(ES["reason_age_below_minimum"]) in failed.text
    for one in (page, leaving, waiting, deciding, failed):
        assert len(one.response.content) < FULL
        assert '<html lang="es">' in one.response.text
        assert "{" not in one.text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("cancelled", "reason_session_canceled"), ("expired", "reason_session_expired")],
)
def test_the_simulated_provider_gives_up_as_real_ones_do(
    surf: Surf, outcome: str, said: str
) -> None:
    surfer = surf(collect=BOTH)
    failed = surfer.send(surfer.open().form, outcome=outcome)
    assert EN[said] in failed.text
    assert surfer.send(failed.form).heading == EN["title"]


def test_the_pretended_provider_decides_later(surf: Surf) -> None:
    surfer = surf(collect=BOTH)
    deciding = surfer.send(surfer.open().form, outcome="later")
    assert EN["identity_leave_open"] in deciding.text
    assert send(surfer, deciding, "check").heading == EN["title"]


def test_a_session_without_a_notice_mentions_none(surf: Surf) -> None:
    surfer = surf(collect=["identity"], notice_id=None)
    asked = surfer.follow(surfer.open(), EN["decline"])
    assert asked.heading == EN["decline_identity_title"]
    back = surfer.follow(asked, EN["decline_back_identity"])
    assert back.heading == EN["identity_title"]
    declined = surfer.send(asked.form)
    assert "Your identity was not verified." in declined.text


def test_continuing_with_the_same_provider_session_is_noticed_at_once(desk: Counter) -> None:
    surfer = desk.buyer(collect=["identity"])
    url = begin(surfer)
    blurred = come_back(surfer, finish(url, "photo_blurred"))
    assert EN["identity_failed"] in blurred.text
    assert come_back(surfer, finish(url, "verified")).heading == EN["done_title"]


def test_a_simulated_check_ends_when_the_account_gets_a_provider(
    shop: Shop, operator: Operator, surf: Surf
) -> None:
    surfer = surf(collect=["identity"], notice_id=None, shipping_zip="94110")
    deciding = surfer.send(surfer.open().form, outcome="later")
    with counter(shop, operator) as desk:
        page = send(surfer, deciding, "check")
        assert desk.status(surfer) == "open"
        assert "Stripe" in page.text
        assert check(surfer, "verified", page).heading == EN["done_title"]


def test_the_page_names_the_provider_of_its_button(desk: Counter) -> None:
    """It is the provider that will be started, even after the account has changed its provider."""
    surfer = desk.buyer()
    failed = check(surfer, "underage")
    assert "Stripe" in failed.text
    account = desk.shop.vendor.account_id
    with playing("persona") as persona:
        desk.operator.act(lambda opened: settings.drop(opened.buyers, account, Mode.TEST, "stripe"))
        desk.use(persona)
        page = surfer.open(surfer.root)
        assert ("Persona" in page.text, "Stripe" in page.text) == (True, False)
        url = begin(surfer, page)
        assert url.startswith(persona.url)


def test_the_page_of_a_decided_check_is_for_the_browser_that_began_it(
    desk: Counter,
) -> None:
    """Another one may begin a check of its own; the first one goes on waiting, also then."""
    buyer = desk.buyer(collect=["identity"], notice_id=None)
    first = begin(buyer)
    other = desk.shop.opened.enter_context(Surfer(desk.shop.server, buyer.buyer))
    deciding = come_back(buyer, finish(first, "later"))
    assert EN["identity_deciding"] in deciding.text
    assert form(deciding, "start") == 0
    page = other.open()
    assert EN["identity_deciding"] in page.text
    assert address(send(other, page, "start")) != first
    deciding = buyer.open(buyer.root)
    assert EN["identity_deciding"] in deciding.text
    assert (form(deciding, "start"), form(deciding, "check")) == (0, 1)
