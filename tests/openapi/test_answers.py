"""Real answers keep to the document: a walk through every operation and every status of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from countersign.core.webhooks.model import ENDPOINTS_MAX
from tests.openapi.every_scope import key_of_a_person
from tests.support import postgres
from tests.support.document import Document, Operation, committed_document
from tests.support.service import SERVES, Deployment, Server, running_server

pytestmark = pytest.mark.both_engines

CHECKOUTS = "/v1/checkout_sessions"
CURRENT = f"{CHECKOUTS}/current"

NOTICE = "/v1/notices/ab1263"
ACKNOWLEDGE = f"{NOTICE}/acknowledge"
VERIFY = "/v1/buyers/verify"
INITIALS: dict[str, Any] = {"initials_per_line": ["JD"] * 4}
SANDBOX: dict[str, Any] = {"test_mode": True, "shipping_zip": "94111"}
REQUIREMENTS = "/v1/requirements"
REVIEWS = "/v1/buyers/reviews"
CART: dict[str, Any] = {"product_classes": ["barrel"], "ship_to": {"state": "CA"}}
CLEARANCES = "/v1/clearances"
SHIPPED: dict[str, Any] = {"carrier": "UPS"}
OVERRIDE: dict[str, Any] = {"reason": "case 4712", "claimed_user": "shop user 17"}
EVENTS = "/v1/events"
LONG_AGO = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
"""The identifier of an event older than the kept ones."""
ENDPOINTS = "/v1/webhook_endpoints"
ENDPOINT: dict[str, Any] = {
    "url": "https://shop.example.com/events",
    "event_types": ["buyer.verified"],
}
BY_CHANCE = {"idempotency_in_progress", "evidence_damaged", "secret_not_repeated"}
CLOCK, FAULT = "/v1/test/clock", "/v1/test/fault"
UNKNOWN_KEY = "csign_sk_test_unknown"
# Statuses that need trouble inside the service, or more requests than the rate limit lets through.
TROUBLE = {429, 500, 503}

# Evidence is pending only for moments, or while sealing is held up.
SEALING_TROUBLE = {409}
EVIDENCE = {
    f"getAcknowledgment{what}": what.lower() for what in ("Proof", "Certificate", "Dossier")
}


class Exchange(NamedTuple):
    """A request and its answer."""

    method: str
    url: str
    answer: httpx2.Response


class Walk:
    """Sends requests, and stores the responses."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self.exchanges: list[Exchange] = []

    def __call__(
        self,
        key: str | None,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        **request: Any,  # noqa: ANN401 - as in httpx
    ) -> httpx2.Response:
        """Send a request with this key."""
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        answer = self._client.request(method, url, headers=sent | dict(headers or {}), **request)
        self.exchanges.append(Exchange(method, url, answer))
        return answer


def test_every_answer_of_a_walk_through_all_operations_is_in_the_document(
    server: Server, deployment: Deployment, account: str
) -> None:
    document = Document(committed_document())
    with server.client() as client:
        walk = Walk(client)
        walk_through(walk, document, deployment, account)
    audit = json.loads(deployment.run("audit", "--json").stdout)
    assert SERVES not in {entry["actor"] for entry in audit}, "a key or a person did that"

    faults = [
        f"{e.method} {e.url} {e.answer.status_code}: {fault}"
        for e in walk.exchanges
        for fault in document.answer_faults(e.method, e.url, e.answer)
    ]
    assert faults == []

    seen: dict[str, set[int]] = defaultdict(set)
    for exchange in walk.exchanges:
        operation = document.operation(exchange.method, exchange.url)
        status = exchange.answer.status_code
        # A method that a path lacks belongs to none of its operations.
        siblings = [o.id for o in document.of_vendors() if o.path == operation.path]
        for name in siblings if status == 405 else [operation.id]:
            seen[name].add(status)
    for operation in document.of_vendors():
        listed = {int(status) for status in operation.definition["responses"]}
        is_evidence = operation.id in {*EVIDENCE, "getClearanceDossier"}
        trouble = TROUBLE | (SEALING_TROUBLE if is_evidence else set())
        # The notice was stopped while the buyer read it.
        trouble |= {409} if operation.id == "getCurrentCheckoutSession" else set()
        trouble |= only_by_chance(operation.definition["responses"])
        assert listed - trouble <= seen[operation.id], operation.id


