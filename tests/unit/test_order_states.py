"""Where an order stands, by the acts on it."""

from __future__ import annotations

import pytest

from countersign.base.values import Mode
from countersign.core.orders.model import JoinedOrder, OrderAct, OrderState

S = OrderState
NOW = 100


def act(at: int, member: str, state: OrderState | None, due_at: int | None = None) -> OrderAct:
    return OrderAct("acct_1", Mode.LIVE, at, b"k" * 16, member, state=state, due_at=due_at)


@pytest.mark.parametrize(
    ("acts", "state"),
    [
        ([act(1, "ver", None)], S.OPEN),
        ([act(1, "chk", S.WAITING_FOR_BUYER, 200)], S.WAITING_FOR_BUYER),
        ([act(1, "chk", S.WAITING_FOR_BUYER, 50)], S.CLOSED),
        ([act(1, "chk", S.WAITING_FOR_BUYER, 200), act(2, "chk", S.CLOSED)], S.CLOSED),
        (
            [
                act(1, "chk", S.WAITING_FOR_BUYER, 200),
                act(2, "other", S.WAITING_FOR_BUYER, 200),
                act(3, "other", S.CLOSED),
            ],
            S.WAITING_FOR_BUYER,
        ),
        (
            [
                act(1, "ack", S.ACKNOWLEDGED),
                act(2, "chk", S.WAITING_FOR_BUYER, 200),
                act(3, "chk", S.CLOSED),
            ],
            S.ACKNOWLEDGED,
        ),
        ([act(1, "chk", S.WAITING_FOR_BUYER, 200), act(2, "chk", S.OPEN)], S.OPEN),
        (
            [
                act(1, "ack", S.ACKNOWLEDGED),
                act(2, "chk", S.WAITING_FOR_BUYER, 200),
                act(3, "chk", S.OPEN),
            ],
            S.ACKNOWLEDGED,
        ),
        ([act(1, "ack", S.ACKNOWLEDGED), act(2, "clr", S.CLEARED, 200)], S.CLEARED),
        ([act(1, "ack", S.ACKNOWLEDGED), act(2, "clr", S.CLEARED, 50)], S.ACKNOWLEDGED),
        ([act(1, "clr", S.REFUSED), act(2, "ack", S.ACKNOWLEDGED)], S.ACKNOWLEDGED),
        ([act(1, "clr", S.CLEARED, 200), act(2, "clr2", S.REFUSED)], S.REFUSED),
        (
            [
                act(1, "clr", S.CLEARED, 200),
                act(2, "clr2", S.REFUSED),
                act(3, "clr", S.CLEARED, 200),
            ],
            S.CLEARED,
        ),
        (
            [
                act(1, "clr", S.CLEARED, 50),
                act(2, "ful", S.DELIVERED),
                act(3, "ful2", S.SHIPPED),
                act(4, "paid", None),
                act(5, "clr", S.REFUSED),
            ],
            S.DELIVERED,
        ),
    ],
)
def test_the_state_is_that_of_the_newest_act_that_counts(
    acts: list[OrderAct], state: OrderState
) -> None:
    """A link that has ended counts only alone; after a shipment nothing takes it back."""
    assert JoinedOrder((*acts,)).decisive(NOW).state_at(NOW) is state
