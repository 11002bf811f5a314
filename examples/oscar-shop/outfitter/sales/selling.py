"""From the class of a product to the captured payment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models.signals import post_delete, post_save, pre_delete
from django.dispatch import receiver
from django.urls import reverse
from oscar.apps.order.models import Line, Order, OrderNote, ShippingAddress
from oscar.apps.order.processing import EventHandler
from oscar.apps.payment.models import Source, SourceType

from countersign_django import following, orders
from countersign_django.following import Do, Wants
from countersign_django.models import State
from countersign_django.signals import order_changed
from outfitter.sales import gateway
from outfitter.sales.models import KnownBuyer, Purchase

WANTS = {
    "Waiting": Wants.PLACED,
    "Released": Wants.PAID,
    "On hold": Wants.HELD,
    "Shipped": Wants.SHIPPED,
    "Stopped": Wants.OVER,
    "Refunded": Wants.OVER,
}
"""What the shop wants of an order, by its status."""


def classes_of(lines: Iterable[Any]) -> list[str]:
    """The classes that the products of an order carry: an attribute of their type."""
    return [kind for line in lines if (kind := getattr(line.product.attr, "notice_class", ""))]


def needed(basket_or_order: Any, address: Any) -> orders.Needed | None:  # noqa: ANN401 - Oscar's
    """An order's needs; the residence is not asked here, so it is unknown.

    Raises CannotSell, and CountersignError.
    """
    return orders.needs(classes_of(basket_or_order.lines.all()), **_place(address))


def _place(address: Any) -> dict[str, str]:  # noqa: ANN401 - Oscar's
    country = address.country_id
    return {"state": address.state, "zip_code": address.postcode, "country": country}


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
    """Let an order be packed that waits or is on hold; its payment is captured once."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status not in {"Waiting", "On hold"}:
        return
    order.set_status("Released")
    for source in order.sources.all():
        if not source.amount_debited:
            source.debit(source.amount_allocated)
            # Last, since it cannot be undone. A real gateway gets a key that makes it happen once.
            gateway.capture(source.reference, source.amount_allocated)


@transaction.atomic
def hold(order: Order) -> None:
    """Put a paid order on hold; the buyer gets a link to its page, which leads to the notice."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status != "Released":
        return
    order.set_status("On hold")
    _note(order, "It is not cleared for what it is now: do not ship. The buyer got the link.")
    link = f"{settings.SHOP_URL}{reverse('sales:order', args=[order.number])}"
    link += f"?key={order.verification_hash()}"
    words = (
        "We have your payment, and nothing is charged again. Your order was changed, so before we "
        f"can send it, you read and initial a legal notice:\n{link}\n"
    )
    subject = f"One step is missing for your order {order.number}"
    transaction.on_commit(lambda: send_mail(subject, words, None, [order.email]))


@transaction.atomic
def stop(order: Order) -> None:
    """Give up the payment, or refund it, and put the goods back, unless that was done."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status not in {"Waiting", "Released", "On hold"}:
        return
    order.set_status("Stopped")
    EventHandler().cancel_stock_allocations(order)
    _return_payment(order)


@transaction.atomic
def refund(order: Order) -> None:
    """Refund a captured payment. An order that was not shipped is not shipped any more."""
    order = Order.objects.select_for_update().get(pk=order.pk)
    if order.status in {"Released", "On hold"}:
        EventHandler().cancel_stock_allocations(order)
    order.set_status("Refunded")
    _return_payment(order)


def ship(purchase: Purchase, *, carrier: str, tracking_number: str, signed: bool) -> list[str]:
    """Decide once more, and report the parcel if it may leave; returns why it may not.

    Raises CountersignError: then it may not, for now.
    """
    if not as_decided(purchase):
        return ["its goods or its address were changed"]
    is_cleared = purchase.state not in {State.NONE, State.NOT_NEEDED}
    if is_cleared and orders.decide(purchase) not in {State.CLEARED, State.OVERRIDDEN}:
        return [*purchase.reasons]
    if not is_cleared and needed(purchase.order, purchase.order.shipping_address):
        return ["the notice is needed now"]
    with transaction.atomic():
        # It may have been refunded, stopped or shipped meanwhile.
        order = Order.objects.select_for_update().get(pk=purchase.order_id)
        if order.status != "Released":
            return [order.status]
        EventHandler().consume_stock_allocations(order)
        order.set_status("Shipped")
        if is_cleared:
            orders.report(
                purchase,
                carrier=carrier,
                tracking_number=tracking_number,
                adult_signature_obtained=signed or None,
            )
    return []


def as_decided(purchase: Purchase) -> bool:
    """Whether goods and address are those of the decision: staff can change both."""
    order = purchase.order
    place, classes = _place(order.shipping_address), classes_of(order.lines.all())
    return orders.state_now(purchase, classes, **place) != State.NONE


def follow(purchase: Purchase) -> None:
    """Do what follows from what the shop wants of an order and what the service says of it."""
    order = purchase.order
    classes, place = classes_of(order.lines.all()), _place(order.shipping_address)
    match following.follow(purchase, WANTS[order.status], classes, **place):
        case Do.RELEASE:
            release(order)
            if purchase.manual_override:
                _note(order, purchase.manual_override)
        case Do.HOLD:
            hold(order)
        case Do.STOP:
            stop(order)
        case Do.RECALL:
            _note(order, "The parcel left, and the order is not cleared any more: call it back.")
        case _:
            pass


@receiver(order_changed, sender=Purchase)
def hear(order: Purchase, **_: object) -> None:
    """The service says something else: once for each change."""
    follow(order)
    customer = order.order.user
    if order.state == State.CLEARED and customer is not None:
        KnownBuyer.objects.update_or_create(user=customer, defaults={"cbid": order.cbid})
    elif any(reason.startswith("buyer_") for reason in order.reasons):
        # Verified again with the next order.
        KnownBuyer.objects.filter(user=customer).delete()


@receiver(post_save, sender=Order)
@receiver(post_save, sender=ShippingAddress)
@receiver([post_save, post_delete], sender=Line)
def look(instance: Any, **_: object) -> None:  # noqa: ANN401 - an order, its address, or its line
    """The shop wants something else: whoever saved it, in the dashboard or elsewhere."""
    match instance:
        case Order():
            found = Purchase.objects.filter(order=instance)
        case Line():
            found = Purchase.objects.filter(order=instance.order_id)
        case _:
            found = Purchase.objects.filter(order__shipping_address=instance)
    for purchase in found:
        follow(purchase)


@receiver(pre_delete, sender=Order)
def forget(instance: Order, **_: object) -> None:
    """A deleted order is not wanted any more: nothing else is made of it meanwhile."""
    Order.objects.filter(pk=instance.pk).update(status="Stopped")
    for purchase in Purchase.objects.filter(order=instance):
        follow(purchase)


def _note(order: Order, words: str) -> None:
    order.notes.create(note_type=OrderNote.SYSTEM, message=f"Countersign: {words}")


def _return_payment(order: Order) -> None:
    for source in order.sources.all():
        if source.amount_debited > source.amount_refunded:
            amount = source.amount_debited - source.amount_refunded
            gateway.refund(source.reference, amount)
            source.refund(amount)
        else:
            gateway.void(source.reference)
