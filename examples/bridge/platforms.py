"""What the bridge needs of a platform: its webhook's check, `read`, `hold`, `release`, `cancel`.

Each is repeated after a crash: done twice, it does nothing the second time. Only what the bridge
holds is released or cancelled: an order that staff moved on meanwhile is theirs.
"""

import base64
import hmac
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, Protocol

import httpx2

_STATES: Final = """
    Alabama=AL Alaska=AK Arizona=AZ Arkansas=AR California=CA Colorado=CO Connecticut=CT Delaware=DE
    District_of_Columbia=DC Florida=FL Georgia=GA Hawaii=HI Idaho=ID Illinois=IL Indiana=IN Iowa=IA
    Kansas=KS Kentucky=KY Louisiana=LA Maine=ME Maryland=MD Massachusetts=MA Michigan=MI
    Minnesota=MN Mississippi=MS Missouri=MO Montana=MT Nebraska=NE Nevada=NV New_Hampshire=NH
    New_Jersey=NJ New_Mexico=NM New_York=NY North_Carolina=NC North_Dakota=ND Ohio=OH Oklahoma=OK
    Oregon=OR Pennsylvania=PA Rhode_Island=RI South_Carolina=SC South_Dakota=SD Tennessee=TN
    Texas=TX Utah=UT Vermont=VT Virginia=VA Washington=WA West_Virginia=WV Wisconsin=WI Wyoming=WY
"""
STATES: Final = {
    name.replace("_", " "): code for name, code in (pair.split("=") for pair in _STATES.split())
}
"""BigCommerce writes names; another one is sent as ZZ, and so the service finds it unknown."""


class Bought(NamedTuple):
    """An order as the platform has it; states have two letters."""

    number: str
    email: str
    residence: str
    """The state of the billing address."""
    state: str
    zip: str
    skus: frozenset[str]


class Refused(Exception):
    """The platform did not do it: it is tried again, and staff read why."""


