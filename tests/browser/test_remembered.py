"""Remembered buyers in a real browser: a passkey at two shops, a cookie, and `/buyer`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from countersign.core.access.account import register
from countersign.hosted.toolkit.screens import WORDS
from countersign.operate import bootstrap
from tests.browser.windows import Windows, assert_accessible, assert_accessible_in_every_look
from tests.http.backstage import Operator, another_deployment
from tests.support import service
from tests.support.acts import done
from tests.support.moved_clock import VARIABLE, MovedClock
from tests.support.providers import playing
from tests.support.service import Server, running_server
from tests.verification.live import live_vendor

pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.usefixtures("patient"),
]
EN, ES = WORDS["en"], WORDS["es"]
READ = timedelta(milliseconds=1200)
Shop = Callable[..., str]
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 640}}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve at a name: browsers allow no passkeys at an IP address."""
    port = service.free_port()
    url = f"http://localhost:{port}"
    made = another_deployment(tmp_path / "data", PUBLIC_URL=url)
    monkeypatch.setattr(service, "free_port", lambda: port)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "clock"))
    with running_server(made) as started:
        monkeypatch.undo()
        yield started


@pytest.fixture
def clock(server: Server) -> MovedClock:
    """Give the clock of the server."""
    return MovedClock(server.deployment.data_dir.parent / "clock")


@pytest.fixture
def operator(server: Server) -> Iterator[Operator]:
    with Operator(server.deployment) as made:
        yield made


@pytest.fixture
def shops(server: Server, operator: Operator) -> Iterator[list[Shop]]:
    """Fixture: creates links of two shops, whose live keys use the simulated Stripe."""
    base = server.deployment.settings["PUBLIC_URL"]
    with ExitStack() as stack:
        provider = stack.enter_context(playing("stripe"))
        made: list[Shop] = []
        for _ in range(2):
            vendor = stack.enter_context(live_vendor(operator, server, provider))
            operator.act(partial(_allow, account_id=vendor.account_id, origin=base))

            def link(v: Any = vendor, **changes: object) -> str:  # noqa: ANN401
                body = {
                    "return_url": f"{base}/docs",
                    "session_id": "cs_remembered",
                    "order_reference": "1001",
                    "collect": ["identity"],
                    "shipping_zip": "94110",
                }
                session = v.live.post("/v1/checkout_sessions", json=body | changes)
                token = session.raise_for_status().json()["client_token"]
                return f"{base}/c/{token}"

            made.append(link)
        yield made


async def _allow(opened: bootstrap.Deployment, account_id: str, origin: str) -> None:
    await done(register, opened.access, account_id, origin)


def authenticator(page: Page) -> tuple[CDPSession, str]:
    """Give the page's browser a device that verifies its user."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, made["authenticatorId"]


def press(page: Page, name: str, words: Any = EN) -> None:  # noqa: ANN401 - texts of a locale
    page.get_by_role("button", name=words[name], exact=True).click()


def verify(page: Page, url: str, words: Any = EN) -> None:  # noqa: ANN401 - as above
    """Be checked for the first time, at the provider's page."""
    page.goto(url)
    press(page, "identity_start", words)
    page.locator("#outcome").select_option("verified")
    page.get_by_role("button").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(words["done_title"], timeout=60_000)


def keep(page: Page, name: str, words: Any = EN) -> None:  # noqa: ANN401 - as above
    """Be remembered. To leave before the page says so would cancel it."""
    press(page, name, words)
    expect(page.get_by_text(words["remembered_kept"])).to_be_visible()


def at_shop(page: Page) -> None:
    page.wait_for_url(re.compile(r"/docs"))


def title(page: Page, name: str, words: Any = EN) -> None:  # noqa: ANN401 - as above
    expect(page.get_by_role("heading", level=1)).to_have_text(words[name])


def test_a_passkey_of_one_shop_passes_at_another(windows: Windows, shops: list[Shop]) -> None:
    page = windows.open()
    device, id_ = authenticator(page)
    verify(page, shops[0]())
    assert_accessible(page)
    keep(page, "remembered_keep_passkey")
    kept = device.send("WebAuthn.getCredentials", {"authenticatorId": id_})["credentials"]
    assert [one["isResidentCredential"] for one in kept] == [True]
    page.goto(shops[1]())
    title(page, "remembered_consent_title")
    assert_accessible(page)
    press(page, "remembered_use_passkey")
    at_shop(page)
    # The cookie that says so is gone: the passkey is found all the same.
    page.context.clear_cookies()
    page.goto(shops[1]())
    page.get_by_role("link", name=EN["remembered_link"]).click()
    press(page, "remembered_use_passkey")
    at_shop(page)


