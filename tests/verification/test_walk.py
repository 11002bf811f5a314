"""No route ever returns personal data, whoever asks, and whatever the provider sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import httpx2
import pytest

from countersign.base.values import rfc3339
from countersign.core.access.key import VENDOR_SCOPES, Scope
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import admin
from countersign.operate import bootstrap
from countersign.server.app import route_table
from countersign_simulators.registry import SIMULATORS
from tests.http.backstage import make_client
from tests.support import postgres
from tests.support.privacy import personal, personal_words
from tests.verification.conftest import MakeVendor
from tests.verification.live import LiveVendor
from tests.verification.test_nothing_personal import Search

pytestmark = pytest.mark.long
ONE: Final = pytest.mark.one_engine

ENDPOINTS: Final = "/v1/webhook_endpoints"
ENDPOINT: Final = f"{ENDPOINTS}/{{endpoint_id}}"
FULFILMENT: Final = "/v1/clearances/{clearance_id}/fulfilment"
OVERRIDE: Final = "/v1/clearances/{clearance_id}/override"
PARTS: Final = ("verified", "underage", "pending", "other_subject")
CHECKOUTS: Final = "/v1/checkout_sessions"
CURRENT: Final = f"{CHECKOUTS}/current"
SUCCEEDS_FOR_NO_ONE: Final = {
    ("POST", "/v1/provider_webhooks/{path*}"),
    ("POST", FULFILMENT),
    ("POST", OVERRIDE),
    ("POST", f"{CURRENT}/acknowledge"),
    # A page needs a cookie, a form the codes of its page, and a logo an account that has one.
    ("GET", "/c/{path*}"),
    ("POST", "/c/{path*}"),
    ("POST", "/buyer"),
    ("POST", "/buyer/sign-in"),
    ("GET", "/logos/{path*}"),
    *(("OPTIONS", CURRENT + action) for action in ("", "/events", "/acknowledge", "/decline")),
}
"""Routes whose success needs more than a key: a signature, a reviewed notice, initials, an account
that allows keys manual overrides; or that succeed with 204."""
NOWHERE: Final = (
    "/v1/buyers/{cbid}",
    "/v1/buyers/{cbid}/evidence",
    "/v1/buyers/{cbid}/verifications",
    "/v1/verifications",
    "/v1/verifications/{verification_id}",
    "/v1/verifications/{verification_id}/evidence",
    "/v1/acknowledgments/{verification_id}",
    "/v1/acknowledgments/{verification_id}/proof",
    "/v1/acknowledgments/{verification_id}/certificate",
    "/v1/acknowledgments/{verification_id}/dossier",
    "/v1/acknowledgments/{verification_id}/dossier?disclose=cbid",
    "/v1/clearances/{verification_id}/dossier",
    "/v1/audit",
    "/v1/accounts",
)
"""Addresses that could have evidence; all must be empty."""


@dataclass(frozen=True, kw_only=True)
class Walker:
    """A caller who tries every route, and the responses."""

    name: str
    client: httpx2.Client
    search: Callable[[bytes], set[str]]
    succeeded: set[tuple[str, str]] = field(default_factory=set)
    found: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, route: str = "", body: object = None) -> httpx2.Response:
        """Send a request, and look for people in everything that comes back."""
        # Acknowledgments and clearances of the walk may not be sealed yet.
        waits = {"Prefer": "wait=10"}
        answer = self.client.request(method, path, json=body, headers=waits)
        words = self.search(answer.content) | self.search(str(answer.headers).encode())
        self.found.extend(f"{word} in {method} {path}, for {self.name}" for word in words)
        if answer.status_code == httpx2.codes.OK:
            self.succeeded.add((method, route))
        return answer


@dataclass(frozen=True)
class Known:
    """Identifiers to request, by the name of the parameter."""

    values: dict[str, list[str]]

    def filled(self, path: str) -> Iterator[str]:
        """The path, once with each value of its parameter."""
        name = path.partition("{")[2].partition("}")[0]
        if not name:
            yield path
        for value in self.values[name if "*" not in name else path] if name else ():
            yield path.replace(f"{{{name}}}", value)


def bodies(known: Known, vendor: LiveVendor) -> dict[str, list[dict[str, Any]]]:
    """Bodies for each route; for a live key, and for a test key if different."""
    [account_id] = known.values["account_id"]
    cbids, now = known.values["cbid"], rfc3339(datetime.now(UTC))
    asked = [
        {
            "provider_identity_session_id": session.session_id,
            "shipping_zip": session.shipping_zip,
            "subject_reference": session.subject_reference,
        }
        for session in map(vendor.part, PARTS)
    ]
    order = {"session_id": "cs", "order_reference": "1", "shipping_zip": "94110"}
    initials: dict[str, Any] = {"initials_per_line": ["A"] * 4, "session_id": "cs"}
    return {
        "/v1/buyers/verify": [*asked, *(body | {"test_mode": True} for body in asked)],
        "/v1/notices/{notice_id}/acknowledge": [initials | {"cbid": cbid} for cbid in cbids],
        "/v1/clearances": [
            order | {"ack_id": ack_id, "cbid": cbid}
            for ack_id in known.values["ack_id"]
            for cbid in cbids
        ],
        "/v1/buyers/{cbid}/review": [{"decision": "dismiss", "reason": "case 7"}],
        FULFILMENT: [{"carrier": "UPS"}],
        OVERRIDE: [{"reason": "case 7", "claimed_user": "user 7"}],
        "/v1/requirements": [{"product_classes": ["accessory"], "ship_to": {"state": "CA"}}],
        CHECKOUTS: [
            {"return_url": "https://shop.example/", "notice_id": "ab1263", "cbid": cbid} | order
            for cbid in cbids
        ]
        + [{"return_url": "https://shop.example/", "collect": ["identity"]} | order],
        f"{CHECKOUTS}/{{checkout_session_id}}/cancel": [{}],
        "/c/{path*}": [{}],
        "/buyer": [{}],
        "/buyer/sign-in": [{}],
        f"{CURRENT}/events": [{"events": []}],
        f"{CURRENT}/acknowledge": [{}],
        f"{CURRENT}/decline": [{}],
        ENDPOINTS: [{"url": "https://127.0.0.1:1/"}],
        ENDPOINT: [{"description": account_id}],
        f"{ENDPOINT}/rotate_secret": [{}],
        f"{ENDPOINT}/resend": [{"event_id": id_} for id_ in known.values["event_id"]],
        f"{ENDPOINT}/recover": [{"since": now}],
        f"{ENDPOINT}/send_example": [{"type": "buyer.verified"}],
        "/v1/test/clock/advance": [{"seconds": 1}],
        "/v1/test/buyers": [{"cbid": cbid, "status": "revoked"} for cbid in cbids],
        "/v1/test/events": [{"type": "buyer.verified"}],
        "/v1/test/fault": [{"fault": "misconfigured"}],
        "/v1/provider_webhooks/{path*}": [{}],
    }


def prepared(vendor: LiveVendor) -> Known:
    """Have something of everything, in both modes, and gather its identifiers."""
    cbids = [vendor.verify(vendor.part(part)).json()["cbid"] for part in PARTS[:-1]]
    simulated = vendor.test.post("/v1/buyers/verify", json={"test_mode": True}).json()["cbid"]
    initials = {"initials_per_line": ["A"] * 4, "session_id": "cs", "cbid": simulated}
    ack = vendor.test.post("/v1/notices/ab1263/acknowledge", json=initials).json()["ack_id"]
    found: dict[str, list[str]] = {"clearance_id": [], "event_id": [], "endpoint_id": []}
    for client, cbid in ((vendor.live, cbids[0]), (vendor.test, simulated)):
        order = {"ack_id": ack, "cbid": cbid, "session_id": "cs", "shipping_zip": "94110"}
        order |= {"order_reference": "1"}
        cleared = client.post("/v1/clearances", json=order).json()
        found["clearance_id"].append(cleared["clearance_id"])
        made = client.post(ENDPOINTS, json={"url": "https://127.0.0.1:1/"}).json()
        found["endpoint_id"].append(made["endpoint_id"])
        postgres.settle()
        answer = client.get("/v1/events", params={"limit": 100}).json()["data"]
        found["event_id"] += [event["id"] for event in answer]
    checkout = {"return_url": "https://shop.example/", "notice_id": "ab1263", "session_id": "cs"}
    begun = [vendor.test.post(CHECKOUTS, json=checkout).json() for _ in range(2)]
    verified = {"return_url": "https://shop.example/", "session_id": "cs", "shipping_zip": "94110"}
    session = vendor.test.post(CHECKOUTS, json=verified | {"collect": ["identity"]}).json()
    found["checkout_session_id"] = [one["checkout_session_id"] for one in (begun[0], session)]
    found["order_id"] = [ack, *found["clearance_id"]]
    found["client_token"] = [begun[1]["client_token"]]
    vendor.operator.act(lambda opened: opened.log.seal.settle())
    logs = ["live/1", "test/1"]
    tiles = ["checkpoint", *(f"tile/entries/000.p/{n}" for n in range(1, 20))]
    return Known(
        found
        | {
            "account_id": [vendor.account_id],
            "cbid": [*cbids, simulated],
            "ack_id": [ack],
            "notice_id": ["ab1263"],
            "verification_id": [row["id"] for row in vendor.rows("verifications")],
            "/v1/log/{path*}": [f"{log}/{tile}" for log in logs for tile in tiles],
            "/docs/{path*}": ["integrate"],
            "/c/{path*}": [*found["checkout_session_id"], *found["client_token"]],
            "/logos/{path*}": ["0" * 64],
            "/v1/provider_webhooks/{path*}": [f"{vendor.playing.name}/{vendor.account_id}"],
        }
    )


WITHOUT_CONSOLE = [route for route in route_table() if not route.console]
"""Responses of a server without a console; people's views are walked in `tests/people`."""


