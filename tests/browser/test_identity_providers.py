"""The pages of five providers in a real browser, from our hosted page and back to it.

Stripe's are in `test_identity_page`. Each provider is met under conditions of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign.buyers import settings
from countersign.checkout.words import WORDS
from countersign.mode import Mode
from countersign_simulators.hosted import STEPS, Outcome
from tests.browser.test_identity_page import ZIP, acknowledge, at_notice, find, leave, press
from tests.browser.test_page import Order, heading
from tests.browser.windows import Windows, assert_accessible
from tests.checkout import outcomes
from tests.http.backstage import Operator
from tests.support.providers import Playing, playing
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.usefixtures("patient"),
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
EN, ES = WORDS["en"], WORDS["es"]
CONSENT = "Agree to the check"
_DUE = "UPDATE pending_sessions SET next_poll_at = 0 WHERE account_id = :account"
_NOT_DUE = "UPDATE pending_sessions SET next_poll_at = next_poll_at * 2 WHERE account_id = :account"


@dataclass(frozen=True)
class Buying:
    """An order whose identity checks are made by one simulated provider."""

    order: Order
    provider: Playing
    operator: Operator
    account: str

    def begin(self, locale: str = "en") -> str:
        """A new link."""
        collect = ["identity", "acknowledgment"]
        return self.order.begin(collect=collect, shipping_zip=ZIP, locale=locale).url

    @property
    def here(self) -> str:
        """The address of the page for a browser that has opened the link."""
        return f"{self.order.server.url}/c/{self.order.id}"

    def said(self, name: str, words: Any = EN) -> str:  # noqa: ANN401 - texts of a locale
        """A text of the page, or what follows the vendor's name in it."""
        text: str = words[name].rpartition("{vendor}")[2]
        return text.replace("{provider}", self.provider.name.capitalize())

    def reason(self, outcome: Outcome, words: Any = EN) -> str:  # noqa: ANN401 - as above
        return self.said(outcomes.said(self.provider.name, outcome), words)

    def ask_by_hand(self) -> None:
        """The provider is heard and asked no more, until it is `due` or a buyer comes back."""
        self.provider.simulator.is_silent = True
        assert self.operator.execute(_NOT_DUE, account=self.account) == 1

    def ask_now(self) -> None:
        """The time has come to ask the provider."""
        assert self.operator.execute(_DUE, account=self.account) == 1

    def assert_cleared(self) -> None:
        assert self.order.read()["cleared"] is True
        assert self.order.acknowledgment()["process"]["binding"] == "identity_session"


@pytest.fixture
def buying(
    request: pytest.FixtureRequest,
    operator: Operator,
    account: str,
    client: httpx2.Client,
    server: Server,
) -> Iterator[Buying]:
    """Give an order at this provider, whose messages arrive."""
    webhooks = f"{server.url}/v1/provider_webhooks/{request.param}/{account}"
    with playing(request.param, webhook_url=webhooks) as provider:
        credentials = json.dumps(provider.simulator.credentials).encode()
        operator.act(
            lambda opened: settings.add(
                opened.buyers, account, Mode.TEST, provider.name, credentials, provider.url
            )
        )
        yield Buying(Order(client, server), provider, operator, account)


