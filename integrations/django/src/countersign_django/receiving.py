"""The effect of an event on this shop's orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from django.apps import apps
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from countersign_client.types import Event
from countersign_django import orders
from countersign_django.models import CountersignOrder, ReceivedEvent
from countersign_django.signals import event_received

KEPT: Final = timedelta(days=30)
"""How long the ids of events are kept: longer than a delivery is tried."""
NEW_DECISION: Final = {
    "buyer.expired",
    "buyer.failed",
    "buyer.requires_input",
    "buyer.revoked",
    "buyer.verified",
}


def receive(event: Event) -> bool:
    """Process an event once; returns whether it was new.

    An event only says that something changed: the present state is read from the service. So if a
    part was done before a failure, repeating it does no harm.
    """
    if ReceivedEvent.objects.filter(pk=event.id).exists():
        return False
    _apply(event)
    with transaction.atomic():
        _, created = ReceivedEvent.objects.get_or_create(
            pk=event.id, defaults={"type": event.type, "created_at": event.created_at}
        )
        if created:
            event_received.send(sender=ReceivedEvent, event=event)
            ReceivedEvent.objects.filter(received_at__lt=timezone.now() - KEPT).delete()
    return bool(created)


def take_over() -> None:
    """Check the orders from releases that did not note their subject."""
    _for_each(Q(bound_to="") & ~Q(session_status=""), orders.take_over)


def _apply(event: Event) -> None:
    if session_id := event.data.get("checkout_session_id"):
        _for_each(Q(checkout_session_id=session_id), orders.settle)
    elif event.type in NEW_DECISION:
        # An order that was refused stays so: its payment may have been given up.
        undecided = Q(cleared=True) | Q(cleared=None, session_status="completed")
        undecided |= ~Q(override_id="")
        concerned = Q(cbid=event.data["cbid"], shipped_at=None)
        _for_each(concerned & undecided, orders.decide)


def _for_each(wanted: Q, act: Callable[[CountersignOrder], object]) -> None:
    """Act on all of them, also if one fails: the first failure is raised at the end."""
    failures: list[Exception] = []
    for order in _orders(wanted):
        try:
            act(order)
        except Exception as error:  # noqa: BLE001 - of the service, of a receiver or of its gateway
            failures.append(error)
    if failures:
        raise failures[0]


def _orders(wanted: Q) -> Iterator[CountersignOrder]:
    """Orders of all models that have the fields."""
    for model in apps.get_models():
        if issubclass(model, CountersignOrder):
            yield from model._default_manager.filter(wanted)  # noqa: SLF001 - its public name is the model's choice
