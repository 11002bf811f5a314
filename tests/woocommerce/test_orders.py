"""An order on its way: placed unpaid, led to the notice, paid only when it is cleared."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from countersign_client.testing import webhook_message
from tests.cli.serving import wait_until
from tests.woocommerce.conftest import Browser, Shop

pytestmark = [pytest.mark.wordpress, pytest.mark.long]


@pytest.fixture
def shop(running: Shop) -> Shop:
    return running


@pytest.fixture
def browser(shop: Shop) -> Iterator[Browser]:
    made = shop.browser()
    with made.client:
        yield made


def test_a_buyer_goes_through_the_notice_before_paying(shop: Shop, browser: Browser) -> None:
    browser.put_in_cart(shop.product())
    page = browser.client.get(f"{shop.url}/?stub_page=checkout").text
    assert ("Continue to the notice" in page, 'value="card"' in page) == (True, False)
    link = browser.place().headers["Location"]
    order = shop.newest()
    assert link.startswith(shop.server.url)
    assert (order.status, order.state) == ("pending", "open")
    done = browser.initial(browser.identify(browser.open(link)))
    paying = browser.back(done)
    assert ('value="card"' in paying, 'value="countersign"' in paying) == (True, False)
    assert "Thank you" in browser.pay(order.url)
    assert (order.status, order.captured) == ("processing", 1)
    assert order.data["cleared"] is True
    assert order.data["obligations"] == [{"type": "compared", "what": "zip"}]


def test_a_webhook_is_enough_if_the_buyer_never_comes_back(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    wait_until(lambda: order.state == "cleared", "the webhook")
    assert "Thank you" in browser.pay(order.url)


def test_goods_without_a_class_are_sold_as_ever(shop: Shop, browser: Browser) -> None:
    browser.put_in_cart(shop.product(""))
    assert "order-received" in browser.place("card").headers["Location"]
    order = shop.newest()
    assert (order.status, order.captured, order.state) == ("processing", 1, "none")


def test_another_payment_is_refused_at_the_checkout(shop: Shop, browser: Browser) -> None:
    """Whatever the form is made to say."""
    browser.put_in_cart(shop.product(), shop.product(""))
    assert "Invalid payment method." in browser.place("card").text


def test_a_cart_that_changes_its_mind_is_stopped_before_the_payment(shop: Shop) -> None:
    """The hook just before the payment judges the order, whatever the cart was."""
    code = """$order = new WC_Order(); $order->set_items(array($product)); $order->save();
        $order->set_payment_method('card');
        foreach (array('woocommerce_checkout_order_processed' => array($order->get_id(), array(), $order),
            'woocommerce_store_api_checkout_order_processed' => array($order)) as $hook => $given) {
            try { do_action_ref_array($hook, $given); return $hook; } catch (Exception $refused) {}
        }
        return 'refused';"""
    assert shop.wp.php(code, product=shop.product()) == "refused"


def test_an_order_that_is_not_cleared_cannot_be_paid(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    assert "Invalid payment method." in browser.pay(order.url, "card")
    assert (order.status, order.captured) == ("pending", 0)


@pytest.mark.parametrize("outcome", ["underage", "later"])
def test_a_buyer_who_is_not_verified_cannot_pay(
    shop: Shop, browser: Browser, outcome: str
) -> None:
    """What is not decided yet is a no."""
    order, link = shop.ordered(browser)
    browser.identify(browser.open(link), outcome)
    assert "Invalid payment method." in browser.pay(order.url, "card")
    assert (order.state, order.captured) == ("open", 0)


def test_a_refused_order_can_be_begun_again(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    shop.client.checkout_sessions.cancel(order.data["session"])
    page = browser.client.get(order.url).text
    assert (order.state, 'value="card"' in page) == ("cancelled", False)
    first = order.data["session"]
    again = browser.client.get(order.url).text
    assert "Continue to the notice" in again
    browser.pay(order.url, "countersign")
    assert (order.state, order.data["session"] == first) == ("open", False)


def test_while_a_session_is_open_there_is_no_other(shop: Shop, browser: Browser) -> None:
    order, link = shop.ordered(browser)
    assert browser.place().headers["Location"] == link
    assert shop.newest().id == order.id


def test_the_address_of_the_return_decides_nothing(shop: Shop, browser: Browser) -> None:
    """Neither ids that were guessed nor those of an order that is cleared."""
    other = shop.cleared(browser)
    wait_until(lambda: other.state == "cleared", "the webhook")
    mine = shop.browser()
    with mine.client:
        order, _ = shop.ordered(mine)
        data = other.data
        ids = f"&checkout_session_id={data['session']}&ack_id={data['ack']}"
        ids += f"&cbid={data['buyer']}&clearance_id={data['clearance']}"
        assert 'value="card"' not in mine.client.get(order.url + ids).text
    assert (order.state, order.data["ack"]) == ("open", "")


def test_only_the_buyer_of_an_order_can_have_the_service_asked(
    shop: Shop, browser: Browser
) -> None:
    order, _ = shop.ordered(browser)
    shop.client.checkout_sessions.cancel(order.data["session"])
    browser.client.get(order.url.replace("key=wc_", "key=x"))
    assert order.state == "open"
    browser.client.get(order.url)
    assert order.state == "cancelled"


def test_an_address_that_is_changed_afterwards_is_not_cleared(
    shop: Shop, browser: Browser
) -> None:
    """At the checkout again, which uses the order again; with the payment; or in the admin."""
    order = shop.cleared(browser)
    wait_until(lambda: order.state == "cleared", "the webhook")
    url = f"{shop.url}/index.php?rest_route=/wc/store/v1/checkout/{order.id}"
    key = order.url.partition("key=")[2]
    elsewhere = {"key": key, "payment_method": "card", "shipping_address": {"postcode": "90210"}}
    answer = browser.client.post(url, json=elsewhere)
    assert (answer.status_code, order.state, order.captured) == (400, "changed", 0)
    assert 'value="card"' not in browser.client.get(order.url).text
    assert browser.place(shipping_postcode="90210").headers["Location"].startswith(shop.server.url)
    assert order.state == "open"
    order.set_status("processing")
    assert order.status == "on-hold"


def test_a_free_order_goes_through_the_notice(shop: Shop, browser: Browser) -> None:
    """WooCommerce pays at once what costs nothing."""
    order, link = shop.ordered(browser, price="0")
    assert (order.status, link.startswith(shop.server.url)) == ("pending", True)
    done = browser.initial(browser.identify(browser.open(link)))
    assert "Thank you" in browser.back(done)
    assert order.status == "processing"


def test_a_payment_that_nobody_could_stop_is_not_processed(shop: Shop, browser: Browser) -> None:
    """A gateway that captured by a way of its own: the order is on hold, and says why."""
    order, _ = shop.ordered(browser)
    shop.wp.php("wc_get_order($id)->payment_complete('tx'); return 1;", id=order.id)
    assert order.status == "on-hold"
    assert "not cleared (open)" in order.notes


def test_a_revoked_buyer_stops_the_parcel(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    wait_until(lambda: order.state == "cleared", "the webhook")
    browser.pay(order.url)
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
    wait_until(lambda: order.status == "on-hold", "the webhook")
    assert (order.state, order.data["reasons"]) == ("refused", ["buyer_revoked"])
    assert "do not ship. No longer cleared: buyer_revoked" in order.notes
    order.set_status("completed")
    assert order.status == "on-hold"


def test_an_order_is_asked_about_again_when_it_is_completed(shop: Shop, browser: Browser) -> None:
    """Also if no webhook has come."""
    order, other = shop.cleared(browser), shop.cleared(browser)
    for one in (order, other):
        wait_until(lambda one=one: one.state == "cleared", "the webhook")  # type: ignore[misc]
        browser.pay(one.url)
    with shop.without_webhooks():
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        order.set_status("completed")
        other.set_status("completed")
    assert (order.status, other.status) == ("on-hold", "completed")


def test_nothing_is_paid_while_the_service_is_away(shop: Shop, browser: Browser) -> None:
    """No time-out is a yes, at the checkout, at the payment, or at the parcel."""
    browser.put_in_cart(shop.product())
    with shop.without_service():
        assert "Nothing was charged" in browser.place().text
    waiting = shop.newest()
    assert (waiting.status, waiting.state, waiting.captured) == ("pending", "none", 0)
    another = shop.browser()
    with another.client:
        order = shop.cleared(another)
        wait_until(lambda: order.state == "cleared", "the webhook")
        with shop.without_service():
            assert "Nothing was charged" in another.pay(order.url)
        assert (order.status, order.captured) == ("pending", 0)
        another.pay(order.url)
        assert order.status == "processing"
        with shop.without_service():
            order.set_status("completed")
        assert order.status == "on-hold"


def test_what_the_service_says_is_not_needed_is_paid_at_once(shop: Shop, browser: Browser) -> None:
    shop.wp.php("update_option('stub_residence', 'NV'); return 1;")
    browser.put_in_cart(shop.product())
    answer = browser.place(shipping_state="NV", shipping_postcode="89101")
    shop.wp.php("delete_option('stub_residence'); return 1;")
    order = shop.newest()
    assert (answer.headers["Location"], order.state) == (order.url, "not_needed")
    assert "Thank you" in browser.pay(order.url)
    order.set_status("completed")
    assert order.status == "completed"


@pytest.mark.parametrize(
    ("classes", "address", "said"),
    [
        (["barrel"], {}, "not shipped to buyers"),
        (["accessory", "manufacturing_machine"], {}, "an order each"),
        (["accessory"], {"shipping_country": "CA"}, "in the United States"),
        (["accessory"], {"shipping_postcode": "9410"}, "in the United States"),
    ],
)
def test_what_cannot_be_sold_is_said_before_the_notice(
    shop: Shop, browser: Browser, classes: list[str], address: dict[str, str], said: str
) -> None:
    browser.put_in_cart(*(shop.product(one) for one in classes))
    assert said in browser.place(**address).text
    assert shop.newest().status == "pending"


def test_an_order_stays_gated_when_its_product_loses_its_class(
    shop: Shop, browser: Browser
) -> None:
    order, _ = shop.ordered(browser)
    code = """foreach (wc_get_order($id)->get_items() as $item) {
        update_post_meta($item->get_product_id(), '_countersign_class', ''); } return 1;"""
    shop.wp.php(code, id=order.id)
    assert "Invalid payment method." in browser.pay(order.url, "card")


def test_a_message_that_is_not_authentic_is_refused(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    data = {"checkout_session_id": order.data["session"]}
    body, headers = webhook_message("checkout_session.completed", data)
    assert shop.deliver(body, headers) == 400
    right = shop.secret
    for wrong in (
        webhook_message("x", data, secret=right, now=time.time() - 301),
        webhook_message("x", data, secret=right, now=time.time() + 301),
        (body, {}),
        (body, headers | {"webhook-signature": ""}),
    ):
        assert shop.deliver(*wrong) == 400
    body, headers = webhook_message("x", data, secret=right)
    assert shop.deliver(body + b" ", headers) == 400
    assert shop.deliver(body, headers | {"webhook-id": "evt_other"}) == 400
    rotating = {"webhook-signature": "v1,x " + headers["webhook-signature"]}
    assert shop.deliver(body, headers | rotating) == 204
    shop.settings(webhook_secret="")
    assert shop.deliver(body, headers) == 503
    shop.settings(webhook_secret=right)


def test_an_event_says_nothing_by_itself(shop: Shop, browser: Browser) -> None:
    """The service is asked: an event that is replayed, or comes too late, changes nothing."""
    order, _ = shop.ordered(browser)
    data = {"checkout_session_id": order.data["session"]}
    body, headers = webhook_message("checkout_session.completed", data, secret=shop.secret)
    with shop.without_service():
        assert shop.deliver(body, headers) == 503
    assert [shop.deliver(body, headers) for _ in range(2)] == [204, 204]
    with shop.without_service():
        assert shop.deliver(body, headers) == 204
    assert order.state == "open"


def test_what_no_webhook_brought_is_found_within_the_hour(shop: Shop, browser: Browser) -> None:
    code = "do_action('countersign_catch_up'); return wp_next_scheduled('countersign_catch_up');"
    with shop.without_webhooks():
        order = shop.cleared(browser)
        assert shop.wp.php(code)
    assert order.state == "cleared"


@pytest.mark.parametrize(
    ("case", "attempts", "error"),
    [
        ("server-error", 2, ""),
        ("cut-before", 2, ""),
        ("cut-after", 2, ""),
        ("overloaded", 2, "overloaded"),
        ("limited-for-hours", 1, "rate_limited"),
        ("redirect", 1, "unexpected_response"),
        ("no-json", 1, "unexpected_response"),
    ],
)
def test_a_request_is_sent_once_more_if_that_is_safe(
    shop: Shop, case: str, attempts: int, error: str
) -> None:
    """With one Idempotency-Key: the faults are those of all clients."""
    shop.settings(base_url=shop.proxy.base_url("woocommerce", case))
    code = r"""try { \Countersign\WooCommerce\Client::post('/v1/requirements', $body); return ''; }
        catch (\Countersign\WooCommerce\Service_Error $error) { return $error->reason; }"""
    body = {"product_classes": ["accessory"], "ship_to": {"state": "CA", "zip": "94105"}}
    assert shop.wp.php(code, body=body) == error
    shop.settings(base_url=shop.server.url)
    seen = shop.proxy.attempts["woocommerce", case]
    assert len(seen) == attempts
    assert len({one["key"] for one in seen}) == 1
