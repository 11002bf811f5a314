"""Buttons that pay at once, where pages that are not made of blocks show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.woocommerce.conftest import Browser, Shop
from tests.woocommerce.paths import NOT_OFFERED, NOT_THERE
from tests.woocommerce.test_need import NEVADA, billing_counts, review

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]

BUTTONS: Final = """<?php
/** As WooCommerce Stripe Gateway shows its express buttons: where the shop offers its gateway. */
foreach (array(
    'product'   => 'woocommerce_after_add_to_cart_form',
    'cart'      => 'woocommerce_proceed_to_checkout',
    'checkout'  => 'woocommerce_checkout_before_customer_details',
) as $place => $hook) {
    add_action($hook, static function () use ($place) {
        if (isset(WC()->payment_gateways->get_available_payment_gateways()['cod'])) {
            echo '<div id="express-' . $place . '"></div>';
        }
    }, 1);
}
// As WooCommerce PayPal Payments does on the mini-cart: there it asks its own filter alone.
add_action('woocommerce_widget_shopping_cart_after_buttons', static function () {
    if (!apply_filters('woocommerce_paypal_payments_buttons_disabled', false, 'mini-cart')) {
        echo '<div id="express-mini-cart"></div>';
    }
});
"""


@pytest.fixture(autouse=True)
def _buttons(shop: Shop) -> Iterator[None]:
    """Another plugin with express buttons."""
    plugin: Path = shop.wp.folder / "wp-content" / "mu-plugins" / "express.php"
    plugin.write_text(BUTTONS)
    yield
    plugin.unlink()


def shown(browser: Browser, product: int) -> set[str]:
    """The places with a button, of all pages of this product and of the present cart."""
    mini = browser.client.post(f"{browser.shop}/?wc-ajax=get_refreshed_fragments").json()
    pages = [mini["fragments"]["div.widget_shopping_cart_content"], browser.checkout()]
    queries = (f"p={product}&post_type=product", "pagename=cart-of-old")
    pages += [browser.client.get(f"{browser.shop}/?{query}").text for query in queries]
    places = ("product", "cart", "checkout", "mini-cart")
    return {place for place in places if any(f'id="express-{place}"' in page for page in pages)}


@pytest.fixture(scope="module", autouse=True)
def _cart(shop: Shop) -> None:
    """A page with the cart that is not made of blocks."""
    code = """return wp_insert_post(array('post_type' => 'page', 'post_status' => 'publish',
        'post_title' => 'C', 'post_name' => 'cart-of-old',
        'post_content' => '[woocommerce_cart]'));"""
    shop.wp.php(code)


def test_no_express_button_is_shown_where_a_cart_needs_the_notice(
    shop: Shop, browser: Browser
) -> None:
    """On product page, mini-cart, cart and classic checkout; other goods have them all."""
    plain, classed = shop.product(""), shop.product()
    browser.put_in_cart(plain)
    assert shown(browser, plain) == {"product", "cart", "checkout", "mini-cart"}
    assert "product" not in shown(browser, classed), "pressed there, it would be in the cart"
    browser.put_in_cart(classed)
    assert shown(browser, plain) == set()


def test_a_buyer_who_needs_nothing_sees_the_express_buttons(shop: Shop, browser: Browser) -> None:
    """As soon as the shop knows the address: on the product's page with an empty cart, too."""
    classed = shop.product()
    with billing_counts(shop):
        assert shown(browser, classed) == set()
        browser.put_in_cart(shop.product(""))
        review(browser, **NEVADA)
        assert "product" in shown(browser, classed)
        browser.put_in_cart(classed)
        assert shown(browser, classed) == {"product", "cart", "checkout", "mini-cart"}


def test_an_express_button_that_is_pressed_anyway_is_refused(shop: Shop, browser: Browser) -> None:
    """A page that was open before: its requests, as its plugins send them, charge nothing."""
    browser.put_in_cart(shop.product())
    assert NOT_THERE in browser.place("cod").said
    assert browser.store(payment="cod").json()["code"] == NOT_OFFERED
