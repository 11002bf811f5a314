"""The order as shown to the buyer: sealed with the session, in no record, event or log."""

from __future__ import annotations

from typing import Annotated, Final
from unicodedata import category

from msgspec import Meta

from countersign.base.errors import InvalidRequest
from countersign.base.http.schemas import STORABLE, Request, in_full
from countersign.core.notices.rule import Cart

TEXT_LENGTH_MAX: Final = 120
LINES_MAX: Final = 20


class OrderLine(Request, frozen=True, kw_only=True):
    """One line of the order, as the buyer knows it."""

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=TEXT_LENGTH_MAX,
            description="What is bought, in your words; shown as text.",
            examples=["Free-float handguard, 15 inch"],
            extra_json_schema=STORABLE,
        ),
    ]
    amount: (
        Annotated[
            str,
            Meta(
                pattern=in_full(r"^[0-9]{1,9}(\.[0-9]{1,3})?$"),
                max_length=13,
                description="What it costs, a decimal number; needs `currency`.",
                examples=["189.00"],
            ),
        ]
        | None
    ) = None


class Order(Request, frozen=True, kw_only=True):
    """The order, as the buyer's page shows it. It is deleted with the session."""

    lines: Annotated[tuple[OrderLine, ...], Meta(min_length=1, max_length=LINES_MAX)]
    currency: (
        Annotated[
            str,
            Meta(
                pattern=in_full("^[A-Z]{3}$"),
                max_length=3,
                description="ISO 4217.",
                examples=["USD"],
            ),
        ]
        | None
    ) = None


def checked_order(order: Order | None) -> Order | None:
    """The order.

    Raises:
        InvalidRequest: amounts without a currency, or a line with nothing visible.
    """
    for number, line in enumerate(order.lines if order else ()):
        if all(category(char)[0] in "CZ" for char in line.text):  # spaces, and of no width
            raise InvalidRequest(f"Expected text - at `$.order.lines[{number}].text`.")
    if order and order.currency is None and any(line.amount for line in order.lines):
        raise InvalidRequest("An amount needs a currency - at `$.order.currency`.")
    return order


def destination_of(cart: Cart | None, shipping_zip: str | None) -> str | None:
    """The destination of the order, as text for the buyer."""
    if cart is None:
        return shipping_zip
    return f"{cart.ship_to.state} {cart.ship_to.zip or shipping_zip or ''}".strip()
