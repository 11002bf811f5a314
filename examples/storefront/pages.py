"""The shop's pages: the products, and an order for its buyer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

NAME = "Ridgeline Workshop"
STATES = (
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL", "GA", "HI", "ID", "IL", "IN",
    "IA", "KS", "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH",
    "NJ", "NM", "NY", "NC", "ND", "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT",
    "VT", "VA", "WA", "WV", "WI", "WY",
)  # fmt: skip
NOT_TOGETHER = "We cannot sell these products in one order. Please order them one by one."


class Page(NamedTuple):
    title: str
    main: str
    head: str = ""


class Product(NamedTuple):
    title: str
    cents: int
    words: str
    picture: str
    """The path of a drawing, 48 by 48."""
    product_class: str | None = None
    """Its product class at Countersign; None: no notice applies."""


PRODUCTS = {
    "handguard": Product(
        "Free-float handguard, 15 inch",
        18900,
        "Aluminium, hard anodised, with the tool to fit it. 310 g.",
        "M4 20h34l6 4-6 4H4z M10 24h6 M20 24h6 M30 24h6",
        "firearm_accessory",
    ),
    "mill": Product(
        "Benchtop CNC mill",
        349000,
        "Three axes, a cast-iron bed and a 1.1 kW spindle. Delivered on a pallet.",
        "M8 40h32v-6H8z M12 34V10h10v10h-4v8 M28 34v-6h8v6 M20 28v4",
        "manufacturing_machine",
    ),
    "barrel": Product(
        "Threaded barrel, 16 inch",
        24500,
        "Chrome-lined steel. Handed over by a licensed dealer, and not shipped.",
        "M4 22h36v4H4z M40 21h4v6h-4z M4 20h6v8H4z",
        "barrel",
    ),
    "apron": Product(
        "Workshop apron",
        5900,
        "Waxed canvas with leather straps. One size.",
        "M18 8h12l2 10h6v22H10V18h6z M16 28h16v8H16z",
    ),
}
MORE = {
    "plans": Product(
        "Workbench plans, digital",
        1200,
        "Drawings to read in your account. To California a license needs a notice (AB 2426), and "
        "no identity check.",
        "M12 6h18l8 8v28H12z M30 6v8h8 M18 22h14 M18 28h14 M18 34h8",
        "digital_good",
    ),
    "parcel": Product(
        "Parcel with an invented notice",
        1900,
        "Invented for this demonstration: no law. To California it needs a notice, which asks "
        "something of the people who pack it: see /packing.",
        "M8 16l16-8 16 8v18l-16 8-16-8z M8 16l16 8 16-8 M24 24v18",
        "demo_parcel",
    ),
}
"""For sale only where their notices are published, as by `make demo`."""


@dataclass
class Order:
    """An order, and the last known state of its checkout session."""

    id: str
    visit_id: str
    lines: dict[str, int]
    address: dict[str, str]
    session: dict[str, Any] | None = None
    """None: the order needs no notice."""
    verify: bool = True
    """Whether an identity check is needed: without one, the initials suffice."""
    url: str = ""
    client_token: str = ""
    paid: bool = False
    number: str = ""
    """Its name for the packing staff."""
    obligations: list[dict[str, Any]] = field(default_factory=list)
    """Instructions for the packing staff."""

    @property
    def state(self) -> str:
        """`released` only if everything that was needed is there, and the order is cleared."""
        if self.session is None:
            return "released"
        status: str = self.session["status"]
        if status != "completed":
            return status
        if not self.verify:
            return "released"
        return {True: "released", False: "not_cleared", None: "undecided"}[self.session["cleared"]]


REASONS = {
    "zip_mismatch": "The delivery address has another ZIP code than the one on the document. "
    "We deliver only to the address that was verified.",
    "buyer_requires_input": "The identity check is not finished.",
    "buyer_not_verified": "The identity check was not passed.",
    "buyer_expired": "The identity check is too old. Please have it done again.",
    "buyer_revoked": "We cannot accept this order. Please contact us.",
    "refused_by_vendor": "We cannot accept this order. Please contact us.",
    "verification_withdrawn": "The identity check was withdrawn. Please have another one done.",
    "age_not_proved": "The age was not proved.",
    "notice_not_in_force": "The notice has changed since you read it. Please order again.",
    "notice_not_sufficient": "This product cannot be shipped to a buyer.",
    "acknowledgment_too_old": "Too much time has passed since you read the notice. "
    "Please order again.",
}
STORIES = {
    "released": ("Paid and released", "Thank you. We are packing your order."),
    "open": ("Waiting for you", "Your order is not complete: please read and initial the notice."),
    "undecided": ("Waiting for a decision", "We have your initials. Look again in a minute."),
    "not_cleared": ("Not released", "We cannot ship this order, and have charged nothing:"),
    "declined": ("You declined", "We have charged nothing. Your cart is as it was."),
    "expired": ("Out of time", "The notice was not completed in time. We have charged nothing."),
    "cancelled": ("Cancelled", "You cancelled this order. We have charged nothing."),
}
LABELS = {
    "name": "Full name",
    "street": "Street and number",
    "city": "City",
    "state": "State",
    "zip": "ZIP code",
    "residence": "State in which you live",
}
COMPLETE = {"name": "name", "street": "street-address", "city": "address-level2"}


def money(cents: int) -> str:
    return f"${cents // 100:,}.{cents % 100:02}"


def total(lines: Mapping[str, int]) -> str:
    return money(sum(PRODUCTS[name].cents * count for name, count in lines.items()))


def layout(page: Page, in_cart: int) -> str:
    """A whole document."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(page.title)} - {NAME}</title>
