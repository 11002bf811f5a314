"""An order on its way: placed unpaid, led to the notice, paid only when it is cleared."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from countersign_client.testing import webhook_message
from tests.cli.serving import wait_until
from tests.docs.markdown import ROOT, read
from tests.woocommerce.conftest import ADDRESS, EMAIL, Browser, Shop, offered
from tests.woocommerce.test_history import CHANGE_ZIP, box, mails, sending

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]


def test_a_buyer_goes_through_the_notice_before_paying(shop: Shop, browser: Browser) -> None:
    browser.put_in_cart(shop.product())
    page = browser.checkout()
    assert ("Continue to the notice" in page, "cod" in offered(page)) == (True, False)
    link = browser.place().url
    order = shop.newest()
    assert link.startswith(shop.server.url)
    assert order.see("status", "state") == ("pending", "open")
    done = browser.initial(browser.identify(browser.open(link)))
    paying = browser.back(done)
    assert ("cod" in offered(paying), "countersign" in offered(paying)) == (True, False)
    assert "Thank you" in browser.pay(order.url)
    assert order.see("status", "taken") == ("processing", 1)
    assert order.data["cleared"] is True
    assert order.data["obligations"] == [{"type": "compared", "what": "zip"}]
    [found] = shop.client.acknowledgments.list(order_reference=str(order.id))
    assert found.ack_id == order.data["ack"]


def test_a_webhook_is_enough_if_the_buyer_never_comes_back(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser, returns=False)
    wait_until(lambda: order.state == "cleared", "the webhook")
    assert "Thank you" in browser.pay(order.url)


def test_the_receipts_of_all_orders_are_collected(
    shop: Shop, browser: Browser, tmp_path: Path
) -> None:
    """As the guide has it: byte for byte, each once."""
    order = shop.cleared(browser)
    folder = tmp_path / "receipts"
    (command,) = (
        block.text
        for block in read(ROOT / "docs" / "woocommerce.md").blocks
        if "collect" in block.text
    )
    code = command.partition("'")[2].rpartition("'")[0].replace("/var/lib/receipts", str(folder))
    said = [shop.wp.command(code) for _ in range(2)]
    assert said[0] != said[1] == "0 receipts were new.\n"
    session = shop.client.checkout_sessions.retrieve(order.data["session"])
    assert (folder / f"{session.ack_id}.txt").read_text("utf-8") == session.receipt
    assert [*tmp_path.iterdir()] == [folder]


def test_goods_without_a_class_are_sold_as_ever(shop: Shop, browser: Browser) -> None:
    browser.put_in_cart(shop.product(""))
    assert "order-received" in browser.place("cod").url
    order = shop.newest()
    assert order.see("status", "taken", "state") == ("processing", 1, "none")


def test_another_payment_is_refused_at_the_checkout(shop: Shop, browser: Browser) -> None:
    """Whatever the form is made to say."""
    browser.put_in_cart(shop.product(), shop.product(""))
    assert "Invalid payment method." in browser.place("cod").said


def test_the_block_checkout_leads_to_the_notice(shop: Shop, browser: Browser) -> None:
    """By the only payment method for a classed cart there."""
    browser.put_in_cart(shop.product())
    assert browser.store(payment="cod").status_code == 400
    answer = browser.store(payment="countersign").json()
    assert answer["payment_result"]["redirect_url"].startswith(shop.server.url)
    assert shop.order(id=answer["order_id"]).see("status", "state") == ("pending", "open")
    with shop.without_service():
        refused = browser.store(payment="countersign")
        assert (refused.status_code, "Nothing was charged" in refused.text) == (400, True)


def test_a_cart_that_changes_its_mind_is_stopped_before_the_payment(shop: Shop) -> None:
    """The hook just before the payment judges the order, whatever the cart was."""
    code = """$order = wc_get_order($id); $order->set_payment_method('cod');
        $hooks = array(
            'woocommerce_checkout_order_processed' => array($id, array(), $order),
            'woocommerce_store_api_checkout_order_processed' => array($order));
        foreach ($hooks as $hook => $given) {
            try { do_action_ref_array($hook, $given); return $hook; } catch (Exception $refused) {}
        }
        return 'refused';"""
    assert shop.wp.php(code, id=shop.made().id) == "refused"


def test_an_uncleared_order_cannot_be_paid(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    assert "Invalid payment method." in browser.pay(order.url, "cod")
    assert order.see("status", "taken") == ("pending", 0)


@pytest.mark.parametrize("outcome", ["underage", "later"])
def test_an_unverified_buyer_cannot_pay(shop: Shop, browser: Browser, outcome: str) -> None:
    """Undecided means no."""
    order, link = shop.ordered(browser)
    browser.identify(browser.open(link), outcome)
    assert "Invalid payment method." in browser.pay(order.url, "cod")
    assert order.see("state", "taken") == ("open", 0)


def test_a_refused_order_can_be_begun_again(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    shop.client.checkout_sessions.cancel(order.data["session"])
    page = browser.client.get(order.url).text
    assert (order.state, "cod" in offered(page)) == ("cancelled", False)
    first = order.data["session"]
    again = browser.client.get(order.url).text
    assert "Continue to the notice" in again
    assert browser.lead(order.url).startswith(shop.server.url)
    assert (order.state, order.data["session"] == first) == ("open", False)


def test_while_a_session_is_open_no_other_begins(shop: Shop, browser: Browser) -> None:
    order, link = shop.ordered(browser)
    assert browser.place().url == link
    assert shop.newest().id == order.id


def test_the_return_address_decides_nothing(shop: Shop, browser: Browser) -> None:
    """Neither guessed ids nor those of a cleared order."""
    other = shop.cleared(browser)
    mine = shop.browser()
    with mine.client:
        order, _ = shop.ordered(mine)
        data = other.data
        ids = f"&checkout_session_id={data['session']}&ack_id={data['ack']}"
        ids += f"&cbid={data['buyer']}&clearance_id={data['clearance']}"
        assert "cod" not in offered(mine.client.get(order.url + ids).text)
    assert (order.state, order.data["ack"]) == ("open", "")


def test_only_the_buyer_of_an_order_can_cause_requests_to_the_service(
    shop: Shop, browser: Browser
) -> None:
    order, _ = shop.ordered(browser)
    shop.client.checkout_sessions.cancel(order.data["session"])
    browser.client.get(order.url.replace("key=wc_", "key=x"))
    assert order.state == "open"
    browser.client.get(order.url)
    assert order.state == "cancelled"


def test_an_address_changed_afterwards_is_not_cleared(shop: Shop, browser: Browser) -> None:
    """At the checkout again, which reuses the order; with the payment; or in the admin."""
    order = shop.cleared(browser)
    elsewhere = {"key": order.key, "shipping_address": ADDRESS | {"postcode": "90210"}}
    app = shop.browser()
    with app.client:
        answer = app.store(f"/checkout/{order.id}", payment="cod", billing_email=EMAIL, **elsewhere)
    assert (answer.status_code, *order.see("state", "taken")) == (400, "changed", 0)
    assert "cod" not in offered(browser.client.get(order.url).text)
    assert browser.place(postcode="90210").url.startswith(shop.server.url)
    assert order.state == "open"
    order.set_status("processing")
    assert order.status == "on-hold"


def test_a_free_order_goes_through_the_notice(shop: Shop, browser: Browser) -> None:
    """WooCommerce pays a free order at once."""
    order, link = shop.ordered(browser, price="0")
    assert "Continue to the notice" in browser.checkout()
    assert (order.status, link.startswith(shop.server.url)) == ("pending", True)
    assert browser.lead(order.url) == link
    done = browser.initial(browser.identify(browser.open(link)))
    assert "Thank you" in browser.back(done)
    assert order.status == "processing"


def test_a_payment_that_no_hook_stopped_is_not_processed(shop: Shop, browser: Browser) -> None:
    """A gateway that captured in its own way: the order is on hold, and gives the reason."""
    order, _ = shop.ordered(browser)
    shop.wp.php("wc_get_order($id)->payment_complete('tx'); return 1;", id=order.id)
    assert order.status == "on-hold"
    assert "not cleared (Waiting for the buyer)" in order.notes


def test_a_revoked_buyer_stops_the_parcel(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    browser.pay(order.url)
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
    wait_until(lambda: order.status == "on-hold", "the webhook")
    assert (order.state, order.data["reasons"]) == ("refused", ["buyer_revoked"])
    why = "not cleared any more (Refused: the verification of the buyer was revoked). Do not ship"
    assert why in order.notes
    order.set_status("completed")
    assert order.status == "on-hold"


def test_a_paid_order_whose_address_changes_goes_on_hold(shop: Shop, browser: Browser) -> None:
    """At once, with a note, a mail to each side, and a link that works; it is not paid twice."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    with sending(shop) as sent:
        shop.wp.php(CHANGE_ZIP, id=order.id)
    assert order.see("status", "state") == ("on-hold", "changed")
    assert "not cleared any more (Changed). Do not ship it" in order.notes
    assert {to: subject for to, subject, _ in sent} == {
        "admin@example.com": f"Do not ship order #{order.id}",
        EMAIL: f"Your order #{order.id} needs a legal notice",
    }
    page = browser.client.get(order.url).text
    assert ("Continue to the notice" in page, "cod" in offered(page)) == (True, False)
    browser.initial(browser.identify(browser.open(browser.lead(order.url))))
    assert "order has been received" in browser.client.get(order.url).text
    order.set_status("completed")
    assert order.see("status", "taken") == ("completed", 1)


