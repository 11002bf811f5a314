"""A subscription is bought through the notice, and each renewal has its own.

With the library of WooCommerce Subscriptions, github.com/Automattic/woocommerce-subscriptions-core
at its last tag, 7.6.0 (GPL-3.0-or-later), which is no part of this project. The file is left out
where it is not at hand (see conftest.py): name a checkout in COUNTERSIGN_TESTS_SUBSCRIPTIONS.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.woocommerce.conftest import Browser, Order, Shop, offered
from tests.woocommerce.paths import NOT_THERE
from tests.woocommerce.shops import subscriptions

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]

LOADER: Final = """<?php
/** As WooPayments loads it; and a gateway of its name, the only one that it lets sell. */
add_action('plugins_loaded', static function () {{
    require_once '{library}/includes/class-wc-subscriptions-core-plugin.php';
    require_once '{library}/includes/class-wcs-core-autoloader.php';
    new WC_Subscriptions_Core_Plugin();
}});
add_filter('woocommerce_payment_gateways', static function ($gateways) {{
    if (!class_exists('Card')) {{
        class Card extends Counted_COD {{
            public function __construct() {{
                parent::__construct();
                $this->id       = 'woocommerce_payments';
                $this->enabled  = 'yes';
                $this->supports = array('products', 'subscriptions', 'multiple_subscriptions');
            }}
        }}
    }}
    $gateways[] = 'Card';
    return $gateways;
}}, 20);
"""
CARD: Final = "woocommerce_payments"
_ABOUT: Final = """$all = wcs_get_subscriptions_for_order($id, array('order_type' => 'any'));
    $one = end($all);
    return array(count($all), $one->get_id(), $one->get_status(), $one->get_payment_method(),
        $one->get_requires_manual_renewal());"""


@pytest.fixture(scope="module", autouse=True)
def _library(shop: Shop) -> Iterator[None]:
    plugin: Path = shop.wp.folder / "wp-content" / "mu-plugins" / "subscriptions.php"
    library = subscriptions()
    assert library is not None
    plugin.write_text(LOADER.format(library=library))
    try:
        yield
    finally:
        plugin.unlink()


@pytest.fixture(scope="module")
def product(shop: Shop) -> int:
    code = """$product = new WC_Product_Subscription(); $product->set_name('Monthly');
        $product->set_regular_price('10');
        $meta = array('price' => '10', 'period' => 'month', 'period_interval' => '1');
        foreach ($meta as $name => $value) {
            $product->update_meta_data("_subscription_$name", $value);
        }
        $product->update_meta_data('_subscription_length', '0');
        $product->update_meta_data('_countersign_class', 'accessory'); return $product->save();"""
    return int(shop.wp.php(code))


@pytest.fixture
def customer(shop: Shop) -> Iterator[Browser]:
    """Subscriptions are for accounts."""
    made = shop.browser()
    with made.client:
        made.log_in("a_customer", "p")
        yield made


def bought(shop: Shop, customer: Browser, product: int, gateway: str) -> Order:
    customer.put_in_cart(product)
    assert offered(customer.checkout()) == {"countersign"}
    assert NOT_THERE in customer.place(gateway).said
    link = customer.place().url
    assert link.startswith(shop.server.url)
    order = shop.newest()
    assert offered(customer.client.get(order.url).text) == {"countersign"}
    # The library leads from the page for the payment to the checkout.
    assert gateway in offered(customer.back(customer.finish(link)))
    assert "order-received" in customer.place(gateway).url
    assert order.see("status", "state", "taken") == ("processing", "cleared", 1)
    return order


def test_a_subscription_is_bought_through_the_notice(
    shop: Shop, customer: Browser, product: int
) -> None:
    """With the gateway that sells subscriptions, which charges the renewals by itself."""
    order = bought(shop, customer, product, CARD)
    count, _, status, method, is_manual = shop.wp.php(_ABOUT, id=order.id)
    assert (count, status, method, is_manual) == (1, "active", CARD, False)


def test_a_subscription_is_bought_over_the_store_api(
    shop: Shop, customer: Browser, product: int
) -> None:
    """As the block checkout buys it."""
    customer.put_in_cart(product)
    assert customer.store(payment=CARD).status_code == 400
    answer = customer.store(payment="countersign").json()
    order = shop.order(id=answer["order_id"])
    customer.back(customer.finish(answer["payment_result"]["redirect_url"]))
    paid = customer.store(payment=CARD)
    assert (paid.status_code, paid.json()["order_id"]) == (200, order.id)
    assert order.see("status", "state", "taken") == ("processing", "cleared", 1)
    assert shop.wp.php(_ABOUT, id=order.id)[2:] == ["active", CARD, False]


def test_a_charged_renewal_waits_for_its_own_notice(
    shop: Shop, customer: Browser, product: int
) -> None:
    """It is on hold until then, whoever opens its link; afterwards the subscription goes on."""
    order = bought(shop, customer, product, CARD)
    subscription = shop.wp.php(_ABOUT, id=order.id)[1]
    code = """do_action('woocommerce_scheduled_subscription_payment', $subscription);
        $order = wcs_get_subscription($subscription)->get_last_order('all', 'renewal');
        $order->payment_complete('tx');"""
    renewal = shop.order(code, subscription=subscription)
    assert renewal.id != order.id
    assert renewal.see("status", "state") == ("on-hold", "none")
    assert "the link to the notice was sent" in renewal.notes
    stranger = shop.browser()
    with stranger.client:
        stranger.client.get(renewal.url)
    assert renewal.state == "none"
    customer.back(customer.finish(customer.lead(renewal.url)))
    assert renewal.see("status", "state") == ("on-hold", "cleared")
    assert renewal.data["ack"] != order.data["ack"]
    renewal.set_status("processing")
    assert renewal.status == "processing"
    assert shop.wp.php(_ABOUT, id=renewal.id)[2] == "active"


def test_a_renewal_that_the_buyer_pays_goes_through_the_notice(
    shop: Shop, customer: Browser, product: int
) -> None:
    """From the account's page, where the shop has manual renewals and any gateway sells."""
    order = bought(shop, customer, product, CARD)
    subscription = shop.wp.php(_ABOUT, id=order.id)[1]
    code = """$one = wcs_get_subscription($subscription); $one->set_requires_manual_renewal(true);
        $one->save(); do_action('woocommerce_scheduled_subscription_payment', $subscription);
        $order = $one->get_last_order('all', 'renewal');"""
    renewal = shop.order(code, subscription=subscription)
    assert renewal.status == "pending"
    assert offered(customer.client.get(renewal.url).text) == {"countersign"}
    link = customer.place().url
    assert link.startswith(shop.server.url)
    assert shop.newest().id == renewal.id
    assert CARD in offered(customer.back(customer.finish(link)))
    assert "order-received" in customer.place(CARD).url
    assert renewal.see("status", "state", "taken") == ("processing", "cleared", 1)
    assert shop.wp.php(_ABOUT, id=renewal.id)[2] == "active"
