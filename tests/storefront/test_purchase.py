"""Buying in the example shop: over HTTP, with forms, as a browser without JavaScript does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.storefront.shopper import SECRET, Shopper, Storefront, running_shop
from tests.support.service import Server, free_port

# The shop sees the HTTP interface alone, which is the same on both engines.
pytestmark = pytest.mark.parametrize("deployment", ["sqlite"], indirect=True)


@pytest.fixture
def vendor(storefront: Storefront, server: Server) -> Iterator[httpx2.Client]:
    """Give the API with the key of the shop."""
    with server.client(storefront.key) as client:
        yield client


def newest(vendor: httpx2.Client) -> dict[str, Any]:
    """The checkout session that was created last."""
    found: dict[str, Any] = vendor.get("/v1/checkout_sessions").json()["data"][0]
    return found


def buy(shopper: Shopper, *products: str, **address: str) -> str:
    """Buy for the first time, to the end; gives the title of the order's page."""
    page = shopper.identify(shopper.order(*products, **address))
    return shopper.come_back(shopper.initial(page)).heading


def test_a_purchase_is_released_after_identity_and_initials(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    assert len(shopper.open("/").having(href="/products/handguard")) == 1
    identity = shopper.order("handguard", "apron")
    assert identity.heading == "Identity check"
    done = shopper.initial(shopper.identify(identity))
    order = shopper.come_back(done)
    assert order.heading == "Paid and released"
    session = newest(vendor)
    assert (session["status"], session["cleared"]) == ("completed", True)
    assert session["ack_id"] in order.text
    assert "Jo Doe" in order.text
    assert "It is empty" in shopper.open("/cart").text
    acknowledgment = vendor.get(f"/v1/acknowledgments/{session['ack_id']}").json()
    assert acknowledgment["session_id"] == session["session_id"]
    assert acknowledgment["capture"] == "hosted"


def test_the_receipt_of_an_order_is_kept(
    shopper: Shopper, storefront: Storefront, vendor: httpx2.Client
) -> None:
    """Byte for byte, in a directory that a monitor reads."""
    assert buy(shopper, "mill") == "Paid and released"
    ack_id = newest(vendor)["ack_id"]
    session = vendor.get(f"/v1/checkout_sessions/{newest(vendor)['checkout_session_id']}").json()
    assert (storefront.receipts / f"{ack_id}.txt").read_text("utf-8") == session["receipt"]
    assert [*storefront.receipts.parent.iterdir()] == [storefront.receipts]


@pytest.mark.parametrize(
    ("product", "address"),
    [("apron", {}), ("handguard", {"state": "NV", "zip": "89101"})],
    ids=["no class", "delivered to, and living in, another state"],
)
def test_products_without_a_notice_are_released_at_once(
    shopper: Shopper, vendor: httpx2.Client, product: str, address: dict[str, str]
) -> None:
    before = vendor.get("/v1/checkout_sessions").json()
    assert shopper.order(product, **address).heading == "Paid and released"
    assert vendor.get("/v1/checkout_sessions").json() == before


def test_a_resident_of_california_needs_the_notice_wherever_it_ships(shopper: Shopper) -> None:
    page = shopper.order("handguard", state="NV", zip="89101", residence="CA")
    assert page.heading == "Identity check"


@pytest.mark.parametrize(("state", "zip_code"), [("OR", "94105"), ("WA", "90210"), ("HI", "94105")])
def test_a_parcel_to_california_needs_the_notice_whatever_the_state_says(
    shopper: Shopper, state: str, zip_code: str
) -> None:
    page = shopper.order("handguard", state=state, zip=zip_code, residence=state)
    assert page.heading == "Identity check"


def test_a_verified_buyer_is_asked_only_for_the_initials(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    assert buy(shopper, "mill") == "Paid and released"
    cbid = newest(vendor)["cbid"]
    notice = shopper.order("mill")
    assert (newest(vendor)["collect"], newest(vendor)["cbid"]) == (["acknowledgment"], cbid)
    assert shopper.come_back(shopper.initial(notice)).heading == "Paid and released"


def test_an_order_that_is_not_cleared_is_not_released(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    """The reasons are in plain words, the cart stays, and the next order verifies the buyer."""
    assert buy(shopper, "mill") == "Paid and released"
    order = shopper.come_back(shopper.initial(shopper.order("mill", zip="94107")))
    assert order.heading == "Not released"
    assert newest(vendor)["reasons"] == ["zip_mismatch"]
    assert "another ZIP code than the one on the document" in order.text
    assert "Benchtop CNC mill" in shopper.open("/cart").text
    assert shopper.follow(order, "Try again").heading == "Check out"
    # The cart is as it was.
    assert shopper.order(zip="94107").heading == "Identity check"


def test_a_buyer_who_declines_has_ordered_nothing(shopper: Shopper) -> None:
    decline = shopper.follow(shopper.order("handguard"), "Decline")
    order = shopper.come_back(shopper.send(decline, decline.form))
    assert order.heading == "You declined"
    assert "handguard" in shopper.open("/cart").text


def test_an_order_can_be_cancelled_until_it_is_decided(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    shopper.order("handguard")
    order = shopper.open(f"/orders/{newest(vendor)['session_id']}")
    assert order.heading == "Waiting for you"
    assert shopper.follow(order, "Read the notice").heading == "Identity check"
    assert shopper.send(order, order.form).heading == "Cancelled"
    assert newest(vendor)["status"] == "cancelled"
    assert shopper.send(order, order.form).heading == "Cancelled"


def test_an_order_runs_out_of_time(shopper: Shopper, vendor: httpx2.Client) -> None:
    shopper.order("handguard")
    order = f"/orders/{newest(vendor)['session_id']}"
    vendor.post("/v1/test/clock/advance", json={"seconds": 3600}).raise_for_status()
    assert shopper.open(order).heading == "Out of time"


def test_the_return_address_decides_nothing(shopper: Shopper, vendor: httpx2.Client) -> None:
    shopper.order("handguard")
    order = newest(vendor)["session_id"]
    forged = f"/orders/{order}?ack_id=ack_1&clearance_id=clr_1&cbid=cbid_1&status=completed"
    assert shopper.open(forged).heading == "Waiting for you"


def test_an_order_is_seen_by_its_visitor_alone(
    shopper: Shopper, storefront: Storefront, vendor: httpx2.Client
) -> None:
    shopper.order("handguard")
    other = storefront.shopper()
    with other.client:
        other.add("apron")
        for path in ("", "/notice"):
            page = other.open(f"/orders/{newest(vendor)['session_id']}{path}")
            assert (page.status, page.heading) == (404, "Not found")


def test_a_barrel_is_refused_before_anything_is_asked(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    before = vendor.get("/v1/checkout_sessions").json()
    page = shopper.order("barrel")
    assert (page.status, page.heading) == (422, "Check out")
    assert "a licensed dealer has to hand it over" in page.text
    assert vendor.get("/v1/checkout_sessions").json() == before


def test_two_classes_are_one_order(shopper: Shopper) -> None:
    """One notice is about both."""
    page = shopper.order("mill", "handguard")
    assert page.status == 200
    assert "one by one" not in page.text


def test_a_product_can_be_taken_out_of_the_cart(shopper: Shopper) -> None:
    shopper.order("mill", "handguard", zip="9410")
    cart = shopper.open("/cart")
    (remove,) = [form for form in cart.forms if form.fields["product"] == "mill"]
    assert "mill" not in shopper.send(cart, remove).text


def test_errors_in_an_address_are_shown_at_their_field(shopper: Shopper) -> None:
    page = shopper.order("apron", zip="9410", state="", city="<b>")
    assert page.status == 422
    assert page.links == page.links | {"ZIP code: five digits, such as 94105.": "#zip"}
    assert len(page.having(**{"aria-invalid": "true"})) == 2
    assert page.form.fields["city"] == "<b>"
    assert "<b>" not in page.response.text


def test_the_page_with_the_component_lets_in_the_service_alone(
    shopper: Shopper, server: Server, vendor: httpx2.Client
) -> None:
    page = shopper.order("handguard", how="here")
    assert page.heading == "One more step"
    assert page.policy["script-src"] == page.policy["connect-src"] == server.url
    assert "'unsafe" not in page.response.headers["content-security-policy"]
    (script,) = [have for tag, have in page.elements if tag == "script"]
    (element,) = [have for tag, have in page.elements if tag == "countersign-notice"]
    session = newest(vendor)
    assert session["origin"] == shopper.shop
    token = {"Authorization": f"Bearer {element['client-token']}", "Origin": shopper.shop}
    with server.client(None, **token) as browser:
        kind = browser.get(script["src"]).headers["content-type"]
        current = browser.get("/v1/checkout_sessions/current").json()
    assert kind.startswith("text/javascript")
    assert current["checkout_session_id"] == session["checkout_session_id"]
    # Without JavaScript there is a link to the page of the service.
    assert shopper.follow(page, "Read the notice").heading == "Identity check"
    shopper.open("/")
    assert "script-src" not in shopper.open("/").policy


def test_a_form_of_another_site_is_refused(shopper: Shopper) -> None:
    foreign = {"Origin": "https://evil.example"}
    url = f"{shopper.shop}/cart"
    assert shopper.client.post(url, data={"product": "mill"}, headers=foreign).status_code == 403
    assert "It is empty" in shopper.open("/cart").text


def _message(secret: str, session_id: str) -> tuple[bytes, dict[str, str]]:
    event = {"type": "checkout_session.completed", "data": {"checkout_session_id": session_id}}
    body = json.dumps(event).encode()
    stamp = str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"evt_1.{stamp}.".encode() + body, hashlib.sha256)
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return body, {
        "webhook-id": "evt_1",
        "webhook-timestamp": stamp,
        "webhook-signature": signature,
    }


def test_a_webhook_releases_the_order_of_a_buyer_who_never_comes_back(
    shopper: Shopper, vendor: httpx2.Client
) -> None:
    """A wrong signature changes nothing; nor does a right one about a session that is open."""
    identity = shopper.order("handguard")
    session = newest(vendor)["checkout_session_id"]
    url = f"{shopper.shop}/webhooks"
    body, headers = _message(SECRET, session)
    assert httpx2.post(url, content=body, headers=headers).status_code == 200
    assert "handguard" in shopper.open("/cart").text
    shopper.initial(shopper.identify(identity))
    forged, wrong = _message("whsec_" + "d3Jvbmcx" * 4, session)
    assert httpx2.post(url, content=forged, headers=wrong).status_code == 400
    assert httpx2.post(url, content=b"{}", headers=headers).status_code == 400
    assert "handguard" in shopper.open("/cart").text
    body, headers = _message(SECRET, session)
    assert httpx2.post(url, content=body, headers=headers).status_code == 200
    assert "It is empty" in shopper.open("/cart").text


def test_without_the_service_nothing_is_sold(storefront: Storefront, tmp_path: Path) -> None:
    nothing = f"http://127.0.0.1:{free_port()}"
    with running_shop(nothing, storefront.key, tmp_path) as shop:
        shopper = shop.shopper()
        with shopper.client:
            page = shopper.order("handguard")
            assert (page.status, page.heading) == (503, "Please wait")
            assert "handguard" in shopper.open("/cart").text
        assert "no_answer" in shop.log.read_text()
        assert storefront.key not in shop.log.read_text()


def test_addresses_of_orders_are_not_logged(storefront: Storefront, shopper: Shopper) -> None:
    shopper.order("handguard")
    assert not re.search("orders|cst_|Jo Doe", storefront.log.read_text())
