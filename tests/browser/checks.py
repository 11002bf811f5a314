"""A buyer's ways to an identity check and back, at each provider, and the manners of using a page.

Each walk is written once: a provider's way describes its pages, a manner how they are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from playwright.sync_api import Locator, Page, expect

from countersign.base.values import Mode
from countersign.core.buyers import settings
from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.hosted import Outcome
from tests.browser.test_page import Order
from tests.browser.windows import PHONE, Windows, assert_accessible
from tests.http.backstage import Operator
from tests.support.providers import Playing, playing
from tests.support.service import Server

ZIP: Final = "94110"
CONSENT: Final = "Agree to the check"
OVER: Final = "This check is over"
_NOT_DUE: Final = (
    "UPDATE pending_sessions SET next_poll_at = next_poll_at * 2 WHERE account_id = :a"
)
_CHECKS: Final = "SELECT count(*) AS number FROM started_checks WHERE reference = :session"


@dataclass(frozen=True)
class Way:
    """How a buyer gets to a provider, and back."""

    opens_once: bool = False
    """Its addresses open the page once, so that ours asks for a new one."""
    is_apart: bool = False
    """Its page has a window of its own, and leads nowhere."""


SANDBOX: Final = "sandbox"
WAYS: Final[Mapping[str, Way]] = {
    "stripe": Way(opens_once=True),
    "persona": Way(opens_once=True),
    "onfido": Way(),
    "plaid": Way(is_apart=True),
    "veriff": Way(),
    "didit": Way(),
    SANDBOX: Way(),
}
_PLAYED: Final = {Outcome.WRONG_ZIP: "zip_mismatch"}
"""The sandbox's name of an outcome on our own page, if it differs."""


def _messages(server: Server, account: str, name: str) -> str:
    return f"{server.url}/v1/provider_webhooks/{name}/{account}"


@contextmanager
def provided(operator: Operator, account: str, server: Server, name: str) -> Iterator[Playing]:
    """Let the account's test keys use this simulated provider, whose messages arrive."""
    with playing(name, webhook_url=_messages(server, account, name)) as provider:
        credentials = json.dumps(provider.simulator.credentials).encode()
        operator.act(
            lambda opened: settings.add(
                opened.buyers, account, Mode.TEST, name, credentials, provider.url
            )
        )
        yield provider


def _select(page: Page, outcome: str) -> None:
    if page.locator("select").count():
        page.locator("#outcome").select_option(outcome)
    else:
        page.locator(f"[name=outcome][value={outcome}]").check()


def _tab_to(page: Page, reached: Callable[[], bool]) -> None:
    for _ in range(30):
        page.keyboard.press("Tab")
        if reached():
            return
    raise AssertionError(f"not reached by keyboard at {page.url}")


def _press_by_key(button: Locator) -> None:
    button.wait_for()
    _tab_to(button.page, lambda: button.evaluate("it => it === document.activeElement"))
    button.page.keyboard.press("Enter")


def _select_by_key(page: Page, outcome: str) -> None:
    _tab_to(page, lambda: page.evaluate("document.activeElement.name === 'outcome'"))
    for _ in Outcome:
        if page.evaluate("new FormData(document.activeElement.form).get('outcome')") == outcome:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"{outcome} cannot be chosen by keyboard")


def _assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


@dataclass(frozen=True)
class Manner:
    """How a buyer uses the pages."""

    window: Mapping[str, Any] = field(default_factory=dict)
    locale: str = "en"
    press: Callable[[Locator], None] = Locator.click
    select: Callable[[Page, str], None] = _select
    seen: Callable[[Page], object] = lambda _: None
    """Called with a page in each of its states, which it must leave unchanged."""


MOUSE: Final = Manner()
MANNERS: Final[Mapping[str, Manner]] = {
    "phone in spanish": Manner(
        {**PHONE, "locale": "es-MX"}, locale="es", press=Locator.tap, seen=_assert_fits
    ),
    "keyboard and reload": Manner(press=_press_by_key, select=_select_by_key, seen=Page.reload),
    "no javascript": Manner({"java_script_enabled": False}),
}
ACCESSIBLE: Final = Manner(seen=assert_accessible)


