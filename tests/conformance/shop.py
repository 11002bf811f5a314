"""A little shop that integrates Countersign: real HTTP, real webhooks, and manners to choose.

It was written as a vendor would write it, from the documentation; nothing in here knows that it is
being judged.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import httpx2
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

PATIENCE_SECONDS: Final = 2.0
"""How long the shop waits for an answer."""
HOLD_SECONDS: Final = 3
ZIP: Final = "94105"
NOTICE: Final = "/v1/notices/ab1263"


@dataclass(frozen=True, kw_only=True)
class Manners:
    """The faults of a shop; none by default."""

    sends_version: bool = True
    begins_with_one_value: bool = False
    repeats_what_was_refused: bool = False
    clears_what_was_refused: bool = False
    hurries: bool = False
    clears_unverified: bool = False
    new_key_for_each_try: bool = False
    sends_keys: bool = True
    clears_with_an_old_acknowledgment: bool = False
    ships_before_clearance: bool = False
    ships_uncleared: bool = False
    ships_uncleared_after_seconds: float = 0
    drops_what_was_refused: bool = False
    refuses_duplicates: bool = False
    acts_on_duplicates: bool = False
    checks_signatures: bool = True
    checks_age: bool = True


class GivenUp(Exception):
    """The order cannot be placed; the buyer knows why."""


@dataclass
class Shop:
    """Places one order after the other until the run is closed."""

    base_url: str
    key: str
    manners: Manners
    secret: str = ""
    patience: float = PATIENCE_SECONDS
    orders: int = 0
    errors: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _earlier: str = ""

    def open(self, closed: threading.Event) -> None:
        """Do business until closed; an order that goes wrong is given up."""
        with self.client() as api:
            while not closed.wait(0.2):
                try:
                    self.order(api)
                    self.orders += 1
                except GivenUp:
                    continue
                except Exception as error:  # noqa: BLE001 - reported by the test, from its own thread
                    self.errors.append(repr(error))
                    return

    def client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx2.Client(
            base_url=self.base_url, headers=headers, timeout=self.patience, verify=False
        )

    def order(self, api: httpx2.Client) -> None:
        """One order, from the notice to the parcel."""
        session = self.name("order")
        ack_id = self.acknowledge(api, session)
        cbid = self.verify(api, session, ack_id)
        earlier, self._earlier = self._earlier, ack_id
        order = {"cbid": cbid, "session_id": session, "shipping_zip": ZIP}
        if self.manners.clears_with_an_old_acknowledgment and earlier:
            self.post(api, "/v1/clearances", order | {"ack_id": earlier})
        decision = self.decide(api, order | {"ack_id": ack_id})
        if not decision["cleared"]:
            if self.manners.ships_uncleared:
                time.sleep(self.manners.ships_uncleared_after_seconds)
                self.ship(api, decision["clearance_id"])
            # The packers find it on hold; it is tried again later.
            decision = self.decide(api, order | {"ack_id": ack_id})
            if not decision["cleared"]:
                raise GivenUp
        self.ship(api, decision["clearance_id"])

    def decide(self, api: httpx2.Client, order: dict[str, str]) -> dict[str, Any]:
        """The decision; an order without one, as from a busy server, is given up."""
        answer = self.post(api, "/v1/clearances", order)
        if answer.status_code != 200:
            raise GivenUp
        decision: dict[str, Any] = answer.json()
        return decision

    def acknowledge(self, api: httpx2.Client, session: str) -> str:
        """Show the notice, and send the initials; gives the ack_id."""
        notice = api.get(NOTICE).json()
        body: dict[str, Any] = {"session_id": session}
        for attempt in range(3):
            single = self.manners.begins_with_one_value and not attempt
            body["initials_per_line"] = ["JD"] if single else ["JD" for _ in notice["bullets"]]
            if self.manners.sends_version:
                body["notice_version"] = notice["version"]
            answer = self.post(api, f"{NOTICE}/acknowledge", body)
            if answer.status_code == 200:
                ack_id: str = answer.json()["ack_id"]
                return ack_id
            if self.manners.drops_what_was_refused:
                raise GivenUp
            if self.manners.clears_what_was_refused:
                order = {"ack_id": "none", "cbid": "none", "session_id": session}
                self.post(api, "/v1/clearances", order | {"shipping_zip": ZIP})
                raise GivenUp
            if not self.manners.repeats_what_was_refused:
                notice = api.get(NOTICE).json()
        raise GivenUp

    def verify(self, api: httpx2.Client, session: str, ack_id: str) -> str:
        """Have the buyer verified; gives the cbid."""
        body = {
            "provider_identity_session_id": self.name("person"),
            "shipping_zip": ZIP,
            "test_mode": True,
        }
        for _ in range(3):
            answer = self.post(api, "/v1/buyers/verify", body)
            if answer.status_code == 200:
                cbid: str = answer.json()["cbid"]
                return cbid
            if self.manners.clears_unverified:
                order = {"ack_id": ack_id, "session_id": session, "shipping_zip": ZIP}
                self.post(api, "/v1/clearances", order | {"cbid": self.name("cbid")})
            time.sleep(0 if self.manners.hurries else float(answer.headers["retry-after"]))
        raise GivenUp

    def ship(self, api: httpx2.Client, clearance_id: str) -> None:
        """Hand the parcel over, and report it."""
        shipped = datetime.now(UTC)
        if self.manners.ships_before_clearance:
            shipped -= timedelta(hours=2)
        report = {"carrier": "UPS", "shipped_at": shipped.isoformat()}
        self.post(api, f"/v1/clearances/{clearance_id}/fulfilment", report)

    def post(self, api: httpx2.Client, path: str, body: dict[str, Any]) -> httpx2.Response:
        """Post, and again while there is no answer."""
        key = self.name("key")
        while True:
            headers = {"Idempotency-Key": key}
            if not self.manners.sends_keys and path.endswith("fulfilment"):
                headers = {}
            try:
                answer = api.post(path, json=body, headers=headers)
                if answer.status_code != 503 or path.endswith("verify"):
                    return answer
            except httpx2.TransportError:
                pass
            if self.manners.new_key_for_each_try:
                key = self.name("key")

    def received(self, headers: dict[str, str], body: bytes) -> int:
        """Take a webhook; gives the status of the answer."""
        is_old = int(time.time()) - int(headers["webhook-timestamp"]) > 300
        if is_old and not self.manners.checks_age:
            return 204
        if is_old:
            return 400
        try:
            Webhook(self.secret).verify(body, headers)
        except WebhookVerificationError:
            if self.manners.checks_signatures:
                return 400
        id_ = headers["webhook-id"]
        if id_ in self._seen:
            if self.manners.refuses_duplicates:
                return 500
            if not self.manners.acts_on_duplicates:
                return 200
        self._seen.add(id_)
        if self.manners.acts_on_duplicates:
            with self.client() as api:
                asked = {"provider_identity_session_id": "a customer", "shipping_zip": ZIP}
                self.post(api, "/v1/buyers/verify", asked | {"test_mode": True})
        return 200

    def name(self, kind: str) -> str:
        """A new name that no one else has."""
        return f"{kind}-{id(self)}-{next(self._numbers)}"


@contextmanager
def receiving(shop: Shop) -> Iterator[str]:
    """Run the shop's receiver of webhooks; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = shop.received(headers, body)
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - its signature
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hooks"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def doing_business(shop: Shop) -> Iterator[Shop]:
    """Let the shop place orders for the length of the block."""
    closed = threading.Event()
    thread = threading.Thread(target=shop.open, args=(closed,), daemon=True)
    thread.start()
    try:
        yield shop
    finally:
        closed.set()
        thread.join(30)
