"""An order's data for staff and buyers: notes, list, log, box, e-mails, the page to pay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.serving import wait_until
from tests.woocommerce.conftest import EMAIL, Browser, Order, Shop, nonce_in, offered

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]
CHANGE_ZIP = """$order = wc_get_order($id); $order->set_shipping_postcode('94107');
    $order->save(); return 1;"""
PAID = "wc_get_order($id)->payment_complete('tx'); return 1;"


def mails(shop: Shop) -> list[tuple[str, str, str]]:
    """The recipient, subject and text."""
    file = shop.wp.folder / "mail.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    sent = [json.loads(line) for line in lines]
    return [(one["to"], one["subject"], one["message"]) for one in sent]


@contextmanager
def sending(shop: Shop) -> Iterator[list[tuple[str, str, str]]]:
    """Afterwards, the list has the mails sent meanwhile."""
    before, found = len(mails(shop)), list[tuple[str, str, str]]()
    yield found
    found += mails(shop)[before:]


def box(staff: Browser, order: Order) -> str:
    """The page of an order, with the box."""
    url = order.wp.php("return wc_get_order($id)->get_edit_order_url();", id=order.id)
    return staff.client.get(url).text


def press(staff: Browser, order: Order, button: str, **fields: str) -> str:
    """Press a button of the box; returns the next page."""
    nonce = nonce_in(box(staff, order).rpartition("countersign_order")[2])
    form = {"action": "countersign_order", "order_id": str(order.id), "do": button}
    url = f"{order.wp.url}/wp-admin/admin-post.php"
    return staff.client.post(url, data=form | fields | {"_wpnonce": nonce}).text


def test_notes_say_what_happened(shop: Shop, browser: Browser) -> None:
    """With the ids of the service, each once."""
    order = shop.cleared(browser, returns=False)
    wait_until(lambda: order.state == "cleared", "the webhook")
    browser.client.get(order.url)
    notes, data = order.notes, order.data
    assert notes.count(f"the buyer was led to the notice ({data['session']})") == 1
    assert notes.count(f"initialed ({data['ack']})") == 1
    assert data["clearance"] in notes
    browser.pay(order.url)
    shop.client.sandbox.move_buyer(cbid=data["buyer"], status="revoked")
    refused = "refused: the verification of the buyer was revoked. Do not ship."
    wait_until(lambda: refused in order.notes, "the webhook")


def overridden(shop: Shop, browser: Browser) -> Order:
    """An order that was refused and has a manual override, which the shop does not know of."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
    wait_until(lambda: order.status == "on-hold", "the webhook")
    made = shop.client.clearances.override(
        order.data["clearance"], reason="case 4712", claimed_user="shop user 17"
    )
    assert (made.overridden, order.state) == (True, "refused")
    return order


