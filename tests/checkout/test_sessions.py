"""Checkout sessions over HTTP: a vendor creates, reads and cancels them; rights of tokens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.checkout.buyer import NOTICE, SHOP, Buyer, Shop, wanted
from tests.docs.generated import COMPONENT
from tests.http.backstage import make_client
from tests.http.calls import refusal, verify

FIELDS = [
    *("checkout_session_id", "livemode", "status", "session_id"),
    *("order_reference", "collect", "notice_id", "cbid"),
    *(
        "provider_identity_session_id",
        "identity_status",
        "ack_id",
        "receipt",
        "clearance_id",
        "cleared",
        "reasons",
        "exemption",
        "return_url",
        "origin",
        "locale",
        "url",
    ),
    *("client_token", "created_at", "expires_at", "ended_at"),
]


def test_a_new_session_is_open_and_has_a_link_and_a_token(shop: Shop) -> None:
    made = shop.create().json()
    assert list(made) == FIELDS
    assert (made["status"], made["collect"]) == ("open", ["acknowledgment"])
    assert made["url"].endswith(f"/c/{made['client_token']}")
    assert made["client_token"].startswith("cst_test_")


def test_link_and_token_are_not_shown_again(shop: Shop) -> None:
    buyer = shop.buyer()
    found = shop.read(buyer)
    assert (found["url"], found["client_token"]) == (None, None)
    assert found == buyer.session | {"url": None, "client_token": None}


def test_a_repeated_creation_gets_the_same_link(shop: Shop) -> None:
    headers = {"Idempotency-Key": "cart-7"}
    first, second = (
        shop.client.post("/v1/checkout_sessions", json=wanted(), headers=headers) for _ in "ab"
    )
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
    assert len(shop.client.get("/v1/checkout_sessions").json()["data"]) == 1


def test_initials_on_every_line_complete_the_session(shop: Shop) -> None:
    buyer = shop.buyer()
    ended = buyer.acknowledge().json()
    assert (ended["status"], ended["step"]) == ("completed", None)
    found = shop.read(buyer)
    assert (found["status"], found["ack_id"]) == ("completed", ended["ack_id"])
    acknowledgment = shop.client.get(f"/v1/acknowledgments/{found['ack_id']}").json()
    assert (acknowledgment["capture"], acknowledgment["session_id"]) == ("hosted", "cart-7")
    assert acknowledgment["notice_version_source"] == "asserted"
    assert acknowledgment["process"]["checkout_session"] == buyer.id
    assert shop.events(buyer) == ["checkout_session.completed"]


def test_the_process_separates_observations_from_claims(shop: Shop) -> None:
    buyer = shop.buyer(origin=SHOP, locale="es")
    current = buyer.current()
    claims = [{"line": 1, "event": "shown"}, {"line": 1, "event": "initialed"}]
    view = {"width": 360, "height": 640}
    assert buyer.send("events", {"events": claims, "viewport": view}).json() == {}
    ack_id = buyer.acknowledge(surface_digest="ab" * 32).json()["ack_id"]
    process = shop.client.get(f"/v1/acknowledgments/{ack_id}").json()["process"]
    assert process["surface"] == "component"
    assert (process["origin"], process["locale"]) == (SHOP, "es")
    assert (process["script"], process["viewport"]) == (True, view)
    assert process["rendered_digest"] == "ab" * 32
    assert [(one["line"], one["event"]) for one in process["claimed"]] == [
        (1, "shown"),
        (1, "initialed"),
    ]
    assert len(process["lines"]) == len(current["notice"]["bullets"])
    assert process["agreement"] == current["agreement"]
    assert process["consent"] == current["consent"] == current["words"]["consent"]
    assert (process["binding"], process["reviewed_at"]) == ("none", None)


def test_the_return_address_carries_the_id_of_the_session_alone(shop: Shop) -> None:
    """Also where a buyer is known and the order is decided: addresses stay in many places."""
    cbid = verify(shop.client, shipping_zip="94111").json()["cbid"]
    for given in ({}, {"cbid": cbid, "shipping_zip": "94111", "product_class": "accessory"}):
        buyer = shop.buyer(**given)
        assert buyer.current()["return_url"] is None
        ended = buyer.acknowledge().json()
        assert ended["return_url"] == f"{SHOP}/back?cart=7&checkout_session_id={buyer.id}"
        assert "cbid" not in ended


def test_an_order_is_decided_if_the_facts_suffice(shop: Shop) -> None:
    cbid = verify(shop.client, shipping_zip="94111").json()["cbid"]
    buyer = shop.buyer(cbid=cbid, shipping_zip="94111", product_class="accessory")
    ended = buyer.acknowledge().json()
    found = shop.read(buyer)
    assert (found["cleared"], found["reasons"]) == (True, [])
    assert ended["status"] == "completed"
    clearance = shop.client.get(f"/v1/clearances/{found['clearance_id']}").json()
    assert (clearance["cleared"], clearance["ack_id"]) == (True, found["ack_id"])


def test_an_order_that_may_not_ship_has_its_reasons(shop: Shop) -> None:
    cbid = verify(shop.client, shipping_zip="94111").json()["cbid"]
    buyer = shop.buyer(cbid=cbid, shipping_zip="10001")
    assert buyer.acknowledge().status_code == 200
    found = shop.read(buyer)
    assert (found["cleared"], found["reasons"]) == (False, ["zip_mismatch"])


def test_the_same_initials_sent_again_get_the_same_response(shop: Shop) -> None:
    buyer = shop.buyer()
    notice = buyer.current()["notice"]
    body = {
        "initials_per_line": ["AB"] * len(notice["bullets"]),
        "notice_version": notice["version"],
        "notice_digest": notice["digest"],
        "agreement": True,
        "consent": True,
    }
    with ThreadPoolExecutor(4) as pool:
        responses = [*pool.map(lambda _: buyer.send("acknowledge", body), range(4))]
    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["ack_id"] for response in responses}) == 1
    others = body | {"initials_per_line": ["XY"] * len(notice["bullets"])}
    assert refusal(buyer.send("acknowledge", others)) == (409, "checkout_session_closed")
    found = shop.client.get("/v1/acknowledgments").json()["data"]
    assert len(found) == 1


def test_a_buyer_may_decline(shop: Shop) -> None:
    buyer = shop.buyer()
    assert buyer.decline().json()["status"] == "declined"
    assert buyer.decline().json()["status"] == "declined"
    assert (shop.read(buyer)["status"], shop.events(buyer)) == (
        "declined",
        ["checkout_session.declined"],
    )
    assert _late(buyer) == (409, "checkout_session_closed")


def test_a_cancelled_session_collects_no_initials(shop: Shop) -> None:
    buyer = shop.buyer()
    address = f"/v1/checkout_sessions/{buyer.id}/cancel"
    assert shop.client.post(address, json={}).json()["status"] == "cancelled"
    assert refusal(shop.client.post(address, json={})) == (409, "checkout_session_closed")
    assert buyer.current()["status"] == "cancelled"
    assert _late(buyer) == (409, "checkout_session_closed")
    assert shop.events(buyer) == ["checkout_session.cancelled"]


def test_a_session_expires_by_the_clock_of_the_sandbox(shop: Shop) -> None:
    buyer = shop.buyer(expires_in_seconds=60)
    shop.client.post("/v1/test/clock/advance", json={"seconds": 61})
    assert buyer.current()["status"] == "expired"
    found = shop.read(buyer)
    assert (found["status"], found["ended_at"]) == ("expired", found["expires_at"])
    assert _late(buyer) == (409, "checkout_session_closed")


def _late(buyer: Buyer) -> tuple[int, str]:
    """The response to initials after the end."""
    body = {
        "initials_per_line": ["AB"] * 4,
        "notice_version": "2026-01-01",
        "notice_digest": "0" * 64,
        "agreement": True,
        "consent": True,
    }
    return refusal(buyer.send("acknowledge", body))


@pytest.mark.parametrize("name", ["agreement", "consent"])
def test_without_agreement_and_consent_nothing_is_recorded(shop: Shop, name: str) -> None:
    buyer = shop.buyer()
    changes: dict[str, Any] = {name: False}
    assert refusal(buyer.acknowledge(**changes)) == (400, "invalid_request")
    assert shop.read(buyer)["status"] == "open"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"initials": ["AB"]}, (422, "initials_count_mismatch")),
        ({"initials": ["AB", " ", "AB", "AB"]}, (422, "empty_initials")),
        ({"notice_version": "1999"}, (409, "notice_version_mismatch")),
        ({"notice_digest": "0" * 64}, (409, "notice_version_mismatch")),
    ],
)
def test_initials_are_judged_like_any_others(
    shop: Shop, changes: dict[str, Any], expected: tuple[int, str]
) -> None:
    buyer = shop.buyer()
    assert refusal(buyer.acknowledge(**changes)) == expected
    assert shop.read(buyer)["status"] == "open"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("return_url", "javascript:alert(1)"),
        ("return_url", "ftp://shop.example/"),
        ("return_url", "https://user@shop.example/"),
        ("return_url", "https://shop.example\\@evil.example/"),
        ("return_url", "https:///path"),
        ("return_url", "//shop.example/"),
        ("return_url", "https://shop.example:99999/"),
        ("return_url", "https://shop.example/#fragment"),
        ("origin", "https://shop.example/path"),
        ("origin", "null"),
        ("notice_id", None),
        ("collect", []),
        ("collect", ["acknowledgment", "acknowledgment"]),
        ("collect", ["everything"]),
        ("expires_in_seconds", 59),
        ("expires_in_seconds", 86401),
        ("product_class", "unheard_of"),
        ("shipping_zip", "9411"),
        ("locale", "fr"),
        ("url", "https://shop.example"),
    ],
)
def test_a_session_that_could_mislead_is_refused(shop: Shop, field: str, value: object) -> None:
    response = shop.create(**{field: value})
    assert refusal(response) == (400, "invalid_request"), response.text
    assert field in response.json()["error"]["message"]


def test_a_notice_that_does_not_exist_is_not_found(shop: Shop) -> None:
    assert refusal(shop.create(notice_id="nothing")) == (404, "notice_not_found")


def test_identity_comes_first_for_any_order(shop: Shop) -> None:
    buyer = shop.buyer(collect=["acknowledgment", "identity"])
    current = buyer.current()
    assert (current["steps"], current["step"]) == (["identity", "acknowledgment"], "identity")
    assert current["notice"] is None
    assert _late(buyer) == (409, "checkout_session_closed")


def test_a_token_works_for_its_own_session_alone(shop: Shop, other_shop: Shop) -> None:
    buyer, other = shop.buyer(), other_shop.buyer()
    assert buyer.current()["checkout_session_id"] == buyer.id
    assert other.current()["checkout_session_id"] == other.id
    own = other_shop.client.get(f"/v1/checkout_sessions/{buyer.id}")
    assert refusal(own) == (404, "not_found")
    cancel = other_shop.client.post(f"/v1/checkout_sessions/{buyer.id}/cancel", json={})
    assert refusal(cancel) == (404, "not_found")


def test_a_token_opens_nothing_else_and_a_key_is_no_token(shop: Shop) -> None:
    buyer = shop.buyer()
    assert refusal(buyer.client.get(f"/v1/notices/{NOTICE}")) == (401, "invalid_api_key")
    listed = buyer.client.get("/v1/checkout_sessions")
    assert refusal(listed) == (401, "invalid_api_key")
    current = shop.client.get("/v1/checkout_sessions/current")
    assert refusal(current) == (401, "invalid_client_token")
    with make_client(shop.server) as stranger:
        nothing = stranger.get("/v1/checkout_sessions/current")
        assert refusal(nothing) == (401, "invalid_client_token")
    token = buyer.session["client_token"]
    with make_client(shop.server, token[:-1] + ("0" if token[-1] != "0" else "1")) as guess:
        assert refusal(guess.get("/v1/checkout_sessions/current")) == (401, "invalid_client_token")


def test_only_the_page_of_the_sessions_origin_may_ask(shop: Shop) -> None:
    buyer = shop.buyer(origin=SHOP)
    response = buyer.client.get("/v1/checkout_sessions/current")
    assert response.headers["access-control-allow-origin"] == SHOP
    assert "access-control-allow-credentials" not in response.headers
    for origin in ("https://evil.example", "http://shop.example", f"{SHOP}:8443", "null"):
        foreign = buyer.client.get("/v1/checkout_sessions/current", headers={"Origin": origin})
        assert refusal(foreign) == (403, "origin_not_allowed"), origin
        assert "access-control-allow-origin" not in foreign.headers
    without = shop.buyer()
    asked = without.client.get("/v1/checkout_sessions/current", headers={"Origin": SHOP})
    assert refusal(asked) == (403, "origin_not_allowed")


def test_a_refusal_can_be_read_by_the_page_that_asked(shop: Shop) -> None:
    buyer = shop.buyer(origin=SHOP)
    refused = buyer.acknowledge(["AB"])
    assert refusal(refused) == (422, "initials_count_mismatch")
    assert refused.headers["access-control-allow-origin"] == SHOP
    path, headers = "/v1/checkout_sessions/current", {"Origin": SHOP}
    with make_client(shop.server, "cst_test_nothing") as stranger:
        unknown = stranger.get(path, headers=headers)
    assert refusal(unknown) == (401, "invalid_client_token")
    assert unknown.headers["access-control-allow-origin"] == SHOP


def test_any_page_can_load_the_component(shop: Shop) -> None:
    """Its bytes are checked against a hash, so the page has to be allowed to see them."""
    with make_client(shop.server) as stranger:
        file = stranger.get("/component/v1/countersign-notice.js")
        again = stranger.get(file.url, headers={"If-None-Match": file.headers["etag"]})
    assert file.headers["content-type"] == "text/javascript; charset=utf-8"
    assert file.headers["access-control-allow-origin"] == "*"
    assert file.content == COMPONENT.read_bytes()
    assert again.status_code == 304


def test_a_browser_may_send_a_preflight(shop: Shop) -> None:
    buyer = shop.buyer(origin=SHOP)
    response = buyer.client.options("/v1/checkout_sessions/current/acknowledge")
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-headers"] == "authorization, content-type"


def test_sessions_are_listed_newest_first_by_page_and_by_the_vendors_own_name(shop: Shop) -> None:
    ids = [shop.buyer(session_id=f"cart-{number % 2}").id for number in range(5)]
    found: list[str] = []
    cursor = None
    while True:
        query = {"limit": "2"} | ({"after": cursor} if cursor else {})
        page = shop.client.get("/v1/checkout_sessions", params=query).json()
        found += [row["checkout_session_id"] for row in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == ids[::-1]
    own = shop.client.get("/v1/checkout_sessions", params={"session_id": "cart-1"}).json()["data"]
    assert [row["checkout_session_id"] for row in own] == [ids[3], ids[1]]


def test_live_sessions_return_only_to_registered_origins(shop: Shop) -> None:
    live = Shop(shop.vendor, shop.server, shop.opened, "live")
    refused = refusal(live.create(order_reference="1001"))
    assert refused in {(409, "origin_not_registered"), (409, "notice_not_reviewed")}
    assert refusal(live.create(collect=["identity"])) == (409, "verification_not_configured")


def test_a_session_without_initials_is_not_shown_as_completed_by_claims(shop: Shop) -> None:
    buyer = shop.buyer()
    buyer.current()
    claims = [{"line": number, "event": "initialed"} for number in range(1, 5)]
    assert buyer.send("events", {"events": claims}).status_code == 200
    assert shop.read(buyer)["status"] == "open"


def test_a_line_counts_as_shown_when_the_notice_was_served_not_when_it_was_initialed(
    shop: Shop,
) -> None:
    buyer = shop.buyer()
    notice = buyer.current()["notice"]
    shop.client.post("/v1/test/clock/advance", json={"seconds": 60})
    body = {
        "initials_per_line": ["AB"] * len(notice["bullets"]),
        "notice_version": notice["version"],
        "notice_digest": notice["digest"],
        "agreement": True,
        "consent": True,
        "surface_digest": "ab" * 32,
    }
    ack_id = buyer.send("acknowledge", body).json()["ack_id"]
    process = shop.client.get(f"/v1/acknowledgments/{ack_id}").json()["process"]
    for line in process["lines"]:
        assert line["shown_at"] == process["opened_at"] < line["initialed_at"]
