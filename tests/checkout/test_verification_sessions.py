"""Verification sessions over HTTP: what a vendor creates, reads and cancels."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.checkout.buyer import NOTICE, SHOP, Buyer, Shop
from tests.checkout.surfer import Surfer
from tests.http.backstage import make_client
from tests.http.calls import refusal

PATH = "/v1/buyers/verification_sessions"
FIELDS = [
    *("verification_session_id", "livemode", "session_id", "provider_identity_session_id"),
    *("status", "cbid", "reasons", "url", "return_url", "locale"),
    *("created_at", "expires_at", "ended_at"),
]


def create(client: httpx2.Client, **changes: object) -> httpx2.Response:
    body = {"return_url": f"{SHOP}/back", "session_id": "cart-7", "shipping_zip": "94111"}
    return client.post(PATH, json=body | changes)


def made(client: httpx2.Client, **changes: object) -> dict[str, Any]:
    """A new session, as the response that created it has it."""
    response = create(client, **changes)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def read(client: httpx2.Client, session: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{PATH}/{session['verification_session_id']}").json()
    return found


def test_a_new_session_is_open_and_has_a_link_and_the_providers_session(shop: Shop) -> None:
    session = made(shop.client)
    assert list(session) == FIELDS
    assert (session["status"], session["cbid"], session["reasons"]) == ("open", None, [])
    id_ = session["verification_session_id"]
    assert session["provider_identity_session_id"] == f"hosted_{id_}"
    assert "/c/cst_test_" in session["url"]
    assert read(shop.client, session) == session | {"url": None}


def test_a_session_shows_the_buyer_that_it_was_given(shop: Shop) -> None:
    """In the response that creates it and later, as a checkout session does."""
    cbid = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
    session = made(shop.client, cbid=cbid)
    assert session["cbid"] == cbid
    assert read(shop.client, session)["cbid"] == cbid


def test_a_repeated_creation_gets_the_same_link(shop: Shop) -> None:
    headers = {"Idempotency-Key": "cart-7"}
    body = {"return_url": f"{SHOP}/back", "session_id": "cart-7", "shipping_zip": "94111"}
    first, second = (shop.client.post(PATH, json=body, headers=headers) for _ in "ab")
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"


def test_a_cancelled_session_is_closed(shop: Shop) -> None:
    session = made(shop.client)
    path = f"{PATH}/{session['verification_session_id']}/cancel"
    ended = shop.client.post(path, json={}).json()
    assert (ended["status"], ended["reasons"]) == ("cancelled", [])
    assert read(shop.client, session) == ended
    assert refusal(shop.client.post(path, json={})) == (409, "checkout_session_closed")
    [event] = shop.client.get("/v1/events").json()["data"]
    assert event["type"] == "verification_session.cancelled"
    assert event["data"] == {"verification_session_id": session["verification_session_id"]}


def test_a_session_expires_by_the_clock_of_the_sandbox(shop: Shop) -> None:
    session = made(shop.client, expires_in_seconds=60)
    shop.client.post("/v1/test/clock/advance", json={"seconds": 61})
    found = read(shop.client, session)
    assert (found["status"], found["ended_at"]) == ("expired", found["expires_at"])


def test_another_account_finds_nothing(shop: Shop, other_shop: Shop) -> None:
    session = made(shop.client)
    path = f"{PATH}/{session['verification_session_id']}"
    assert refusal(other_shop.client.get(path)) == (404, "not_found")
    assert refusal(other_shop.client.post(f"{path}/cancel", json={})) == (404, "not_found")
    assert read(shop.client, session)["status"] == "open"


def test_checkout_sessions_and_verification_sessions_are_apart(shop: Shop) -> None:
    """Each is found at its own address alone, and the lists of the one have none of the other."""
    session, buyer = made(shop.client), shop.buyer()
    own = session["verification_session_id"]
    for path in (f"/v1/checkout_sessions/{own}", f"{PATH}/{buyer.id}"):
        assert refusal(shop.client.get(path)) == (404, "not_found")
        assert refusal(shop.client.post(f"{path}/cancel", json={})) == (404, "not_found")
    listed = shop.client.get("/v1/checkout_sessions").json()["data"]
    assert [one["checkout_session_id"] for one in listed] == [buyer.id]


def test_the_component_has_nothing_to_show_for_it(shop: Shop) -> None:
    token = made(shop.client)["url"].rpartition("/")[2]
    with make_client(shop.server, token) as browser:
        response = browser.get("/v1/checkout_sessions/current")
    assert refusal(response) == (401, "invalid_client_token")


@pytest.mark.parametrize(
    "changes",
    [
        {"return_url": "javascript:alert(1)"},
        {"return_url": f"{SHOP}/#fragment"},
        {"shipping_zip": "9411"},
        {"shipping_zip": None},
        {"session_id": None},
        {"expires_in_seconds": 59},
        {"locale": "fr"},
        {"notice_id": NOTICE},
    ],
)
def test_what_cannot_be_done_is_refused(shop: Shop, changes: dict[str, Any]) -> None:
    assert refusal(create(shop.client, **changes)) == (400, "invalid_request")


def test_live_sessions_need_a_provider_and_a_registered_origin(shop: Shop) -> None:
    live = Shop(shop.vendor, shop.server, shop.opened, "live")
    assert refusal(create(live.client))[0] == 409
    body = {"collect": ["identity"], "shipping_zip": "94111", "notice_id": None}
    assert refusal(live.create(**body)) == (409, "verification_not_configured")


def test_a_buyer_is_verified_on_the_hosted_page(shop: Shop) -> None:
    """And goes back with the id of the session alone."""
    session = made(shop.client)
    link = {"client_token": session["url"].rpartition("/")[2]}
    with make_client(shop.server) as nobody:
        browser = shop.opened.enter_context(Surfer(shop.server, Buyer(link, nobody)))
        page = browser.send(browser.open().form, outcome="verified")
    found = read(shop.client, session)
    assert (found["status"], found["reasons"]) == ("completed", [])
    assert found["cbid"].startswith("cbid_test_")
    id_ = session["verification_session_id"]
    back = f"{SHOP}/back?verification_session_id={id_}"
    assert back in page.links.values()
