"""Stored data belongs to one order of one shop: a copy is an order that was not begun."""

from __future__ import annotations

import time

import pytest

from countersign_client.testing import webhook_message
from tests.woocommerce import paths
from tests.woocommerce.conftest import Browser, Order, Shop, nonce_in, offered
from tests.woocommerce.test_history import sending

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]

_WRITE = """$order = wc_get_order($id);
    $order->update_meta_data('_countersign', $data); return $order->save();"""
SHOPS = "countersign_shops"


def write(order: Order, changed: dict[str, object]) -> None:
    """Store other data with the order."""
    data = order.wp.php("return wc_get_order($id)->get_meta('_countersign');", id=order.id)
    order.wp.php(_WRITE, id=order.id, data=data | changed)


def test_a_copy_is_cleared_by_its_own_notice_alone(shop: Shop, browser: Browser) -> None:
    """It has a session, an acknowledgment and a clearance of its own; the first order keeps its."""
    order = shop.cleared(browser)
    copy, before = shop.copied(order), order.data
    browser.back(browser.finish(browser.lead(copy.url)))
    assert (copy.state, order.state, order.data) == ("cleared", "cleared", before)
    mine = copy.data
    for name in ("reference", "session", "ack", "clearance"):
        assert mine[name] != before[name]
    decided = shop.client.clearances.retrieve(mine["clearance"])
    assert (decided.order_reference, decided.session_id) == (str(copy.id), mine["reference"])


def test_a_copy_that_is_cancelled_leaves_the_first_session_open(
    shop: Shop, browser: Browser
) -> None:
    """The buyer of the first order can go on."""
    order, link = shop.ordered(browser)
    copy = shop.copied(order)
    copy.set_status("cancelled")
    session = shop.client.checkout_sessions.retrieve(order.data["session"])
    assert (session.status, copy.state, order.state) == ("open", "none", "open")
    browser.back(browser.finish(link))
    assert order.state == "cleared"


def test_no_message_of_the_service_clears_a_copy(shop: Shop, browser: Browser) -> None:
    """It is about the order whose session it names."""
    with shop.without_webhooks():
        order, link = shop.ordered(browser)
        copy = shop.copied(order)
        browser.finish(link)
    data = {"checkout_session_id": order.data["session"]}
    body, headers = webhook_message("checkout_session.completed", data, secret=shop.secret)
    assert shop.deliver(body, headers) == 204
    assert (order.state, copy.state) == ("cleared", "none")


def test_opening_a_page_asks_for_no_decision(shop: Shop, browser: Browser) -> None:
    """It reads the stored decision of the session; the buyer's button asks again."""
    with shop.without_webhooks():
        order = shop.cleared(browser)
    decided = order.data
    assert decided["cleared"] is True
    assert decided["until"] > time.time()
    assert decided["obligations"] == [{"type": "compared", "what": "zip"}]
    undecided: dict[str, object] = {"cleared": None}
    expired: dict[str, object] = {"until": 1}
    for stored, state in ((undecided, "undecided"), (expired, "cleared")):
        write(order, stored)
        paths.opened_by_a_stranger(shop, order)
        assert "cod" not in offered(browser.client.get(order.url).text)
        assert order.see("state", "data") == (state, decided | stored)
        assert browser.lead(order.url) == order.url
        assert "cod" in offered(browser.client.get(order.url).text)
        assert order.data["until"] > time.time()


def test_a_decision_initialed_for_another_order_does_not_count(
    shop: Shop, browser: Browser
) -> None:
    """However its ids came there: the service gets the order's number, and refuses."""
    order = shop.cleared(browser)
    other = shop.made()
    shop.wp.php(_WRITE, id=other.id, data=order.data | {"order": other.id})
    assert other.state == "cleared"
    other.set_status("completed")
    assert paths.on_hold(other).see("state") == ("none",)
    browser.back(browser.finish(browser.lead(other.url)))
    assert other.state == "cleared"


def test_a_copy_of_the_shop_has_begun_no_order(
    shop: Shop, browser: Browser, people: dict[str, Browser]
) -> None:
    """Its orders have the ids of the first shop's, and its address is another one."""
    order, _ = shop.ordered(browser)
    paid = shop.cleared(browser)
    # As if this were the copy: the first shop is elsewhere.
    for one in (order, paid):
        write(one, {"shop": "elsewhere"})
    with shop.options({SHOPS: ["elsewhere"]}):
        assert (order.state, paid.state) == ("none", "none")
        paid.set_status("processing")
        paths.on_hold(paid)
        session = shop.wp.php("return wc_get_order($id)->get_meta('_countersign');", id=order.id)
        order.set_status("cancelled")
        assert shop.client.checkout_sessions.retrieve(session["session"]).status == "open"
        order.set_status("pending")
        said = "return wp_list_pluck(Countersign\\WooCommerce\\Health::checks(), 'words');"
        assert "press" in shop.wp.php(said)["shop"]
        box, place = people["administrator"], f"{shop.url}/wp-admin/"
        page = box.client.get(f"{place}admin.php?page=countersign").text
        nonce = nonce_in(page.partition('value="countersign_moved"')[2])
        form = {"action": "countersign_moved", "_wpnonce": nonce}
        for person, allowed in (("shop_manager", False), ("administrator", True)):
            done = people[person].client.post(f"{place}admin-post.php", data=form)
            assert done.is_success is allowed
        assert (order.state, paid.state) == ("open", "cleared")
        assert "shop" not in shop.wp.php(said)


def test_a_copy_of_the_shop_tells_nobody_of_its_orders(shop: Shop, browser: Browser) -> None:
    """Whatever saves them, its buyers and those of the first shop get no mail from it."""
    order = shop.cleared(browser)
    browser.pay(order.url)
    with shop.options({SHOPS: ["elsewhere"]}), sending(shop) as sent:
        write(order, {"shop": "elsewhere"})
        order.wp.php("return wc_get_order($id)->save();", id=order.id)
    assert (order.status, sent) == ("processing", [])