def test_an_answer_at_the_rate_limit_is_in_the_document(tmp_path: Path) -> None:
    document = Document(committed_document())
    own = Deployment(data_dir=tmp_path / "data")
    own.run("init")
    with running_server(own, RATE_LIMIT="1/60") as limited, limited.client() as client:
        walk = Walk(client)
        key = key_of_a_person(own, own.account("limited"))
        walk(key, "GET", "/v1/notices")
        for operation in document.of_vendors():
            if operation.definition["security"] == [{"key": []}]:
                url = operation.path.replace("{", "").replace("}", "")
                assert walk(key, operation.method, url).status_code == 429
    for exchange in walk.exchanges:
        assert "RateLimit-Policy" in exchange.answer.headers
        assert document.answer_faults(*exchange) == []


def walk_through(walk: Walk, document: Document, deployment: Deployment, account: str) -> None:
    """Every operation, with every kind of request that it answers in a way of its own."""
    key = key_of_a_person(deployment, account)
    narrow = deployment.key(account, "test", "--scope", "events:read")
    narrow_else = deployment.key(account, "test", "--scope", "notices:read")
    live = deployment.key(account, "live")

    deployment.run("accounts", "clearance", "set", account, "--overrides-per-day", "9")

    receipt = walk(key, "POST", ACKNOWLEDGE, json=INITIALS).json()
    buyer = walk(key, "POST", VERIFY, json=SANDBOX).json()
    walk_evidence(walk, deployment, key, receipt["ack_id"])
    clearance = walk_clearances(walk, deployment, key, buyer["cbid"])
    walk(key, "GET", "/v1/orders?limit=1")
    walk(key, "GET", "/v1/orders?after=unknown")
    walk(key, "GET", "/v1/orders/unknown")
    urls = {
        **walk_webhooks(walk, key),
        **walk_checkout(walk, key, live),
        **walk_helpers(walk, key, live, buyer["cbid"]),
        **walk_reviews(walk, key),
        "listNotices": "/v1/notices",
        "getNotice": NOTICE,
        "listNoticeVersions": f"{NOTICE}/versions",
        "acknowledgeNotice": ACKNOWLEDGE,
        "listAcknowledgments": "/v1/acknowledgments",
        "getAcknowledgment": f"/v1/acknowledgments/{receipt['ack_id']}",
        **{
            name: f"/v1/acknowledgments/{receipt['ack_id']}/{what}"
            for name, what in EVIDENCE.items()
        },
        "getLogPolicy": "/v1/log/policy?mode=test",
        "verifyBuyer": VERIFY,
        "getRequirements": REQUIREMENTS,
        "getBuyerStatus": f"/v1/buyers/{buyer['cbid']}/status",
        "clearOrder": CLEARANCES,
        "listClearances": CLEARANCES,
        "getClearance": clearance,
        "listOrders": "/v1/orders",
        "listRequests": "/v1/requests?failed=true",
        "getOrder": f"/v1/orders/{receipt['ack_id']}",
        "getClearanceDossier": f"{clearance}/dossier",
        "fulfilOrder": f"{clearance}/fulfilment",
        "overrideClearance": f"{clearance}/override",
        "getHealth": "/healthz",
        "getReadiness": "/readyz",
    }
    for operation in document.of_vendors():
        walk_strangers(walk, operation, urls[operation.id], key, (narrow, narrow_else))

    walk(None, "GET", "/v1/log/policy?mode=both")
    for method, url, request in REQUESTS:
        walk(key, method, url, **request)
    for key_ in (key, live):
        walk(key_, "POST", REQUIREMENTS, json=CART | {"exemption": {"reason": "dealer"}})
    walk(key, "POST", REQUIREMENTS, content=b"{}", headers={"Content-Type": "text/plain"})
    walk(key, "POST", REQUIREMENTS, **LARGE)
    walk(key, "GET", NOTICE, headers={"If-None-Match": "*"})
    for method, url in [("GET", NOTICE), ("POST", ACKNOWLEDGE), ("POST", VERIFY)]:
        walk(live, method, url, json=SANDBOX)
    walk(live, "POST", VERIFY, json={"provider_identity_session_id": "s", "shipping_zip": "94111"})
    for url, body in [(ACKNOWLEDGE, INITIALS), (VERIFY, SANDBOX), (REQUIREMENTS, CART)]:
        for sent in (body, body, body | {"x": 1}):
            walk(key, "POST", url, json=sent, headers={"Idempotency-Key": "one"})
    for session in sandbox_sessions():
        walk(key, "POST", VERIFY, json=SANDBOX | {"provider_identity_session_id": session})
        found = walk.exchanges[-1].answer.json()
        if "cbid" in found:
            walk(key, "GET", f"/v1/buyers/{found['cbid']}/status")


