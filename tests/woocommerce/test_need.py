"""Who needs the notice is decided at the checkout, before the button."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.woocommerce.conftest import ADDRESS, EMAIL, GATEWAYS, Browser, Shop, offered

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]
NEVADA = {"state": "NV", "postcode": "89101"}
FORGET = """global $wpdb;
    $wpdb->query("DELETE FROM {$wpdb->options} WHERE option_name LIKE '%countersign_need%'");
    wp_cache_flush(); return 1;"""
BEGIN = """$gateway = new \\Countersign\\WooCommerce\\Gateway(); wc_clear_notices();
    $result = $gateway->process_payment($id)['result'];
    return array($result, wp_list_pluck(wc_get_notices('error'), 'notice'));"""


@contextmanager
def billing_counts(shop: Shop) -> Iterator[None]:
    """The shop relies on the billing address, and knows no answer yet."""
    shop.wp.php(FORGET)
    shop.settings(residence="billing")
    try:
        yield
    finally:
        shop.settings(residence="")
        shop.wp.php(FORGET)


def review(browser: Browser, **address: str) -> str:
    """What the classic checkout shows while an address is typed."""
    page = browser.checkout()
    nonce = re.search(r'"update_order_review_nonce":"(\w+)"', page)
    assert nonce is not None
    fields = {**ADDRESS, **address}
    form = {"security": nonce[1], "payment_method": "countersign"}
    for prefix in ("", "s_"):
        form |= {prefix + name: fields[name] for name in ("country", "state", "postcode", "city")}
    url = f"{browser.shop}/?wc-ajax=update_order_review"
    return str(
        browser.client.post(url, data=form).json()["fragments"][".woocommerce-checkout-payment"]
    )


def test_a_buyer_who_needs_nothing_sees_the_usual_ways_to_pay(shop: Shop, browser: Browser) -> None:
    """As soon as the address is typed; the order is placed and paid in one step."""
    browser.put_in_cart(shop.product())
    with billing_counts(shop):
        assert offered(review(browser)) == {"countersign"}
        assert offered(review(browser, **NEVADA)) == set(GATEWAYS)
        assert "order-received" in browser.place("cod", **NEVADA).url
        order = shop.newest()
        assert order.see("status", "state", "taken") == ("processing", "not_needed", 1)
        order.set_status("completed")
        assert order.status == "completed"


def test_an_app_sees_the_usual_ways_to_pay(shop: Shop, browser: Browser) -> None:
    """Over the Store API, as the block checkout does; another address is refused."""
    browser.put_in_cart(shop.product())
    there = ADDRESS | NEVADA
    addresses: dict[str, Any] = {
        "shipping_address": there,
        "billing_address": there | {"email": EMAIL},
    }
    with billing_counts(shop):
        assert browser.store(payment="cod").status_code == 400
        assert browser.store(payment="cod", **addresses).status_code == 200
        assert shop.newest().see("status", "state") == ("processing", "not_needed")


def test_free_goods_for_a_buyer_who_needs_nothing_are_sold_at_once(
    shop: Shop, browser: Browser
) -> None:
    browser.put_in_cart(shop.product(price="0"))
    with billing_counts(shop):
        placed = browser.place("", **NEVADA)
        assert "order-received" in placed.url, placed.said
        assert shop.newest().see("status", "state") == ("processing", "not_needed")


def test_an_address_is_asked_about_once(shop: Shop) -> None:
    """Whoever asks, and however often the page is drawn; another ZIP code is another question."""
    code = r"""$asked = 0;
        add_filter('pre_http_request', static function ($done, $options, $url) use (&$asked) {
            $asked += false !== strpos($url, '/v1/requirements') ? 1 : 0;
            return $done;
        }, 1, 3);
        $order = wc_get_order($id);
        foreach (array('89101', '89101', '89101-1234', '89102', '8910') as $zip) {
            $order->set_shipping_postcode($zip);
            \Countersign\WooCommerce\Need::is_nothing($order, array('accessory'));
        }
        return $asked;"""
    with billing_counts(shop):
        assert shop.wp.php(code, id=shop.made(**NEVADA).id) == 2


def test_while_the_service_is_away_the_checkout_has_the_notice(
    shop: Shop, browser: Browser
) -> None:
    """It does not wait for it again; who presses the button reads that nothing was charged."""
    code = r"""$asked = 0;
        add_filter('pre_http_request', static function ($done) use (&$asked) {
            $asked++;
            return $done;
        }, 1);
        $order = wc_get_order($id);
        foreach (array('89101', '89102') as $zip) {
            $order->set_shipping_postcode($zip);
            $nothing = \Countersign\WooCommerce\Need::is_nothing($order, array('accessory'));
        }
        return array($nothing, $asked);"""
    browser.put_in_cart(shop.product())
    with billing_counts(shop):
        with shop.without_service():
            # A read is tried twice.
            assert shop.wp.php(code, id=shop.made(**NEVADA).id) == [False, 2]
            shop.wp.php(FORGET)
            assert offered(review(browser, **NEVADA)) == {"countersign"}
            assert "Invalid payment method." in browser.place("cod", **NEVADA).said
            assert "Nothing was charged" in browser.place(**NEVADA).said
        shop.wp.php("return set_transient('countersign_need_away', 1, 60);")
        placed = browser.place(**NEVADA)
        assert placed.url == shop.newest().url, placed.said
        assert shop.newest().state == "not_needed"


def test_goods_that_are_not_sent_have_the_notice(shop: Shop, browser: Browser) -> None:
    """Where their buyer lives is no place where a parcel goes."""
    code = """$p = new WC_Product_Simple(); $p->set_name('V'); $p->set_regular_price('1');
        $p->set_virtual(true); $p->update_meta_data('_countersign_class', 'accessory');
        return $p->save();"""
    browser.put_in_cart(shop.wp.php(code))
    with billing_counts(shop):
        assert offered(review(browser, **NEVADA)) == {"countersign"}


def test_an_order_of_staff_for_a_buyer_who_needs_nothing_is_paid(
    shop: Shop, browser: Browser
) -> None:
    """On its page, or by a program; for another buyer it goes on hold."""
    paid = "wc_get_order($id)->payment_complete('tx'); return 1;"
    with billing_counts(shop):
        mine, other, elsewhere = shop.made(**NEVADA), shop.made(**NEVADA), shop.made()
        assert offered(browser.client.get(mine.url).text) == set(GATEWAYS)
        assert "order has been received" in browser.pay(mine.url)
        for one in (other, elsewhere):
            shop.wp.php(paid, id=one.id)
        assert (mine.status, other.status, elsewhere.status) == (
            *("processing", "processing"),
            "on-hold",
        )


@pytest.mark.parametrize(
    ("address", "state"),
    [
        ({"country": "PR", "state": "", "postcode": "00901"}, "not_needed"),
        ({"country": "GU", "state": "", "postcode": "96910"}, "not_needed"),
        ({"country": "VI", "state": "", "postcode": "00801"}, "not_needed"),
        ({"country": "AS", "state": "", "postcode": "96799"}, "not_needed"),
        ({"country": "MP", "state": "", "postcode": "96950"}, "not_needed"),
        ({"country": "US", "state": "AE", "postcode": "09012"}, "open"),
        ({"country": "US", "state": "AP", "postcode": "96201"}, "open"),
        ({"country": "PR", "state": "", "postcode": "94105"}, "open"),
    ],
)
def test_territories_and_military_mail_are_postal_states(
    shop: Shop, address: dict[str, str], state: str
) -> None:
    """In WooCommerce a territory is a country; of military mail no rule knows the state."""
    order = shop.made(**address)
    with billing_counts(shop):
        assert shop.wp.php(BEGIN, id=order.id)[0] == "success"
        assert order.state == state


@pytest.mark.parametrize("zip_", ["94105 - 1234", "941051234", " 94105\u20131234.", "94105-1234"])
def test_the_form_of_a_zip_code_is_helped(shop: Shop, zip_: str) -> None:
    order = shop.made(postcode=zip_)
    assert shop.wp.php(BEGIN, id=order.id) == ["success", []]
    assert (order.state, order.data["zip"]) == ("open", "94105-1234")


def test_a_zip_code_that_is_none_is_shown_with_how_one_looks(shop: Shop) -> None:
    order = shop.made(state="MA", postcode="2134")
    result, [words] = shop.wp.php(BEGIN, id=order.id)
    assert (result, "“MA 2134”" in words, "02134" in words) == ("failure", True, True)
