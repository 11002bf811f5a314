"""The order is shown to its buyer, and is nowhere else: in no answer, record, event or log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.http.backstage import Operator
from tests.http.calls import refusal

Surf = Callable[..., Surfer]
EN = WORDS["en"]
SECRET = "Handguard <b>Ω-4711</b> & co"
ORDER = {"lines": [{"text": SECRET, "amount": "189.00"}], "currency": "USD"}


def test_the_order_is_shown_as_text_until_the_notice_is_acknowledged(surf: Surf) -> None:
    surfer = surf(order=ORDER, shipping_zip="94105", collect=["identity", "acknowledgment"])
    page = surfer.open()
    for _ in range(2):
        assert (SECRET in page.text, "$189.00" in page.text) == (True, True)
        assert "<b>Ω" not in page.response.text
        assert "94105" in page.text
        page = surfer.send(page.form)
    review = surfer.initial(page)
    assert SECRET in review.text
    done = surfer.agree(review)
    for last in (done, surfer.follow(done, EN["copy_link"])):
        assert "Handguard" not in last.response.text


def test_a_session_without_an_order_shows_none(surf: Surf) -> None:
    assert EN["order_title"] not in surf().open().text


def test_two_orders_are_not_mixed_up(surf: Surf) -> None:
    """Equal pages are cached once; the buyer's own data is not cached."""
    for text in ("First", "Second", "First"):
        page = surf(order={"lines": [{"text": f"{text} thing"}]}).open()
        assert f"{text} thing" in page.text
        assert ("First thing" in page.text) != ("Second thing" in page.text)


def test_the_direction_of_a_line_s_text_is_its_own(surf: Surf) -> None:
    """Directional characters in a text do not reverse its amount."""
    lines = [{"text": "\u202egrip", "amount": "189.00"}]
    page = surf(order={"lines": lines, "currency": "USD"}).open().response.text
    assert "<bdi>\u202egrip</bdi> <b>$189.00</b>" in page


def test_many_lines_leave_the_notice_in_sight(surf: Surf) -> None:
    lines = [{"text": f"thing {number}"} for number in range(20)]
    page = surf(order={"lines": lines}, cart=None).open()
    assert EN["order_more"].replace("{number}", "17") in page.text
    assert "thing 19" in page.text


def test_the_destination_is_that_of_the_cart(own_shop: Shop) -> None:
    """On a deployment without the notices of other tests: one notice is for the cart."""
    cart = {"product_classes": ["accessory"], "ship_to": {"state": "CA", "zip": "94111"}}
    with Surfer(own_shop.server, own_shop.buyer(cart=cart, notice_id=None)) as surfer:
        assert "CA 94111" in surfer.open().text


def test_the_order_is_in_no_stored_or_returned_data(
    surf: Surf, shop: Shop, operator: Operator
) -> None:
    surfer = surf(order=ORDER)
    surfer.complete()
    ack = shop.acknowledgment(surfer.buyer)
    path = f"/v1/acknowledgments/{ack['ack_id']}/dossier"
    dossier = shop.client.get(path, headers={"Prefer": "wait=10"}).raise_for_status().content
    texts = [str(surfer.buyer.session), str(shop.read(surfer.buyer)), str(ack)]
    texts += [str(surfer.buyer.current()), str(shop.events_of(surfer.buyer))]
    assert not [text for text in texts if "Handguard" in text]
    assert b"Handguard" not in dossier
    for table in ("checkout_sessions", "records", "events", "audit_log", "idempotency_keys"):
        for row in operator.rows(f"SELECT * FROM {table}"):  # noqa: S608 - our own names
            assert "Handguard" not in str(dict(row)), table
            assert not any(b"Handguard" in v for v in dict(row).values() if isinstance(v, bytes))


@pytest.mark.parametrize(
    "order",
    [
        {"lines": []},
        {"lines": [{"text": ""}]},
        {"lines": [{"text": "x" * 121}]},
        {"lines": [{"text": "x"}] * 21},
        {"lines": [{"text": "x", "amount": "1,5"}], "currency": "USD"},
        {"lines": [{"text": "x", "amount": "-1"}], "currency": "USD"},
        {"lines": [{"text": "x", "amount": "1.50"}]},
        {"lines": [{"text": "x"}], "currency": "usd"},
        {"lines": [{"text": "x\u0000"}]},
        {"lines": [{"text": "x"}, {"text": "  "}]},
        {"lines": [{"text": "\u00a0\u200b\ufeff\u2060\u202e"}]},
        {"lines": [{"text": "x"}], "total": "1"},
    ],
    ids=str,
)
def test_an_order_that_cannot_be_shown_is_refused(shop: Shop, order: object) -> None:
    assert refusal(shop.create(order=order)) == (400, "invalid_request")