def test_buyer_shows_who_asked_and_erases_it(
    windows: Windows, shops: list[Shop], operator: Operator
) -> None:
    page = windows.open(**PHONE)
    authenticator(page)
    verify(page, shops[0]())
    keep(page, "remembered_keep_passkey")
    page.goto(shops[1]())
    press(page, "remembered_use_passkey")
    at_shop(page)
    base = page.evaluate("location.origin")
    page.goto(f"{base}/buyer")
    assert_accessible(page)
    press(page, "remembered_sign_in")
    expect(page.get_by_text(EN["remembered_use_verified"])).to_be_visible()
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    press(page, "remembered_erase")
    expect(page.get_by_role("alert")).to_have_text(EN["remembered_erase_missing"])
    assert_accessible(page)
    page.go_back()
    title(page, "remembered_buyer_title")
    page.go_forward()
    expect(page.get_by_role("alert")).to_have_text(EN["remembered_erase_missing"])
    page.get_by_role("checkbox").check()
    press(page, "remembered_erase")
    expect(page.get_by_role("status").first).to_have_text(EN["remembered_says_erased"])
    assert operator.rows("SELECT * FROM remembered") == []
    assert operator.rows("SELECT * FROM buyers") == []


def test_a_device_that_verifies_no_one_keeps_nothing(
    windows: Windows, shops: list[Shop], operator: Operator
) -> None:
    page = windows.open()
    device, id_ = authenticator(page)
    verify(page, shops[0]())
    verified = {"authenticatorId": id_, "isUserVerified": False}
    device.send("WebAuthn.setUserVerified", verified)
    press(page, "remembered_keep_passkey")
    expect(page.get_by_text(EN["remembered_passkey_failed"])).to_be_visible()
    assert_accessible(page)
    assert operator.rows("SELECT * FROM remembered") == []


def test_the_cookie_works_without_javascript_in_spanish_on_a_phone(
    windows: Windows, shops: list[Shop], clock: MovedClock
) -> None:
    page = windows.open(java_script_enabled=False, **PHONE)
    verify(page, shops[0](locale="es"), ES)
    keep(page, "remembered_keep_cookie", ES)
    page.goto(shops[1](locale="es"))
    title(page, "remembered_first_title", ES)
    clock.ahead(READ)
    press(page, "remembered_first_continue", ES)
    title(page, "remembered_consent_title", ES)
    clock.ahead(READ)
    press(page, "remembered_use_cookie", ES)
    at_shop(page)


@pytest.mark.parametrize("has_script", [True, False])
def test_a_double_click_at_another_site_is_no_consent(
    windows: Windows, shops: list[Shop], operator: Operator, clock: MovedClock, has_script: bool
) -> None:
    """The second press lands on our page, whichever of the two it is; then the buyer decides."""
    page = windows.open(java_script_enabled=has_script)
    verify(page, shops[0]())
    keep(page, "remembered_keep_cookie")
    link = shops[1]()
    hostile = "http://127.0.0.1:9/coupon"
    led = f'<title>coupon</title><a href="{link}">Double-click to open your coupon</a>'
    page.route(hostile, lambda route: route.fulfill(body=led, content_type="text/html"))
    page.goto(hostile)
    page.get_by_role("link").click()
    for name, button in (
        ("remembered_first_title", "remembered_first_continue"),
        ("remembered_consent_title", "remembered_use_cookie"),
    ):
        title(page, name)
        second_press(page)
        title(page, name)
        assert informed(operator) == 0
        clock.ahead(READ)
        press_by_key(page, button)
    at_shop(page)
    assert informed(operator) == 1


def informed(operator: Operator) -> int:
    """How many vendors were informed of a buyer."""
    return len(operator.rows("SELECT * FROM remembered_uses"))


def second_press(page: Page) -> None:
    """Press where the first button is, at once, as a hand does that is not done yet."""
    button = page.get_by_role("button").first.bounding_box()
    assert button is not None
    page.mouse.click(button["x"] + 9, button["y"] + 9)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def press_by_key(page: Page, name: str) -> None:
    button = page.get_by_role("button", name=EN[name], exact=True)
    expect(button).to_be_enabled()
    button.press("Enter")


def test_consent_can_be_given_by_keyboard_alone(windows: Windows, shops: list[Shop]) -> None:
    page = windows.open()
    authenticator(page)
    verify(page, shops[0]())
    keep(page, "remembered_keep_passkey")
    page.goto(shops[1]())
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == EN["remembered_use_passkey"]:
            break
    page.keyboard.press("Enter")
    at_shop(page)


def test_every_page_of_it_is_accessible(windows: Windows, shops: list[Shop]) -> None:
    """In every look."""
    page = windows.open()
    authenticator(page)
    verify(page, shops[0]())
    assert_accessible_in_every_look(page)
    keep(page, "remembered_keep_cookie")
    assert_accessible_in_every_look(page)
    for url, words in ((shops[1](), EN), (shops[1](locale="es"), ES)):
        page.goto(url)
        title(page, "remembered_first_title", words)
        assert_accessible_in_every_look(page)
        press(page, "remembered_first_continue", words)
        title(page, "remembered_consent_title", words)
        assert_accessible_in_every_look(page)
    press(page, "remembered_not_me", ES)
    title(page, "identity_title", ES)
    assert_accessible_in_every_look(page)
