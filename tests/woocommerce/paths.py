"""Every way to pay an order, or mark it as paid, before it is cleared.

Each of them is tried as its user would, with the right response. The attacker then checks whether
anything was paid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from tests.woocommerce.conftest import EMAIL, STORE, Browser, Order, Shop
from tests.woocommerce.shops import OLD

NOT_THERE: Final = "Invalid payment method."
NOT_OFFERED: Final = "woocommerce_rest_checkout_payment_method_disabled"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A buyer with a way to pay, and the staff, who have all rights."""

    shop: Shop
    buyer: Browser
    staff: Browser
    gateway: str

    def rest(self, path: str, method: str = "PUT", **body: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Ask WooCommerce's REST API, as the staff's other programs do."""
        url = f"{self.shop.url}/index.php?rest_route=/wc/v3{path}"
        code = "return wp_create_nonce('wp_rest');"
        nonce = self.shop.wp.php_as(self.staff.client.cookies, code)
        done = self.staff.client.request(method, url, json=body, headers={"X-WP-Nonce": nonce})
        assert done.is_success, done.text
        return dict(done.json())

    def nonce(self, action: str) -> str:
        code = "return wp_create_nonce($action);"
        return str(self.shop.wp.php_as(self.staff.client.cookies, code, action=action))

    def press(self, path: str, nonce_for: str, **query: str) -> None:
        """Follow a link of the admin."""
        url = f"{self.shop.url}/wp-admin/{path}"
        nonce = {"_wpnonce": self.nonce(nonce_for)}
        done = self.staff.client.get(url, params=query | nonce, follow_redirects=False)
        assert done.status_code == 302, done.text


PATHS: Final[dict[str, Callable[[Attempt], Order | None]]] = {}
"""By the name of the promise. Each returns the order that it tried to have paid, if there is
one."""


def path(try_: Callable[[Attempt], Order | None]) -> Callable[[Attempt], Order | None]:
    PATHS[try_.__name__] = try_
    return try_


def refused(a: Attempt, response: httpx2.Response, code: str, words: str) -> None:
    """An app reads why, with a status that names the side at fault."""
    body = response.json()
    if a.shop.wp.release == OLD and response.status_code == 404:
        # It has no such route.
        assert body["code"] == "rest_no_route"
        return
    assert (response.status_code, body.get("code")) == (400, code), response.text
    assert words in body["message"]


@path
def the_classic_checkout(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product())
    assert NOT_THERE in a.buyer.place(a.gateway).said
    return None


@path
def the_classic_checkout_when_it_costs_nothing(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product(price="0"))
    assert NOT_THERE in a.buyer.place(a.gateway).said
    return None


@path
def the_block_checkout(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product())
    refused(a, a.buyer.store(payment=a.gateway), NOT_OFFERED, "not available")
    return None


@path
def the_block_checkout_without_a_way_to_pay(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product(price="0"))
    answer = a.buyer.store()
    assert answer.status_code == 400, answer.text
    return None


@path
def goods_that_lost_their_class_while_in_the_cart(a: Attempt) -> Order | None:
    """The checkout goes on with the order that was begun, and with a cart that is not gated."""
    product = a.shop.new_product()
    a.buyer.put_in_cart(product)
    assert a.buyer.place().url.startswith(a.shop.server.url)
    order = a.shop.newest()
    lose = (
        "$p = wc_get_product($id); $p->delete_meta_data('_countersign_class'); return $p->save();"
    )
    a.shop.wp.php(lose, id=product)
    assert "is released. Nothing was charged" in a.buyer.place(a.gateway).said
    return order


@path
def goods_of_a_classed_category(a: Attempt) -> Order | None:
    code = """$term = wp_insert_term('Parts ' . uniqid(), 'product_cat')['term_id'];
        update_term_meta($term, '_countersign_class', 'accessory');
        wp_set_object_terms($id, array($term), 'product_cat'); return 1;"""
    product = a.shop.new_product("")
    a.shop.wp.php(code, id=product)
    a.buyer.put_in_cart(product)
    assert NOT_THERE in a.buyer.place(a.gateway).said
    return None


@path
def a_variation_of_a_classed_product(a: Attempt) -> Order | None:
    code = """$all = new WC_Product_Variable(); $all->set_name('V');
        $all->update_meta_data('_countersign_class', 'accessory');
        $size = new WC_Product_Attribute(); $size->set_name('Size'); $size->set_options(array('S'));
        $size->set_visible(true); $size->set_variation(true); $all->set_attributes(array($size));
        $one = new WC_Product_Variation(); $one->set_parent_id($all->save());
        $one->set_attributes(array('size' => 'S')); $one->set_regular_price('10');
        return $one->save();"""
    nonce = a.buyer.client.get(f"{a.shop.url}/{STORE}/cart").headers["Nonce"]
    url = f"{a.shop.url}/{STORE}/cart/add-item"
    size = [{"attribute": "Size", "value": "S"}]
    body = {"id": a.shop.wp.php(code), "quantity": 1, "variation": size}
    done = a.buyer.client.post(url, json=body, headers={"Nonce": nonce})
    assert done.status_code == 201, done.text
    refused(a, a.buyer.store(payment=a.gateway), NOT_OFFERED, "not available")
    return None


@path
def a_mixed_cart(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product(""), a.shop.product())
    assert NOT_THERE in a.buyer.place(a.gateway).said
    return None


@path
def a_coupon_that_pays_for_everything(a: Attempt) -> Order | None:
    code = """$coupon = new WC_Coupon(); $coupon->set_code('all-' . uniqid());
        $coupon->set_discount_type('percent'); $coupon->set_amount(100);
        $coupon->save(); return $coupon->get_code();"""
    a.buyer.put_in_cart(a.shop.product())
    nonce = a.buyer.client.get(f"{a.shop.url}/{STORE}/cart").headers["Nonce"]
    url = f"{a.shop.url}/{STORE}/cart/apply-coupon"
    body = {"code": a.shop.wp.php(code)}
    cart = a.buyer.client.post(url, json=body, headers={"Nonce": nonce}).json()
    assert cart["totals"]["total_price"] == "0"
    assert a.buyer.place().url.startswith(a.shop.server.url)
    return a.shop.newest()


@path
def an_address_in_another_state(a: Attempt) -> Order | None:
    """Where the buyer lives is not known: the address says nothing about it."""
    order, link = a.shop.ordered(a.buyer, state="NV", postcode="89101")
    assert link.startswith(a.shop.server.url)
    assert NOT_THERE in a.buyer.pay(order.url, a.gateway)
    return order


@path
def a_free_order_of_the_block_checkout(a: Attempt) -> Order | None:
    a.buyer.put_in_cart(a.shop.product(price="0"))
    answer = a.buyer.store(payment="countersign")
    assert answer.status_code == 200, answer.text
    assert answer.json()["payment_result"]["redirect_url"].startswith(a.shop.server.url)
    return a.shop.order(id=answer.json()["order_id"])


@path
def a_free_order_whose_page_is_opened(a: Attempt) -> Order | None:
    order, _ = a.shop.ordered(a.buyer, price="0")
    a.buyer.client.get(order.url)
    assert order.status == "pending"
    return order


@path
def a_clearance_that_has_expired(a: Attempt) -> Order | None:
    with a.shop.without_webhooks():
        order = a.shop.cleared(a.buyer)
    page = a.buyer.client.get(order.url).text
    expire = """$order = wc_get_order($id);
        $order->update_meta_data('_countersign', array('until' => time() - 1) + $data);
        return $order->save();"""
    a.shop.wp.php(expire, id=order.id, data=order.data)
    with a.shop.without_service():
        assert NOT_THERE in a.buyer.pay_on(page, order.url, a.gateway)
    return order


@path
def the_page_for_the_payment(a: Attempt) -> Order | None:
    order, _ = a.shop.ordered(a.buyer)
    assert NOT_THERE in a.buyer.pay(order.url, a.gateway)
    return order


@path
def the_page_for_the_payment_of_an_order_that_staff_made(a: Attempt) -> Order | None:
    order = a.shop.made()
    assert NOT_THERE in a.buyer.pay(order.url, a.gateway)
    return order


@path
def an_app_with_a_cart_left_over(a: Attempt) -> Order | None:
    order, _ = a.shop.ordered(a.buyer)
    refused(a, pay_by_app(a.buyer, order, a.gateway), NOT_OFFERED, "not available")
    return order


@path
def an_app_without_a_cart(a: Attempt) -> Order | None:
    order = a.shop.made()
    refused(a, pay_by_app(a.buyer, order, a.gateway), NOT_OFFERED, "not available")
    return order


def pay_by_app(buyer: Browser, order: Order, gateway: str) -> httpx2.Response:
    """Pay an order over the Store API; the oldest WooCommerce has no such route."""
    return buyer.store(f"/checkout/{order.id}", payment=gateway, key=order.key, billing_email=EMAIL)


@path
def the_page_for_the_payment_of_a_buyer_who_was_revoked(a: Attempt) -> Order | None:
    order = a.shop.revoked(a.buyer)
    assert "is released. Nothing was charged" in a.buyer.pay(order.url, a.gateway)
    return order


@path
def an_app_of_a_buyer_who_was_revoked(a: Attempt) -> Order | None:
    order = a.shop.revoked(a.buyer)
    app = a.shop.browser()
    with app.client:
        answer = pay_by_app(app, order, a.gateway)
    refused(a, answer, "countersign_not_cleared", "is released. Nothing was charged")
    return order


@path
def a_page_that_was_loaded_before_the_address_changed(a: Attempt) -> Order | None:
    order = a.shop.cleared(a.buyer)
    page = a.buyer.client.get(order.url).text
    a.rest(f"/orders/{order.id}", shipping={"postcode": "90210"})
    assert NOT_THERE in a.buyer.pay_on(page, order.url, a.gateway)
    return order


@path
def goods_that_were_deleted_before_their_order_was_begun(a: Attempt) -> Order | None:
    product = a.shop.new_product()
    code = """$order = wc_create_order(); $order->add_product(wc_get_product($product));
        $order->save(); wp_delete_post($product, true); $order = wc_get_order($order->get_id());"""
    order = a.shop.order(code, product=product)
    assert NOT_THERE in a.buyer.pay(order.url, a.gateway)
    order.set_status("completed")
    return on_hold(order)


@path
def a_payment_that_failed_before(a: Attempt) -> Order | None:
    order = a.shop.made()
    order.set_status("failed")
    assert NOT_THERE in a.buyer.pay(order.url, a.gateway)
    order.set_status("pending")
    return order


@path
def another_program_that_makes_a_paid_order(a: Attempt) -> Order | None:
    item = {"product_id": a.shop.product(), "quantity": 1}
    made = a.rest("/orders", "POST", set_paid=True, payment_method=a.gateway, line_items=[item])
    return on_hold(a.shop.order(id=made["id"]))


@path
def another_program_that_says_paid(a: Attempt) -> Order | None:
    order = a.shop.made()
    a.rest(f"/orders/{order.id}", set_paid=True)
    return on_hold(order)


@path
def another_program_that_sets_the_status(a: Attempt) -> Order | None:
    order, other = a.shop.made(), a.shop.made()
    a.rest(f"/orders/{order.id}", status="processing")
    a.rest(f"/orders/{other.id}", status="completed")
    on_hold(order)
    return on_hold(other)


@path
def another_program_with_many_orders(a: Attempt) -> Order | None:
    order = a.shop.made()
    a.rest("/orders/batch", "POST", update=[{"id": order.id, "status": "completed"}])
    return on_hold(order)


@path
def a_gateway_that_took_the_money_by_itself(a: Attempt) -> Order | None:
    order, _ = a.shop.ordered(a.buyer)
    a.shop.wp.php("wc_get_order($id)->payment_complete('tx'); return 1;", id=order.id)
    return on_hold(order)


@path
def another_plugin_that_completes_an_order(a: Attempt) -> Order | None:
    order, _ = a.shop.ordered(a.buyer)
    order.set_status("completed")
    return on_hold(order)


@path
def the_button_in_the_list_of_orders(a: Attempt) -> Order | None:
    # The button is there for orders that are processing or on hold.
    order = a.shop.made()
    order.set_status("on-hold")
    a.press(
        "admin-ajax.php",
        "woocommerce-mark-order-status",
        action="woocommerce_mark_order_status",
        status="completed",
        order_id=str(order.id),
    )
    return on_hold(order)


@path
def many_orders_in_the_list_at_once(a: Attempt) -> Order | None:
    order = a.shop.made()
    code = "return get_option('woocommerce_custom_orders_table_enabled');"
    if a.shop.wp.php(code) == "yes":
        query = {"page": "wc-orders", "action": "mark_completed", "id[]": str(order.id)}
        a.press("admin.php", "bulk-orders", **query)
    else:
        query = {"post_type": "shop_order", "action": "mark_completed", "post[]": str(order.id)}
        a.press("edit.php", "bulk-posts", **query)
    return on_hold(order)


@path
def goods_that_staff_add_to_an_order_that_is_paid(a: Attempt) -> Order | None:
    order = a.shop.made("")
    order.set_status("processing")
    add = "wc_get_order($id)->add_product(wc_get_product($product)); return 1;"
    a.shop.wp.php(add, id=order.id, product=a.shop.product())
    order.set_status("completed")
    return on_hold(order)


@path
def a_copy_of_a_cleared_order(a: Attempt) -> Order | None:
    """Also if somebody opens its page, and while the service is away."""
    copy = a.shop.copied(a.shop.cleared(a.buyer))
    opened_by_a_stranger(a.shop, copy)
    assert (copy.state, copy.data["ack"]) == ("none", "")
    assert NOT_THERE in a.buyer.pay(copy.url, a.gateway)
    with a.shop.without_service():
        copy.set_status("completed")
    return on_hold(copy)


@path
def an_app_that_pays_a_copy_of_a_cleared_order(a: Attempt) -> Order | None:
    copy = a.shop.copied(a.shop.cleared(a.buyer))
    refused(a, pay_by_app(a.buyer, copy, a.gateway), NOT_OFFERED, "not available")
    return copy


@path
def a_charged_renewal_whose_link_is_opened(a: Attempt) -> Order | None:
    """A subscription copies the fields of its first order, and charges without the buyer."""
    with a.shop.without_webhooks():
        first, link = a.shop.ordered(a.buyer)
        renewal = a.shop.copied(first)
        a.buyer.finish(link)
    a.shop.wp.php("wc_get_order($id)->payment_complete('tx'); return 1;", id=renewal.id)
    assert renewal.see("status", "state") == ("on-hold", "none")
    opened_by_a_stranger(a.shop, renewal)
    assert (renewal.state, renewal.data["clearance"]) == ("none", "")
    renewal.set_status("completed")
    return on_hold(renewal)


def opened_by_a_stranger(shop: Shop, order: Order) -> None:
    """One GET of the link, without cookies: as a mail scanner does."""
    stranger = shop.browser()
    with stranger.client:
        assert stranger.client.get(order.url).is_success


def unpaid(order: Order | None) -> None:
    """No gateway was asked for the money, and the order is neither processing nor completed."""
    if order:
        status, taken = order.see("status", "taken")
        assert (status in {"pending", "on-hold"}, taken) == (True, 0)


def on_hold(order: Order) -> Order:
    """The order waits, is not called completed, and its notes say why."""
    status, notes, completed = order.see("status", "notes", "completed")
    assert (status, completed) == ("on-hold", False)
    assert "Do not ship it" in notes
    return order
