"""An order in the shop, and a buyer's actions in its page."""

from __future__ import annotations

import re
from typing import Any, Final

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.browser.shop import Shop

CREATE: Final = "/v1/checkout_sessions"
LINES: Final = 4
"""Of the notice that the orders need."""


class Order:
    """A checkout session, embedded in the shop."""

    def __init__(self, client: httpx2.Client, shop: Shop) -> None:
        self.client, self.shop = client, shop
        self.id = ""

    def begin(self, **changes: object) -> Order:
        body = {
            "return_url": f"{self.shop.origin}/return",
            "session_id": "cs_browser",
            "notice_id": "ab1263",
            "origin": self.shop.origin,
        }
        made = self.client.post(CREATE, json=body | changes).raise_for_status().json()
        self.id, self.shop.client_token = made["checkout_session_id"], made["client_token"]
        return self

    def read(self) -> dict[str, Any]:
        read: dict[str, Any] = self.client.get(f"{CREATE}/{self.id}").raise_for_status().json()
        return read

    def acknowledgments(self) -> list[Any]:
        found = self.client.get("/v1/acknowledgments", params={"session_id": "cs_browser"})
        data: list[Any] = found.raise_for_status().json()["data"]
        return data


def title(page: Page) -> Locator:
    return page.locator("countersign-notice h2")


def events(page: Page) -> list[str]:
    return [name for name, _ in page.evaluate("window.events")]


def enter(page: Page, shop: Shop) -> Page:
    """Open the shop's page, and wait for the notice."""
    page.goto(shop.origin)
    expect(page.get_by_label("line 1")).to_be_visible()
    return page


def initial(page: Page, text: str = "AB") -> None:
    for number in range(1, LINES + 1):
        page.get_by_label(f"line {number}").fill(text)


def agree(page: Page) -> None:
    for box in page.get_by_role("checkbox").all():
        box.check()


def to_review(page: Page) -> None:
    initial(page)
    page.get_by_role("button", name="Continue").click()
    expect(title(page)).to_have_text("Review your initials")


def acknowledge(page: Page) -> str:
    """The whole way by mouse; returns the shown id."""
    to_review(page)
    agree(page)
    page.get_by_role("button", name="Agree and send").click()
    return ack_id(page)


def ack_id(page: Page) -> str:
    shown = page.locator("countersign-notice code")
    expect(shown).to_have_text(re.compile("^ack_"))
    return shown.inner_text()
