"""Holds paid orders until their buyers have done the notice; README.md says how to start it."""

import json
import os
import re
import smtplib
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

import httpx2
from platforms import PLATFORMS, Bought, Platform, Refused

from countersign_client import Countersign, CountersignError, InvalidSignature
from countersign_client.types import CartInput, DestinationInput

HOUR: Final = 60 * 60
DAY: Final = 24 * HOUR
REMINDERS: Final = (1 * DAY, 3 * DAY)  # after the order was placed
UNFINISHED: Final = ("placed", "held", "waiting")
BODY_MAX: Final = 1 << 20
_SCHEMA: Final = """CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, token TEXT UNIQUE,
    placed REAL, state TEXT DEFAULT 'placed', mails INTEGER DEFAULT 0, links INTEGER DEFAULT 0,
    session TEXT, url TEXT, asked REAL, clearance TEXT, override TEXT)"""


class Order(NamedTuple):
    """A row. `state`: placed, held, waiting; at the end plain, released, cancelled or refused."""

    id: str
    token: str
    placed: float
    state: str
    mails: int
    links: int
    session: str | None
    url: str | None
    asked: float | None  # when a clearance of this link was last refused
    clearance: str | None
    override: str | None  # of a manual override: its id, and the obligations that stay, as JSON


class Bridge:
    """A step is noted after it was done: a process that was killed does it again.

    But that an order is held is noted before: what is noted as held is held again, and released.
    """

    def __init__(
        self,
        shop: Platform,
        client: Countersign,
        mail: Callable[[str, str, str], None],
        *,
        classes: dict[str, str],
        database: Path,
        url: str,
        secret: str = "",
        lives_at_billing: bool = False,
        days: float = 7,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.shop, self.client, self.mail, self.now = shop, client, mail, now
        self.classes, self.url, self.days = classes, url, days
        self.lives_at_billing, self.secret = lives_at_billing, secret
        self.lock = threading.RLock()
        self.rows = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        self.rows.execute(_SCHEMA)
        if len(self.rows.execute("SELECT * FROM orders").description) < len(Order._fields):
            self.rows.execute("ALTER TABLE orders ADD override TEXT")  # the file is older

    def placed(self, headers: dict[str, str], body: bytes) -> int:
        """The status for the platform: 204 once the order is kept; a known one stays as it is."""
        try:
            order = self.shop.placed(headers, body)
        except (KeyError, TypeError, ValueError):
            return 400
        if order is None:
            return 401
        with self.lock:
            statement = "INSERT OR IGNORE INTO orders (id, token, placed) VALUES (?, ?, ?)"
            self.rows.execute(statement, (order, f"cs_{uuid4().hex}", self.now()))
        return 204

    def told(self, headers: dict[str, str], body: bytes) -> int:
        """The status for the service, whose message says only that there is something to do."""
        try:
            self.client.webhooks.unwrap(body, headers, secret=self.secret)
        except InvalidSignature:
            return 400
        return 204

    def advance(self) -> None:
        """Do for each order what is due; what fails is tried again the next time."""
        with self.lock:
            for order in self._where(f"state IN {UNFINISHED}"):
                try:
                    then: Order | None = order
                    while then and then.state in UNFINISHED:
                        then = self._step(then)
                except Exception as error:  # noqa: BLE001 - one order stops no other
                    print(f"{order.id}: {error!r}", file=sys.stderr)

    def link(self, token: str) -> str | None:
        """Where the link of a mail leads; None: the order waits for nobody."""
        with self.lock:
            order = next(iter(self._where("token = ? AND state = 'waiting'", token)), None)
            if order and order.session:
                status = self.client.checkout_sessions.retrieve(order.session).status
                # A buyer who was not cleared may do it again.
                if status == "open" or (status == "completed" and order.asked is None):
                    return order.url
            return self._new_link(order).url if order else None

    def _step(self, order: Order) -> Order | None:
        """The order after the next step of an unfinished one; None: it waits."""
        if order.state == "waiting":
            return self._wait(order)
        bought = self.shop.read(order.id)
        if order.state == "held":
            self.shop.hold(order.id)
        warnings, needed = set[str](), "not_required"
        if self._classes(bought):
            try:
                found = self.client.requirements.retrieve(**self._cart(bought))
                needed, warnings = found.decision, {one.type for one in found.warnings}
            except CountersignError:
                if order.state == "held":
                    raise
                needed = "unknown"  # no service: the order is held, and the service asked again
        if needed == "not_required":
            if order.state == "held":
                self.shop.release(order.id)  # else it may be held by somebody else
            return self._note(order, state="plain")
        if order.state == "placed":
            return self._note(order, state="held")
        if "not_sufficient" in warnings:
            print(f"{order.id}: no notice suffices. It stays held: refund it.", file=sys.stderr)
            return self._note(order, state="refused")
        return self._note(order, state="waiting")

    def _wait(self, order: Order) -> Order | None:
        done = self.client.checkout_sessions.retrieve(order.session) if order.session else None
        rested = order.asked is None or self.now() - order.asked >= HOUR  # each is a record
        if done and done.status == "completed" and done.ack_id and done.cbid and rested:
            bought = self.shop.read(order.id)
            decision = self.client.clearances.create(
                ack_id=done.ack_id,
                cbid=done.cbid,
                session_id=order.token,
                order_reference=bought.number,
                shipping_zip=bought.zip,
                product_classes=self._classes(bought),
            )
            if decision.cleared or decision.overridden:
                kept = {"state": "released", "clearance": decision.clearance_id}
                if id_ := decision.override_id:
                    by = f"Manual override {id_}: shipped on your own responsibility"
                    print(f"{order.id}: {by}", file=sys.stderr)
                    kept["override"] = json.dumps([id_, decision.obligations])
                self.shop.release(order.id)
                return self._note(order, **kept)
            order = self._note(order, asked=self.now())
        if (age := self.now() - order.placed) >= self.days * DAY:
            if done and done.status == "open":
                self.client.checkout_sessions.cancel(done.checkout_session_id)
            self.shop.cancel(order.id)
            return self._note(order, state="cancelled")
        if order.mails > sum(age >= at for at in REMINDERS):
            return None
        bought, first = self.shop.read(order.id), not order.mails
        about = f"{'' if first else 'Reminder: '}your order {bought.number} waits for you"
        self.mail(bought.email, about, f"{self.url}/notice/{order.token}")
        return self._note(order, mails=1 + sum(age >= at for at in REMINDERS))

    def _new_link(self, order: Order) -> Order:
        bought = self.shop.read(order.id)
        session = self.client.checkout_sessions.create(
            session_id=order.token,
            order_reference=bought.number,
            return_url=f"{self.url}/done",
            cart=self._cart(bought),
            shipping_zip=bought.zip,
            product_classes=self._classes(bought),
            expires_in_seconds=DAY,
            idempotency_key=f"{order.token}-{order.links}",
        )
        made = {"session": session.checkout_session_id, "url": session.url, "asked": None}
        return self._note(order, links=order.links + 1, **made)

    def _classes(self, bought: Bought) -> list[str]:
        return sorted({self.classes[sku] for sku in bought.skus if sku in self.classes})

    def _cart(self, bought: Bought) -> CartInput:
        to: DestinationInput = {"state": bought.state, "zip": bought.zip}
        lives = bought.residence if self.lives_at_billing else None
        return {"product_classes": self._classes(bought), "ship_to": to, "residence_state": lives}

    def _where(self, condition: str, *values: object) -> list[Order]:
        rows = self.rows.execute(f"SELECT * FROM orders WHERE {condition}", values)  # noqa: S608
        return [Order(*row) for row in rows]

    def _note(self, order: Order, **changed: object) -> Order:
        named = ", ".join(f"{name} = ?" for name in changed)
        statement = f"UPDATE orders SET {named} WHERE id = ? RETURNING *"  # noqa: S608 - our names
        return Order(*self.rows.execute(statement, (*changed.values(), order.id)).fetchall()[0])


def handler_of(bridge: Bridge, wake: threading.Event) -> type[BaseHTTPRequestHandler]:
    """The pages: `/placed` for the platform, `/countersign` for the service, `/notice/…`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), BODY_MAX))
            hear = {"/placed": bridge.placed, "/countersign": bridge.told}.get(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = hear(headers, body) if hear else 404
            if status in {400, 401}:
                print(f"{status} at {self.path}: wrong secret or body", file=sys.stderr)
            wake.set()
            self._say(status)

        def do_GET(self) -> None:
            if self.path.startswith("/done"):
                return self._say(200, "Thank you. Your order is being looked at.")
            try:
                url = bridge.link(self.path.removeprefix("/notice/"))
            except (CountersignError, Refused, httpx2.HTTPError) as error:
                print(f"no session for a link: {error!r}", file=sys.stderr)
                return self._say(503, "Please try again in a few minutes.")
            if url is None:
                return self._say(410, "Nothing is left to do: the order is done, or was cancelled.")
            return self._say(303, location=url)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Log no request: the address of a link is a secret."""

        def _say(self, status: int, words: str = "", location: str = "") -> None:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(words)))
            self.end_headers()
            self.wfile.write(words.encode())

    return Handler


