"""Stored data belongs to one order: a copy of it is an order that was not begun."""

from __future__ import annotations

import copy
from collections.abc import Callable

import httpx2
import pytest
from django.core.management import call_command

from countersign_django import orders
from countersign_django.models import State
from tests.django_shop.conftest import Shop
from tests.django_shop.models import Order
from tests.django_shop.test_orders import fresh, present

pytestmark = pytest.mark.long


def by_saving(order: Order) -> Order:
    """As a button in the admin of many shops makes a copy."""
    made = copy.copy(order)
    made.pk = None
    made.save()
    return made


def by_inserting(order: Order) -> Order:
    """As Django's documentation says."""
    made = copy.deepcopy(order)
    made.pk, made._state.adding = None, True
    made.save()
    return made


def in_bulk(order: Order) -> Order:
    """Without `save`, as an import does."""
    made = copy.deepcopy(order)
    made.pk = None
    [made] = Order.objects.bulk_create([made])
    return Order.objects.get(pk=made.pk)


WAYS = pytest.mark.parametrize("copied", [by_saving, by_inserting, in_bulk])


@WAYS
def test_a_copy_of_a_cleared_order_has_not_begun(
    shop: Shop, copied: Callable[[Order], Order]
) -> None:
    """Also one that was reported as shipped; it is cleared by its own notice alone."""
    order = shop.bought(number="200001")
    orders.report(order, carrier="UPS", tracking_number="1Z999")
    made = copied(order)
    assert (made.pk == order.pk, fresh(made).state) == (False, State.NONE)
    assert orders.decide(made, present()) == State.NONE
    with pytest.raises(ValueError, match="not begun"):
        orders.report(made, carrier="UPS")
    Order.objects.filter(pk=made.pk).update(number="200002")
    assert orders.begin(fresh(made), present(), return_url=shop.url).startswith(shop.server.url)
    shop.buy(fresh(made))
    assert orders.refresh(fresh(made)) == State.CLEARED
    for name in ("reference", "checkout_session_id", "ack_id", "clearance_id"):
        assert getattr(fresh(made), name) != getattr(fresh(order), name)
    decided = shop.client.clearances.retrieve(made.clearance_id)
    assert (decided.order_reference, decided.session_id) == ("200002", made.reference)
    assert made.shipped_at is None


@WAYS
def test_a_copy_that_is_cancelled_leaves_the_first_session_open(
    shop: Shop, copied: Callable[[Order], Order]
) -> None:
    """No webhook about the first order clears the copy either."""
    order = shop.order()
    made = copied(order)
    assert orders.cancel(made) == State.NONE
    assert shop.client.checkout_sessions.retrieve(order.checkout_session_id).status == "open"
    shop.buy(order)
    assert [orders.settle(one) for one in (made, order)] == [State.NONE, State.CLEARED]


def test_the_page_of_the_return_asks_for_no_decision(shop: Shop) -> None:
    """It reads the stored decision; a message of the service, or the parcel, asks."""
    order = shop.bought()
    Order.objects.filter(pk=order.pk).update(cleared=None)
    page = httpx2.get(f"{shop.url}/back/{order.pk}/", verify=False)
    assert (page.text, fresh(order).state) == ("<h1>undecided</h1>", State.UNDECIDED)
    assert orders.settle(order) == State.CLEARED


def test_a_decision_initialed_for_another_order_does_not_count(shop: Shop) -> None:
    """However its ids came there: the service gets the order's number, and refuses."""
    order, other = shop.bought(number="300001"), Order.objects.create(number="300002")
    kept = {one.name for one in Order._meta.concrete_fields} - {"id", "number", "bound_to"}
    values = Order.objects.filter(pk=order.pk).values(*kept).get()
    Order.objects.filter(pk=other.pk).update(bound_to=f"django_shop.order:{other.pk}", **values)
    assert fresh(other).state == State.CLEARED
    assert orders.decide(other) == State.NONE
    assert (fresh(other).state, other.ack_id, other.reference) == (State.NONE, "", "")


def test_an_order_is_called_by_its_key_unless_the_shop_says_otherwise(shop: Shop) -> None:
    """The session, the acknowledgment and the decision have the same name for it."""
    order = shop.bought()
    decided = shop.client.clearances.retrieve(order.clearance_id)
    session = shop.client.checkout_sessions.retrieve(order.checkout_session_id)
    assert {decided.order_reference, session.order_reference} == {order.order_reference()}


def test_orders_from_before_this_release_continue(shop: Shop) -> None:
    """If no other order has their session, or the service knows which of them began it."""
    one, two, three = (
        shop.order(number="400001"),
        shop.bought(number="-"),
        shop.bought(number="400002"),
    )
    copies = [in_bulk(two), in_bulk(three)]
    Order.objects.filter(pk=copies[1].pk).update(number="400003")
    Order.objects.update(bound_to="")
    assert {fresh(order).state for order in (one, two, three)} == {State.NONE}
    shop.buy(one)
    assert orders.refresh(fresh(one)) == State.CLEARED
    assert orders.decide(fresh(three), present()) == State.CLEARED
    for order in (two, *copies):
        assert orders.refresh(fresh(order)) == State.NONE
    later = shop.bought(number="-")
    Order.objects.filter(pk=later.pk).update(bound_to="")
    call_command("countersign_catch_up", hours=1)
    assert fresh(later).state == State.CLEARED
    assert orders.begin(fresh(two), present(), return_url=shop.url) == fresh(two).notice_url