def test_an_order_with_a_manual_override_is_released_as_what_it_is(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """When staff ask again: with its id and duties, and no report of it."""
    order, staff = overridden(shop, browser), people["shop_manager"]
    assert "the decision is in the box" in press(staff, order, "decide")
    said = f"Manual override {order.data['override']}: shipped on your own responsibility."
    assert order.data["override"].startswith("ovr_")
    assert f"{said} It is on hold: if it was paid, set it to processing." in order.notes
    assert (order.state, order.data["cleared"]) == ("overridden", False)
    assert order.data["obligations"] == [{"type": "compared", "what": "zip"}]
    shown = box(staff, order)
    assert ("No fulfilment is reported" in shown, "Report the fulfilment" in shown) == (True, False)
    report = {"carrier": "UPS", "tracking_number": "1Z999"}
    assert "the service takes no report" in press(staff, order, "report", **report)
    for status in ("processing", "completed"):
        order.set_status(status)
        assert order.see("status", "state") == (status, "overridden")
    assert not shop.client.clearances.retrieve(order.data["clearance"]).fulfilments
    url = f"{shop.url}/wp-admin/admin.php?page=wc-orders&countersign_state="
    assert f"#{order.id} " in staff.client.get(f"{url}overridden").text
    assert f"#{order.id} " not in staff.client.get(f"{url}cleared").text


def test_an_unpaid_order_with_a_manual_override_can_be_paid(shop: Shop, browser: Browser) -> None:
    """Asked about from the command line; a new reason against it stops it again."""
    order = shop.cleared(browser)
    shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
    wait_until(lambda: order.state == "refused", "the webhook")
    assert offered(browser.client.get(order.url).text) == {"countersign"}
    shop.client.clearances.override(order.data["clearance"], reason="case", claimed_user="u 17")
    ask = r"""\Countersign\WooCommerce\Orders::locked($id,
        array('\Countersign\WooCommerce\Orders', 'ask_again')); return 1;"""
    shop.wp.php(ask, id=order.id)
    assert "you can pay now" in browser.client.get(order.url).text
    browser.pay(order.url)
    assert order.see("status", "state", "taken") == ("processing", "overridden", 1)
    shop.wp.php(CHANGE_ZIP, id=order.id)
    assert order.see("status", "state") == ("on-hold", "changed")


def test_a_buyer_who_declines_is_noted(shop: Shop, browser: Browser) -> None:
    order, _ = shop.ordered(browser)
    shop.wp.php(
        r"""$order = wc_get_order($id); $data = $order->get_meta('_countersign');
        $data['status'] = 'declined'; $order->update_meta_data('_countersign', $data);
        return $order->save();""",
        id=order.id,
    )
    assert "the buyer declined to initial the notice" in order.notes
    assert "You did not initial the notice" in browser.client.get(order.url).text


def test_the_log_of_woocommerce_has_each_decision(shop: Shop, browser: Browser) -> None:
    """By ids and codes, without personal data."""
    order = shop.cleared(browser)
    folder = shop.wp.folder / "wp-content" / "uploads" / "wc-logs"
    text = "".join(path.read_text() for path in folder.glob("countersign-*.log"))
    lines = [line for line in text.splitlines() if f"Order {order.id}:" in line]
    assert [line.partition(": ")[2].partition(";")[0] for line in lines] == [
        "none -> open",
        "open -> cleared",
    ]
    assert order.data["clearance"] in lines[1]
    assert not re.search(f"{EMAIL}|94105|cbid_|Doe", text)


@pytest.mark.parametrize("tables", ["yes", "no"])
def test_the_list_of_orders_has_a_column(
    shop: Shop, people: dict[str, Browser], tables: str
) -> None:
    """And a filter, in both storages of orders."""
    with shop.options({"tests_tables": tables}):
        waiting, plain = shop.made(), shop.made("")
        place = "admin.php?page=wc-orders" if tables == "yes" else "edit.php?post_type=shop_order"
        url, staff = f"{shop.url}/wp-admin/{place}", people["shop_manager"].client
        # WooCommerce redirects new users to other pages first.
        staff.get(f"{shop.url}/wp-admin/")

        def rows(group: str) -> dict[int, str]:
            page = staff.get(f"{url}&countersign_state={group}").text
            found = re.findall(r'<tr id="(?:order|post)-(\d+)"(.*?)</tr>', page, re.DOTALL)
            cell = r"column-countersign\b[^>]*>(.*?)</td>"
            cells = {int(number): re.search(cell, row, re.DOTALL) for number, row in found}
            return {n: re.sub("<[^>]*>", "", one[1]) if one else "?" for n, one in cells.items()}

        shown = rows("")
        assert (shown[waiting.id], shown[plain.id]) == ("Notice not begun", "")
        assert waiting.id in rows("waiting")
        assert waiting.id not in rows("cleared")
        assert plain.id not in rows("waiting")


@pytest.mark.parametrize("tables", ["yes", "no"])
def test_the_column_asks_the_database_nothing(shop: Shop, tables: str) -> None:
    """What it shows is stored with the order, which WooCommerce has loaded for its own columns."""
    code = r"""global $wpdb; $ids = array();
        for ($i = 0; $i < 20; $i++) {
            $order = wc_create_order(); $order->add_product(wc_get_product($product));
            $order->save(); $ids[] = $order->get_id();
        }
        wp_cache_flush();
        $orders = wc_get_orders(array('post__in' => $ids, 'limit' => 20, 'type' => 'shop_order'));
        foreach ($orders as $order) { $order->get_meta('x'); }
        $before = $wpdb->num_queries; ob_start();
        foreach ($orders as $order) {
            \Countersign\WooCommerce\Order_List::show('countersign', $order);
        }
        return array(substr_count(ob_get_clean(), '<mark'), $wpdb->num_queries - $before);"""
    with shop.options({"tests_tables": tables}):
        assert shop.wp.php(code, product=shop.product()) == [20, 0]


def test_a_changed_order_is_reported_in_words(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """With the remedy, and the link, which can be sent."""
    order, staff = shop.cleared(browser), people["shop_manager"]
    shop.wp.php(CHANGE_ZIP, id=order.id)
    shown = box(staff, order)
    assert "The address or the products were changed after the decision" in shown
    assert order.url.partition("?")[2].partition("&")[2] in shown.replace("&#038;", "&")
    assert ("Ask again" in shown, "E-mail the buyer the link" in shown) == (False, True)
    with sending(shop) as sent:
        assert "The link was sent to the buyer" in press(staff, order, "send")
    [(to, _, words)] = sent
    assert (to, "Nothing is charged until then" in words) == (EMAIL, True)
    assert order.key in words
    assert "the link to the notice was sent" in order.notes
    assert browser.lead(order.url).startswith(shop.server.url)


def test_no_link_is_sent_for_a_cleared_order(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    order, staff = shop.cleared(browser), people["shop_manager"]
    assert "E-mail the buyer the link" not in box(staff, order)
    with sending(shop) as sent:
        assert "Nothing was sent" in press(staff, order, "send")
    assert sent == []


IS_DUE = "return (bool) wp_next_scheduled('countersign_pay_now', array($id));"
DUE = """$at = wp_next_scheduled('countersign_pay_now', array($id));
    if ($at) { do_action('countersign_pay_now', $id); } return $at ? $at - time() : 0;"""


def test_a_buyer_who_closed_the_window_gets_the_link_to_pay(shop: Shop, browser: Browser) -> None:
    """Ten minutes after the clearance, if the order is not paid by then."""
    with sending(shop) as none:
        paid = shop.cleared(browser)
        browser.pay(paid.url, "bacs")
        order = shop.cleared(browser, returns=False)
        # The webhook saves the state first.
        wait_until(lambda: shop.wp.php(IS_DUE, id=order.id), "the e-mail is due")
    with sending(shop) as sent:
        due = [shop.wp.php(DUE, id=one.id) for one in (order, paid)]
    assert all(300 < seconds <= 600 for seconds in due)
    assert not [subject for _, subject, _ in none if "you can pay" in subject]
    [(to, subject, words)] = sent
    assert (to, subject) == (
        EMAIL,
        f"Your notice is recorded: you can pay for order #{order.id} now",
    )
    assert order.key in words


def test_the_buyer_sees_the_state_of_the_order(shop: Shop, browser: Browser) -> None:
    """On the page for the payment; the order has no way to pay until there is one."""
    paying = "return wc_get_order($id)->get_payment_method();"
    order, link = shop.ordered(browser)
    assert shop.wp.php(paying, id=order.id) == ""
    page = browser.client.get(order.url).text
    assert "The legal notice of this order is not finished" in page
    assert ">Continue to the notice</button>" in page
    page = browser.back(browser.finish(link))
    assert "Your notice is recorded: you can pay now" in page
    assert "Legal notice first, payment afterwards" not in page
    browser.pay(order.url)
    assert shop.wp.php(paying, id=order.id) == "cod"


def test_an_order_that_was_paid_first_is_asked_for_the_notice(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """In place of WooCommerce's text about the missing payment; the payment method stays."""
    order = shop.made()
    shop.wp.php(
        "$o = wc_get_order($id); $o->set_payment_method('bacs'); return $o->save();", id=order.id
    )
    with sending(shop) as sent:
        shop.wp.php(PAID, id=order.id)
    [(_, subject, words)] = [mail for mail in sent if mail[0] == EMAIL]
    assert subject == f"Your order #{order.id} needs a legal notice"
    assert "We have your payment" in words
    assert "nothing is charged again" in browser.client.get(order.url).text
    done = browser.finish(browser.lead(order.url))
    paid_with = "return wc_get_order($id)->get_payment_method();"
    assert shop.wp.php(paid_with, id=order.id) == "bacs"
    assert "nothing is missing" in browser.back(done)
    assert order.see("status", "state") == ("on-hold", "cleared")
    assert "It is on hold: if it was paid, set it to processing" in order.notes


def test_the_shop_is_told_not_to_ship(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    browser.pay(order.url)
    with sending(shop) as sent:
        shop.client.sandbox.move_buyer(cbid=order.data["buyer"], status="revoked")
        wait_until(lambda: f"Do not ship order #{order.id}" in str(mails(shop)), "the e-mail")
    [(to, subject, words)] = sent
    assert (to, subject) == ("admin@example.com", f"Do not ship order #{order.id}")
    assert "the verification of the buyer was revoked" in words


def test_personal_data_are_exported(shop: Shop, browser: Browser) -> None:
    order = shop.cleared(browser)
    code = """$all = apply_filters('wp_privacy_personal_data_exporters', array());
        return call_user_func($all['countersign']['callback'], $email, 1);"""
    found = shop.wp.php(code, email=EMAIL)
    [item] = [one for one in found["data"] if one["item_id"] == f"countersign-{order.id}"]
    values = {row["name"]: row["value"] for row in item["data"]}
    assert (values["ZIP code"], values["Buyer"]) == ("94105", order.data["buyer"])
    without_orders = shop.wp.php(code, email="nobody@example.com")
    assert without_orders == {"data": [], "done": True}


def test_personal_data_are_erased_with_the_order(shop: Shop, browser: Browser) -> None:
    """The ids and the receipt of the notice stay, and the eraser says why."""
    order = shop.cleared(browser)
    code = """$all = apply_filters('wp_privacy_personal_data_erasers', array());
        $said = call_user_func($all['countersign']['callback'], $email, 1);
        require_once WC_ABSPATH . 'includes/class-wc-privacy-erasers.php';
        WC_Privacy_Erasers::remove_order_personal_data(wc_get_order($id));
        return array($said, array_keys($all)[0]);"""
    before = order.data
    said, first = shop.wp.php(code, email=EMAIL, id=order.id)
    assert (said["items_retained"], first) == (True, "countersign")
    assert any(f"Order {order.id} keeps" in one for one in said["messages"])
    after = order.data
    assert {name: after[name] for name in ("zip", "buyer", "subject")} == dict.fromkeys(
        ("zip", "buyer", "subject"), ""
    )
    assert (after["ack"], after["receipts"]) == (before["ack"], before["receipts"])
    meta = "return wc_get_order($id)->get_meta('_countersign_buyer');"
    assert shop.wp.php(meta, id=order.id) == ""


def test_a_privacy_policy_is_suggested(shop: Shop, people: dict[str, Browser]) -> None:
    guide = f"{shop.url}/wp-admin/options-privacy.php?tab=policyguide"
    page = people["administrator"].client.get(guide).text
    assert "When the personal data of your order are erased" in page
