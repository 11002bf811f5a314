"""The hosted pages of Veriff, Didit and Onfido in a real browser, from the link to the way back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from countersign_simulators.hosted import STEPS
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.simulators.creating import CREATE, create, found
from tests.support.providers import Playing, playing

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.long]


class _Shop(BaseHTTPRequestHandler):
    """The buyer's return address."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Back</title><h1>Back at the shop</h1>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def shop() -> Iterator[str]:
    """The address of a shop."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/back"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=sorted(CREATE))
def provider(request: pytest.FixtureRequest) -> Iterator[Playing]:
    """Each of the three simulators."""
    with playing(request.param) as played:
        yield played


def is_narrow(page: Page) -> bool:
    """Whether nothing sticks out at the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def by_keyboard(page: Page) -> None:
    """Tab to the only button, and press it."""
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            page.keyboard.press("Enter")
            return
    pytest.fail("the button cannot be reached by keyboard")


def test_a_buyer_walks_through_every_step_by_keyboard(
    provider: Playing, shop: str, windows: Windows
) -> None:
    """Each step is accessible in every look, and the last one leads back to the shop."""
    page = windows.open()
    made = create(provider, shop)
    page.goto(made.url)
    for number, step in enumerate(STEPS, 1):
        expect(page.get_by_text(f"Step {number} of {len(STEPS)}")).to_be_visible()
        expect(page.get_by_text("This is a simulator")).to_be_visible()
        assert_accessible_in_every_look(page)
        if step == "address":
            page.get_by_label("ZIP code").fill("95814")
        by_keyboard(page)
    expect(page.get_by_role("heading", name="Back at the shop")).to_be_visible()
    query = parse_qs(urlsplit(page.url).query)
    didit = {"verificationSessionId": [made.session_id], "status": ["Approved"]}
    assert query == (didit if provider.name == "didit" else {})
    assert "95814" in str(found(provider, made))


def test_a_buyer_without_javascript_is_redirected_back_too(
    provider: Playing, shop: str, windows: Windows
) -> None:
    """The first page is enough: ZIP code, result, one button."""
    page = windows.open(java_script_enabled=False)
    made = create(provider, shop)
    page.goto(made.url)
    page.locator("#outcome").select_option("failed")
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", name="Back at the shop")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="This check is over")).to_be_visible()


def test_a_page_that_does_not_lead_back_stays(
    provider: Playing, shop: str, windows: Windows
) -> None:
    """And is as accessible as the others."""
    page = windows.phone()
    page.goto(create(provider, shop).url)
    page.locator("#outcome").select_option("never")
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", name="This check is over")).to_be_visible()
    assert_accessible(page)
    assert is_narrow(page)