def walk_strangers(
    walk: Walk, operation: Operation, url: str, key: str, narrow: Sequence[str]
) -> None:
    """Unauthorised callers, and refusals for everyone."""
    if operation.method == "GET":
        walk(key, "GET", url)
    walk(key, "PUT", url)
    if operation.definition["security"] == [{"key": []}]:
        walk(None, operation.method, url)
        walk(UNKNOWN_KEY, operation.method, url)
        for other in narrow:
            walk(other, operation.method, url + "?unheard_of=1")
        walk(key, operation.method, url + "?unheard_of=1", json=INITIALS)


def walk_evidence(walk: Walk, deployment: Deployment, key: str, ack_id: str) -> None:
    """Files of an acknowledgment, of an erased one, and of an unknown one."""
    erased = walk(key, "POST", ACKNOWLEDGE, json=INITIALS).json()["ack_id"]
    deployment.run("erase", erased, "--yes")
    for name, what in EVIDENCE.items():
        path = f"/v1/acknowledgments/{ack_id}/{what}"
        walk(key, "GET", path, headers={"Prefer": "wait=10"})
        walk(key, "GET", f"/v1/acknowledgments/unknown/{what}")
        if name != "getAcknowledgmentProof":
            walk(key, "GET", f"{path}?disclose=initials")
            walk(key, "GET", f"/v1/acknowledgments/{erased}/{what}?disclose=cbid")


def walk_reviews(walk: Walk, key: str) -> dict[str, str]:
    """A buyer who waits for a review, and decisions; returns the paths of the operations."""
    body = SANDBOX | {"provider_identity_session_id": "test_failed", "shipping_zip": "94999"}
    path = f"/v1/buyers/{walk(key, 'POST', VERIFY, json=body).json()['cbid']}/review"
    walk(key, "GET", f"{REVIEWS}?status=failed&limit=1")
    walk(key, "GET", f"{REVIEWS}?status=verified")
    accepting = {"decision": "accept_zip", "zip": "94110", "document": "d", "reason": "r"}
    dismissing = {"decision": "dismiss", "reason": "r"}
    walk(key, "POST", path, json=accepting)
    walk(key, "POST", path, json=accepting | {"zip": None})
    for sent in (dismissing, dismissing, dismissing | {"reason": "another"}):
        walk(key, "POST", path, json=sent, headers={"Idempotency-Key": "reviewing"})
    walk(key, "POST", path, json=dismissing)
    walk(key, "POST", path, content=b"{}", headers={"Content-Type": "text/plain"})
    walk(key, "POST", path, **LARGE)
    return {"listBuyerReviews": REVIEWS, "reviewBuyer": path}