<link rel="stylesheet" href="/shop.css">
{page.head}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><div>
<a class="brand" href="/">{NAME}</a> <a href="/cart">Cart ({in_cart})</a>
</div></header>
<main id="main" tabindex="-1">
<h1>{escape(page.title)}</h1>
{page.main}
</main>
<footer><p>A demonstration: nothing is for sale, and no one is charged or verified.</p></footer>
</body>
</html>
"""


def picture(product: Product) -> str:
    return f'<svg viewBox="0 0 48 48" aria-hidden="true"><path d="{product.picture}"/></svg>'


def catalog() -> Page:
    cards = [
        f'<li><a href="/products/{name}">{picture(one)}<strong>{escape(one.title)}</strong></a>'
        f"<span>{money(one.cents)}</span></li>"
        for name, one in PRODUCTS.items()
    ]
    return Page("For your workshop", f'<ul class="cards">{"".join(cards)}</ul>')


def product(name: str) -> Page:
    one = PRODUCTS[name]
    law = "<p>Some states require a notice and an identity check for this product.</p>"
    by_law = one.product_class and name not in MORE
    return Page(
        one.title,
        f'<div class="product">{picture(one)}<div><p>{escape(one.words)}</p>'
        f'<p class="price">{money(one.cents)}</p>{law if by_law else ""}'
        f'<form method="post" action="/cart"><input type="hidden" name="product" value="{name}">'
        "<button>Add to cart</button></form></div></div>",
    )


def cart(lines: Mapping[str, int]) -> Page:
    if not lines:
        empty = '<p>It is empty. <a href="/">Look at what we have</a></p>'
        return Page("Your cart", empty)
    remove = (
        '<form method="post" action="/cart/remove"><input type="hidden" name="product" value='
        '"{0}"><button class="quiet" aria-label="Remove {1}">Remove</button></form>'
    )
    buttons = {name: remove.format(name, escape(PRODUCTS[name].title)) for name in lines}
    return Page(
        "Your cart",
        summary(lines, buttons) + '<p><a class="button" href="/checkout">Check out</a></p>',
    )


def summary(lines: Mapping[str, int], buttons: Mapping[str, str] | None = None) -> str:
    """The order lines."""
    rows = [
        f"<li><span>{count} &times; {escape(PRODUCTS[name].title)}</span>"
        f"<span>{money(PRODUCTS[name].cents * count)}</span>{(buttons or {}).get(name, '')}</li>"
        for name, count in lines.items()
    ]
    return f'<ul class="lines">{"".join(rows)}</ul><p class="price">Total {total(lines)}</p>'


def mistakes(address: Mapping[str, str]) -> dict[str, str]:
    """Errors in an address, by field."""
    wrong = {
        name: f"{LABELS[name]}: please fill this in." for name in COMPLETE if not address[name]
    }
    if address["state"] not in STATES:
        wrong["state"] = "State: please choose one."
    if not re.fullmatch(r"[0-9]{5}(-[0-9]{4})?", address["zip"], re.ASCII):
        wrong["zip"] = "ZIP code: five digits, such as 94105."
    if address["residence"] not in {"", *STATES}:
        wrong["residence"] = "State in which you live: please choose one."
    return wrong


def checkout(
    lines: Mapping[str, int],
    address: Mapping[str, str],
    errors: Mapping[str, str],
    refusal: str = "",
) -> Page:
    """The address, and the two ways to the notice."""
    listed = [f'<li><a href="#{name}">{text}</a></li>' for name, text in errors.items()]
    alert = "".join((f"<p>{escape(refusal)}</p>" if refusal else "", f"<ul>{''.join(listed)}</ul>"))
    alert = f'<div class="alert" role="alert">{alert}</div>' if listed or refusal else ""
    fields = "".join(_field(name, address.get(name, ""), errors.get(name)) for name in LABELS)
    regulated = any(PRODUCTS[name].product_class for name in lines)
    embedded = '<button class="quiet" name="how" value="here">Order, with the notice in this page'
    return Page(
        "Check out",
        f'{summary(lines)}{alert}<form method="post" action="/checkout"><fieldset>'
        f"<legend>Where should it go?</legend>{fields}</fieldset>"
        "<p>We charge your card only when the order is released.</p>"
        f'<p class="row"><button name="how" value="link">Order</button>'
        f"{embedded + '</button>' if regulated else ''}</p></form>",
    )


def _field(name: str, value: str, error: str | None) -> str:
    marks = f' aria-invalid="true" aria-describedby="{name}-error"' if error else ""
    said = f'<span class="error" id="{name}-error">{error}</span>' if error else ""
    label = f'<label for="{name}">{LABELS[name]}</label>{said}'
    if name in {"state", "residence"}:
        first = "The same" if name == "residence" else "Choose"
        chosen = [
            f'<option value="{one}"{" selected" if one == value else ""}>{one or first}</option>'
            for one in ("", *STATES)
        ]
        return f'<p>{label}<select id="{name}" name="{name}"{marks}>{"".join(chosen)}</select></p>'
    complete = COMPLETE.get(name, "postal-code")
    return (
        f'<p>{label}<input id="{name}" name="{name}" value="{escape(value)}" '
        f'autocomplete="{complete}"{marks}></p>'
    )


def not_sufficient(product_class: str) -> str:
    return (
        f"We cannot ship a {product_class.replace('_', ' ')}: a licensed dealer has to hand it "
        "over. Please remove it from your cart."
    )


def notice(order: Order, service: str) -> Page:
    """The notice inside of our page: the browser gets the token of this one session, and no key."""
    base = escape(service)
    return Page(
        "One more step",
        f'<form action="/orders/{order.id}"><countersign-notice name="ack_id" required '
        f'base-url="{base}" client-token="{escape(order.client_token)}"></countersign-notice>'
        f'<noscript><p><a class="button" href="{escape(order.url)}">Read the notice</a></p>'
        '</noscript><p><button class="quiet">Finish my order</button></p></form>'
        f'<p><a href="/orders/{order.id}">My order</a></p>',
        f'<script type="module" src="{base}/component/v1/countersign-notice.js"></script>\n',
    )


def order(order: Order) -> Page:
    """The page with an order's outcome."""
    title, story = STORIES[order.state]
    parts = [f'<p class="story {order.state}">{story}</p>']
    if order.state == "not_cleared" and order.session is not None:
        why = {
            REASONS.get(code, f"Please contact us ({code}).") for code in order.session["reasons"]
        }
        parts.append(f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in sorted(why))}</ul>")
    if order.state == "open":
        parts.append(
            f'<p class="row"><a class="button" href="{escape(order.url)}">Read the notice</a></p>'
            f'<form method="post" action="/orders/{order.id}/cancel">'
            '<button class="quiet">Cancel the order</button></form>'
        )
    elif order.state == "undecided":
        parts.append(f'<p><a class="button" href="/orders/{order.id}">Look again</a></p>')
    else:
        back = "/" if order.state == "released" else "/checkout"
        words = "Back to the shop" if order.state == "released" else "Try again"
        parts.append(f'<p><a class="button" href="{back}">{words}</a></p>')
    a = {name: escape(text) for name, text in order.address.items()}
    where = f"{a['name']}<br>{a['street']}<br>{a['city']}, {a['state']} {a['zip']}"
    proof = order.session["ack_id"] if order.session else None
    parts += [
        f"<h2>Your order</h2>{summary(order.lines)}<h2>Delivery</h2><p>{where}</p>",
        f"<p>Proof of your initials: <code>{escape(proof)}</code></p>" if proof else "",
    ]
    return Page(title, "".join(parts))


