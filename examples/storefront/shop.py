"""A small shop with goods that need a notice, written with the HTTP interface alone.

Needs a running Countersign and Python, and no package:

    COUNTERSIGN_API_KEY=csign_sk_test_… python3 examples/storefront/shop.py

`make demo` starts both. COUNTERSIGN_BASE_URL is the address of Countersign, SHOP_PORT the port of
the shop, and SHOP_WEBHOOK_SECRET the secret of a webhook endpoint for /webhooks, if there is one.
Orders are in memory, so their receipts are written at once, into the directory SHOP_RECEIPTS_DIR,
if it is set: for `countersign log monitor --receipts`. With SHOP_MORE_NOTICES the shop also
sells the goods of the notices that `make demo` publishes.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pages
from countersign_api import Countersign, Refused
from pages import MORE, PRODUCTS, Order

BODY_BYTES_MAX = 80 * 1024
STYLE = (Path(__file__).parent / "shop.css").read_bytes()
DECIDED = {"released", "not_cleared"}
FIELDS = ("name", "street", "city", "state", "zip", "residence")


@dataclass
class Visit:
    """The shop's session of a browser."""

    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cart: dict[str, int] = field(default_factory=dict)
    cbid: str | None = None
    """The buyer, once verified: the next order asks only for the initials."""