@dataclass
class Walk:
    """A buyer with a link, at a provider whose messages are lost until they are delivered."""

    windows: Windows
    order: Order
    name: str
    provider: Playing | None
    """None: the sandbox's simulated provider, on our own page."""
    operator: Operator
    account: str
    manner: Manner = MOUSE
    page: Page = field(init=False)
    """Ours."""

    @property
    def way(self) -> Way:
        return WAYS[self.name]

    @property
    def here(self) -> str:
        """The address of our page for a browser that has opened the link."""
        return f"{self.order.server.url}/c/{self.order.id}"

    @property
    def checks(self) -> int:
        """How many were started."""
        [row] = self.operator.rows(_CHECKS, session=self.order.id)
        return int(row["number"])

    def said(self, name: str) -> str:
        """A text of our page, from after the vendor's name on."""
        text: str = WORDS[self.manner.locale][name]
        return text.rpartition("{vendor}")[2].replace("{provider}", self.name.capitalize())

    def begin(self, manner: Manner = MOUSE, **changes: object) -> None:
        """Open a new link, in a browser of its own."""
        self.manner = manner
        wanted = {"collect": ["identity", "acknowledgment"], "shipping_zip": ZIP}
        self.order.begin(**wanted | {"locale": manner.locale} | changes)
        self.enter()

    def enter(self) -> None:
        """Open the link in another browser."""
        self.page = self.windows.open(**self.manner.window)
        self.page.goto(self.order.url)

    def shows(self, text: str, title: str = "identity_title") -> None:
        """Our page shows this, also after the manner has used it."""
        for do in (self.manner.seen, lambda _: None):
            expect(self.page.get_by_role("heading", level=1)).to_have_text(self.said(title))
            expect(self.page.get_by_text(self.said(text)).first).to_be_visible()
            do(self.page)

    def shows_notice(self) -> None:
        self.shows("title", title="title")

    def press(self, name: str) -> None:
        """Press a button of our page, or follow its link."""
        words = re.compile(f"^\\s*{re.escape(self.said(name))}\\s*$")
        self.manner.press(self.page.locator("button, a").filter(has_text=words))

    def leave(self, by: str = "identity_start") -> Page:
        """Go to the provider's page; returns its window."""
        if self.provider is None:
            return self.page
        if self.way.is_apart:
            if by != "identity_continue":
                self.press(by)
            self.shows("identity_apart")
            with self.page.context.expect_page() as opened:
                self.press("identity_continue")
            window = opened.value
        else:
            self.press(by)
            window = self.page
        for do in (self.manner.seen, lambda _: None):
            expect(window.get_by_role("heading", level=1)).to_have_text(CONSENT)
            do(window)
        # No session is polled by the clock while the buyer walks.
        self.operator.execute(_NOT_DUE, a=self.account)
        return window

    def find(self, window: Page, outcome: Outcome) -> None:
        """Let the provider's page find this, and see where it leads."""
        if self.provider is None:
            self.manner.select(window, _PLAYED.get(outcome, outcome))
            again = self.page.locator("button", has_text=self.said("retry")).count()
            with window.expect_navigation():
                self.press("retry" if again else "identity_start")
            return
        self.manner.select(window, outcome)
        with window.expect_navigation():
            self.manner.press(window.get_by_role("button"))
        if self.way.is_apart:
            expect(window.get_by_role("heading", level=1)).to_have_text(OVER)
            window.close()

    def check(self, outcome: Outcome, by: str = "identity_start") -> None:
        """A whole check."""
        self.find(self.leave(by), outcome)
        self.come_back()

    def come_back(self) -> None:
        """Go back to our page and press "done", unless the provider has redirected there."""
        is_back = self.page.url.startswith(self.here)
        if not is_back:
            self.page.goto(self.here)
        if self.way.is_apart or not is_back:
            self.press("identity_done")

    def decide(self) -> None:
        """The awaited result arrives, without this page."""
        if self.provider is None:
            other = self.page.context.new_page()
            other.goto(self.here)
            with other.expect_navigation():
                other.get_by_role("button", name=self.said("identity_look")).click()
            other.close()
            return
        url = _messages(self.order.server, self.account, self.name)
        message = self.provider.simulator.lost[-1]
        sent = httpx2.post(
            url, content=message.body, headers=dict(message.headers), trust_env=False
        )
        sent.raise_for_status()