def walk(walker: Walker, known: Known, vendor: LiveVendor) -> None:
    """Try every route; deleting ones come last."""
    bodies_of = bodies(known, vendor)
    for route in sorted(WITHOUT_CONSOLE, key=lambda route: route.method == "DELETE"):
        sends = route.method in {"POST", "PATCH"}
        for path in known.filled(route.path):
            for body in bodies_of[route.path] if sends else (None,):
                answer = walker.ask(route.method, path, route.path, body)
                assert answer.status_code < 500 or answer.status_code == 503, answer.text
    for guess in NOWHERE:
        for path in known.filled(guess):
            assert walker.ask("GET", path).status_code in {401, 404}, path


@pytest.mark.parametrize(
    "provider",
    [
        # One provider is enough to test differences between engines, and for the first stage.
        pytest.param(
            name, marks=pytest.mark.both_engines if name == "stripe" else [ONE, pytest.mark.later]
        )
        for name in SIMULATORS
    ],
)
def test_no_route_returns_personal_data(vendor_with: MakeVendor, provider: str) -> None:
    """Not to the account itself, nor to another, a test key, a buyer, or somebody without a key."""
    vendor = vendor_with(provider)
    other = vendor_with(vendor.playing)
    known = prepared(vendor)
    forms = Search(personal_words())

    @cache  # most of the bytes are of pages that are the same for everybody
    def search(content: bytes) -> set[str]:
        return forms(content) | personal(content.decode("utf-8", "replace"))

    [token] = known.values["client_token"]
    scopes = [*VENDOR_SCOPES, Scope.BUYERS_REVIEW, Scope.CLEARANCES_OVERRIDE]
    review_key = vendor.operator.key(vendor.account_id, "live", scopes=scopes).token
    with (
        make_client(vendor.server) as stranger,
        make_client(vendor.server, token) as browser,
        make_client(vendor.server, review_key) as reviewer,
    ):
        # With more scopes than the own live key: it may call every operation that that one may.
        own = [("the own reviewer", reviewer)]
        others = [
            ("the own live key", vendor.live),
            ("another account", other.live),
            ("its test key", other.test),
            ("a stranger", stranger),
            ("a buyer's browser", browser),
            ("the own test key", vendor.test),
        ]
        # Refusals that depend on the caller do not depend on the provider.
        walkers = [
            Walker(name=name, client=client, search=search)
            for name, client in (others if provider == "stripe" else []) + own
        ]
        for walker in walkers:
            walk(walker, known, vendor)
    assert [found for walker in walkers for found in walker.found] == []
    if provider == "stripe":
        # It has been everywhere, and behind every door.
        reached = set().union(*(walker.succeeded for walker in walkers))
        routes = {(route.method, route.path) for route in WITHOUT_CONSOLE}
        assert routes - reached <= SUCCEEDS_FOR_NO_ONE | {("GET", "/.well-known/security.txt")}
    assert {row["cbid"] for row in vendor.rows("verifications")} >= set(known.values["cbid"][:1])


def test_the_walk_would_find_a_person(vendor: LiveVendor) -> None:
    """The operators' view is full of the searched strings."""
    cbid = vendor.verified(vendor.part("verified"))

    async def shown(opened: bootstrap.Deployment) -> list[Any]:
        found = await admin.evidence(opened.buyers, DEPLOYMENT, cbid, "a test")
        return [one.content for one in found.checks]

    [content] = vendor.operator.act(shown)
    assert personal(json.dumps(content["read"]))
    assert Search(personal_words())(json.dumps(content["read"]).encode())