def walk_clearances(walk: Walk, deployment: Deployment, key: str, cbid: str) -> str:
    """Orders that are cleared and not cleared, reported and closed; gives the path of one."""
    initials = INITIALS | {"session_id": "cs"}
    ack_id = walk(key, "POST", ACKNOWLEDGE, json=initials).json()["ack_id"]
    order = {"ack_id": ack_id, "cbid": cbid, "session_id": "cs", "shipping_zip": "94111"}
    answer = walk(key, "POST", CLEARANCES, json=order).json()
    assert answer["cleared"] is True, answer
    wrong = {"cbid": "unknown", "product_class": "accessory", "session_id": "cs_wrong"}
    wrong["ack_id"] = walk(
        key, "POST", ACKNOWLEDGE, json=INITIALS | {"session_id": "cs_wrong"}
    ).json()["ack_id"]
    refused = walk(key, "POST", CLEARANCES, json=order | wrong).json()
    path = f"{CLEARANCES}/{answer['clearance_id']}"
    fulfilment = f"{path}/fulfilment"
    walk(key, "POST", f"{CLEARANCES}/{refused['clearance_id']}/fulfilment", json=SHIPPED)
    walk_overrides(walk, key, path, f"{CLEARANCES}/{refused['clearance_id']}")
    for sent in (SHIPPED, SHIPPED, {"carrier": "USPS"}):
        walk(key, "POST", fulfilment, json=sent, headers={"Idempotency-Key": "closing"})
        walk(key, "POST", CLEARANCES, json=order | sent, headers={"Idempotency-Key": "asking"})
    named = walk(key, "POST", ACKNOWLEDGE, json=initials | {"order_reference": "1"}).json()
    walk(key, "POST", CLEARANCES, json=order | {"ack_id": named["ack_id"], "order_reference": "2"})
    for goods in ("barrel", "toy"):
        sent = order | {"product_class": goods}
        walk(key, "POST", CLEARANCES, json=sent, headers={"Idempotency-Key": "classes"})
    walk(key, "POST", fulfilment, json=SHIPPED)
    walk(key, "GET", path)
    walk(key, "GET", f"{path}/dossier", headers={"Prefer": "wait=10"})
    walk(key, "GET", f"{path}/dossier?disclose=unheard-of")
    walk(key, "GET", f"{CLEARANCES}/unknown/dossier")
    walk(key, "GET", f"{CLEARANCES}?ack_id={ack_id}&limit=1")
    walk(key, "GET", f"{CLEARANCES}?after=unknown")
    walk(key, "GET", f"{CLEARANCES}/unknown")
    for url in (CLEARANCES, fulfilment):
        walk(key, "POST", url, json={})
        walk(key, "POST", url, content=b"{}", headers={"Content-Type": "text/plain"})
        walk(key, "POST", url, **LARGE)
    walk(key, "POST", f"{CLEARANCES}/unknown/fulfilment", json=SHIPPED)
    deployment.run("erase", ack_id, "--yes")
    walk(key, "POST", fulfilment, json=SHIPPED)
    deployment.run("erase", refused["clearance_id"], "--yes")
    walk(key, "POST", f"{CLEARANCES}/{refused['clearance_id']}/override", json=OVERRIDE)
    return path


def walk_overrides(walk: Walk, key: str, cleared: str, refused: str) -> None:
    """A refusal that is overridden, and what is not."""
    for path in (refused, cleared, f"{CLEARANCES}/unknown"):
        walk(key, "POST", f"{path}/override", json=OVERRIDE)
    for body in (OVERRIDE, OVERRIDE | {"claimed_user": "another"}, {}):
        walk(key, "POST", f"{refused}/override", json=body, headers={"Idempotency-Key": "hand"})
    walk(key, "POST", f"{refused}/override", **LARGE)
    walk(key, "POST", f"{refused}/override", content=b"{}", headers={"Content-Type": "text/plain"})


