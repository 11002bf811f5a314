"""The order as shown to the buyer: sealed with the session, in no record, event or log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, NamedTuple
from unicodedata import category

from msgspec import Meta, Struct
from msgspec.structs import replace

from countersign.base.errors import InvalidRequest
from countersign.base.http.schemas import STORABLE, Request, in_full
from countersign.core.acknowledgments.model import Client
from countersign.core.notices.rule import Cart
from countersign_evidence.process import Method, Surface, Viewport

TEXT_LENGTH_MAX: Final = 120
LINES_MAX: Final = 20


class OrderLine(Request, frozen=True, kw_only=True):
    """One line of the order, as the buyer knows it."""

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=TEXT_LENGTH_MAX,
            examples=["Free-float handguard, 15 inch"],
            extra_json_schema=STORABLE,
        ),
    ]
    """What is bought, in your words; shown as text."""
    amount: (
        Annotated[
            str,
            Meta(
                pattern=in_full(r"^[0-9]{1,9}(\.[0-9]{1,3})?$"), max_length=13, examples=["189.00"]
            ),
        ]
        | None
    ) = None
    """What it costs, a decimal number; needs `currency`."""


class Order(Request, frozen=True, kw_only=True):
    """The order, as the buyer's page shows it. It is deleted with the session."""

    lines: Annotated[tuple[OrderLine, ...], Meta(min_length=1, max_length=LINES_MAX)]
    currency: (
        Annotated[str, Meta(pattern=in_full("^[A-Z]{3}$"), max_length=3, examples=["USD"])] | None
    ) = None
    """ISO 4217."""


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


class ClaimedEvent(StrEnum):
    """What a browser says that the buyer did."""

    SHOWN = "shown"
    INITIALED = "initialed"
    CHANGED = "changed"
    REVIEWED = "reviewed"


class LineSeen(Struct, frozen=True, kw_only=True):
    """The service's observations of one line of the notice."""

    shown_at: datetime
    initialed_at: datetime | None = None
    changed_at: datetime | None = None
    changes: int = 0
    method: Method | None = None
    """How the initials came that it has; None: it has none, or is from an earlier release."""
    client: Client | None = None
    """Where they came from; None as for `method`."""

    def received(self, now: datetime, method: Method, client: Client) -> LineSeen:
        """This line after its first initials came, or others than it had."""
        if self.initialed_at is None:
            return replace(self, initialed_at=now, method=method, client=client)
        changes = self.changes + 1
        return replace(self, changed_at=now, changes=changes, method=method, client=client)


class Press(NamedTuple):
    """A press of the button of a line, labelled as a copy of the first line's initials."""

    line: int
    """Counted from 1."""
    initials: str
    """The initials on the button."""


class BrowserClaim(Struct, frozen=True, kw_only=True):
    """The browser's claims, with the time of receipt."""

    line: int | None
    event: ClaimedEvent
    at: datetime


class Reading(Struct, frozen=True, kw_only=True):
    """How far the buyer is with one text of the notice."""

    browser: str | None = None
    """The browser that it belongs to, by its cookie; "" for a client with the token alone, such as
    the component. None, from an earlier release: no one's, as it may be of several."""
    notice_version: str
    notice_digest: str
    surface: Surface
    rendered_digest: str | None
    locale: str
    opened_at: datetime
    lines: tuple[LineSeen, ...]
    typed: tuple[str, ...] | None = None
    """The last rejected input: not initials yet."""
    kept: tuple[str, ...] | None = None
    """The initials of some lines, "" for the others: each line may be a separate request."""
    initials: tuple[str, ...] | None = None
    """Initials of all lines."""
    reviewed_at: datetime | None = None
    script: bool | None = None
    viewport: Viewport | None = None
    claimed: tuple[BrowserClaim, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The initials of each line; "" if it has none yet."""
        return self.initials or self.kept or ("",) * len(self.lines)

    def with_initials(
        self, now: datetime, texts: Sequence[str], client: Client, press: Press | None = None
    ) -> Reading:
        """This reading after these initials came, one for each line; "" leaves a line as it is.

        A press counts only if the first line has what its button showed, before and after; then
        it decides about its line.
        """
        before, after = self.known, list(texts)
        adopted = 0
        if press is not None and before[0] == press.initials == (texts[0] or before[0]):
            adopted, after[press.line - 1] = press.line, press.initials
        after = [new or old for old, new in zip(before, after, strict=True)]
        numbered = enumerate(zip(self.lines, before, after, strict=True), 1)
        lines = tuple(
            line
            if old == new
            else line.received(now, Method.ADOPTED if number == adopted else Method.TYPED, client)
            for number, (line, old, new) in numbered
        )
        is_whole = all(after)
        return replace(
            self,
            typed=None,
            kept=None if is_whole else tuple(after),
            initials=tuple(after) if is_whole else None,
            lines=lines,
        )