def packing(orders: Iterable[Order]) -> Page:
    """The orders to pack, and the duties for each parcel; addresses stay elsewhere."""
    parts = [
        f"<h2>Order {order.number}</h2>{summary(order.lines)}<h3>With the parcel:</h3><ul>"
        f"{''.join(f'<li>{escape(duty(one))}</li>' for one in order.obligations) or NO_DUTY}</ul>"
        for order in orders
    ]
    return Page("To pack", "".join(parts) or "<p>No order is released.</p>")


NO_DUTY = "<li>Nothing more.</li>"


def duty(obligation: Mapping[str, Any]) -> str:
    """An obligation in words; an unknown one as it is."""
    match obligation:
        case {"type": "package_label", "text": text}:
            return f"Print on it, word for word: “{text}”"
        case {"type": "adult_signature"}:
            return "Hand it over only against the signature of an adult."
        case {"type": "compared", "what": "zip"}:
            return "Ship it only to the ZIP code that was verified."
        case _:
            return json.dumps(obligation, ensure_ascii=False)


def unavailable() -> Page:
    words = "We cannot take orders for the moment. Nothing was charged. Please try again."
    return Page("Please wait", f'<p role="alert">{words}</p>')


def not_found() -> Page:
    return Page("Not found", '<p>There is no such page. <a href="/">Back to the shop</a></p>')
