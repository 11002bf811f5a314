"""What the plugin costs a buyer and the list of orders, in a real shop.

``python -m tests.woocommerce.measured`` counts, at the classic checkout in Chromium, what is
pressed from the typed address to the paid order, and the queries of a list of 200 orders
(`presses`: not these).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Page

from tests.browser.walk import Walk
from tests.support.browsers import running_browser
from tests.woocommerce.conftest import EMAIL, Browser, Shop, running_shop
from tests.woocommerce.shops import NEW
from tests.woocommerce.test_checkouts import _fill
from tests.woocommerce.wordpress import MAIN

ROWS: Final = 200
_LISTEN: Final = """addEventListener('click', event => event.isTrusted && pressed(
    event.target.closest('input, label') ? 'boxes' : 'buttons'), true);"""
_COUNTER: Final = """<?php add_action('shutdown', static function () {{
    global $wpdb; file_put_contents('{file}', $wpdb->num_queries); }});"""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def _counted(page: Page) -> Iterator[dict[str, int]]:
    """Count what is pressed in a window, on every page."""
    counts = {"buttons": 0, "boxes": 0}

    def pressed(_source: object, kind: str) -> None:
        counts[kind] += 1

    page.expose_binding("pressed", pressed)
    page.add_init_script(_LISTEN)
    yield counts


def _go_through(shop: Shop, page: Page, *, identify: bool) -> None:
    walk = Walk(page, shop.url)
    if identify:
        walk.identify()
    walk.initial()
    walk.agree()
    page.locator(f'a[href^="{shop.url}"]').click()
    page.wait_for_url(f"{shop.url}/**")


def buy(
    shop: Shop, product: int, *, account: bool = False, identify: bool = True, **address: str
) -> str:
    """What is pressed from the typed address to the paid order."""
    with running_browser() as browser:
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        if account:
            page.goto(f"{shop.url}/wp-login.php")
            page.locator("#user_login").fill("a_customer")
            page.locator("#user_pass").fill("p")
            page.locator("#wp-submit").click()
            page.wait_for_url(f"{shop.url}/**")
        page.goto(f"{shop.url}/?add-to-cart={product}")
        with _counted(page) as counts:
            page.goto(f"{shop.url}/?pagename=classic-checkout")
            page.locator("#billing_email").fill(EMAIL)
            _fill(page, "#billing_{}", **address)
            page.keyboard.press("Tab")
            page.wait_for_load_state("networkidle")
            page.locator("#place_order").click()
            page.wait_for_url(re.compile(f"^{shop.server.url}|order-received"))
            if page.url.startswith(shop.server.url):
                _go_through(shop, page, identify=identify)
                page.locator("#place_order").click()
            page.wait_for_url("**order-received**")
    return f"{counts['buttons']} buttons and links, {counts['boxes']} boxes"


def queries(shop: Shop, staff: Browser, path: str) -> int:
    """Those of a page of the admin; the second time, when all is in its caches."""
    file = shop.wp.folder / "queries"
    plugin = shop.wp.folder / "wp-content" / "mu-plugins" / "queries.php"
    plugin.write_text(_COUNTER.format(file=file))
    page, found = "", 0
    for _ in range(2):
        page = staff.client.get(f"{shop.url}/wp-admin/{path}").text
        found = int(file.read_text())
    assert page.count("<tr id=") >= ROWS, page[:500]
    plugin.unlink()
    return found


def measure_list(shop: Shop) -> None:
    make = """for ($i = 0; $i < 100; $i++) { $order = wc_create_order();
        $order->add_product(wc_get_product($product)); $order->calculate_totals(); $order->save(); }
        foreach (get_users() as $user) {
            update_user_meta($user->ID, 'woocommerce_page_wc-orders_per_page', 200);
            update_user_meta($user->ID, 'woocommerce_page_wc_orders_per_page', 200);
            update_user_meta($user->ID, 'edit_shop_order_per_page', 200);
        } return 1;"""
    switch = """require_once ABSPATH . 'wp-admin/includes/plugin.php';
        $on ? activate_plugin($plugin) : deactivate_plugins($plugin); return 1;"""
    places = {"yes": "admin.php?page=wc-orders", "no": "edit.php?post_type=shop_order"}
    staff = shop.browser()
    with staff.client:
        staff.log_in("a_shop_manager", "p")
        staff.client.get(f"{shop.url}/wp-admin/")
        for tables, path in places.items():
            with shop.options({"tests_tables": tables}):
                for _ in range(ROWS // 100):
                    shop.wp.php(make, product=shop.product())
                counted = []
                for on in (True, False):
                    shop.wp.php(switch, on=on, plugin=MAIN)
                    counted.append(queries(shop, staff, path))
                shop.wp.php(switch, on=True, plugin=MAIN)
            there, without = counted
            say(f"{path}: {there} queries, {without} without, {there / without:.3f} x")


def main() -> None:
    with TemporaryDirectory() as name, running_shop(Path(name), NEW) as shop:
        if "presses" not in sys.argv:
            measure_list(shop)
        plain, classed = shop.product(""), shop.product()
        shop.settings(residence="billing")
        say(f"no class: {buy(shop, plain)}")
        say(f"needs nothing: {buy(shop, classed, state='NV', postcode='89101')}")
        say(f"needs the notice: {buy(shop, classed)}")
        shop.settings(customers="account")
        say(f"an account, first: {buy(shop, classed, account=True)}")
        say(f"a returning customer: {buy(shop, classed, account=True, identify=False)}")


if __name__ == "__main__":
    main()
