"""The pages of the simulated identity providers in a real browser, on a phone and on a desktop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx2
import pytest
from playwright.sync_api import Page, expect

from countersign_simulators import persona, plaid, stripe
from countersign_simulators.persona_created import TEMPLATE_ID as PERSONA_TEMPLATE
from countersign_simulators.plaid_created import TEMPLATE_ID as PLAID_TEMPLATE
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.support.providers import playing

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.long]
PHONE: Final = {"viewport": {"width": 360, "height": 640}}
PROVIDERS: Final = ("stripe", "persona", "plaid")
STEPS: Final = (
    "Agree to the check",
    "Show a document",
    "Your address",
    "Take a selfie",
    "Choose the result",
)


@contextmanager
def shop() -> Iterator[str]:
    """The address of a page that a buyer can be led back to."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        page = b"<!doctype html><html lang=en><link rel=icon href=data:,><title>Back</title>Back"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + page)
        await writer.drain()
        writer.close()

    begun, loops = threading.Event(), []

    async def run() -> None:
        end = asyncio.Event()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        loops.append((asyncio.get_running_loop(), end, server.sockets[0].getsockname()[1]))
        begun.set()
        await end.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert begun.wait(10)
    loop, end, port = loops[0]
    yield f"http://127.0.0.1:{port}/back"
    loop.call_soon_threadsafe(end.set)
    thread.join()


def hosted(provider: str, url: str, back: str) -> str:
    """The page of a new session, from the calls that each provider describes."""

    def post(path: str, **sent: Any) -> Any:  # noqa: ANN401 - any JSON
        reply = httpx2.post(f"{url}{path}", trust_env=False, **sent)
        assert reply.is_success, reply.text
        return reply.json()

    if provider == "stripe":
        form = {"type": "document", "return_url": back}
        key = {"authorization": f"Bearer {stripe.SENSITIVE_KEY}"}
        return str(post("/v1/identity/verification_sessions", data=form, headers=key)["url"])
    if provider == "persona":
        attributes = {"inquiry-template-id": PERSONA_TEMPLATE, "redirect-uri": back}
        body = {"data": {"attributes": attributes}, "meta": {"auto-create-one-time-link": True}}
        key = {"authorization": f"Bearer {persona.API_KEY}"}
        meta = post("/api/v1/inquiries", json=body, headers=key)["meta"]
        return str(meta["one-time-link"])
    asked = {
        "client_id": plaid.CLIENT_ID,
        "secret": plaid.SECRETS["live"],
        "is_shareable": True,
        "template_id": PLAID_TEMPLATE,
        "client_user_id": "chk_1",
    }
    return str(post("/identity_verification/create", json=asked)["shareable_url"])


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wide <= 0


def by_keyboard(page: Page) -> None:
    """Reach the only button with the keyboard alone, and press it."""
    assert page.locator("form").count() == 1
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "BUTTON":
            page.keyboard.press("Enter")
            return
    pytest.fail("the button cannot be reached")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_buyer_goes_through_every_step(windows: Windows, provider: str) -> None:
    """Each step is accessible in every look, needs no mouse, and says that it is a simulator.

    The last one leads back to the shop, but for Plaid's.
    """
    with shop() as back, playing(provider) as played:
        page = windows.open()
        page.goto(hosted(provider, played.url, back))
        for step in STEPS:
            expect(page.get_by_role("heading", level=1)).to_have_text(step)
            expect(page.get_by_role("banner")).to_contain_text("This is a simulator")
            assert_accessible_in_every_look(page)
            by_keyboard(page)
            page.wait_for_load_state()
        if provider == "plaid":
            expect(page.get_by_role("heading", level=1)).to_have_text("This check is over")
        else:
            expect(page).to_have_title("Back")
            assert page.url.startswith(back)


def test_one_form_is_enough(windows: Windows) -> None:
    """The first page has the ZIP code and the result; a wrong ZIP code is reported accessibly."""
    with shop() as back, playing("stripe") as played:
        page = windows.open(java_script_enabled=True, **PHONE)
        windows.expect_trouble("400")
        page.goto(hosted("stripe", played.url, back))
        page.get_by_label("ZIP code").fill("9411x")
        page.get_by_role("button").click()
        expect(page.get_by_role("alert")).to_contain_text("five digits")
        assert_accessible(page)
        page.get_by_label("ZIP code").fill("95814")
        page.get_by_label("Result").select_option("never")
        page.get_by_role("button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("This check is over")
        assert_accessible(page)
        assert fits(page)
