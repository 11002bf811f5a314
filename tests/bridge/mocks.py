"""Platforms for the bridge: each has one order at a time, and a judge with the published document.

``python -m tests.bridge.mocks shopify`` plays one for a bridge: see docs/bridge.md.

For REST it is Prism, a proxy that judges each request and each answer; for GraphQL, graphql-core
executes the requests by the published schema. What these pretend is no more than which act leads to
which state.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import shlex
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2
from graphql import build_schema, graphql_sync

from tests.cli.serving import running, wait_for
from tests.support import node
from tests.support.service import free_port

DOCUMENTS: Final = Path(__file__).parent / "platforms"
SECRET: Final = "shop secret"
TOKEN: Final = "shop token"
Answer = tuple[int, Any]


class Shop(ABC):
    """A platform with one order."""

    name: str
    order: str
    url: str = ""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget the order, and have a new one."""
        self.state = "new"
        """`new`, `held`, `released`, `cancelled`, or what staff made of it."""
        self.sku, self.ship_to, self.residence = "HG-1", ("California", "CA", "94105"), "CA"
        self.acts: list[str] = []
        self.held_up = threading.Event()
        """Set when an act waits, as `hold_up` asked."""
        self.hold_up: threading.Event | None = None

    def act(self, state: str) -> None:
        """Note an act that was done; the answer may wait."""
        self.acts.append(state)
        self.state = state
        if self.hold_up is not None:
            self.held_up.set()
            assert self.hold_up.wait(60)

    @abstractmethod
    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer: ...  # noqa: ANN401

    def message(self, secret: str = SECRET) -> tuple[dict[str, str], bytes]:
        """The webhook of the order."""
        return {"authorization": f"Bearer {secret}"}, self.placed()

    @abstractmethod
    def placed(self) -> bytes: ...


class BigCommerce(Shop):
    name, order = "bigcommerce", "250"
    statuses: Final = {"new": 11, "held": 12, "released": 11, "cancelled": 5, "refunded": 4}

    def placed(self) -> bytes:
        data = {"type": "order", "id": int(self.order)}
        return json.dumps({"scope": "store/order/created", "data": data}).encode()

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:  # noqa: ANN401
        if headers["X-Auth-Token"] != TOKEN:
            return 401, {}
        state, _, code = self.ship_to
        named = {"CA": "California", "NV": "Nevada"}
        if path == f"/orders/{self.order}/shipping_addresses":
            return 200, [{"state": state, "zip": code, "country_iso2": "US"}]
        if path == f"/orders/{self.order}/products?limit=250":
            return 200, [{"id": 1, "order_id": int(self.order), "sku": self.sku}]
        if path != f"/orders/{self.order}":
            return 404, {}
        if method == "PUT":
            wanted = {12: "held", 11: "released", 5: "cancelled"}[body["status_id"]]
            if wanted != self.state:
                self.act(wanted)
        payer = {"email": "jo@example.com", "state": named[self.residence]}
        status = self.statuses[self.state]
        return 200, {"id": int(self.order), "status_id": status, "billing_address": payer}


class Magento(Shop):
    name, order = "magento", "42"
    states: Final = {"new": "processing", "held": "holded", "released": "processing"}

    def placed(self) -> bytes:
        return json.dumps({"entity_id": self.order}).encode()

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:  # noqa: ANN401
        if headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {"message": "The consumer isn't authorized to access %resources."}
        act = path.removeprefix(f"/V1/orders/{self.order}")
        is_held = self.state == "held"
        if method == "POST":
            # As Magento does: no order is held twice, and no held one cancelled.
            wanted, allowed = {
                "/hold": ("held", not is_held),
                "/unhold": ("released", is_held),
                "/cancel": ("cancelled", not is_held),
            }[act]
            if not allowed:
                return 400, {"message": f"{act} is not available."}
            self.act(wanted)
            return 200, True
        person = {"address_type": "shipping", "firstname": "Jo", "lastname": "Doe", "city": "X"}
        person |= {"country_id": "US", "telephone": "5550100"}
        _, state, code = self.ship_to
        items = [{"sku": self.sku}]
        address = person | {"region_code": state, "postcode": code}
        parcel = {"shipping": {"address": address}, "items": items}
        return 200, {
            "entity_id": int(self.order),
            "increment_id": "000000042",
            "customer_email": "jo@example.com",
            "base_grand_total": 89,
            "grand_total": 89,
            "state": self.states.get(self.state, self.state),
            "items": items,
            "billing_address": person | {"region_code": self.residence, "postcode": code},
            "extension_attributes": {"shipping_assignments": [parcel]},
        }


