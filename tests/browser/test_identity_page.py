"""The identity step of the hosted page in a real browser, on slow devices and in every look.

In every condition, at each provider: `test_identity_walks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign.hosted.toolkit.screens import WORDS
from tests.browser.checks import CONSENT, ZIP, provided
from tests.browser.test_page import Order, agree, go_on, heading, initial
from tests.browser.windows import (
    Windows,
    assert_accessible,
    assert_accessible_in_every_look,
)
from tests.http.backstage import Operator
from tests.support.providers import Playing
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
EN = WORDS["en"]
SOON = 60_000
"""Milliseconds within which the background loops of a server have run."""


def said(name: str) -> str:
    text: str = EN[name]
    return text.replace("{provider}", "Stripe").rpartition("{vendor}")[2]


@pytest.fixture
def stripe(operator: Operator, account: str, server: Server) -> Iterator[Playing]:
    """Give the simulated Stripe, whose test mode the account's test keys use."""
    with provided(operator, account, server, "stripe") as provider:
        yield provider


@pytest.fixture
def order(client: httpx2.Client, server: Server) -> Order:
    return Order(client, server)


@pytest.fixture
def checked(order: Order, stripe: Playing) -> Order:
    """An order whose identity checks the simulated Stripe makes."""
    assert stripe.url
    order.begin(collect=["identity", "acknowledgment"], shipping_zip=ZIP)
    return order


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=said(name), exact=True).click()


def leave(page: Page) -> None:
    """Start the check, and arrive at the provider's page."""
    press(page, "identity_start")
    expect(page.get_by_role("heading", level=1)).to_have_text(CONSENT)


def find(page: Page, outcome: str) -> None:
    """Let the provider's page find this."""
    page.locator("#outcome").select_option(outcome)
    page.get_by_role("button").click()


def at_notice(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(EN["title"], timeout=SOON)


def acknowledge(page: Page) -> None:
    at_notice(page)
    initial(page)
    go_on(page)
    agree(page)
    heading(page, EN["done_title"])


def test_the_whole_way_works_step_by_step_on_a_small_slow_phone_by_touch(
    windows: Windows, checked: Order
) -> None:
    page = windows.slow_phone()
    page.goto(checked.url)
    leave(page)
    for _ in range(4):
        page.get_by_role("button").tap()
        page.wait_for_load_state()
    find(page, "verified")
    acknowledge(page)


def test_a_restarted_check_continues_in_a_slow_network(windows: Windows, checked: Order) -> None:
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
        heading(page, CONSENT)


def test_the_page_follows_a_check_on_another_device(windows: Windows, checked: Order) -> None:
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


def test_a_second_click_starts_one_check(windows: Windows, checked: Order, stripe: Playing) -> None:
    page = windows.open()
    page.goto(checked.url)
    page.get_by_role("button", name=EN["identity_start"]).dblclick()
    heading(page, CONSENT)
    made = [r for r in stripe.served.requests if r.method == "POST" and "/v1/" in r.path]
    assert len(made) == 1


@pytest.mark.timeout(300)
def test_every_state_is_accessible_and_can_be_loaded_again(
    windows: Windows, checked: Order, stripe: Playing
) -> None:
    """In every look."""
    page = windows.open()

    def shows(text: str) -> None:
        for _ in range(2):
            expect(page.get_by_text(said(text)).first).to_be_visible()
            heading(page, EN["identity_title"])
            assert_accessible_in_every_look(page)
            page.goto(f"{checked.server.url}/c/{checked.id}")

    page.goto(checked.url)
    shows("identity_how")
    leave(page)
    page.goto(f"{checked.server.url}/c/{checked.id}")
    shows("identity_waiting")
    press(page, "identity_device")
    expect(page.get_by_role("img", name=EN["identity_qr"])).to_be_visible()
    assert_accessible_in_every_look(page)
    press(page, "identity_done")
    expect(page.get_by_role("alert")).to_contain_text(said("identity_unfinished"))
    assert_accessible_in_every_look(page)
    with stripe.mood(lambda _, reply: replace(reply, status=500)):
        press(page, "identity_done")
        expect(page.get_by_role("alert")).to_contain_text(said("provider_down"))
        assert_accessible_in_every_look(page)
    press(page, "identity_continue")
    find(page, "underage")
    shows("reason_age_below_minimum")
    page.get_by_role("link", name=EN["decline"]).click()
    heading(page, EN["decline_identity_title"])
    assert_accessible_in_every_look(page)
    page.get_by_role("link", name=EN["decline_back_identity"]).click()
    for _ in range(4):
        press(page, "retry")
        find(page, "cancelled")
    expect(page.get_by_text(re.compile("ask what to do"))).to_be_visible()
    assert_accessible_in_every_look(page)
