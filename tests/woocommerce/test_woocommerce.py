"""An order on its way: placed unpaid, led to the notice, paid only when it is cleared.

And the pages of the admin. All in one file: WordPress is started once for it.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from countersign_client.testing import webhook_message
from tests.cli.serving import wait_until
from tests.docs.markdown import ROOT, read
from tests.woocommerce.conftest import Browser, Order, Shop, nonce_in

pytestmark = [pytest.mark.wordpress, pytest.mark.long, pytest.mark.one_engine]


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
    assert order.see("status", "state") == ("pending", "open")
    done = browser.initial(browser.identify(browser.open(link)))
    paying = browser.back(done)
    assert ('value="card"' in paying, 'value="countersign"' in paying) == (True, False)
    assert "Thank you" in browser.pay(order.url)
    assert order.see("status", "captured") == ("processing", 1)
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
    assert "order-received" in browser.place("card").headers["Location"]
    order = shop.newest()
    assert order.see("status", "captured", "state") == ("processing", 1, "none")


def test_another_payment_is_refused_at_the_checkout(shop: Shop, browser: Browser) -> None:
    """Whatever the form is made to say."""
    browser.put_in_cart(shop.product(), shop.product(""))
    assert "Invalid payment method." in browser.place("card").text


def test_the_block_checkout_leads_to_the_notice(shop: Shop, browser: Browser) -> None:
    """By the one payment method that a classed cart has there."""
    browser.put_in_cart(shop.product())
    url = f"{shop.url}/index.php?rest_route=/wc/store/v1/checkout"
    address = {"country": "US", "state": "CA", "postcode": "94105"}
    body = {"payment_method": "card", "shipping_address": address}
    assert browser.client.post(url, json=body).status_code == 400
    body["payment_method"] = "countersign"
    answer = browser.client.post(url, json=body).json()
    assert answer["payment_result"]["redirect_url"].startswith(shop.server.url)
    assert shop.newest().see("status", "state") == ("pending", "open")
    with shop.without_service():
        refused = browser.client.post(url, json=body)
        assert (refused.status_code, "Nothing was charged" in refused.text) == (400, True)


def test_the_block_checkout_loads_the_script_of_the_payment_method(shop: Shop) -> None:
    code = """$registry = new class() {
            public $all = array();
            public function register($one) { $one->initialize(); $this->all[] = $one; }
        };
        do_action('woocommerce_blocks_payment_method_type_registration', $registry);
        list($one) = $registry->all;
        $script = wp_scripts()->registered[$one->get_payment_method_script_handles()[0]];
        return array($one->get_name(), $one->is_active(), $one->get_payment_method_data(),
            $script->src, $script->deps);"""
    name, active, data, source, needed = shop.wp.php(code)
    assert (name, active, sorted(data)) == ("countersign", True, ["button", "description", "title"])
    assert needed == ["wc-blocks-registry", "wc-settings", "wp-element"]
    assert "registerPaymentMethod" in httpx2.get(source, verify=False).text


def test_a_cart_that_changes_its_mind_is_stopped_before_the_payment(shop: Shop) -> None:
    """The hook just before the payment judges the order, whatever the cart was."""
    code = """$order = new WC_Order(); $order->set_items(array($product)); $order->save();
        $order->set_payment_method('card');
        $hooks = array(
            'woocommerce_checkout_order_processed' => array($order->get_id(), array(), $order),
            'woocommerce_store_api_checkout_order_processed' => array($order));
        foreach ($hooks as $hook => $given) {
            try { do_action_ref_array($hook, $given); return $hook; } catch (Exception $refused) {}
        }
        return 'refused';"""
    assert shop.wp.php(code, product=shop.product()) == "refused"


def test_an_order_that_is_not_cleared_cannot_be_paid(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    assert "Invalid payment method." in browser.pay(order.url, "card")
    assert order.see("status", "captured") == ("pending", 0)


@pytest.mark.parametrize("outcome", ["underage", "later"])
def test_a_buyer_who_is_not_verified_cannot_pay(shop: Shop, browser: Browser, outcome: str) -> None:
    """What is not decided yet is a no."""
    order, link = shop.ordered(browser)
    browser.identify(browser.open(link), outcome)
    assert "Invalid payment method." in browser.pay(order.url, "card")
    assert order.see("state", "captured") == ("open", 0)


def test_a_refused_order_can_be_begun_again(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    shop.client.checkout_sessions.cancel(order.data["session"])
    page = browser.client.get(order.url).text
    assert (order.state, 'value="card"' in page) == ("cancelled", False)
    first = order.data["session"]
    again = browser.client.get(order.url).text
    assert "Continue to the notice" in again
    assert browser.lead(order.url).startswith(shop.server.url)
    assert (order.state, order.data["session"] == first) == ("open", False)


def test_while_a_session_is_open_there_is_no_other(shop: Shop, browser: Browser) -> None:
    order, link = shop.ordered(browser)
    assert browser.place().headers["Location"] == link
    assert shop.newest().id == order.id


def test_the_address_of_the_return_decides_nothing(shop: Shop, browser: Browser) -> None:
    """Neither ids that were guessed nor those of an order that is cleared."""
    other = shop.cleared(browser)
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


def test_an_address_that_is_changed_afterwards_is_not_cleared(shop: Shop, browser: Browser) -> None:
    """At the checkout again, which uses the order again; with the payment; or in the admin."""
    order = shop.cleared(browser)
    url = f"{shop.url}/index.php?rest_route=/wc/store/v1/checkout/{order.id}"
    key = order.url.partition("key=")[2]
    elsewhere = {"key": key, "payment_method": "card", "shipping_address": {"postcode": "90210"}}
    answer = browser.client.post(url, json=elsewhere)
    assert (answer.status_code, *order.see("state", "captured")) == (400, "changed", 0)
    assert 'value="card"' not in browser.client.get(order.url).text
    assert browser.place(shipping_postcode="90210").headers["Location"].startswith(shop.server.url)
    assert order.state == "open"
    order.set_status("processing")
    assert order.status == "on-hold"


def test_a_free_order_goes_through_the_notice(shop: Shop, browser: Browser) -> None:
    """WooCommerce pays at once what costs nothing."""
    order, link = shop.ordered(browser, price="0")
    assert "Continue to the notice" in browser.client.get(f"{shop.url}/?stub_page=checkout").text
    assert (order.status, link.startswith(shop.server.url)) == ("pending", True)
    assert browser.lead(order.url) == link
    done = browser.initial(browser.identify(browser.open(link)))
    assert "Thank you" in browser.back(done)
    assert order.status == "processing"


def test_a_payment_that_no_hook_stopped_is_not_processed(shop: Shop, browser: Browser) -> None:
    """A gateway that captured by a way of its own: the order is on hold, and says why."""
    order, _ = shop.ordered(browser)
    shop.wp.php("wc_get_order($id)->payment_complete('tx'); return 1;", id=order.id)
    assert order.status == "on-hold"
    assert "not cleared (open)" in order.notes


def test_a_revoked_buyer_stops_the_parcel(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    browser.pay(order.url)
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
    wait_until(lambda: order.status == "on-hold", "the webhook")
    assert (order.state, order.data["reasons"]) == ("refused", ["buyer_revoked"])
    assert "do not ship. No longer cleared: buyer_revoked" in order.notes
    order.set_status("completed")
    assert order.status == "on-hold"


def test_a_paid_order_on_hold_can_go_through_the_notice(shop: Shop, browser: Browser) -> None:
    """And is not paid twice."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    move = (
        "$order = wc_get_order($id); $order->set_shipping_postcode('94107'); return $order->save();"
    )
    shop.wp.php(move, id=order.id)
    order.set_status("completed")
    assert order.see("status", "state") == ("on-hold", "changed")
    page = browser.client.get(order.url).text
    assert ("Continue to the notice" in page, 'value="card"' in page) == (True, False)
    browser.initial(browser.identify(browser.open(browser.lead(order.url))))
    assert "cannot be paid for: On hold" in browser.client.get(order.url).text
    order.set_status("completed")
    assert order.see("status", "captured") == ("completed", 1)


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
        assert "Nothing was charged" in browser.place().text
    waiting = shop.newest()
    assert waiting.see("status", "state", "captured") == ("pending", "none", 0)
    another = shop.browser()
    with another.client:
        order = shop.cleared(another)
        with shop.without_service():
            assert "Nothing was charged" in another.pay(order.url)
        assert order.see("status", "captured") == ("pending", 0)
        another.pay(order.url)
        assert order.status == "processing"
        with shop.without_service():
            order.set_status("completed")
        assert order.status == "on-hold"