_LOSES = """require_once WC_ABSPATH . 'includes/class-wc-privacy-erasers.php';
    WC_Privacy_Erasers::remove_order_personal_data(wc_get_order($id)); return 1;"""


@pytest.mark.parametrize("change", [CHANGE_ZIP, _LOSES])
def test_a_finished_order_keeps_its_words(
    shop: Shop, browser: Browser, people: dict[str, Browser], change: str
) -> None:
    """Whatever is changed of it or erased; nobody gets a mail, and no link is offered."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    order.set_status("completed")
    with sending(shop) as sent:
        shop.wp.php(change, id=order.id)
        shop.wp.php("return wc_get_order($id)->save();", id=order.id)
    assert "Send the buyer the link" not in box(people["shop_manager"], order)
    stored = shop.wp.php("return wc_get_order($id)->get_meta('_countersign_state');", id=order.id)
    assert (order.status, stored, sent) == ("completed", "cleared", [])
    order.set_status("processing")
    assert order.status == "on-hold"


def test_an_order_from_before_its_product_had_a_class_is_finished(
    shop: Shop, people: dict[str, Browser]
) -> None:
    """It says nothing, and waits for nobody."""
    product = shop.new_product("")
    code = "$order = wc_create_order(); $order->add_product(wc_get_product($p)); $order->save();"
    order = shop.order(code, p=product)
    order.set_status("completed")
    shop.wp.php("update_post_meta($id, '_countersign_class', 'accessory'); return 1;", id=product)
    shop.wp.php("return wc_get_order($id)->save();", id=order.id)
    assert "Send the buyer the link" not in box(people["shop_manager"], order)
    stored = shop.wp.php("return wc_get_order($id)->get_meta('_countersign_state');", id=order.id)
    assert (order.status, stored) == ("completed", "")


def test_the_shop_is_told_if_a_buyer_is_revoked_after_the_completion(
    shop: Shop, browser: Browser
) -> None:
    """Once, as long as the parcel can be on its way; the order stays completed."""
    order, old = shop.cleared(browser), shop.cleared(browser)
    for one in (order, old):
        browser.pay(one.url)
        one.set_status("completed")
    age = "$o = wc_get_order($id); $o->set_date_completed(time() - 31 * 86400); return $o->save();"
    shop.wp.php(age, id=old.id)
    with sending(shop) as sent:
        for buyer in {one.data["buyer"] for one in (order, old)}:
            shop.client.sandbox.move_buyer(cbid=buyer, status="revoked")
        wait_until(lambda: order.state == "refused", "the webhook")
        wait_until(lambda: f"#{order.id}" in str(mails(shop)[-1:]), "the mail")
    [(to, _, words)] = sent
    assert (to, "can still be called back" in words) == ("admin@example.com", True)
    assert (order.status, old.state) == ("completed", "cleared")


def test_completing_an_order_asks_the_service_again(shop: Shop, browser: Browser) -> None:
    """Also if no webhook has come."""
    order, other = shop.cleared(browser), shop.cleared(browser)
    for one in (order, other):
        browser.pay(one.url)
    with shop.without_webhooks():
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        order.set_status("completed")
        other.set_status("completed")
    assert (order.status, other.status) == ("on-hold", "completed")


def test_two_requests_do_not_decide_one_order_at_once(shop: Shop, browser: Browser) -> None:
    """Otherwise an old yes could be stored after a new no."""
    order, _ = shop.ordered(browser)
    code = r"""global $wpdb;
        $name = 'countersign_' . md5(DB_NAME . $wpdb->prefix . $id);
        $other = new wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST);
        $other->get_var("SELECT GET_LOCK('$name', 0)");
        $try = static function () use ($id) {
            try { \Countersign\WooCommerce\Orders::locked($id, '__return_true', 0); return 'done'; }
            catch (\Countersign\WooCommerce\Service_Error $error) { return $error->reason; }
        };
        $first = $try();
        $other->get_var("SELECT RELEASE_LOCK('$name')");
        return array($first, $try(), $try());"""
    assert shop.wp.php(code, id=order.id) == ["busy", "done", "done"]


def test_nothing_is_paid_while_the_service_is_away(shop: Shop, browser: Browser) -> None:
    """No time-out is a yes, at the checkout, at the payment, or at the parcel."""
    browser.put_in_cart(shop.product())
    with shop.without_service():
        assert "Nothing was charged" in browser.place().said
    waiting = shop.newest()
    assert waiting.see("status", "state", "taken") == ("pending", "none", 0)
    another = shop.browser()
    with another.client:
        order = shop.cleared(another)
        with shop.without_service():
            assert "Nothing was charged" in another.pay(order.url)
        assert order.see("status", "taken") == ("pending", 0)
        another.pay(order.url)
        assert order.status == "processing"
        with shop.without_service():
            order.set_status("completed")
        assert order.status == "on-hold"


def test_an_expired_clearance_is_requested_again(shop: Shop, browser: Browser) -> None:
    """When the buyer goes on, and not when the page is opened."""
    with shop.without_webhooks():
        order = shop.cleared(browser)
    expire = """$order = wc_get_order($id);
        $order->update_meta_data('_countersign', array('until' => time() - 1) + $data);
        return $order->save();"""
    shop.wp.php(expire, id=order.id, data=order.data)
    page = browser.client.get(order.url).text
    assert ("looked at once more" in page, offered(page)) == (True, {"countersign"})
    with shop.without_service():
        assert "Nothing was charged" in browser.pay(order.url, "countersign")
    assert browser.lead(order.url) == order.url
    assert "cod" in offered(browser.client.get(order.url).text)
    assert order.data["until"] > time.time()


def test_an_order_that_needs_nothing_is_paid_at_once(shop: Shop, browser: Browser) -> None:
    browser.put_in_cart(shop.product())
    with shop.options({"tests_residence": "NV"}):
        answer = browser.place("cod", state="NV", postcode="89101")
        order = shop.newest()
        assert ("order-received" in answer.url, order.state) == (True, "not_needed")
        order.set_status("completed")
        assert order.status == "completed"


def _is_refused(shop: Shop, browser: Browser, said: str, *classes: str, **address: str) -> None:
    browser.put_in_cart(*(shop.product(one) for one in classes))
    assert said in browser.place(**address).said
    assert shop.newest().status == "pending"


def test_a_barrel_is_not_sold(shop: Shop, browser: Browser) -> None:
    """Prohibited goods are named before the notice."""
    _is_refused(shop, browser, "not shipped to buyers", "barrel")


def test_a_payment_is_reported_with_its_order(shop: Shop, browser: Browser) -> None:
    """Once the money is there, not when a transfer is promised; nothing is shipped by it."""
    order = shop.cleared(browser)
    browser.pay(order.url, "bacs")
    assert not shop.client.clearances.retrieve(order.data["clearance"]).fulfilments
    order.set_status("processing")
    [reported] = shop.client.clearances.retrieve(order.data["clearance"]).fulfilments
    assert reported.paid_at is not None
    assert order.data["shipped"] == 0


def test_two_classes_are_one_order(shop: Shop, browser: Browser) -> None:
    """One notice and one clearance are about both."""
    browser.put_in_cart(*(shop.product(one) for one in ("accessory", "manufacturing_machine")))
    link = browser.place().url
    assert link
    browser.back(browser.finish(link))
    order = shop.newest()
    assert order.state == "cleared"
    decided = shop.client.clearances.retrieve(order.data["clearance"])
    assert [*decided.product_classes] == ["accessory", "manufacturing_machine"]


def test_a_parcel_to_another_country_is_refused(shop: Shop, browser: Browser) -> None:
    """There is no ZIP code to compare."""
    germany = {"country": "DE", "state": "", "postcode": "10115"}
    _is_refused(shop, browser, "in the United States", "accessory", **germany)


def test_an_order_stays_gated_when_its_product_loses_its_class(
    shop: Shop, browser: Browser
) -> None:
    product = shop.new_product()
    browser.put_in_cart(product)
    browser.place()
    order = shop.newest()
    shop.wp.php("update_post_meta($id, '_countersign_class', ''); return 1;", id=product)
    assert "Invalid payment method." in browser.pay(order.url, "cod")


def test_an_inauthentic_message_is_refused(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    data = {"checkout_session_id": order.data["session"]}
    body, headers = webhook_message("checkout_session.completed", data)
    assert shop.deliver(body, headers) == 400
    right = shop.secret
    for wrong in (
        webhook_message("x", data, secret=right, now=time.time() - 301),
        webhook_message("x", data, secret=right, now=time.time() + 310),
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


def test_an_event_alone_proves_nothing(shop: Shop, browser: Browser) -> None:
    """The service is asked: a replayed or late event changes nothing."""
    order, _ = shop.ordered(browser)
    data = {"checkout_session_id": order.data["session"]}
    body, headers = webhook_message("checkout_session.completed", data, secret=shop.secret)
    with shop.without_service():
        assert shop.deliver(body, headers) == 503
    assert [shop.deliver(body, headers) for _ in range(2)] == [204, 204]
    with shop.without_service():
        assert shop.deliver(body, headers) == 204
    assert order.state == "open"


def test_states_without_a_webhook_are_found_within_the_hour(shop: Shop, browser: Browser) -> None:
    code = "do_action('countersign_catch_up'); return wp_next_scheduled('countersign_catch_up');"
    with shop.without_webhooks():
        order = shop.cleared(browser, returns=False)
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
def test_a_request_is_retried_once_if_that_is_safe(
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
