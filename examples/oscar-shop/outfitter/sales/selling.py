"""From the class of a product to the captured payment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from oscar.apps.order.models import Order
from oscar.apps.order.processing import EventHandler
from oscar.apps.payment.models import Source, SourceType

from countersign_django import orders
from countersign_django.models import State
from countersign_django.signals import order_changed
from outfitter.sales import gateway
from outfitter.sales.models import KnownBuyer, Purchase


def classes_of(lines: Iterable[Any]) -> list[str]:
    """The classes that the products of an order carry: an attribute of their type."""
    return [kind for line in lines if (kind := getattr(line.product.attr, "notice_class", ""))]


def needed(basket_or_order: Any, address: Any) -> orders.Needed | None:  # noqa: ANN401 - Oscar's
    """An order's needs; the residence is not asked here, so it is unknown.

    Raises CannotSell, and CountersignError.
    """
    lines = basket_or_order.lines.all()
    return orders.needs(classes_of(lines), state=address.state, zip_code=address.postcode)


def known_buyer(user: Any) -> str:  # noqa: ANN401 - a user, or None of a guest
    """The buyer identifier of a customer, empty if there is none."""
    found = KnownBuyer.objects.filter(user=user).first() if user is not None else None
    return "" if found is None else found.cbid


def authorised(order_number: str, total: Any) -> Source:  # noqa: ANN401 - Oscar's price
    """The payment of an order, authorised and not captured."""
    kind, _ = SourceType.objects.get_or_create(name="Card")
    reference = gateway.authorise(order_number, total.incl_tax)
    return Source(
        source_type=kind,
        currency=total.currency,
        amount_allocated=total.incl_tax,
        reference=reference,
    )


@transaction.atomic
def release(order: Order) -> None:
    """Capture the payment of an order that waits, once: it can be packed."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status != "Waiting":
        return
    order.set_status("Released")
    for source in order.sources.all():
        source.debit(source.amount_allocated)
        # Last, since it cannot be undone. A real gateway gets a key that makes it happen once.
        gateway.capture(source.reference, source.amount_allocated)


@transaction.atomic
def stop(order: Order) -> None:
    """Give up the payment, or refund it, and put the goods back, unless that was done."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status not in {"Waiting", "Released"}:
        return
    order.set_status("Stopped")
    EventHandler().cancel_stock_allocations(order)
    _return_payment(order)


@transaction.atomic
def refund(order: Order) -> None:
    """Refund a captured payment. An order that was not shipped is not shipped any more."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status == "Released":
        EventHandler().cancel_stock_allocations(order)
    order.set_status("Refunded")
    _return_payment(order)


def ship(purchase: Purchase, *, carrier: str, tracking_number: str, signed: bool) -> list[str]:
    """Decide once more, and report the parcel if it may leave; returns why it may not.

    Raises CountersignError: then it may not, for now.
    """
    if not as_decided(purchase):
        return ["its goods or its address were changed"]
    if purchase.state != State.NONE and orders.decide(purchase) != State.CLEARED:
        return [*purchase.reasons]
    with transaction.atomic():
        # It may have been refunded, stopped or shipped meanwhile.
        order = Order.objects.select_for_update().get(pk=purchase.order_id)
        if order.status != "Released":
            return [order.status]
        EventHandler().consume_stock_allocations(order)
        order.set_status("Shipped")
        if purchase.state != State.NONE:
            orders.report(
                purchase,
                carrier=carrier,
                tracking_number=tracking_number,
                adult_signature_obtained=signed or None,
            )
    return []


def as_decided(purchase: Purchase) -> bool:
    """Whether goods and address are those of the decision: staff can change both."""
    order, address = purchase.order, purchase.order.shipping_address
    if purchase.state != State.NONE:
        classes = {*classes_of(order.lines.all())}
        decided = ({*purchase.product_class.split(",")}, purchase.shipping_zip)
        return (classes, address.postcode) == decided
    try:
        return needed(order, address) is None
    except orders.CannotSell:
        return False


@receiver(order_changed, sender=Purchase)
def follow(order: Purchase, **_: object) -> None:
    """Once for each change: cleared orders are paid, others stopped."""
    customer = order.order.user
    match order.state:
        case State.NONE | State.OPEN | State.UNDECIDED:
            return
        case State.CLEARED:
            if not as_decided(order):
                # Staff changed it meanwhile: its page begins again.
                return
            release(order.order)
            if customer is not None:
                KnownBuyer.objects.update_or_create(user=customer, defaults={"cbid": order.cbid})
        case _:
            stop(order.order)
            if any(reason.startswith("buyer_") for reason in order.reasons):
                # Verified again with the next order.
                KnownBuyer.objects.filter(user=customer).delete()


def _return_payment(order: Order) -> None:
    for source in order.sources.all():
        if source.amount_debited > source.amount_refunded:
            amount = source.amount_debited - source.amount_refunded
            gateway.refund(source.reference, amount)
            source.refund(amount)
        else:
            gateway.void(source.reference)
