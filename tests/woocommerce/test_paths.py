"""Nothing is paid before the order is cleared: in each release, with each kind of table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.woocommerce.conftest import GATEWAYS, Browser, Order, Shop, offered
from tests.woocommerce.parcels import PARCELS
from tests.woocommerce.paths import PATHS, Attempt, unpaid

pytestmark = [pytest.mark.shops, pytest.mark.long, pytest.mark.one_engine]

TABLES = {"tables": "yes", "posts": "no"}


@pytest.fixture(scope="module", params=[*TABLES, "oldest"])
def place(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Each kind of shop: orders in tables of their own, orders as posts, the oldest release."""
    if request.param == "oldest":
        yield request.getfixturevalue("old_shop")
        return
    shop: Shop = request.getfixturevalue("shop")
    with shop.options({"tests_tables": TABLES[request.param]}):
        yield shop


@pytest.fixture(scope="module")
def staff(place: Shop) -> Iterator[Browser]:
    """Somebody who may edit orders."""
    made = place.browser()
    with made.client:
        made.log_in("a_shop_manager", "p")
        yield made


@pytest.mark.parametrize("name", PATHS)
def test_no_way_pays_an_uncleared_order(place: Shop, staff: Browser, name: str) -> None:
    """No gateway is asked for the money, and the order is neither processing nor completed."""
    gateway = GATEWAYS[list(PATHS).index(name) % len(GATEWAYS)]
    buyer = place.browser()
    with buyer.client:
        unpaid(PATHS[name](Attempt(shop=place, buyer=buyer, staff=staff, gateway=gateway)))


@pytest.mark.parametrize("name", PARCELS)
def test_no_parcel_leaves_after_a_yes_became_a_no(place: Shop, staff: Browser, name: str) -> None:
    """The service is asked when an order is completed, even by another program."""
    buyer = place.browser()
    with buyer.client:
        PARCELS[name](Attempt(shop=place, buyer=buyer, staff=staff, gateway="cod"))


def test_no_gateway_was_used_for_an_order_without_a_clearance(place: Shop) -> None:
    """All orders of the earlier tests, including those unknown to a path."""
    code = """$wrong = array();
        foreach (wc_get_orders(array('type' => 'shop_order', 'limit' => -1)) as $order) {
            if ($order->get_meta('_tests_taken') && ! $order->get_meta('_countersign')
                && \\Countersign\\WooCommerce\\Orders::is_gated($order)) {
                $wrong[] = $order->get_id();
            }
        }
        return $wrong;"""
    assert place.wp.php(code) == []


@dataclass(frozen=True)
class Way:
    """How an order is placed and paid."""

    where: str
    checkout: str
    buyer: str
    gateway: str


WAYS = (
    Way("tables", "classic", "guest", "cod"),
    Way("tables", "blocks", "account", "bacs"),
    Way("posts", "classic", "account", "bacs"),
    Way("posts", "blocks", "guest", "cod"),
    Way("oldest", "classic", "account", "cod"),
    Way("oldest", "blocks", "guest", "bacs"),
)
"""Each value of a column is with each of every other column."""


def test_each_pair_of_ways_is_walked() -> None:
    """So any fault that needs two of them together is found by one walk."""
    rows = [(w.where, w.checkout, w.buyer, w.gateway) for w in WAYS]
    for i in range(4):
        for j in range(i):
            pairs = {(row[i], row[j]) for row in rows}
            assert len(pairs) == len({row[i] for row in rows}) * len({row[j] for row in rows})


def _place_order(shop: Shop, buyer: Browser, way: Way) -> tuple[Order, str]:
    if way.checkout == "classic":
        return shop.ordered(buyer)
    buyer.put_in_cart(shop.product())
    answer = buyer.store(payment="countersign").json()
    return shop.order(id=answer["order_id"]), answer["payment_result"]["redirect_url"]


@pytest.mark.parametrize("way", [0, 1])
def test_a_cleared_order_is_paid_and_completed(
    place: Shop, request: pytest.FixtureRequest, way: int
) -> None:
    """By both checkouts, guests and accounts, with two gateways."""
    where = request.node.callspec.params["place"]
    chosen = [one for one in WAYS if one.where == where][way]
    buyer = place.browser()
    with buyer.client:
        if chosen.buyer == "account":
            name = f"buyer_{where}"
            place.wp.php("wp_create_user($n, 'p', $n . '@x.example'); return 1;", n=name)
            buyer.log_in(name, "p")
        order, link = _place_order(place, buyer, chosen)
        assert link.startswith(place.server.url)
        assert offered(buyer.client.get(order.url).text) == {"countersign"}
        page = buyer.back(buyer.finish(link))
        assert offered(page) == set(GATEWAYS)
        assert "order has been received" in buyer.pay(order.url, chosen.gateway)
    paid = {"cod": "processing", "bacs": "on-hold"}[chosen.gateway]
    assert order.see("status", "state", "taken") == (paid, "cleared", 1)
    for status in ("processing", "completed"):
        order.set_status(status)
        assert order.status == status
    assert not re.search("Do not ship", order.notes)
