"""What an identifier opens at a vendor that has not met its buyer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from countersign.core.buyers.model import STRANGE_ZIPS_PER_DAY, ZIPS_PER_DAY
from tests.checkout.buyer import Buyer
from tests.http.backstage import Operator, make_client, notice_file
from tests.remembered.conftest import Shop
from tests.support.service import Server

MakeShop = Callable[..., Shop]
_ACK = f"ack_{'0' * 26}"


def guess(shop: Shop, cbid: str, zip_: str) -> httpx2.Response:
    """Try a ZIP code for a buyer."""
    order: dict[str, Any] = {"ack_id": _ACK, "session_id": "s", "order_reference": "o"}
    body = order | {"cbid": cbid, "product_class": "accessory", "shipping_zip": zip_}
    return shop.client.post("/v1/clearances", json=body)


def wrong(number: int) -> str:
    return f"{10000 + number:05}"


def test_vendors_that_have_not_met_a_buyer_try_wrong_zip_codes_together(
    live_shop: MakeShop,
) -> None:
    """Ten a day in sum; then none learns anything, not even that a code is right."""
    home, others = live_shop(), [live_shop() for _ in range(4)]
    person = home.vendor.part("verified")
    cbid, right = home.vendor.verified(person), person.shipping_zip
    first, second, third, fourth = others
    for number in range(ZIPS_PER_DAY):
        assert guess(first, cbid, wrong(number)).status_code == 200
        assert guess(second, cbid, wrong(number)).status_code == 200
    assert 2 * ZIPS_PER_DAY == STRANGE_ZIPS_PER_DAY
    assert guess(first, cbid, wrong(9)).status_code == 429
    for shop, zip_ in ((third, wrong(9)), (third, right), (fourth, right)):
        refused = guess(shop, cbid, zip_)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) > 0
    # Tried ones may be tried again.
    assert guess(second, cbid, wrong(0)).status_code == 200
    # The account that has met the buyer keeps its own, and so does one that meets the buyer now.
    assert "zip_mismatch" not in guess(home, cbid, right).json()["reasons"]
    for number in range(ZIPS_PER_DAY - 1):
        assert guess(home, cbid, wrong(number)).status_code == 200
    assert fourth.vendor.verified(person) == cbid
    assert guess(fourth, cbid, wrong(1)).status_code == 200


def order(shop: Shop, cbid: str, zip_: str, number: int) -> dict[str, Any]:
    """The request for the clearance of an order of this buyer, whose notice is acknowledged."""
    named = {"session_id": f"o-{number}", "cbid": cbid, "order_reference": f"o-{number}"}
    initialed = {"initials_per_line": ["ZQ"] * 3} | named
    ack_id = shop.client.post("/v1/notices/law/acknowledge", json=initialed).json()["ack_id"]
    return named | {"ack_id": ack_id, "product_class": "accessory", "shipping_zip": zip_}


def test_strangers_do_not_lock_out_a_vendor_that_has_cleared_the_buyer(
    operator: Operator, live_shop: MakeShop
) -> None:
    """A granted clearance is a meeting, and a repeated request no try."""
    operator.publish(notice_file("law", "1"))
    home, legit, *strangers = (live_shop() for _ in range(4))
    person = home.vendor.part("verified")
    cbid = home.vendor.verified(person)
    first, second = (order(legit, cbid, person.shipping_zip, number) for number in (0, 1))
    cleared = legit.client.post("/v1/clearances", json=first).json()
    assert cleared["cleared"], cleared
    for number in range(STRANGE_ZIPS_PER_DAY):
        stranger = strangers[number % 2]
        assert guess(stranger, cbid, wrong(number)).status_code == 200
    assert guess(strangers[0], cbid, wrong(99)).status_code == 429
    assert legit.client.post("/v1/clearances", json=second).json()["cleared"]
    for number in range(ZIPS_PER_DAY - 1):
        assert guess(legit, cbid, wrong(number)).status_code == 200
    assert guess(legit, cbid, wrong(99)).status_code == 429
    # Though its own are used up.
    again = legit.client.post("/v1/clearances", json=first)
    assert again.json()["clearance_id"] == cleared["clearance_id"], again.text


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_session_that_names_a_buyer_is_no_meeting(
    operator: Operator, server: Server, live_shop: MakeShop, mode: str
) -> None:
    """A vendor can complete it alone: it proves nothing of the buyer."""
    operator.publish(notice_file("law", "1"))
    home = live_shop()
    cbid = home.vendor.verified(home.vendor.part("verified"))
    answers = list[int]()
    for _ in range(3):
        evil = live_shop()
        own = Shop(evil.vendor, mode)
        wanted = {"return_url": "https://shop.example/back", "session_id": "cart-7"}
        wanted |= {"notice_id": "law", "cbid": cbid, "order_reference": "o-1"}
        made = own.client.post("/v1/checkout_sessions", json=wanted)
        assert made.status_code == 200, made.text
        with make_client(server, made.json()["client_token"]) as browser:
            assert Buyer(made.json(), browser).acknowledge().status_code == 200
        assert own.read(made.json())["status"] == "completed"
        some = [guess(evil, cbid, wrong(number)) for number in range(ZIPS_PER_DAY)]
        answers += [one.status_code for one in some]
    assert answers.count(200) == STRANGE_ZIPS_PER_DAY, answers


def test_the_refusal_says_when_the_next_zip_code_may_be_tried(
    operator: Operator, live_shop: MakeShop
) -> None:
    """That of an account by its own tries, whatever others have tried before."""
    home, early, late = (live_shop() for _ in range(3))
    cbid = home.vendor.verified(home.vendor.part("verified"))
    assert guess(early, cbid, wrong(0)).status_code == 200
    with operator.transaction() as connection:
        long_ago = {"hours": 20 * 3_600_000}
        connection.execute(text("UPDATE zip_attempts SET at = at - :hours"), long_ago)
    for number in range(ZIPS_PER_DAY):
        assert guess(late, cbid, wrong(number)).status_code == 200
    refused = guess(late, cbid, wrong(9))
    assert refused.status_code == 429
    assert 23 * 3600 < int(refused.headers["Retry-After"]) <= 24 * 3600


def test_right_zip_codes_of_new_vendors_are_not_counted_together(live_shop: MakeShop) -> None:
    """A buyer who shops at many vendors is not refused."""
    home = live_shop()
    person = home.vendor.part("verified")
    cbid = home.vendor.verified(person)
    shop = live_shop()
    for _ in range(2):
        assert guess(shop, cbid, person.shipping_zip).status_code == 200
    assert guess(shop, cbid, wrong(0)).status_code == 200


def test_a_refusal_says_no_more_than_the_status_of_the_buyer_of_another_vendor(
    live_shop: MakeShop,
) -> None:
    """Why the buyer has to verify again is said to a vendor that has met the buyer."""
    home, other = live_shop(), live_shop(minimum_age=99)
    cbid = home.vendor.verified(home.vendor.part("verified"))
    reasons = guess(other, cbid, "94111").json()["reasons"]
    assert "buyer_requires_input" in reasons
    assert not {"age_not_proved", "address_not_proved"} & {*reasons}