def setting(name: str, form: str = ".+") -> str:
    """The value of a setting. Ends the process unless it has this form."""
    if not re.fullmatch(form, value := os.environ.get(name, "")):
        sys.exit(f"{name} is missing or wrong: expected {form}. docs/bridge.md lists the settings.")
    return value


def main(kind: Callable[..., Bridge] = Bridge, pages: Callable[..., type] = handler_of) -> None:
    """Serve until stopped, with the settings of the environment; docs/bridge.md lists them."""
    of, wake, port = os.environ, threading.Event(), int(os.environ.get("BRIDGE_PORT", "8090"))
    sender, (host, _, number) = setting("BRIDGE_FROM"), setting("BRIDGE_SMTP").partition(":")

    def mail(to: str, about: str, link: str) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = sender, to, about
        message.set_content(f"Before we ship it, please read and initial a notice:\n\n{link}\n")
        with smtplib.SMTP(host, int(number or 25), timeout=10) as server:
            server.send_message(message)

    platform = PLATFORMS[setting("BRIDGE_PLATFORM", "|".join(PLATFORMS))]
    key, url = setting("COUNTERSIGN_API_KEY"), setting("COUNTERSIGN_BASE_URL")
    pairs = setting("BRIDGE_CLASSES", "[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*").split(",")
    bridge = kind(
        platform(*(setting(f"BRIDGE_SHOP_{part}") for part in ("URL", "TOKEN", "SECRET"))),
        Countersign(api_key=key, base_url=url),
        mail,
        classes=dict(pair.split("=") for pair in pairs),
        database=Path(of.get("BRIDGE_DATABASE", "bridge.db")),
        url=setting("BRIDGE_URL"),
        secret=setting("BRIDGE_WEBHOOK_SECRET", "whsec_.+"),
        lives_at_billing=of.get("BRIDGE_RESIDENCE") == "billing",
        days=float(of.get("BRIDGE_DAYS", "7")),
    )
    server = ThreadingHTTPServer(("127.0.0.1", port), pages(bridge, wake))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"The bridge listens on port {port}.", flush=True)
    while True:
        bridge.advance()
        wake.wait(60)
        wake.clear()


if __name__ == "__main__":
    main()
