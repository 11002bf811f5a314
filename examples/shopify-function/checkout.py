"""The notice before the payment, for carts of Shopify; README.md says how to start it.

The theme sends the cart and its address to `/cart`, leads the buyer to the notice, and fetches the
token for the cart from `/token/…`. The function in `src` opens the checkout with it. The order is
held and decided by the bridge, which goes on with the session of the cart.
"""

import hmac
import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4
from zoneinfo import ZoneInfo

sys.path.append(str(Path(__file__).parents[1] / "bridge"))

from bridge import BODY_MAX, DAY, Bridge, handler_of, main

from countersign_client import CountersignError
from countersign_client.types import CartInput

LASTS: Final = 30 * 60
"""Seconds from the token to the order."""
FRESH: Final = 5 * 60
"""Seconds for which a query of the app proxy is taken."""
ATTRIBUTE: Final = "countersign"
_SCHEMA: Final = """CREATE TABLE IF NOT EXISTS carts (
    name TEXT PRIMARY KEY, cart TEXT, session TEXT, begun REAL, made REAL, used TEXT)"""


class Cart(NamedTuple):
    """What a token is for, as the function reads it of the cart."""

    customer: str
    """`gid://shopify/Customer/…`; "": not signed in."""
    country: str
    state: str
    zip: str
    lines: list[str]
    """Of each classed product: `gid://shopify/ProductVariant/…`, a space, the quantity; sorted."""

    def mac(self, key: str, until: str, name: str) -> str:
        """HMAC-SHA-256 with the shop's key, hexadecimal; `until` is a date such as 2026-11-29.

        `name` is the cart's, so that two equal carts have two tokens.
        """
        to = self.country, self.state, self.zip[:5]
        about = [until, name, self.customer, *to, *self.lines]
        text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
        return hmac.digest(key.encode(), text.encode(), "sha256").hex()


class Checkout(Bridge):
    """The bridge, for orders of which some did the notice before."""

    def __init__(
        self,
        *given: Any,  # noqa: ANN401 - the bridge's
        key: str,
        zone: str,
        variants: Mapping[str, str],
        **named: Any,  # noqa: ANN401 - as above
    ) -> None:
        """`key` is the newest in the function's metafield, `zone` the shop's time zone.

        `variants` has the class of each classed variant, by its id.
        """
        super().__init__(*given, **named)
        self.key, self.zone, self.variants = key, ZoneInfo(zone), variants
        self.rows.execute(_SCHEMA)

    def begin(self, cart: Cart) -> tuple[str, str]:
        """The name of a cart, and where its notice is; "": it needs none.

        Where the buyer lives is not known before the checkout.
        """
        name, classes, session = f"cs_{uuid4().hex}", self._classes_of(cart), None
        wanted: CartInput = {
            "product_classes": classes,
            "ship_to": {"state": cart.state, "zip": cart.zip},
            "residence_state": None,
        }
        if classes and self.client.requirements.retrieve(**wanted).decision != "not_required":
            session = self.client.checkout_sessions.create(
                session_id=name,
                return_url=f"{self.url}/done",
                cart=wanted,
                shipping_zip=cart.zip,
                product_classes=classes,
                expires_in_seconds=DAY,
                idempotency_key=name,
            )
        now = self.now()
        row = (name, json.dumps(cart), session and session.checkout_session_id, now)
        with self.lock:
            self.rows.execute("DELETE FROM carts WHERE begun < ?", (now - 2 * DAY,))
            statement = "INSERT INTO carts (name, cart, session, begun) VALUES (?, ?, ?, ?)"
            self.rows.execute(statement, row)
        return name, (session.url or "") if session else ""

    def attribute(self, name: str) -> str:
        """The token for the cart's attribute; "": the notice is not done, or was refused."""
        found = self._row(name)
        session = found and found[1] and self.client.checkout_sessions.retrieve(found[1])
        if found is None or (session and (session.status != "completed" or not session.cleared)):
            return ""
        now = self.now()
        until = (datetime.fromtimestamp(now, self.zone) + timedelta(seconds=LASTS)).date()
        mac = Cart(*json.loads(found[0])).mac(self.key, until.isoformat(), name)
        with self.lock:
            self.rows.execute("UPDATE carts SET made = ? WHERE name = ?", (now, name))
        return f"{until}.{name}.{mac}"

    def _row(self, name: str) -> Any:  # noqa: ANN401 - a row
        """Cart, session and time of the token of a cart that no order has used yet."""
        statement = "SELECT cart, session, made FROM carts WHERE name = ? AND used IS NULL"
        with self.lock:
            return self.rows.execute(statement, (name,)).fetchone()

    def placed(self, headers: dict[str, str], body: bytes) -> int:
        """As the bridge's; an order with the token of its cart goes on with that session."""
        with self.lock:
            status = super().placed(headers, body)
            if status == 204:
                self._adopt(json.loads(body))
        return status

    def _adopt(self, order: Mapping[str, Any]) -> None:
        """Give a new order the session of its cart, once, if it came in time and is the same."""
        (row,) = self._where("id = ?", order["admin_graphql_api_id"])
        given = [one for one in order["note_attributes"] if one["name"] == ATTRIBUTE]
        token = given[0]["value"].split(".") if given else []
        found = self._row(token[1]) if len(token) == 3 else None
        if row.state != "placed" or found is None or found[1] is None or found[2] is None:
            return
        cart, (until, name, mac) = Cart(*json.loads(found[0])), token
        at = datetime.fromisoformat(order["created_at"]).timestamp()
        own = self._cart_of(order)
        # Shopify makes a customer for the order of a guest, too.
        own = own if cart.customer else own._replace(customer="")
        if own.mac(self.key, until, name) != mac or not at - found[2] <= LASTS:
            return
        with self.rows:
            self.rows.execute("BEGIN")
            self.rows.execute("UPDATE carts SET used = ? WHERE name = ?", (row.id, name))
            # No mail: the buyer was there already.
            self._note(row, token=name, session=found[1], mails=1, links=1)

    def _cart_of(self, order: Mapping[str, Any]) -> Cart:
        to = order.get("shipping_address") or {}
        customer = (order.get("customer") or {}).get("admin_graphql_api_id", "")
        pairs = [
            (f"gid://shopify/ProductVariant/{o['variant_id']}", o) for o in order["line_items"]
        ]
        lines = sorted(f"{id_} {one['quantity']}" for id_, one in pairs if id_ in self.variants)
        country, state, zip_ = (
            to.get(one) or "" for one in ("country_code", "province_code", "zip")
        )
        return Cart(customer, country, state, zip_, lines)

    def _classes_of(self, cart: Cart) -> list[str]:
        return sorted({self.variants[line.partition(" ")[0]] for line in cart.lines})


