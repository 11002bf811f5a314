"""Sessions made from carts, on a server that has no notices but the shipped one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.clearances.test_exempt import DEALER, with_rule
from tests.http.backstage import Operator, another_deployment
from tests.http.calls import refusal, verify
from tests.support.service import running_server

CART: dict[str, Any] = {"product_classes": ["accessory"], "ship_to": {"state": "CA"}}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Give a shop of a deployment of its own: each notice is judged for a cart."""
    own = another_deployment(tmp_path_factory.mktemp("carts") / "data")
    with (
        running_server(own) as server,
        Operator(own) as operator,
        operator.vendor(server) as vendor,
        ExitStack() as opened,
    ):
        yield Shop(vendor, server, opened)


def test_a_session_made_from_a_cart_collects_exactly_what_the_cart_needs(shop: Shop) -> None:
    alone = {"notice_id": None, "cart": CART}
    made = shop.create(**alone).json()
    assert (made["collect"], made["notice_id"]) == (["identity", "acknowledgment"], "ab1263")
    cbid = verify(shop.client).json()["cbid"]
    known = shop.create(**alone, cbid=cbid).json()
    assert (known["collect"], known["notice_id"]) == (["acknowledgment"], "ab1263")


def test_unknown_requirements_of_a_cart_are_collected(shop: Shop) -> None:
    unknown = {"product_classes": ["accessory"], "ship_to": {"state": "NV"}}
    made = shop.create(notice_id=None, cart=unknown).json()
    assert made["collect"] == ["identity", "acknowledgment"]


def test_a_cart_that_needs_nothing_gets_no_session(shop: Shop) -> None:
    nothing = CART | {"ship_to": {"state": "NV"}, "residence_state": "NV"}
    response = shop.create(notice_id=None, cart=nothing)
    assert refusal(response) == (400, "invalid_request")
    assert "needs nothing" in response.json()["error"]["message"]


def test_a_cart_and_a_notice_exclude_each_other(shop: Shop) -> None:
    assert refusal(shop.create(cart=CART)) == (400, "invalid_request")


def test_an_asserted_exemption_is_kept_with_the_session_and_changes_nothing(shop: Shop) -> None:
    exemption = {"reason": "licensed dealer", "evidence_reference": "FFL 1-23"}
    buyer = shop.buyer(notice_id=None, cart=CART | {"exemption": exemption})
    found = shop.read(buyer)
    unstated = {"kind": None, "number": None, "expires_on": None}
    assert found["exemption"] == exemption | unstated
    assert found["collect"] == ["identity", "acknowledgment"]


def test_an_exempt_cart_is_cleared_without_a_notice(own: Operator, own_shop: Shop) -> None:
    """The rule waives the notice alone: the buyer is verified, and the session says why."""
    own.publish(with_rule(), reviewed=False)
    exemption = DEALER | {"expires_on": "2099-12-31"}
    asked = {"notice_id": None, "cart": CART | {"exemption": exemption}, "shipping_zip": "94110"}
    buyer = own_shop.buyer(**asked)
    assert own_shop.read(buyer)["collect"] == ["identity"]
    with Surfer(own_shop.server, buyer) as surfer:
        surfer.send(surfer.open().form, outcome="verified")
    found = own_shop.read(buyer)
    assert (found["status"], found["cleared"], found["ack_id"]) == ("completed", True, None)
    assert found["exemption"] == exemption
    clearance = own_shop.client.get(f"/v1/clearances/{found['clearance_id']}").json()
    assert [one["notice_id"] for one in clearance["exempt_from"]] == ["ab1263"]
    assert clearance["product_classes"] == ["accessory"]
    assert own_shop.read(buyer) == found


def test_an_expired_licence_collects_the_notice(own: Operator, own_shop: Shop) -> None:
    own.publish(with_rule(), reviewed=False)
    exemption = DEALER | {"expires_on": "2020-12-31"}
    found = own_shop.create(notice_id=None, cart=CART | {"exemption": exemption}).json()
    assert (found["collect"], found["notice_id"]) == (["identity", "acknowledgment"], "ab1263")
