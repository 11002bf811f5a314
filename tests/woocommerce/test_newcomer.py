"""A shop owner without a developer: from the plugin's ZIP to a cleared order, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.walk import Walk
from tests.browser.windows import Windows
from tests.support.browsers import running_browser
from tests.woocommerce.conftest import ADDRESS, EMAIL, Shop, running_shop
from tests.woocommerce.shops import NEW, ROOT
from tests.woocommerce.wordpress import PLUGIN
from tools.release import pack_plugin

pytestmark = [
    pytest.mark.shops,
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.one_engine,
    pytest.mark.timeout(300),
]
WAIT = 60_000


@pytest.fixture
def empty_shop(tmp_path: Path) -> Iterator[Shop]:
    """A shop that sells something, and never heard of the plugin."""
    with running_shop(tmp_path, NEW) as shop:
        shop.wp.php("""require_once ABSPATH . 'wp-admin/includes/admin.php';
            deactivate_plugins('countersign-woocommerce/countersign-woocommerce.php');
            delete_option('countersign_settings'); delete_option('countersign_health');
            $made = new WC_Product_Simple(); $made->set_name('Handguard');
            $made->set_regular_price('10'); $made->save(); return 1;""")
        for endpoint in shop.client.webhook_endpoints.list():
            shop.client.webhook_endpoints.delete(endpoint.endpoint_id)
        installed = shop.wp.plugin
        installed.rename(tmp_path / "removed")
        yield shop


class Owner:
    """Presses visible elements, and counts."""

    def __init__(self, page: Page, shop: Shop) -> None:
        self.page, self.shop, self.presses = page, shop, 0

    def press(self, words: str, role: str = "button") -> None:
        self.presses += 1
        self.page.get_by_role(role, name=words, exact=True).first.click()  # type: ignore[arg-type]
        self.page.wait_for_load_state()

    def expect(self, check: str, state: str) -> None:
        row = self.page.locator(f'tr[data-check="{check}"]')
        expect(row).to_have_attribute("data-state", state, timeout=WAIT)


def _log_in(page: Page, shop: Shop) -> None:
    # The dashboard would ask the network for news.
    page.goto(
        f"{shop.url}/wp-login.php?redirect_to=%2Fwp-admin%2Fplugin-install.php%3Ftab%3Dupload"
    )
    page.locator("#user_login").fill("a_administrator")
    page.locator("#user_pass").fill("p")
    page.locator("#wp-submit").click()
    page.wait_for_url("**/wp-admin/**")


def _install(owner: Owner, packed: Path) -> None:
    page = owner.page
    page.locator("#pluginzip").set_input_files(packed)
    owner.press("Install Now")
    owner.press("Activate Plugin", "link")
    owner.press("Set it up", "link")


def _set_up(owner: Owner) -> None:
    """By the set-up check alone."""
    page, shop = owner.page, owner.shop
    owner.expect("connection", "todo")
    page.get_by_label("Address of the service").fill(shop.server.url)
    page.get_by_label("API key").fill(shop.key)
    owner.press("Save and check")
    owner.expect("connection", "watch")
    owner.press("Connect the webhook")
    owner.expect("webhook", "good")
    owner.press("Choose products", "link")
    row = page.locator("tr.type-product", has_text="Handguard")
    row.hover()
    owner.press("Quick edit “Handguard” inline")
    editor = page.locator("tr.inline-editor")
    editor.get_by_label("Countersign class").select_option(label="Firearm accessory")
    owner.press("Update")
    expect(row.locator("td.countersign")).to_have_text("Firearm accessory", timeout=WAIT)
    page.goto(f"{shop.url}/wp-admin/admin.php?page=countersign")
    for check in ("notice", "webhook", "tasks", "class", "payment"):
        owner.expect(check, "good")


def _order(page: Page, shop: Shop) -> None:
    """As the owner's first buyer: block checkout, notice, payment."""
    product = shop.wp.php("return wc_get_products(array('limit' => 1))[0]->get_id();")
    page.goto(f"{shop.url}/?add-to-cart={product}")
    page.goto(f"{shop.url}/?pagename=checkout")
    page.locator("#email").fill(EMAIL)
    page.locator("#shipping-state").select_option(ADDRESS["state"])
    for name in ("first_name", "last_name", "address_1", "city"):
        page.locator(f"#shipping-{name}").fill(ADDRESS[name])
    # The checkout sends the typed text. A late request from before the ZIP code would empty that of
    # the new order, and the notice would be for another address.
    with page.expect_response(lambda one: ADDRESS["postcode"] in (one.request.post_data or "")):
        page.locator("#shipping-postcode").fill(ADDRESS["postcode"])
        page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Continue to the notice")
    expect(button).to_be_enabled(timeout=WAIT)
    # By the keyboard: the page moves when a field is left, and a click could miss the button.
    button.press("Enter")
    page.wait_for_url(f"{shop.server.url}/**")
    walk = Walk(page, shop.url)
    walk.identify()
    walk.initial()
    walk.agree()
    page.locator(f'a[href^="{shop.url}"]').click()
    page.wait_for_url(f"{shop.url}/**")
    expect(page.get_by_text("Your notice is recorded: you can pay now.")).to_be_visible()
    page.locator("#payment_method_cod").check(force=True)
    page.locator("#place_order").click()
    page.wait_for_url("**order-received=**")


def test_a_shop_owner_gets_from_the_zip_to_a_cleared_order(
    empty_shop: Shop, tmp_path: Path
) -> None:
    """By the plugin's own screens alone, with eight presses until the shop sells."""
    shop = empty_shop
    packed = pack_plugin(PLUGIN, ROOT / "LICENSE", tmp_path, epoch=1_795_000_000)
    with running_browser() as browser, shop.options({"tests_checkout": "blocks"}):
        # Pages for staff ask the network for portraits.
        page = browser.new_context().new_page()
        page.set_default_timeout(WAIT)
        owner = Owner(page, shop)
        _log_in(page, shop)
        _install(owner, packed)
        _set_up(owner)
        windows = Windows(browser)
        # Messages of WordPress's own scripts about themselves.
        windows.expect_trouble("JQMIGRATE")
        buyer = windows.open()
        buyer.set_default_timeout(WAIT)
        _order(buyer, shop)
        windows.close()
        order = shop.newest()
        assert order.see("status", "state") == ("processing", "cleared")
        page.goto(shop.wp.php("return wc_get_order($id)->get_edit_order_url();", id=order.id))
        box = page.locator("#countersign")
        expect(box.get_by_text("Cleared", exact=True)).to_be_visible()
    assert owner.presses == 8