class Shop:
    """Carts and orders, in memory: a restart forgets them."""

    def __init__(self, service: Countersign, url: str, receipts: Path | None = None) -> None:
        self.service = service
        self.url = url
        self._receipts = receipts
        self._visits: dict[str, Visit] = {}
        self._orders: dict[str, Order] = {}
        self._placed = 0
        self._lock = Lock()

    def visit(self, cookie: str) -> Visit:
        """The visit of the browser with this cookie; a new one for any other."""
        return self._visits.get(cookie) or Visit()

    def add(self, visit: Visit, name: str) -> None:
        """Put a product into the cart: from now on the visit is remembered."""
        with self._lock:
            self._visits[visit.id] = visit
            visit.cart[name] = min(visit.cart.get(name, 0) + 1, 9)

    def order(self, order_id: str, visit: Visit) -> Order | None:
        """An order of this visitor: a foreign one does not exist."""
        order = self._orders.get(order_id)
        return order if order is not None and order.visit_id == visit.id else None

    def place(self, visit: Visit, address: Mapping[str, str]) -> Order | str:
        """An order for the cart, or why this shop cannot take it."""
        order = Order(secrets.token_urlsafe(24), visit.id, dict(visit.cart), dict(address))
        with self._lock:
            self._placed += 1
            order.number = str(1000 + self._placed)
        classes = sorted({kind for name in order.lines if (kind := PRODUCTS[name].product_class)})
        if classes:
            ship_to = {"state": address["state"], "zip": address["zip"]}
            residence = address["residence"] or address["state"]
            needs = self.service.requirements(classes, ship_to, residence)
            for warning in needs["warnings"]:
                if warning["type"] == "not_sufficient":
                    return pages.not_sufficient(warning["product_class"])
            # Unknown counts as required: only `not_required` means that nothing is needed.
            notices = [n for n in needs["notices"] if n["required"] != "not_required"]
            order.obligations = needs["obligations"]
            if needs["decision"] != "not_required":
                if len(notices) != 1:
                    return pages.NOT_TOGETHER
                order.verify = needs["identity"]["required"] != "not_required"
                self._start(order, visit, classes, notices[0]["notice_id"])
        with self._lock:
            self._orders[order.id] = order
        self._settle(order)
        return order

    def _start(self, order: Order, visit: Visit, classes: list[str], notice_id: str) -> None:
        """Create the checkout session: on this server, with the key that browsers never see."""
        wanted: dict[str, Any] = {
            "session_id": order.id,
            "order_reference": order.number,
            "return_url": f"{self.url}/orders/{order.id}",
            "origin": self.url,
            "collect": ["acknowledgment"],
            "notice_id": notice_id,
            "product_classes": classes,
        }
        if order.verify:
            wanted["shipping_zip"] = order.address["zip"]
            if visit.cbid is None:
                wanted["collect"] = ["identity", "acknowledgment"]
            else:
                wanted["cbid"] = visit.cbid
        made = self.service.create_session(wanted, once=order.id)
        order.session, order.url, order.client_token = made, made["url"], made["client_token"]

    def refresh(self, order: Order) -> None:
        """Read the session again, until the order is decided. Nothing else decides it."""
        if order.session is not None and order.state in {"open", "undecided"}:
            order.session = self.service.session(order.session["checkout_session_id"])
            self._settle(order)

    def released(self) -> list[Order]:
        """The orders to pack."""
        return [order for order in [*self._orders.values()] if order.paid]

    def cancel(self, order: Order) -> None:
        """Cancel an order that waits for its buyer."""
        if order.session is not None and order.state == "open":
            try:
                order.session = self.service.cancel(order.session["checkout_session_id"])
            except Refused:
                # It ended at the same moment: how, says the session.
                self.refresh(order)

    def _settle(self, order: Order) -> None:
        """Take the payment and release the order, once."""
        with self._lock:
            visit = self._visits[order.visit_id]
            if order.state == "released" and not order.paid:
                # Here a real shop captures the payment and sends the order to be packed.
                order.paid = True
                visit.cart.clear()
            if order.session is not None and order.verify and order.state in DECIDED:
                # Someone who was not cleared is verified again with the next order.
                visit.cbid = order.session["cbid"] if order.paid else None
            if order.session is not None and order.session.get("receipt"):
                self._keep(order.session["ack_id"], order.session["receipt"])

    def _keep(self, ack_id: str, receipt: str) -> None:
        """Keep the log's promise: without it no one can show that a record is missing."""
        if self._receipts is not None:
            # The monitor reads each file of the directory, so a draft is written next to it.
            unfinished = self._receipts.parent / f".{self._receipts.name}.{ack_id}"
            unfinished.write_text(receipt, encoding="utf-8", newline="")
            unfinished.replace(self._receipts / f"{ack_id}.txt")

    def receive(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Take a webhook: a buyer who never comes back has ordered, too."""
        event = self.service.event(headers, body)
        if event is None:
            return False
        about = event["data"].get("checkout_session_id")
        for order in [*self._orders.values()]:
            if about and order.session and order.session["checkout_session_id"] == about:
                self.refresh(order)
        return True


class Handler(BaseHTTPRequestHandler):
    """The shop's pages and forms."""

    shop: Shop

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, act: Any) -> None:  # noqa: ANN401 - one of the two below
        self.visit = self.shop.visit(self._cookie())
        try:
            act(urlsplit(self.path).path.strip("/").split("/"))
        except Refused as error:
            print(f"Countersign: {error}", file=sys.stderr)
            self._page(pages.unavailable(), 503)

    def _get(self, path: list[str]) -> None:
        match path:
            case [""]:
                self._page(pages.catalog())
            case ["shop.css"]:
                self._send(200, STYLE, "text/css; charset=utf-8")
            case ["packing"]:
                # A real shop shows this to its staff alone.
                self._page(pages.packing(self.shop.released()))
            case ["products", name] if name in PRODUCTS:
                self._page(pages.product(name))
            case ["cart"]:
                self._page(pages.cart(self.visit.cart))
            case ["checkout"] if self.visit.cart:
                self._page(pages.checkout(self.visit.cart, {}, {}))
            case ["orders", order_id] if order := self.shop.order(order_id, self.visit):
                # The query of the return address decides nothing, and is not even read.
                self.shop.refresh(order)
                self._page(pages.order(order))
            case ["orders", order_id, "notice"] if order := self.shop.order(order_id, self.visit):
                self._notice(order)
            case ["checkout"]:
                self._lead("/cart")
            case _:
                self._page(pages.not_found(), 404)

    def _notice(self, order: Order) -> None:
        """The page with the component, while the order waits for its buyer."""
        self.shop.refresh(order)
        if order.state == "open":
            self._page(pages.notice(order, self.shop.service.base_url), component=True)
        else:
            self._lead(f"/orders/{order.id}")

    def _post(self, path: list[str]) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self._page(pages.not_found(), 413)
            return
        body = self.rfile.read(int(length))
        if path == ["webhooks"]:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(200 if self.shop.receive(headers, body) else 400, b"", "text/plain")
            return
        if self.headers.get("Origin", self.shop.url) != self.shop.url:
            # A form of another site, sent by the buyer's browser.
            self._page(pages.not_found(), 403)
            return
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        match path:
            case ["cart"] if (name := form.get("product", "")) in PRODUCTS:
                self.shop.add(self.visit, name)
                self._lead("/cart")
            case ["cart", "remove"]:
                self.visit.cart.pop(form.get("product", ""), None)
                self._lead("/cart")
            case ["checkout"] if self.visit.cart:
                self._check_out(form)
            case ["orders", order_id, "cancel"] if order := self.shop.order(order_id, self.visit):
                self.shop.cancel(order)
                self._lead(f"/orders/{order.id}")
            case _:
                self._page(pages.not_found(), 404)

    def _check_out(self, form: Mapping[str, str]) -> None:
        """Place the order, and lead to the notice: to its page, or to ours with the component."""
        address = {name: form.get(name, "").strip()[:200] for name in FIELDS}
        errors = pages.mistakes(address)
        placed = "" if errors else self.shop.place(self.visit, address)
        if isinstance(placed, str):
            self._page(pages.checkout(self.visit.cart, address, errors, placed), 422)
        elif placed.state != "open":
            self._lead(f"/orders/{placed.id}")
        else:
            self._lead(f"/orders/{placed.id}/notice" if form.get("how") == "here" else placed.url)

    def _page(self, page: pages.Page, status: int = 200, *, component: bool = False) -> None:
        text = pages.layout(page, sum(self.visit.cart.values()))
        self._send(status, text.encode(), "text/html; charset=utf-8", component=component)

    def _lead(self, address: str) -> None:
        self._send(303, b"", "text/plain", location=address)

    def _send(
        self, status: int, body: bytes, kind: str, *, location: str = "", component: bool = False
    ) -> None:
        service = self.shop.service.base_url
        # The form of the checkout leads to the notice's page, and browsers check that too.
        policy = (
            f"default-src 'none'; style-src 'self'; form-action 'self' {service}; "
            "base-uri 'none'; frame-ancestors 'none'"
        )
        if component:
            policy += (
                f"; script-src {service}; connect-src {service}; "
                "require-trusted-types-for 'script'; trusted-types 'none'"
            )
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        if self.visit.cart and self._cookie() != self.visit.id:
            # `Lax`: the buyer comes back from the notice's page by a link of another site.
            cookie = f"visit={self.visit.id}; Path=/; HttpOnly; SameSite=Lax"
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get("visit")
        except CookieError:
            return ""
        return "" if found is None else found.value

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Paths are not logged: those of orders are private to the buyers."""


def main() -> int:
    """Serve until Ctrl-C; gives the exit status."""
    key = os.environ.get("COUNTERSIGN_API_KEY", "")
    if not key:
        print("Set COUNTERSIGN_API_KEY to a test key: csign_sk_test_…", file=sys.stderr)
        return 1
    base_url = os.environ.get("COUNTERSIGN_BASE_URL", "http://127.0.0.1:8080")
    service = Countersign(base_url, key, os.environ.get("SHOP_WEBHOOK_SECRET", ""))
    port = int(os.environ.get("SHOP_PORT", "8000"))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        print(f"The shop cannot use port {port}: {error.strerror}.", file=sys.stderr)
        return 1
    # Another name than the service's, so that browsers keep their cookies apart.
    receipts = Path(kept).resolve() if (kept := os.environ.get("SHOP_RECEIPTS_DIR")) else None
    if receipts is not None:
        receipts.mkdir(parents=True, exist_ok=True)
    if os.environ.get("SHOP_MORE_NOTICES"):
        PRODUCTS.update(MORE)
    Handler.shop = Shop(service, f"http://localhost:{port}", receipts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"The shop is open: {Handler.shop.url}", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
