"""Every state of a purchase in every look: accessible, small, in few requests.

With COUNTERSIGN_TESTS_PICTURES, a folder, there is a picture of each and what it weighs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from playwright.sync_api import Page, Response

from countersign.core.checkout.brand import put_brand
from countersign.hosted.toolkit.screens import WORDS
from tests.browser.test_page import PICTURE, Order, agree, go_on, heading, initial
from tests.browser.windows import PHONE, Windows, assert_accessible
from tests.http.backstage import Operator
from tests.support.acts import done
from tests.support.service import Server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
PAGE_BYTES_MAX: Final = 20 * 1024
REQUESTS_MAX: Final = 3
SLOW_3G: Final = {
    "offline": False,
    "latency": 400,
    "downloadThroughput": 400_000 / 8,
    "uploadThroughput": 400_000 / 8,
}
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "phone": PHONE,
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "200 percent": {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    "dark": {**PHONE, "color_scheme": "dark"},
    "print": {},
    "spanish": {**PHONE, "locale": "es-MX"},
    "no script": {**PHONE, "java_script_enabled": False},
    "slow 3g": PHONE,
}
ORDER: Final = {
    "lines": [{"text": "Free-float handguard, 15 inch", "amount": "189.00"}, {"text": "Shipping"}],
    "currency": "USD",
}


class Album:
    """The pages of one walk, what they weigh, and their pictures if somebody wants to see them."""

    def __init__(self, page: Page, look: str) -> None:
        self.page, self.look = page, look
        self.folder = os.environ.get("COUNTERSIGN_TESTS_PICTURES")
        self.answers: list[Response] = []
        page.on("response", lambda one: self.answers.append(one))  # noqa: PLW0108 - not a built-in

    def take(self, state: str, title: str) -> None:
        """Check this state, which has this title."""
        page, look = self.page, self.look
        heading(page, title)
        page.wait_for_load_state()
        if look == "print":
            page.emulate_media(media="print")
        self.picture(state, full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.emulate_media(media="screen")
        if look != "no script":
            assert_accessible(page)
        # Redirects and reports of scripts have no body.
        seen = [one for one in self.answers if one.status == 200]
        assert len(seen) <= REQUESTS_MAX, [one.url for one in seen]
        [html] = [len(one.body()) for one in seen if one.headers["content-type"][:9] == "text/html"]
        assert html <= PAGE_BYTES_MAX, (state, html)
        if self.folder is not None:
            with Path(self.folder, f"{look}.txt").open("a", encoding="utf-8") as weights:
                weights.write(f"{state}: {html} bytes, {len(seen)} requests\n")
        self.answers.clear()

    def picture(self, state: str, *, full_page: bool = False) -> None:
        """Take a picture of this state. Without a folder none: it would take half of the time."""
        if self.folder is not None:
            path = Path(self.folder, f"{self.look}-{state}.png")
            self.page.screenshot(path=path, full_page=full_page)


@pytest.fixture
def order(client: httpx2.Client, server: Server, operator: Operator, account: str) -> Order:
    """Give an order at a vendor with all that a page can show."""
    brand: dict[str, Any] = {
        "name": "Ridgeline Workshop",
        "color": "#2f5d46",
        "logo": PICTURE,
        "contact_url": "https://shop.example/contact",
        "privacy_url": "https://shop.example/privacy",
        "support_email": "help@shop.example",
    }
    operator.act(lambda opened: done(put_brand, opened.access, account, **brand))
    return Order(client, server)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("look", LOOKS)
def test_every_state_in_every_look(windows: Windows, order: Order, look: str) -> None:
    page = windows.open(**LOOKS[look])
    if look == "slow 3g":
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.emulateNetworkConditions", SLOW_3G)
    words = WORDS["es" if look == "spanish" else "en"]
    album = Album(page, look)
    both = {"collect": ["identity", "acknowledgment"], "shipping_zip": "94110"}
    page.goto(order.begin(order=ORDER, **both).url)
    album.take("1 identity", words["identity_title"])
    for outcome, start in (("underage", "identity_start"), ("verified", "retry")):
        page.get_by_label(words[f"outcome_{outcome}"], exact=True).check()
        with page.expect_navigation():
            page.get_by_role("button", name=words[start]).click()
        if outcome == "underage":
            album.take("2 identity refused", words["identity_title"])
    album.take("3 notice", words["title"])
    with page.expect_navigation():
        go_on(page, words)
    album.take("4 notice with errors", words["title"])
    initial(page)
    with page.expect_navigation():
        go_on(page, words)
    album.take("5 review", words["review_title"])
    with page.expect_navigation():
        page.get_by_role("button", name=words["accept"]).click()
    album.take("6 review with errors", words["review_title"])
    page.get_by_role("link", name=words["decline"]).click()
    album.take("7 decline", words["decline_title"])
    page.get_by_role("link", name=words["decline_back"]).click()
    heading(page, words["review_title"])
    agree(page, words)
    heading(page, words["done_title"])
    album.answers.clear()
    page.reload()
    album.take("8 done", words["done_title"])
    with page.expect_navigation():
        page.get_by_role("button", name=words["remembered_keep_cookie"]).click()
    page.wait_for_load_state()
    album.answers.clear()
    page.get_by_role("link", name=words["copy_link"]).click()
    album.take("9 copy", words["copy_title"])
    cbid = order.read()["cbid"]
    again = {"collect": ["acknowledgment"], "cbid": cbid, "shipping_zip": "90001"}
    page.goto(order.begin(order=ORDER, **again).url)
    album.take("10 foreseen", words["foreseen_title"])
