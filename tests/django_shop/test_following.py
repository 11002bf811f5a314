"""What a shop wants of an order meets what the service says: as a table, and with the service."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.core.cache import cache
from django.test.utils import override_settings

from countersign_django import needing, orders
from countersign_django.conf import client
from countersign_django.following import Do, Wants, follow, following
from countersign_django.models import State
from tests.django_shop.conftest import Shop
from tests.django_shop.models import Order
from tests.django_shop.test_orders import fresh, present
from tests.support.service import free_port

pytestmark = pytest.mark.long

TABLE: Final = """
        none open undecided cleared overridden refused declined expired cancelled not_needed
placed  -    -    -         release release    stop    stop     stop    stop      release
paid    hold hold hold      -       -          stop    stop     hold    hold      -
held    -    -    -         release release    stop    stop     -       -         release
shipped -    -    -         -       -          recall  -        -       -         -
over    -    end  -         -       -          -       -        -       -         -
"""


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    cache.clear()


def test_each_cell_of_the_table_has_its_consequence() -> None:
    """Status, note, mail and session follow from it; no state of the service is left out."""
    head, *rows = [line.split() for line in TABLE.strip().splitlines()]
    assert {*head} == {*State}
    assert [row[0] for row in rows] == [*Wants]
    for wants, *cells in rows:
        found = [following(Wants(wants), state) for state in map(State, head)]
        assert [do.replace("nothing", "-") for do in found] == cells, wants


def at(zip_code: str = "94105", state: str = "CA", **more: str) -> dict[str, Any]:
    return {"state": state, "zip_code": zip_code, **more}


NEVADA: Final = at("89101", "NV", residence_state="NV")


def test_an_order_that_is_no_longer_wanted_ends_its_session(shop: Shop) -> None:
    """Cancelled, refunded or deleted; a copy ends none, and nothing happens twice."""
    order = shop.order()
    session = order.checkout_session_id
    copy = Order.objects.create()
    assert follow(copy, Wants.OVER, ["accessory"], **at()) == Do.NOTHING
    assert shop.client.checkout_sessions.retrieve(session).status == "open"
    assert follow(order, Wants.OVER, ["accessory"], **at()) == Do.END
    assert shop.client.checkout_sessions.retrieve(session).status == "cancelled"
    assert follow(order, Wants.OVER, ["accessory"], **at()) == Do.NOTHING


def test_an_order_is_cancelled_while_the_service_is_away(shop: Shop) -> None:
    """Its session ends by itself, later."""
    order = shop.order()
    with override_settings(COUNTERSIGN=away()):
        assert follow(order, Wants.OVER, [], **at()) == Do.END
    assert fresh(order).state == State.OPEN


def test_a_paid_order_that_changes_is_held_until_its_own_notice(shop: Shop) -> None:
    """Its link works; changed back, it is cleared as before. Finished orders keep what they say."""
    order = shop.bought()
    assert follow(order, Wants.PAID, ["accessory"], **at(" 94105 ")) == Do.NOTHING
    assert follow(order, Wants.PAID, ["accessory", "manufacturing_machine"], **at()) == Do.HOLD
    assert follow(order, Wants.PAID, ["accessory"], **at("90210")) == Do.HOLD
    assert follow(order, Wants.HELD, ["accessory"], **at("90210")) == Do.NOTHING
    assert follow(order, Wants.SHIPPED, ["accessory"], **at("90210")) == Do.NOTHING
    assert follow(order, Wants.HELD, ["accessory"], **at()) == Do.RELEASE
    other = ["manufacturing_machine"]
    link = orders.begin(order, present(class_=other[0]), return_url=shop.url, cbid=order.cbid)
    assert link == order.notice_url
    assert follow(order, Wants.HELD, other, **at()) == Do.NOTHING
    shop.buy(order)
    assert orders.settle(order) == State.CLEARED
    assert follow(order, Wants.HELD, other, **at()) == Do.RELEASE


def test_an_order_that_needs_nothing_is_released(shop: Shop) -> None:
    """At its placing; moved to where the notice is needed, it is held, and its link works."""
    order = Order.objects.create()
    assert follow(order, Wants.PLACED, ["accessory"], **NEVADA) == Do.RELEASE
    assert (fresh(order).state, order.captured) == (State.NOT_NEEDED, 0)
    assert orders.decide(order, present()) == State.NOT_NEEDED
    with override_settings(COUNTERSIGN=away()):
        cache.clear()
        assert follow(order, Wants.PAID, ["accessory"], **NEVADA) == Do.NOTHING
        assert follow(order, Wants.PAID, ["accessory"], **at()) == Do.HOLD
    assert follow(order, Wants.PAID, ["accessory"], **at("89101", "NV")) == Do.HOLD, "who knows?"
    assert orders.begin(order, present(), return_url=shop.url) == order.notice_url
    assert follow(order, Wants.HELD, ["accessory"], **NEVADA) == Do.RELEASE
    assert (order.state, order.notice_url) == (State.NOT_NEEDED, "")


def test_the_session_for_another_address_is_ended(shop: Shop) -> None:
    order = shop.order()
    session = order.checkout_session_id
    assert follow(order, Wants.PLACED, ["accessory"], **at("90210")) == Do.NOTHING
    assert shop.client.checkout_sessions.retrieve(session).status == "cancelled"
    assert fresh(order).state == State.NONE


def test_a_copy_that_needs_nothing_has_nothing_of_the_first_order(shop: Shop) -> None:
    order = shop.bought()
    [made] = Order.objects.bulk_create(
        [
            Order(
                **{
                    field.name: getattr(order, field.name)
                    for field in Order._meta.concrete_fields
                    if field.name != "id"
                }
            )
        ]
    )
    copy = Order.objects.get(pk=made.pk)
    assert follow(copy, Wants.PLACED, ["accessory"], **NEVADA) == Do.RELEASE
    assert (copy.state, copy.ack_id, copy.clearance_id) == (State.NOT_NEEDED, "", "")


def away() -> dict[str, str]:
    return {"BASE_URL": f"http://127.0.0.1:{free_port()}", "API_KEY": "csign_sk_test_x"}


def test_an_address_is_asked_about_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a page asks; another ZIP code, residence or key is another question."""
    asked: list[object] = []

    def counted() -> object:
        asked.append(1)
        return client()

    monkeypatch.setattr(needing, "client", counted)
    for zip_code in ("89101", "89101", "89101-1234", "891011234", "89102"):
        assert orders.needs(["accessory"], **at(zip_code, "NV", residence_state="NV")) is None
    assert len(asked) == 2
    assert orders.needs(["accessory"], **at("89101", "NV")) is not None
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("state", "zip_code", "country"),
    [("", "00901", "PR"), ("", "96910", "GU"), ("", "00801", "VI"), ("x", "96799", "AS")],
)
def test_territories_are_postal_states(shop: Shop, state: str, zip_code: str, country: str) -> None:
    there = at(zip_code, state, country=country, residence_state=country)
    assert orders.needs(["accessory"], **there) is None
    assert orders.needs(["accessory"], **at("96201", "AP", residence_state="NV")) is not None


@pytest.mark.parametrize("typed", ["941051234", "94105 - 1234", " 94105\u20131234.", "94105-1234"])
def test_the_form_of_a_zip_code_is_helped(shop: Shop, typed: str) -> None:
    needed = orders.needs(["accessory"], **at(typed, " ca"))
    assert needed is not None
    assert needed.shipping_zip == "94105-1234"


def test_what_is_no_address_is_shown_with_how_one_looks(shop: Shop) -> None:
    for place in (at("9410"), at("94105", "California")):
        with pytest.raises(orders.CannotSell, match=r"once more: .*such as 94105 or 02134"):
            orders.needs(["accessory"], **place)
    with pytest.raises(orders.CannotSell, match="in the United States only"):
        orders.needs(["accessory"], **at("V5K 0A1", "BC", country="CA"))