class Shopify(Shop):
    name, order = "shopify", "gid://shopify/Order/820982911946154508"
    schema: Final = build_schema((DOCUMENTS / "shopify.graphql").read_text(encoding="utf-8"))

    def message(self, secret: str = SECRET) -> tuple[dict[str, str], bytes]:
        body = self.placed()
        mac = base64.b64encode(hmac.digest(secret.encode(), body, "sha256")).decode()
        return {"x-shopify-hmac-sha256": mac, "x-shopify-topic": "orders/create"}, body

    def placed(self) -> bytes:
        return json.dumps({"admin_graphql_api_id": self.order}).encode()

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:  # noqa: ANN401
        if headers["X-Shopify-Access-Token"] != TOKEN or (method, path) != (
            "POST",
            "/graphql.json",
        ):
            return 401, {"errors": "[API] Invalid API key or access token"}
        root = {
            "order": self._order,
            "fulfillmentOrderHold": self._hold,
            "fulfillmentOrderReleaseHold": self._release,
            "orderCancel": self._cancel,
        }
        found = graphql_sync(self.schema, body["query"], root, variable_values=body["variables"])
        return 200, found.formatted

    def _order(self, _info: object, id: str) -> Any:  # noqa: A002, ANN401
        if id != self.order:
            return None
        _, state, code = self.ship_to
        hold = {"id": "gid://shopify/FulfillmentHold/1", "handle": "countersign"}
        holds = [hold | {"heldByRequestingApp": True}] if self.state == "held" else []
        status = "ON_HOLD" if holds else "OPEN"
        part = {"id": "gid://shopify/FulfillmentOrder/1", "status": status}
        return {
            "id": id,
            "name": "#1001",
            "email": "jo@example.com",
            "cancelledAt": "2026-11-20T21:31:00Z" if self.state == "cancelled" else None,
            "billingAddress": {"provinceCode": self.residence, "zip": code},
            "shippingAddress": {"provinceCode": state, "zip": code},
            "lineItems": {"nodes": [{"sku": self.sku}, {"sku": None}]},
            "fulfillmentOrders": {"nodes": [part | {"fulfillmentHolds": holds}]},
        }

    def _hold(self, _info: object, **given: Any) -> Any:  # noqa: ANN401
        if self.state == "held":
            wrong = {"code": "DUPLICATE_FULFILLMENT_HOLD_HANDLE", "message": "The handle is taken."}
            return {"fulfillmentOrder": None, "userErrors": [wrong]}
        assert given["fulfillmentHold"]["handle"] == "countersign"
        self.act("held")
        return {"fulfillmentOrder": None, "userErrors": []}

    def _release(self, _info: object, **given: Any) -> Any:  # noqa: ANN401
        assert given["holdIds"] == ["gid://shopify/FulfillmentHold/1"]
        self.act("released")
        return {"fulfillmentOrder": None, "userErrors": []}

    def _cancel(self, _info: object, **given: Any) -> Any:  # noqa: ANN401
        assert given["restock"]
        self.act("cancelled")
        return {"orderCancelUserErrors": []}


@contextmanager
def open_shop(kind: type[Shop], folder: Path) -> Iterator[Shop]:
    """The platform with its judge in front, at its `url`."""
    shop = kind()

    class Handler(BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, found = shop.answer(self.command, self.path, self.headers, body)
            said = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do  # noqa: N815 - names of the library

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        here = f"http://127.0.0.1:{server.server_port}"
        try:
            document = DOCUMENTS / f"{shop.name}.json"
            if document.exists():
                with judged(document, here, folder) as shop.url:
                    yield shop
            else:
                shop.url = here
                yield shop
        finally:
            if shop.hold_up:
                shop.hold_up.set()
            server.shutdown()
            thread.join()


@contextmanager
def judged(document: Path, upstream: str, folder: Path) -> Iterator[str]:
    """Prism in front of a server: what is not as in the document gets an error in its place."""
    port, log = free_port(), folder / f"prism-{document.stem}.log"
    program = node.PRISM / "node_modules" / ".bin" / "prism"
    command = [str(program), "proxy", str(document), upstream, "--errors"]
    with running([*command, "--port", str(port)], os.environ, log) as process:
        wait_for(process, log, "Prism is listening")
        yield f"http://127.0.0.1:{port}"


def main(name: str) -> None:
    """Show the settings of a bridge, and place an order when Enter is pressed."""
    kinds: dict[str, type[Shop]] = {kind.name: kind for kind in (BigCommerce, Magento, Shopify)}
    # Its proxy ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with TemporaryDirectory() as folder, open_shop(kinds[name], Path(folder)) as shop:
        settings = {"PLATFORM": name, "SHOP_URL": shop.url, "SHOP_TOKEN": TOKEN}
        settings |= {"SHOP_SECRET": SECRET, "CLASSES": "HG-1=accessory"}
        # Each run places the same order, which another database may have as done.
        settings["DATABASE"] = f"{folder}/bridge.db"
        for key, value in settings.items():
            sys.stdout.write(f"export BRIDGE_{key}={shlex.quote(value)}\n")
        input("Start the bridge with these, then press Enter: an order is placed.\n")
        headers, body = shop.message()
        to = f"{os.environ.get('BRIDGE_URL', 'http://127.0.0.1:8090')}/placed"
        status = httpx2.post(to, content=body, headers=headers).status_code
        sys.stdout.write(f"{to} answered {status}.\n")
        known, pause = 0, threading.Event()
        while shop.state not in {"released", "cancelled"} or known < len(shop.acts):
            for act in shop.acts[known:]:
                sys.stdout.write(f"The order is {act}.\n")
            known = len(shop.acts)
            pause.wait(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
