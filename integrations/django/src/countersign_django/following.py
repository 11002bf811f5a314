"""The state machine of an order: what the shop wants of it, and what the service says."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from enum import StrEnum
from itertools import product
from typing import Final

from countersign_client import CountersignError
from countersign_django import orders
from countersign_django.models import CountersignOrder, State


class Wants(StrEnum):
    """What a shop wants of an order."""

    PLACED = "placed"
    """It waits for its notice and its payment."""
    PAID = "paid"
    """It was paid, and is to be shipped."""
    HELD = "held"
    """It was paid, and is on hold."""
    SHIPPED = "shipped"
    OVER = "over"
    """It was cancelled, refunded or deleted."""


class Do(StrEnum):
    """What follows for the shop."""

    NOTHING = "nothing"
    RELEASE = "release"
    """Capture the payment unless that was done: it may be packed."""
    HOLD = "hold"
    """Do not ship the paid order. Note it, and send the buyer the link to its page."""
    STOP = "stop"
    """Give the payment up, or refund it; do not ship."""
    RECALL = "recall"
    """It left, and is not cleared any more: tell staff."""
    END = "end"
    """End the session: the link collects nothing more."""


_UNFINISHED: Final = (Wants.PLACED, Wants.PAID, Wants.HELD)
_FOLLOWS: Final = {
    (Wants.OVER, State.OPEN): Do.END,
    (Wants.SHIPPED, State.REFUSED): Do.RECALL,
    **dict.fromkeys(product(_UNFINISHED, (State.REFUSED, State.DECLINED)), Do.STOP),
    **dict.fromkeys(product((Wants.PLACED,), (State.EXPIRED, State.CANCELLED)), Do.STOP),
    **dict.fromkeys(
        product((Wants.PLACED, Wants.HELD), (State.CLEARED, State.OVERRIDDEN, State.NOT_NEEDED)),
        Do.RELEASE,
    ),
    **dict.fromkeys(
        product(
            (Wants.PAID,),
            (State.NONE, State.OPEN, State.UNDECIDED, State.EXPIRED, State.CANCELLED),
        ),
        Do.HOLD,
    ),
}


def following(wants: Wants, state: State) -> Do:
    """What follows. It reads and changes nothing, so that a table can test it.

    `state` is that of the order as it is now: `none` for one that was changed.
    """
    return _FOLLOWS.get((wants, state), Do.NOTHING)


def follow(
    order: CountersignOrder,
    wants: Wants,
    product_classes: Collection[str],
    *,
    state: str,
    zip_code: str,
    country: str = "US",
    residence_state: str = "",
) -> Do:
    """What follows for an order that was saved, with what is in it and where it goes now.

    Call it when the order, its address or its lines are saved or deleted. It notes if nothing is
    needed, and ends a session that is not wanted any more. While the service does not respond, an
    order that was not begun for this counts as needing the notice. It raises no CountersignError.
    """
    says = order.state
    if wants in _UNFINISHED:
        says = orders.state_now(
            order,
            product_classes,
            state=state,
            zip_code=zip_code,
            country=country,
            residence_state=residence_state,
        )
    do = following(wants, says)
    if do == Do.END:
        # It is in the log; the session also ends by itself, later.
        with suppress(CountersignError):
            orders.cancel(order)
    return do
