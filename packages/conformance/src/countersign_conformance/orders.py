"""Which requests of a conformance run belong to one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from countersign_conformance.history import History
from countersign_conformance.model import ACKNOWLEDGE, GET_NOTICE, Observation


class Order(NamedTuple):
    """The identity of an order's requests: its session or, without one, its buyer."""

    session: str | None
    buyer: str | None

    @property
    def is_known(self) -> bool:
        """Whether its requests can be distinguished from those of other orders."""
        return self.session is not None or self.buyer is not None

    def has(self, one: Observation) -> bool:
        """Whether a request belongs to it; never, if the order is not known."""
        if self.session is not None:
            return one.session == self.session
        return self.buyer is not None and one.buyer == self.buyer


def order_of(history: History, acknowledgment: Observation) -> Order:
    """The order of an acknowledgment, as far as it differs from the orders before.

    A session or buyer that acknowledged the same notice before counts as more than one order: a
    shop may send one word as the session of all orders, and test all with one buyer.
    """
    earlier = [
        one
        for one in history.before(acknowledgment)
        if one.operation == ACKNOWLEDGE and one.done and one.notice == acknowledgment.notice
    ]
    session, buyer = acknowledgment.session, acknowledgment.buyer
    return Order(
        session=None if any(one.session == session for one in earlier) else session,
        buyer=None if any(one.buyer == buyer for one in earlier) else buyer,
    )


def was_fetched_again(
    history: History, order: Order, refused: Observation, again: Observation
) -> bool | None:
    """Whether the notice was fetched for this order between two acknowledgments of it.

    None: it was fetched, but possibly for another order, as that request names none.
    """
    between = _until(history.after(refused), again)
    fetches = [place for place, one in enumerate(between) if _fetches(one, refused)]
    if not fetches:
        return False
    others = [
        one for one in between[fetches[0] :] if _acknowledges(one, refused) and not order.has(one)
    ]
    borrowed = _fetches_for_each(history.before(refused), refused) and _is_without_fetch(
        history.after(again), order, refused
    )
    return True if len(fetches) > len(others) + borrowed else None


def _until(seen: Sequence[Observation], end: Observation) -> Sequence[Observation]:
    return seen[: next(place for place, one in enumerate(seen) if one is end)]


def _fetches(one: Observation, like: Observation) -> bool:
    return one.operation == GET_NOTICE and one.status < 400 and one.notice == like.notice


def _acknowledges(one: Observation, like: Observation) -> bool:
    return one.operation == ACKNOWLEDGE and not one.replayed and one.notice == like.notice


def _fetches_for_each(seen: Sequence[Observation], like: Observation) -> bool:
    """Whether each order has fetched the notice, the refused one too: the shop keeps no copy."""
    fetched = sum(_fetches(one, like) for one in seen)
    return sum(_acknowledges(one, like) for one in seen) < fetched


def _is_without_fetch(seen: Sequence[Observation], order: Order, like: Observation) -> bool:
    """Whether the next order is acknowledged before another fetch: then it had one before."""
    for one in seen:
        if _fetches(one, like):
            return False
        if _acknowledges(one, like) and not order.has(one):
            return True
    return False