def walk_checkout(walk: Walk, key: str, live: str) -> dict[str, str]:
    """Checkout sessions, and acts of a browser with their token; returns their paths."""
    made = {"return_url": "https://shop.example/", "session_id": "cs", "notice_id": "ab1263"}

    def begun(**more: object) -> tuple[str, str]:
        found = walk(key, "POST", CHECKOUTS, json=made | more).json()
        return f"{CHECKOUTS}/{found['checkout_session_id']}", found["client_token"]

    path, token = begun(origin="https://shop.example")
    for sent in (made, made, made | {"locale": "es"}):
        walk(key, "POST", CHECKOUTS, json=sent, headers={"Idempotency-Key": "checkout"})
    walk(key, "POST", CHECKOUTS, json=made | {"notice_id": "unknown"})
    for sent in (made, made | {"order_reference": "1"}):
        walk(live, "POST", CHECKOUTS, json=sent)
    walk(key, "GET", f"{CHECKOUTS}/unknown")
    walk(key, "POST", f"{CHECKOUTS}/unknown/cancel", json={})
    notice = walk(token, "GET", CURRENT).json()["notice"]
    walk(token, "GET", f"{CURRENT}?unheard_of=1")
    done: dict[str, Any] = {
        "initials_per_line": ["AB"] * len(notice["bullets"]),
        "notice_version": notice["version"],
        "notice_digest": notice["digest"],
        "agreement": True,
        "consent": True,
    }
    bodies: dict[str, Any] = {"events": {"events": []}, "acknowledge": done, "decline": {}}
    foreign = {"Origin": "https://evil.example"}
    walk(token, "GET", CURRENT, headers=foreign)
    walk(None, "GET", CURRENT)
    for name, body in bodies.items():
        url = f"{CURRENT}/{name}"
        walk(None, "POST", url, json=body)
        walk(token, "POST", url, json=body, headers=foreign)
        walk(token, "POST", url, json={"x": 1})
        walk(token, "POST", url, content=b"{}", headers={"Content-Type": "text/plain"})
        walk(token, "POST", url, **LARGE)
    url = f"{CURRENT}/acknowledge"
    for changes in ({"initials_per_line": ["AB"]}, {"notice_version": "0"}):
        walk(token, "POST", url, json=done | changes)
    walk(token, "POST", f"{CURRENT}/events", json={"events": [{"event": "reviewed"}]})
    walk(token, "POST", url, json=done)
    walk(token, "POST", url, json=done | {"initials_per_line": ["XY"] * len(notice["bullets"])})
    walk(token, "POST", f"{CURRENT}/events", json=bodies["events"])
    walk(token, "POST", f"{CURRENT}/decline", json={})
    walk(begun()[1], "POST", f"{CURRENT}/decline", json={})
    other, _ = begun()
    nothing: dict[str, Any] = {}
    for body in (nothing, nothing, {"x": 1}):
        walk(key, "POST", f"{other}/cancel", json=body, headers={"Idempotency-Key": "cancel"})
    walk(key, "POST", f"{other}/cancel", json={})
    for where in (CHECKOUTS, f"{other}/cancel"):
        walk(key, "POST", where, content=b"{}", headers={"Content-Type": "text/plain"})
        walk(key, "POST", where, **LARGE)
    walk(key, "GET", f"{CHECKOUTS}?session_id=cs&limit=1")
    walk(key, "GET", f"{CHECKOUTS}?after=unknown")
    return {
        "createCheckoutSession": CHECKOUTS,
        "listCheckoutSessions": CHECKOUTS,
        "getCheckoutSession": path,
        "cancelCheckoutSession": f"{path}/cancel",
        "getCurrentCheckoutSession": CURRENT,
        "claimCheckoutEvents": f"{CURRENT}/events",
        "acknowledgeCurrentCheckoutSession": url,
        "declineCurrentCheckoutSession": f"{CURRENT}/decline",
    }


def walk_webhooks(walk: Walk, key: str) -> dict[str, str]:
    """Events, and their endpoints; returns the path of each operation."""
    postgres.settle()
    event = walk(key, "GET", f"{EVENTS}?limit=1").json()["data"][0]
    walk(key, "GET", f"{EVENTS}?after={LONG_AGO}")
    for unknown in (f"{EVENTS}/unknown", f"{ENDPOINTS}/unknown", f"{ENDPOINTS}/unknown/deliveries"):
        walk(key, "GET", unknown)
    made = walk(key, "POST", ENDPOINTS, json=ENDPOINT).json()
    endpoint = f"{ENDPOINTS}/{made['endpoint_id']}"
    since = {"since": event["created_at"]}
    acts: dict[str, dict[str, Any]] = {
        "": {"disabled": False},
        "/rotate_secret": {"overlap_seconds": 60},
        "/resend": {"event_id": event["id"]},
        "/recover": since,
        "/send_example": {"type": "buyer.verified"},
    }
    for act, body in acts.items():
        method = "POST" if act else "PATCH"
        walk_body(walk, key, method, endpoint + act, body)
        walk(key, method, f"{ENDPOINTS}/unknown{act}", json=body)
    walk_body(walk, key, "POST", ENDPOINTS, ENDPOINT)
    doomed = walk(key, "POST", ENDPOINTS, json=ENDPOINT).json()["endpoint_id"]
    for _ in range(2):
        walk(key, "DELETE", f"{ENDPOINTS}/{doomed}")
    for _ in range(ENDPOINTS_MAX):
        walk(key, "POST", ENDPOINTS, json=ENDPOINT)
    walk(key, "PATCH", endpoint, json={"disabled": True})
    for act in ("/resend", "/recover"):
        walk(key, "POST", endpoint + act, json=acts[act])
    return {
        "listEvents": EVENTS,
        "getEvent": f"{EVENTS}/{event['id']}",
        "createWebhookEndpoint": ENDPOINTS,
        "listWebhookEndpoints": ENDPOINTS,
        **{f"{name}WebhookEndpoint": endpoint for name in ("get", "change", "delete")},
        "rotateWebhookSecret": f"{endpoint}/rotate_secret",
        "listWebhookDeliveries": f"{endpoint}/deliveries",
        "resendEvent": f"{endpoint}/resend",
        "recoverWebhooks": f"{endpoint}/recover",
        "sendWebhookExample": f"{endpoint}/send_example",
    }


