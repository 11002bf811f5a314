"""The identity step of the hosted page in a real browser, with a simulated provider's own pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign.buyers import settings
from countersign.checkout.words import WORDS
from countersign.mode import Mode
from tests.browser.test_page import LOOKS, Order, agree, go_on, heading, initial
from tests.browser.windows import Windows, assert_accessible
from tests.http.backstage import Operator
from tests.support.providers import Playing, playing
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
EN, ES = WORDS["en"], WORDS["es"]
ZIP = "94110"
SOON = 60_000
"""Milliseconds in which the loops of a server have done their work."""


def said(name: str, words: Any = EN) -> str:  # noqa: ANN401 - texts of a locale
    text: str = words[name]
    return text.replace("{provider}", "Stripe").rpartition("{vendor}")[2]


@pytest.fixture
def stripe(operator: Operator, account: str) -> Iterator[Playing]:
    """Give the simulated Stripe, whose test mode the account's test keys use."""
    with playing("stripe") as provider:
        credentials = json.dumps(provider.simulator.credentials).encode()
        operator.act(
            lambda opened: settings.add(
                opened.buyers, account, Mode.TEST, provider.name, credentials, provider.url
            )
        )
        yield provider


@pytest.fixture
def order(client: httpx2.Client, server: Server) -> Order:
    return Order(client, server)


@pytest.fixture
def checked(order: Order, stripe: Playing) -> Order:
    """Give an order whose identity checks are made by the simulated Stripe."""
    assert stripe.url
    order.begin(collect=["identity", "acknowledgment"], shipping_zip=ZIP)
    return order


def press(page: Page, name: str, words: Any = EN) -> None:  # noqa: ANN401 - texts of a locale
    page.get_by_role("button", name=said(name, words), exact=True).click()


def leave(page: Page, words: Any = EN) -> None:  # noqa: ANN401 - as above
    """Start the check, and arrive at the provider's page."""
    press(page, "identity_start", words)
    expect(page.get_by_role("heading", level=1)).to_have_text("Agree to the check")


def find(page: Page, outcome: str) -> None:
    """Let the provider's page find this."""
    page.locator("#outcome").select_option(outcome)
    page.get_by_role("button").click()


def at_notice(page: Page, words: Any = EN) -> None:  # noqa: ANN401 - as above
    expect(page.get_by_role("heading", level=1)).to_have_text(words["title"], timeout=SOON)


def acknowledge(page: Page, words: Any = EN) -> None:  # noqa: ANN401 - as above
    at_notice(page, words)
    initial(page)
    go_on(page, words)
    agree(page, words)
    heading(page, words["done_title"])


def test_a_buyer_is_verified_and_acknowledges_with_one_link(
    windows: Windows, checked: Order
) -> None:
    page = windows.open()
    page.goto(checked.url)
    leave(page)
    assert page.evaluate("document.referrer") == ""
    find(page, "verified")
    acknowledge(page)
    assert checked.acknowledgment()["process"]["binding"] == "identity_session"
    assert checked.read()["cleared"] is True


def test_the_whole_way_works_step_by_step_on_a_small_slow_phone_by_touch(
    windows: Windows, checked: Order
) -> None:
    page = windows.phone()
    page.goto(checked.url)
    leave(page)
    for _ in range(4):
        page.get_by_role("button").tap()
        page.wait_for_load_state()
    find(page, "verified")
    acknowledge(page)


def test_a_check_that_is_begun_again_leads_on_in_a_slow_network(
    windows: Windows, checked: Order
) -> None:
    """The page is informed of the new check before the response to its form has arrived."""
    page = windows.open()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", slow)
    page.goto(checked.url)
    leave(page)
    for _ in range(3):
        page.goto(f"{checked.server.url}/c/{checked.id}")
        press(page, "identity_again")
        heading(page, "Agree to the check")


def test_the_whole_way_works_by_keyboard_alone(windows: Windows, checked: Order) -> None:
    page = windows.open()
    page.goto(checked.url)
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type ?? ''") == "submit":
            break
    page.keyboard.press("Enter")
    heading(page, "Agree to the check")
    page.locator("#outcome").focus()
    page.keyboard.type("Verified")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    at_notice(page)


def test_the_way_works_without_javascript(windows: Windows, checked: Order) -> None:
    page = windows.open(java_script_enabled=False)
    page.goto(checked.url)
    leave(page)
    find(page, "verified")
    acknowledge(page)


def test_a_check_that_fails_says_why_and_is_tried_again(windows: Windows, checked: Order) -> None:
    page = windows.open()
    page.goto(checked.url)
    leave(page)
    find(page, "underage")
    heading(page, EN["identity_title"])
    expect(page.get_by_role("alert")).to_contain_text(said("reason_age_below_minimum"))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text(said("reason_age_below_minimum"))
    press(page, "retry")
    heading(page, "Agree to the check")
    find(page, "verified")
    at_notice(page)


def test_a_decision_that_comes_later_is_shown_by_itself(windows: Windows, checked: Order) -> None:
    page = windows.open()
    page.goto(checked.url)
    leave(page)
    find(page, "later")
    at_notice(page)