def at(name: str) -> pytest.MarkDecorator:
    """The provider of a test."""
    return pytest.mark.parametrize("buying", [name], indirect=True)


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def tab_to(page: Page, condition: str) -> None:
    """Reach what has this, `it` being the focused element, with the keyboard."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(f"(it => {condition})(document.activeElement)"):
            return
    pytest.fail(f"nothing with {condition} can be reached by keyboard")


@at("persona")
def test_a_persona_check_is_passed_step_by_step_on_a_small_slow_phone(
    windows: Windows, buying: Buying
) -> None:
    """By touch, with nothing wider than 360 px."""
    page = windows.phone()
    page.goto(buying.begin())
    heading(page, EN["identity_title"])
    assert fits(page)
    leave(page)
    for number in range(1, len(STEPS)):
        expect(page.get_by_text(f"Step {number} of {len(STEPS)}")).to_be_visible()
        assert fits(page)
        page.get_by_role("button").tap()
    expect(page.get_by_text(f"Step {len(STEPS)} of {len(STEPS)}")).to_be_visible()
    find(page, Outcome.VERIFIED)
    at_notice(page)
    assert fits(page)
    acknowledge(page)
    assert fits(page)
    buying.assert_cleared()


@at("veriff")
def test_a_veriff_check_that_fails_says_why_and_is_tried_again_by_keyboard_alone(
    windows: Windows, buying: Buying
) -> None:
    page = windows.open()

    def check(outcome: Outcome, button: str) -> None:
        tab_to(page, f"it.textContent === {json.dumps(button)}")
        page.keyboard.press("Enter")
        heading(page, CONSENT)
        tab_to(page, "it.id === 'outcome'")
        for _ in Outcome:
            if page.locator("#outcome").input_value() == outcome:
                break
            page.keyboard.press("ArrowDown")
        expect(page.locator("#outcome")).to_have_value(outcome)
        tab_to(page, "it.tagName === 'BUTTON'")
        page.keyboard.press("Enter")

    page.goto(buying.begin())
    heading(page, EN["identity_title"])
    check(Outcome.FAILED, EN["identity_start"])
    expect(page.get_by_role("alert")).to_contain_text(buying.reason(Outcome.FAILED))
    assert buying.order.read()["status"] == "open"
    check(Outcome.VERIFIED, EN["retry"])
    at_notice(page)
    acknowledge(page)
    buying.assert_cleared()


@at("plaid")
def test_a_plaid_check_has_a_window_of_its_own_and_our_page_follows_it(
    windows: Windows, buying: Buying
) -> None:
    """By the provider's message, and where that is lost, by asking; each state is accessible."""
    page = windows.open()

    def apart(outcome: Outcome) -> None:
        expect(page.get_by_text(buying.said("identity_apart"))).to_be_visible()
        assert_accessible(page)
        with page.context.expect_page() as opened:
            page.get_by_role("link", name=buying.said("identity_continue")).click()
        window = opened.value
        heading(window, CONSENT)
        assert window.evaluate("[document.referrer, opener]") == ["", None]
        assert_accessible(window)
        find(window, outcome)
        heading(window, "This check is over")
        expect(window.get_by_role("link")).to_have_count(0)
        assert_accessible(window)
        window.close()

    page.goto(buying.begin())
    heading(page, EN["identity_title"])
    assert_accessible(page)
    press(page, "identity_start")
    apart(Outcome.UNDERAGE)
    expect(page.get_by_role("alert")).to_contain_text(buying.reason(Outcome.UNDERAGE))
    assert_accessible(page)
    press(page, "retry")
    expect(page.get_by_text(buying.said("identity_apart"))).to_be_visible()
    buying.ask_by_hand()
    apart(Outcome.LATER)
    press(page, "identity_done")
    expect(page.get_by_text(EN["identity_deciding"])).to_be_visible()
    assert_accessible(page)
    buying.ask_now()
    at_notice(page)
    assert_accessible(page)
    acknowledge(page)
    assert_accessible(page)
    buying.assert_cleared()


@at("didit")
def test_two_tabs_show_one_didit_check_in_spanish_and_can_be_loaded_again(
    windows: Windows, buying: Buying
) -> None:
    first = windows.open(locale="es-MX")
    first.goto(buying.begin("es"))
    second = first.context.new_page()
    second.goto(buying.here)

    def both_show(text: str) -> None:
        for page in (first, second):
            # The first time, without a reload: a tab follows what happens in the other one.
            for _ in range(2):
                expect(page.get_by_text(text).first).to_be_visible()
                expect(page.locator("html")).to_have_attribute("lang", "es")
                page.reload()

    both_show(buying.said("identity_how", ES))
    leave(first, ES)
    leave(second, ES)
    assert first.url == second.url
    second.reload()
    heading(second, CONSENT)
    first.goto(buying.here)
    expect(first.get_by_text(buying.said("identity_waiting", ES))).to_be_visible()
    find(second, Outcome.PHOTO_BLURRED)
    both_show(buying.reason(Outcome.PHOTO_BLURRED, ES))
    press(second, "retry", ES)
    heading(second, CONSENT)
    first.goto(buying.here)
    expect(first.get_by_text(buying.said("identity_waiting", ES))).to_be_visible()
    buying.ask_by_hand()
    find(second, Outcome.LATER)
    both_show(ES["identity_deciding"])
    buying.ask_now()
    for page in (first, second):
        at_notice(page, ES)
        page.reload()
    acknowledge(second, ES)
    first.reload()
    for page in (first, second):
        heading(page, ES["done_title"])
    buying.assert_cleared()


@at("onfido")
def test_an_onfido_check_is_decided_later_without_javascript(
    windows: Windows, buying: Buying
) -> None:
    page = windows.open(java_script_enabled=False)
    page.goto(buying.begin())
    leave(page)
    buying.ask_by_hand()
    find(page, Outcome.LATER)
    expect(page.get_by_text(EN["identity_deciding"])).to_be_visible()
    press(page, "identity_look")
    at_notice(page)
    acknowledge(page)
    buying.assert_cleared()