def walk_helpers(walk: Walk, key: str, live: str, cbid: str) -> dict[str, str]:
    """Acts of a test key; returns the path of each operation."""
    helpers: dict[str, dict[str, Any]] = {
        "/v1/test/clock/advance": {"seconds": 60},
        "/v1/test/buyers": {"cbid": cbid, "status": "verified"},
        "/v1/test/events": {"type": "clearance.closed"},
        "/v1/test/fault": {"fault": "timeout", "calls": 1},
    }
    for url, body in helpers.items():
        walk_body(walk, key, "POST", url, body)
        walk(live, "POST", url, json=body)
    walk(key, "POST", "/v1/test/buyers", json={"cbid": "unknown", "status": "verified"})
    for url in (FAULT, CLOCK):
        walk(key, "GET", url)
        walk(key, "DELETE", url)
        for method in ("GET", "DELETE"):
            walk(live, method, url)
    return {
        "getTestClock": CLOCK,
        "resetTestClock": CLOCK,
        "advanceTestClock": f"{CLOCK}/advance",
        "moveTestBuyer": "/v1/test/buyers",
        "triggerEvent": "/v1/test/events",
        "getTestFault": FAULT,
        "planTestFault": FAULT,
        "clearTestFault": FAULT,
    }


def walk_body(walk: Walk, key: str, method: str, url: str, body: Mapping[str, Any]) -> None:
    """This body, another one under its key, and three that cannot be read."""
    for sent in (body, {**body, "x": 1}):
        walk(key, method, url, json=sent, headers={"Idempotency-Key": "one"})
    walk(key, method, url, json=body)
    walk(key, method, url, json=[])
    walk(key, method, url, content=b"{}", headers={"Content-Type": "text/plain"})
    walk(key, method, url, **LARGE)


def only_by_chance(responses: Mapping[str, Any]) -> set[int]:
    """409, if only a concurrent request, another key, or damage can cause it."""
    media = responses.get("409", {}).get("content", {}).get("application/json", {})
    examples = {*media.get("examples", {})}
    return {409} if examples and examples <= BY_CHANCE else set()


def sandbox_sessions() -> Iterator[str]:
    """The session ids that play a part in the sandbox."""
    yield from (f"test_{part}" for part in PARTS)


PARTS = (
    "pending",
    "requires_input",
    "failed",
    "underage",
    "zip_mismatch",
    "expired",
    "revoked",
    "session_not_found",
    "provider_unavailable",
)
LARGE: Mapping[str, Any] = {
    "content": b" " * 65_537,
    "headers": {"Content-Type": "application/json"},
}
REQUESTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("GET", "/v1/notices/unknown", {}),
    ("GET", "/v1/notices/ab1263?version=unknown", {}),
    ("GET", "/v1/notices/unknown/versions", {}),
    ("GET", "/v1/notices?limit=0", {}),
    ("GET", f"{NOTICE}/versions?after=unknown", {}),
    ("POST", "/v1/notices/unknown/acknowledge", {"json": INITIALS}),
    ("POST", ACKNOWLEDGE, {"json": INITIALS | {"notice_version": "older"}}),
    ("POST", ACKNOWLEDGE, {"json": {"initials_per_line": ["JD"]}}),
    ("POST", ACKNOWLEDGE, {"json": {"initials_per_line": ["JD", " ", "JD", "JD"]}}),
    ("POST", ACKNOWLEDGE, {"json": INITIALS | {"ip": "localhost"}}),
    ("POST", ACKNOWLEDGE, {"content": b"{}", "headers": {"Content-Type": "text/plain"}}),
    ("POST", ACKNOWLEDGE, LARGE),
    ("GET", "/v1/acknowledgments?limit=1&cbid=%00", {}),
    ("GET", "/v1/acknowledgments?limit=1", {}),
    ("GET", "/v1/acknowledgments?accepted_after=yesterday", {}),
    ("GET", "/v1/acknowledgments/unknown", {}),
    ("POST", VERIFY, {"json": {}}),
    ("POST", VERIFY, {"json": {"test_mode": True, "shipping_zip": "9411"}}),
    ("POST", VERIFY, {"content": b"{}"}),
    ("POST", VERIFY, LARGE),
    ("GET", "/v1/buyers/unknown/status", {}),
)