class Platform(Protocol):
    def placed(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """The order of an authentic message (header names in small letters); None: it is not."""

    def read(self, order: str) -> Bought: ...
    def hold(self, order: str) -> None: ...
    def release(self, order: str) -> None: ...
    def cancel(self, order: str) -> None: ...


def _same(given: str | None, expected: str) -> bool:
    return hmac.compare_digest((given or "").encode(), expected.encode())


class _Rest:
    def __init__(self, url: str, secret: str, headers: dict[str, str]) -> None:
        if not secret:
            raise ValueError("Without a secret, anybody's message would be the platform's.")
        self.secret = secret
        # BigCommerce's document wants both in each request.
        headers |= {"Accept": "application/json", "Content-Type": "application/json"}
        self.client = httpx2.Client(base_url=url, headers=headers, timeout=10)

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
        answer = self.client.request(method, path, json=body)
        if answer.status_code >= 400:
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()


class BigCommerce(_Rest):
    """Orders V2. The webhook has the header `Authorization: Bearer <secret>`, as it was made."""

    held, released, cancelled = 12, 11, 5  # verification required, awaiting fulfilment, cancelled
    new = frozenset({1, 7, 8, 9, 11})  # pending, and awaiting payment, pickup, shipment, fulfilment

    def __init__(self, url: str, token: str, secret: str) -> None:
        super().__init__(url, secret, {"X-Auth-Token": token})

    def placed(self, headers: Mapping[str, str], body: bytes) -> str | None:
        known = _same(headers.get("authorization"), f"Bearer {self.secret}")
        return str(json.loads(body)["data"]["id"]) if known else None

    def read(self, order: str) -> Bought:
        found = self.call("GET", f"/orders/{order}")
        parcels = self.call("GET", f"/orders/{order}/shipping_addresses")
        products = self.call("GET", f"/orders/{order}/products?limit=250")
        skus = frozenset(product["sku"] for product in products)
        payer, to = found["billing_address"], parcels[0] if parcels else {}
        lives, state = (STATES.get(address.get("state", ""), "ZZ") for address in (payer, to))
        return Bought(order, payer["email"], lives, state, to.get("zip", ""), skus)

    def hold(self, order: str) -> None:
        self._move(order, self.new, self.held)

    def release(self, order: str) -> None:
        self._move(order, {self.held}, self.released)

    def cancel(self, order: str) -> None:
        self._move(order, {self.held}, self.cancelled)

    def _move(self, order: str, before: AbstractSet[int], status: int) -> None:
        if self.call("GET", f"/orders/{order}")["status_id"] in before:
            self.call("PUT", f"/orders/{order}", {"status_id": status})


class Magento(_Rest):
    """Adobe Commerce; its webhook sends `entity_id` and `Authorization: Bearer <secret>`."""

    def __init__(self, url: str, token: str, secret: str) -> None:
        super().__init__(url, secret, {"Authorization": f"Bearer {token}"})

    def placed(self, headers: Mapping[str, str], body: bytes) -> str | None:
        known = _same(headers.get("authorization"), f"Bearer {self.secret}")
        return str(int(json.loads(body)["entity_id"])) if known else None

    def read(self, order: str) -> Bought:
        found = self.call("GET", f"/V1/orders/{order}")
        (parcel, *_) = found["extension_attributes"]["shipping_assignments"]
        to = parcel["shipping"]["address"]
        skus = frozenset(item["sku"] for item in found["items"])
        lives, state = (
            address.get("region_code") or "ZZ" for address in (found["billing_address"], to)
        )
        number, email = found["increment_id"], found["customer_email"]
        return Bought(number, email, lives, state, to["postcode"], skus)

    def hold(self, order: str) -> None:
        if self._state(order) in {"new", "pending_payment", "processing"}:
            self._act(order, "hold")

    def release(self, order: str) -> None:
        if self._state(order) == "holded":
            self._act(order, "unhold")

    def cancel(self, order: str) -> None:
        """Magento cancels no held order, and none with an invoice: that is held again."""
        self.release(order)
        try:
            self._act(order, "cancel")
        except Refused:
            self.hold(order)
            raise

    def _state(self, order: str) -> str:
        return str(self.call("GET", f"/V1/orders/{order}")["state"])

    def _act(self, order: str, act: str) -> None:
        if self.call("POST", f"/V1/orders/{order}/{act}") is not True:
            raise Refused(f"order {order}: {act} is not possible")


class Shopify(_Rest):
    """Fulfilment holds of the Admin API; the webhook is `orders/create`."""

    HANDLE: Final = "countersign"
    READ: Final = """query ($id: ID!) { order(id: $id) { name email cancelledAt
        billingAddress { provinceCode } shippingAddress { provinceCode zip }
        lineItems(first: 250) { nodes { sku } }
        fulfillmentOrders(first: 50) { nodes { id status
            fulfillmentHolds { id handle heldByRequestingApp } } } } }"""
    HOLD: Final = """mutation ($id: ID!, $hold: FulfillmentOrderHoldInput!) {
        done: fulfillmentOrderHold(id: $id, fulfillmentHold: $hold) {
            userErrors { code message } } }"""
    RELEASE: Final = """mutation ($id: ID!, $holds: [ID!]) {
        done: fulfillmentOrderReleaseHold(id: $id, holdIds: $holds) { userErrors { message } } }"""
    CANCEL: Final = """mutation ($id: ID!) { done: orderCancel(orderId: $id, reason: OTHER,
        restock: true, notifyCustomer: true, refundMethod: {originalPaymentMethodsRefund: true}) {
            userErrors: orderCancelUserErrors { code message } } }"""

    def __init__(self, url: str, token: str, secret: str) -> None:
        super().__init__(url, secret, {"X-Shopify-Access-Token": token})

    def placed(self, headers: Mapping[str, str], body: bytes) -> str | None:
        mac = base64.b64encode(hmac.digest(self.secret.encode(), body, "sha256")).decode()
        known = _same(headers.get("x-shopify-hmac-sha256"), mac)
        return str(json.loads(body)["admin_graphql_api_id"]) if known else None

    def read(self, order: str) -> Bought:
        found = self._order(order)
        payer, to = found["billingAddress"] or {}, found["shippingAddress"] or {}
        skus = frozenset(item["sku"] for item in found["lineItems"]["nodes"] if item["sku"])
        lives, state = (address.get("provinceCode") or "ZZ" for address in (payer, to))
        return Bought(found["name"], found["email"] or "", lives, state, to.get("zip") or "", skus)

    def hold(self, order: str) -> None:
        parts = self._order(order)["fulfillmentOrders"]["nodes"]
        if not parts:
            raise Refused(f"{order} has no fulfilment order yet")
        for part in parts:
            if not self._held(part) and part["status"] not in {"CANCELLED", "CLOSED"}:
                hold = {"handle": self.HANDLE, "reason": "OTHER", "reasonNotes": "Legal notice"}
                self._ask(self.HOLD, id=part["id"], hold=hold)

    def release(self, order: str) -> None:
        for part in self._order(order)["fulfillmentOrders"]["nodes"]:
            if holds := self._held(part):
                self._ask(self.RELEASE, id=part["id"], holds=holds)

    def cancel(self, order: str) -> None:
        if self._order(order)["cancelledAt"] is None:
            self._ask(self.CANCEL, id=order)

    def _held(self, part: dict[str, Any]) -> list[str]:
        holds = part["fulfillmentHolds"]
        return [h["id"] for h in holds if h["heldByRequestingApp"] and h["handle"] == self.HANDLE]

    def _order(self, order: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self._ask(self.READ, id=order)["order"]
        if found is None:
            raise Refused(f"there is no order {order}")
        return found

    def _ask(self, query: str, **variables: object) -> dict[str, Any]:
        answer = self.call("POST", "/graphql.json", {"query": query, "variables": variables})
        data: dict[str, Any] = answer.get("data") or {}
        wrong = answer.get("errors") or (data.get("done") or {}).get("userErrors")
        if wrong:
            raise Refused(json.dumps(wrong))
        return data


PLATFORMS: Final[dict[str, type[BigCommerce | Magento | Shopify]]] = {
    "bigcommerce": BigCommerce,
    "magento": Magento,
    "shopify": Shopify,
}
