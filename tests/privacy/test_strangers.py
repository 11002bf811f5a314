"""What an identifier opens at a vendor that has not met its buyer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from countersign.core.buyers.model import STRANGE_ZIPS_PER_DAY, ZIPS_PER_DAY
from tests.remembered.conftest import Shop

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