def customer_of(query: str, secret: str, now: float) -> str | None:
    """Who is signed in, by a query that Shopify's app proxy signed just now; None: it did not."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    signature = given.pop("signature", "")
    text = "".join(f"{name}={value}" for name, value in sorted(given.items()))
    expected = hmac.digest(secret.encode(), text.encode(), "sha256").hex()
    is_signed = hmac.compare_digest(signature.encode(), expected.encode())
    if not is_signed or abs(now - int(given.get("timestamp", "0"))) > FRESH:
        return None
    number = given.get("logged_in_customer_id", "")
    return number and f"gid://shopify/Customer/{number}"


def pages_of(checkout: Checkout, wake: threading.Event) -> type[BaseHTTPRequestHandler]:
    """The bridge's pages, and for the theme, by the app proxy, `/cart` and `/token/…`."""
    secret = os.environ["BRIDGE_SHOP_SECRET"]
    of_bridge: Any = handler_of(checkout, wake)

    class Pages(of_bridge):  # type: ignore[misc]  # a class made by a function
        def do_POST(self) -> Any:  # noqa: ANN401, N802 - the library's name
            if urlsplit(self.path).path != "/cart":
                return super().do_POST()
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), BODY_MAX))
            return self._answer(lambda customer: checkout.begin(_cart(json.loads(body), customer)))

        def do_GET(self) -> Any:  # noqa: ANN401, N802 - the library's name
            path = urlsplit(self.path).path
            if not path.startswith("/token/"):
                return super().do_GET()
            return self._answer(lambda _: checkout.attribute(path.removeprefix("/token/")))

        def _answer(self, act: Any) -> Any:  # noqa: ANN401 - one of the two above
            customer = customer_of(urlsplit(self.path).query, secret, checkout.now())
            if customer is None:
                return self._say(401)
            try:
                return self._say(200, json.dumps(act(customer)))
            except (KeyError, TypeError, ValueError):
                return self._say(400)
            except CountersignError:
                return self._say(503)

    def _cart(given: Mapping[str, Any], customer: str) -> Cart:
        pairs = [(f"gid://shopify/ProductVariant/{one['variant']}", one) for one in given["lines"]]
        lines = [f"{id_} {int(one['quantity'])}" for id_, one in pairs if id_ in checkout.variants]
        country, state, zip_ = (str(given["address"][name]) for name in ("country", "state", "zip"))
        return Cart(customer, country, state, zip_, sorted(lines))

    return Pages


if __name__ == "__main__":
    pairs = (pair.split("=", 1) for pair in os.environ["CHECKOUT_VARIANTS"].split(","))
    main(
        partial(
            Checkout,
            key=os.environ["CHECKOUT_KEY"],
            zone=os.environ["CHECKOUT_TIME_ZONE"],
            variants={f"gid://shopify/ProductVariant/{id_}": one for id_, one in pairs},
        ),
        pages_of,
    )