def test_a_clearance_that_has_expired_is_asked_for_again(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    expire = """$order = wc_get_order($id);
        $order->update_meta_data('_countersign', array('until' => time() - 1) + $data);
        return $order->save();"""
    shop.wp.php(expire, id=order.id, data=order.data)
    with shop.without_service():
        assert 'value="card"' not in browser.client.get(order.url).text
    assert 'value="card"' in browser.client.get(order.url).text
    assert order.data["until"] > time.time()


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
    product = shop.new_product()
    browser.put_in_cart(product)
    browser.place()
    order = shop.newest()
    shop.wp.php("update_post_meta($id, '_countersign_class', ''); return 1;", id=product)
    assert "Invalid payment method." in browser.pay(order.url, "card")


def test_a_message_that_is_not_authentic_is_refused(shop: Shop, browser: Browser) -> None:
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


@pytest.fixture(scope="module")
def people(running: Shop) -> Iterator[dict[str, Browser]]:
    """Somebody of each role, signed in."""
    roles = ("administrator", "shop_manager", "customer")
    code = "return wp_create_user($name, 'p', $name . '@x.example') ? 1 : 0;"
    role = "get_user_by('login', $name)->set_role($role); return 1;"
    made = {}
    with ExitStack() as stack:
        for name in roles:
            running.wp.php(code, name=f"a_{name}")
            running.wp.php(role, name=f"a_{name}", role=name)
            made[name] = running.browser()
            stack.enter_context(made[name].client)
            made[name].log_in(f"a_{name}", "p")
        yield made


def stored(shop: Shop) -> dict[str, str]:
    return dict(shop.wp.php("return get_option('countersign_settings');"))


def test_settings_are_stored_by_their_page(shop: Shop, people: dict[str, Browser]) -> None:
    """Secrets are never shown, and a key is not sent to another address than it was entered for."""
    staff, place = people["administrator"], f"{shop.url}/wp-admin/options-general.php"
    before = stored(shop)
    page = staff.client.get(place, params={"page": "countersign"}).text
    assert shop.key not in page
    assert shop.secret not in page
    assert shop.server.url in page

    def send(**changed: str) -> str:
        fields = {f"countersign_settings[{name}]": value for name, value in changed.items()}
        form = {"option_page": "countersign", "action": "update", "_wpnonce": nonce_in(page)}
        form["_wp_http_referer"] = "/wp-admin/options-general.php?page=countersign"
        return staff.client.post(f"{shop.url}/wp-admin/options.php", data=form | fields).text

    same = shop.server.url
    send(base_url=same, api_key="", webhook_secret="")
    assert stored(shop) == before
    for unsafe in (
        "http://shop.example",
        "ftp://127.0.0.1",
        "https://u:p@x.example",
        "http://[::1]@x.example",
    ):
        assert "has to begin with https://" in send(base_url=unsafe)
    assert "This is no api_key" in send(base_url=same, api_key="sk_live_x")
    assert stored(shop) == before
    send(base_url="https://elsewhere.example")
    assert stored(shop)["api_key"] == ""
    send(base_url=same, api_key=shop.key)
    assert stored(shop) == before


def test_the_connection_is_checked(shop: Shop, people: dict[str, Browser]) -> None:
    staff, place = (
        people["administrator"],
        f"{shop.url}/wp-admin/options-general.php?page=countersign",
    )
    page = staff.client.get(place).text
    nonce = page.rpartition("countersign_check")[2]
    form = {"action": "countersign_check", "_wpnonce": nonce_in(nonce)}
    url = f"{shop.url}/wp-admin/admin-post.php"
    done = staff.client.post(url, data=form).text
    assert "The service responds, and knows the key. The key is one of the sandbox" in done
    with shop.without_service():
        assert "It does not work: unreachable." in staff.client.post(url, data=form).text
    shop.settings(api_key="csign_sk_test_wrong")
    assert "It does not work: invalid_api_key." in staff.client.post(url, data=form).text
    shop.settings(api_key=shop.key)
    assert staff.client.post(url, data=form | {"_wpnonce": "0"}).status_code == 403
    assert "<script>" not in staff.client.get(f"{place}&checked=<script>x</script>").text[-4000:]


def test_constants_come_before_what_is_stored(shop: Shop) -> None:
    code = r"""define('COUNTERSIGN_BASE_URL', 'http://shop.example');
        ob_start(); \Countersign\WooCommerce\Settings_Page::show_field(array('name' => 'base_url'));
        try { \Countersign\WooCommerce\Client::get('/v1/notices'); $error = ''; }
        catch (\Countersign\WooCommerce\Service_Error $refused) { $error = $refused->reason; }
        return array(ob_get_clean(), $error);"""
    assert shop.wp.php(code) == ["Set in wp-config.php", "not_configured"]


def test_products_have_a_class_of_their_own(shop: Shop, people: dict[str, Browser]) -> None:
    staff, product = people["shop_manager"], shop.new_product("")
    place = f"{shop.url}/wp-admin/post.php"
    page = staff.client.get(place, params={"post": product, "action": "edit"}).text
    form = {
        "post_ID": str(product),
        "action": "editpost",
        "post_type": "product",
        "_wpnonce": nonce_in(page),
        "woocommerce_meta_nonce": nonce_in(page, "woocommerce_meta_nonce"),
        "countersign_class_nonce": nonce_in(page, "countersign_class_nonce"),
        "_countersign_class": "manufacturing_machine",
    }
    of = r"return \Countersign\WooCommerce\Products::classes_of(array($id));"
    staff.client.post(place, data=form | {"countersign_class_nonce": "0"})
    assert shop.wp.php(of, id=product) == []
    staff.client.post(place, data=form | {"_countersign_class": "<b>"})
    assert shop.wp.php(of, id=product) == []
    staff.client.post(place, data=form)
    assert shop.wp.php(of, id=product) == ["manufacturing_machine"]


def test_products_have_the_class_of_their_categories(
    shop: Shop, people: dict[str, Browser]
) -> None:
    """And of those above, unless they have one of their own."""
    make = """$top = wp_insert_term('Top', 'product_cat')['term_id'];
        $low = wp_insert_term('Low', 'product_cat', array('parent' => $top))['term_id'];
        wp_set_object_terms($id, array($low), 'product_cat'); return $top;"""
    product = shop.new_product("")
    top = int(shop.wp.php(make, id=product))
    staff, place = people["shop_manager"], f"{shop.url}/wp-admin/term.php"
    about = {"taxonomy": "product_cat", "tag_ID": str(top), "post_type": "product"}
    page = staff.client.get(place, params=about).text
    form = about | {
        "action": "editedtag",
        "name": "Top",
        "_wpnonce": nonce_in(page),
        "countersign_class_nonce": nonce_in(page, "countersign_class_nonce"),
        "_countersign_class": "accessory",
    }
    of = r"return \Countersign\WooCommerce\Products::classes_of(array($id));"
    staff.client.post(
        f"{shop.url}/wp-admin/edit-tags.php", data=form | {"countersign_class_nonce": "0"}
    )
    assert shop.wp.php(of, id=product) == []
    staff.client.post(f"{shop.url}/wp-admin/edit-tags.php", data=form)
    assert shop.wp.php(of, id=product) == ["accessory"]
    shop.wp.php("update_post_meta($id, '_countersign_class', 'barrel'); return 1;", id=product)
    assert shop.wp.php(of, id=product) == ["barrel"]


@dataclass(frozen=True)
class Box:
    """The box on the page of an order, as somebody sees it."""

    staff: Browser
    order: Order

    @property
    def text(self) -> str:
        url = f"{self.order.wp.url}/wp-admin/post.php?post={self.order.id}&action=edit"
        return self.staff.client.get(url).text

    def do(self, what: str, nonce: str | None = None, **fields: str) -> httpx2.Response:
        if nonce is None:
            nonce = nonce_in(self.text.partition('<form id="countersign-order-form"')[2])
        form = {"action": "countersign_order", "order_id": str(self.order.id), "do": what}
        url = f"{self.order.wp.url}/wp-admin/admin-post.php"
        return self.staff.client.post(url, data=form | {"_wpnonce": nonce} | fields)


def test_the_box_of_an_order_shows_what_was_decided(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Evidence is downloaded, and the fulfilment reported, with the key of the shop."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    box, data = Box(people["shop_manager"], order), order.data
    page = box.text
    for shown in (data["session"], data["ack"], data["buyer"], data["clearance"], "compared: zip"):
        assert shown in page
    assert shop.key not in page
    links = re.findall(r'href="([^"]+kind=(\w+)[^"]*)"', page)
    files = {kind: box.staff.client.get(html.unescape(url)) for url, kind in links}
    assert {kind: got.content[:2] for kind, got in files.items()} == {
        "certificate": b"%P",
        "dossier": b"PK",
    }
    assert files["dossier"].headers["content-disposition"].endswith('-dossier.zip"')
    assert "nothing_to_report" in str(box.do("report").url)
    done = box.do("report", carrier="UPS", tracking_number="1Z<script>")
    assert "countersign=done" in str(done.url)
    kept = shop.client.clearances.retrieve(data["clearance"])
    assert [one.tracking_number for one in kept.fulfilments] == ["1Z"]
    assert order.data["closed"]
    order.set_status("completed")
    assert order.status == "completed"


def test_a_fulfilment_is_not_reported_for_a_buyer_who_was_revoked(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    order = shop.cleared(browser)
    browser.pay(order.url)
    box = Box(people["shop_manager"], order)
    page = box.text
    nonce = nonce_in(page.partition('<form id="countersign-order-form"')[2])
    with shop.without_webhooks():
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        assert "not_cleared" in str(box.do("report", nonce, carrier="UPS").url)
    assert order.see("status", "state") == ("on-hold", "refused")
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="verified")
    assert "countersign=done" in str(box.do("decide").url)
    assert order.state == "cleared"


def test_only_those_who_may_edit_orders_can_use_the_box(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Not customers with a nonce of their own, not visitors, and not forms of other pages."""
    order = shop.cleared(browser)
    box = Box(people["shop_manager"], order)
    nonce = nonce_in(box.text.partition('<form id="countersign-order-form"')[2])
    before, url = order.data, f"{shop.url}/wp-admin/admin-post.php"

    def nonce_of(person: str, action: str) -> str:
        signed_in = people[person].client.cookies
        return str(shop.wp.php_as(signed_in, "return wp_create_nonce($action);", action=action))

    assert nonce_of("shop_manager", f"countersign_order{order.id}") == nonce
    own = nonce_of("customer", f"countersign_order{order.id}")
    for refused in (
        Box(people["customer"], order).do("report", own, carrier="UPS"),
        box.do("report", "0", carrier="UPS"),
        box.do("report", nonce_of("shop_manager", "countersign_order1"), carrier="UPS"),
    ):
        assert refused.status_code == 403
    assert "countersign=" not in str(Box(browser, order).do("report", nonce, carrier="UPS").url)
    fetch = {"action": "countersign_evidence", "order_id": str(order.id), "kind": "dossier"}
    own = nonce_of("customer", f"countersign_evidence{order.id}")
    for person, given in (("shop_manager", ""), ("shop_manager", nonce), ("customer", own)):
        got = people[person].client.get(url, params=fetch | {"_wpnonce": given})
        assert got.status_code == 403
    own = nonce_of("shop_manager", "countersign_check")
    check = {"action": "countersign_check", "_wpnonce": own}
    done = people["shop_manager"].client.post(url, data=check, follow_redirects=False)
    assert done.status_code == 403
    settings = f"{shop.url}/wp-admin/options-general.php?page=countersign"
    assert people["shop_manager"].client.get(settings).status_code == 403
    assert order.data == before


def test_no_name_becomes_a_script(shop: Shop, browser: Browser, people: dict[str, Browser]) -> None:
    """Neither what a buyer typed nor what a service says."""
    evil = "\"'><script>alert(1)</script>"
    order = shop.cleared(browser, shipping_first_name=evil)
    code = """$order = wc_get_order($id); $data = $order->get_meta('_countersign');
        foreach (array('session', 'ack', 'buyer', 'clearance') as $name) { $data[$name] = $evil; }
        $data['reasons'] = array($evil);
        $data['obligations'] = array(array('type' => 'x', 'text' => $evil));
        $order->update_meta_data('_countersign', $data); $order->save(); return 1;"""
    shop.wp.php(code, id=order.id, evil=evil)
    box = Box(people["shop_manager"], order)
    assert "&lt;script&gt;alert(1)" in box.text
    assert "<script>alert(1)" not in box.text
    assert "<script>alert(1)" not in browser.client.get(f"{order.url}&checked={evil}").text


def test_without_woocommerce_the_plugin_says_so(shop: Shop, people: dict[str, Browser]) -> None:
    change = (
        "$all = get_option('active_plugins'); update_option('active_plugins', $new); return $all;"
    )
    own = ["countersign-woocommerce/countersign-woocommerce.php"]
    before = shop.wp.php(change, new=own)
    try:
        page = people["administrator"].client.get(f"{shop.url}/wp-admin/").text
    finally:
        shop.wp.php(change, new=before)
    assert "Countersign needs WooCommerce" in page
    assert "Countersign has a test key" in page


def test_secrets_are_removed_with_the_plugin(shop: Shop) -> None:
    """Classes stay: the same products are gated again after another installation."""
    product = shop.product()
    before = stored(shop)
    code = """define('WP_UNINSTALL_PLUGIN', 'x');
        include WP_PLUGIN_DIR . '/countersign-woocommerce/uninstall.php';
        $kept = get_option('countersign_settings');
        update_option('countersign_settings', $before);
        return array($kept, get_post_meta($id, '_countersign_class', true));"""
    assert shop.wp.php(code, id=product, before=before) == [False, "accessory"]
