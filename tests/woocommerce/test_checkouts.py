"""Both checkouts of WooCommerce in a real browser: first one way to go, then the ways to pay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as NoResponse

from tests.browser.walk import Walk
from tests.browser.windows import Windows
from tests.support.browsers import running_browser
from tests.woocommerce.conftest import ADDRESS, EMAIL, GATEWAYS, Shop

pytestmark = [
    pytest.mark.shops,
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.one_engine,
]
NOTICE = "Continue to the notice"
_PRESSES = 3
_NO_RESPONSE_MS = 20_000


@pytest.fixture
def page() -> Iterator[Page]:
    """A window that reaches nothing but this machine."""
    with running_browser() as browser:
        windows = Windows(browser)
        # Messages of WordPress's own scripts about themselves.
        windows.expect_trouble("JQMIGRATE")
        page = windows.open()
        page.set_default_timeout(60_000)
        yield page
        windows.close()


def _fill(page: Page, names: str, **changed: str) -> None:
    for name, value in (ADDRESS | changed).items():
        field = page.locator(names.format(name))
        if not field.count() or name in {"country", "company", "address_2"}:
            continue
        if field.evaluate("element => element.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def _go_to_the_notice(shop: Shop, page: Page) -> None:
    """A checkout ignores a press while it sends the typed text; buyers press again."""
    button = page.get_by_role("button", name=NOTICE)
    for _ in range(_PRESSES):
        with suppress(NoResponse):
            button.press("Enter", timeout=_NO_RESPONSE_MS)
            page.wait_for_url(f"{shop.server.url}/**", timeout=_NO_RESPONSE_MS)
            return
    page.wait_for_url(f"{shop.server.url}/**")


def _go_through_the_notice(shop: Shop, page: Page) -> None:
    _go_to_the_notice(shop, page)
    walk = Walk(page, shop.url)
    walk.identify()
    walk.initial()
    walk.agree()
    page.locator(f'a[href^="{shop.url}"]').click()
    page.wait_for_url(f"{shop.url}/**")


def _pay(page: Page, gateway: str) -> None:
    """The page for the payment, which is the same after both checkouts."""
    ways = page.locator('input[name="payment_method"]')
    found = {way.get_attribute("value") for way in ways.all()}
    assert found == set(GATEWAYS)
    page.locator(f"#payment_method_{gateway}").check(force=True)
    page.locator("#place_order").click()
    page.wait_for_url("**order-received=**")


def test_a_buyer_walks_through_the_block_checkout(shop: Shop, page: Page) -> None:
    """Its script shows the notice in the place of a payment, and the server agrees."""
    with shop.options({"tests_checkout": "blocks"}):
        page.goto(f"{shop.url}/?add-to-cart={shop.product()}")
        page.goto(f"{shop.url}/?pagename=checkout")
        page.locator("#email").fill(EMAIL)
        _fill(page, "#shipping-{}")
        ways = page.locator('input[name="radio-control-wc-payment-method-options"]')
        button = page.get_by_role("button", name=NOTICE)
        expect(button).to_be_enabled(timeout=60_000)
        assert [way.get_attribute("value") for way in ways.all()] in (["countersign"], [])
        expect(page.get_by_text("Legal notice first, payment afterwards")).to_be_visible()
        _go_through_the_notice(shop, page)
        _pay(page, "cod")
    assert shop.newest().see("status", "state", "taken") == ("processing", "cleared", 1)


def test_a_buyer_walks_through_the_classic_checkout(shop: Shop, page: Page) -> None:
    with shop.options({"tests_checkout": "classic"}):
        page.goto(f"{shop.url}/?add-to-cart={shop.product()}")
        page.goto(f"{shop.url}/?pagename=classic-checkout")
        page.locator("#billing_email").fill(EMAIL)
        _fill(page, "#billing_{}")
        ways = page.locator('input[name="payment_method"]')
        assert [way.get_attribute("value") for way in ways.all()] == ["countersign"]
        _go_through_the_notice(shop, page)
        _pay(page, "bacs")
    assert shop.newest().see("status", "state", "taken") == ("on-hold", "cleared", 1)


_EXPRESS = """async () => {
    const button = wp.element.createElement('p', null, 'Express');
    wc.wcBlocksRegistry.registerExpressPaymentMethod({name: 'express', title: 'Express',
        content: button, edit: button, paymentMethodId: 'cod', canMakePayment: () => true});
    await wp.data.dispatch('wc/store/payment').__internalUpdateAvailablePaymentMethods();
    return Object.keys(wp.data.select('wc/store/payment').getAvailableExpressPaymentMethods());
}"""


def test_no_express_button_is_shown_for_a_gated_cart(shop: Shop, page: Page) -> None:
    """Unlike for other goods: the cart requires what only the notice declares."""
    with shop.options({"tests_checkout": "blocks"}):
        for product, shown in ((shop.product(""), ["express"]), (shop.product(), [])):
            page.goto(f"{shop.url}/?add-to-cart={product}")
            page.goto(f"{shop.url}/?pagename=checkout")
            page.locator("#shipping-postcode").wait_for()
            assert page.evaluate(_EXPRESS) == shown


def test_a_buyer_who_needs_nothing_pays_at_the_block_checkout(shop: Shop, page: Page) -> None:
    """The ways to pay are there as soon as the address is; nobody reads of a notice."""
    shop.settings(residence="billing")
    try:
        with shop.options({"tests_checkout": "blocks"}):
            page.goto(f"{shop.url}/?add-to-cart={shop.product()}")
            page.goto(f"{shop.url}/?pagename=checkout")
            page.locator("#email").fill(EMAIL)
            _fill(page, "#shipping-{}", state="NV", postcode="89101")
            page.keyboard.press("Tab")
            way = page.locator('input[name="radio-control-wc-payment-method-options"][value="cod"]')
            way.check(force=True)
            expect(page.get_by_text("Legal notice first")).to_have_count(0)
            button = page.get_by_role("button", name="Place Order")
            for _ in range(_PRESSES):
                with suppress(NoResponse):
                    button.press("Enter", timeout=_NO_RESPONSE_MS)
                    page.wait_for_url("**order-received**", timeout=_NO_RESPONSE_MS)
                    break
        assert shop.newest().see("status", "state", "taken") == ("processing", "not_needed", 1)
    finally:
        shop.settings(residence="")