def test_a_decision_that_comes_later_is_shown_without_javascript(
    windows: Windows, checked: Order
) -> None:
    page = windows.open(java_script_enabled=False)
    page.goto(checked.url)
    leave(page)
    find(page, "later")
    # The page loads itself again every 10 seconds.
    at_notice(page)


def test_the_page_follows_a_check_that_is_made_on_another_device(
    windows: Windows, checked: Order
) -> None:
    page, phone = windows.open(), windows.phone()
    page.goto(checked.url)
    leave(page)
    url = page.url
    page.go_back()
    page.goto(f"{checked.server.url}/c/{checked.id}")
    expect(page.get_by_text(said("identity_waiting"))).to_be_visible()
    press(page, "identity_device")
    expect(page.get_by_role("img", name=EN["identity_qr"])).to_be_visible()
    phone.goto(url)
    find(phone, "verified")
    heading(phone, EN["elsewhere_title"])
    assert_accessible(phone)
    at_notice(page)


def test_a_buyer_who_is_not_led_back_says_to_be_done(windows: Windows, checked: Order) -> None:
    page = windows.open()
    page.goto(checked.url)
    leave(page)
    find(page, "never")
    expect(page.get_by_role("link")).to_have_count(0)
    other = page.context.new_page()
    other.goto(checked.url)
    press(other, "identity_done")
    at_notice(other)


def test_two_tabs_lead_to_one_check(windows: Windows, checked: Order, stripe: Playing) -> None:
    first = windows.open()
    first.goto(checked.url)
    second = first.context.new_page()
    second.goto(checked.url)
    leave(first)
    leave(second)
    assert first.url == second.url
    find(second, "verified")
    at_notice(second)
    first.goto(f"{checked.server.url}/c/{checked.id}")
    acknowledge(first)
    second.reload()
    heading(second, EN["done_title"])
    made = [r for r in stripe.served.requests if r.method == "POST" and "/v1/" in r.path]
    assert len({request.headers["idempotency-key"] for request in made}) == 1


def test_a_second_click_starts_one_check(windows: Windows, checked: Order, stripe: Playing) -> None:
    page = windows.open()
    page.goto(checked.url)
    page.get_by_role("button", name=EN["identity_start"]).dblclick()
    heading(page, "Agree to the check")
    made = [r for r in stripe.served.requests if r.method == "POST" and "/v1/" in r.path]
    assert len(made) == 1


def test_the_way_is_in_spanish(windows: Windows, order: Order, stripe: Playing) -> None:
    assert stripe.url
    page = windows.open(locale="es-MX")
    page.goto(
        order.begin(collect=["identity", "acknowledgment"], shipping_zip=ZIP, locale="es").url
    )
    heading(page, ES["identity_title"])
    leave(page, ES)
    find(page, "photo_blurred")
    expect(page.get_by_role("alert")).to_contain_text(ES["reason_document_not_accepted"])
    press(page, "retry", ES)
    heading(page, "Agree to the check")
    find(page, "verified")
    acknowledge(page, ES)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_every_state_is_accessible_and_can_be_loaded_again(
    windows: Windows, checked: Order, stripe: Playing, look: dict[str, Any]
) -> None:
    """And nothing has to be scrolled sideways."""
    windows.expect_trouble("503")
    page = windows.open(**look)

    def shows(text: str) -> None:
        for _ in range(2):
            expect(page.get_by_text(said(text)).first).to_be_visible()
            heading(page, EN["identity_title"])
            assert_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), text
            page.goto(f"{checked.server.url}/c/{checked.id}")

    page.goto(checked.url)
    shows("identity_how")
    leave(page)
    page.goto(f"{checked.server.url}/c/{checked.id}")
    shows("identity_waiting")
    press(page, "identity_device")
    expect(page.get_by_role("img", name=EN["identity_qr"])).to_be_visible()
    assert_accessible(page)
    press(page, "identity_done")
    expect(page.get_by_role("alert")).to_contain_text(said("identity_unfinished"))
    assert_accessible(page)
    with stripe.mood(lambda _, reply: replace(reply, status=500)):
        press(page, "identity_done")
        expect(page.get_by_role("alert")).to_contain_text(said("provider_down"))
        assert_accessible(page)
    press(page, "identity_continue")
    find(page, "underage")
    shows("reason_age_below_minimum")
    page.get_by_role("link", name=EN["decline"]).click()
    heading(page, EN["decline_identity_title"])
    assert_accessible(page)
    page.get_by_role("link", name=EN["decline_back_identity"]).click()
    for _ in range(4):
        press(page, "retry")
        find(page, "cancelled")
    expect(page.get_by_text(re.compile("ask what to do"))).to_be_visible()
    assert_accessible(page)


def test_a_played_check_is_decided_later_and_followed_from_another_tab(
    windows: Windows, order: Order
) -> None:
    page = windows.open()
    page.goto(order.begin(collect=["identity", "acknowledgment"]).url)
    page.get_by_label(EN["outcome_later"], exact=True).check()
    press(page, "identity_start")
    expect(page.get_by_text(EN["identity_deciding"])).to_be_visible()
    assert_accessible(page)
    other = page.context.new_page()
    other.goto(order.url)
    press(other, "identity_look")
    at_notice(other)
    at_notice(page)
