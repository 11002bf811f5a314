"""Every way to ship a paid order after its yes became a no."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.woocommerce.conftest import Order
from tests.woocommerce.paths import Attempt, on_hold

PARCELS: Final[dict[str, Callable[[Attempt], Order]]] = {}
"""By name. Each gives the order that it tried to complete."""


def parcel(try_: Callable[[Attempt], Order]) -> Callable[[Attempt], Order]:
    PARCELS[try_.__name__] = try_
    return try_


def _paid(a: Attempt) -> Order:
    order = a.shop.cleared(a.buyer)
    a.buyer.pay(order.url, a.gateway)
    return order


@parcel
def a_buyer_who_was_revoked(a: Attempt) -> Order:
    with a.shop.without_webhooks():
        order = _paid(a)
        buyer = order.data["buyer"]
        a.shop.client.sandbox.move_buyer(cbid=buyer, status="revoked")
    order.set_status("completed")
    return on_hold(order)


@parcel
def an_address_that_staff_changed(a: Attempt) -> Order:
    order = _paid(a)
    a.rest(f"/orders/{order.id}", shipping={"postcode": "90210"})
    on_hold(order)
    a.rest(f"/orders/{order.id}", status="completed")
    return on_hold(order)


@parcel
def goods_that_staff_add_after_the_payment(a: Attempt) -> Order:
    order = _paid(a)
    add = "$o = wc_get_order($id); $o->add_product(wc_get_product($product)); return $o->save();"
    a.shop.wp.php(add, id=order.id, product=a.shop.product("manufacturing_machine"))
    assert on_hold(order).state == "changed"
    order.set_status("completed")
    return on_hold(order)


@parcel
def an_order_that_was_cancelled_and_opened_again_elsewhere(a: Attempt) -> Order:
    order = _paid(a)
    order.set_status("cancelled")
    a.rest(f"/orders/{order.id}", shipping={"postcode": "90210"})
    a.rest(f"/orders/{order.id}", status="processing")
    on_hold(order)
    order.set_status("completed")
    return on_hold(order)


@parcel
def an_order_that_another_program_finishes_while_the_service_is_away(a: Attempt) -> Order:
    order = _paid(a)
    with a.shop.without_service():
        a.rest("/orders/batch", "POST", update=[{"id": order.id, "status": "completed"}])
    return on_hold(order)


def _shipped(a: Attempt) -> Order:
    order = _paid(a)
    report = """return \\Countersign\\WooCommerce\\Orders::locked($id, static function ($order) {
        \\Countersign\\WooCommerce\\Orders::report($order, array('carrier' => 'UPS'));
    })->get_id();"""
    a.shop.wp.php(report, id=order.id)
    assert (order.data["shipped"] > 0, order.state) == (True, "cleared")
    return order


@parcel
def an_order_that_was_changed_after_a_part_had_left(a: Attempt) -> Order:
    """What was shipped was cleared; what staff make of it afterwards was not."""
    order = _shipped(a)
    a.rest(f"/orders/{order.id}", shipping={"postcode": "90210"})
    assert on_hold(order).state == "changed"
    a.rest(f"/orders/{order.id}", status="completed")
    return on_hold(order)


@parcel
def a_copy_of_an_order_that_was_shipped(a: Attempt) -> Order:
    """Also while the service is away: its parcel was never asked about."""
    order = _shipped(a)
    copy, away = a.shop.copied(order), a.shop.copied(order)
    copy.set_status("completed")
    with a.shop.without_service():
        away.set_status("completed")
    on_hold(away)
    return on_hold(copy)
