"""Killed between any two statements: a session is completed whole, or the buyer is asked again."""

from __future__ import annotations

import time
from itertools import count

import pytest

from tests.checkout.buyer import Buyer, Shop
from tests.http.calls import verify
from tests.support import forked

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]

ZIP = "94111"
ENDED = ["checkout_session.completed"]


def _killed(shop: Shop, point: int, buyer: Buyer) -> list[str]:
    """The output of the victim until it was killed, or ended."""
    arguments = (str(point), str(buyer.session["client_token"]))
    done = forked.run(
        "tests.checkout.victim", *arguments, environment=shop.server.deployment.environment
    )
    assert done.returncode in {0, -9}, done.stderr
    return done.stdout.split("\n")[:-1]


def _acknowledged(shop: Shop, cart: str) -> list[str]:
    found = shop.client.get("/v1/acknowledgments", params={"session_id": cart}).json()["data"]
    return [one["ack_id"] for one in found]


def _events(shop: Shop, buyer: Buyer, number: int) -> list[str]:
    """The events of a session, once there are `number` of them.

    PostgreSQL withholds them while an older transaction is open, perhaps one of a killed server.
    """
    ends = time.monotonic() + 30
    while len(found := shop.events(buyer)) < number and time.monotonic() < ends:
        time.sleep(0.05)
    return found


@pytest.mark.timeout(600)
def test_killed_before_any_statement_a_session_is_completed_whole_or_the_buyer_is_asked_again(
    own_shop: Shop,
) -> None:
    """Completed it has the decision about the order; else the same initials complete it."""
    shop, states = own_shop, set()
    cbid = verify(shop.client, shipping_zip=ZIP).json()["cbid"]
    for point in count(1):
        cart = f"cart-{point}"
        buyer = shop.buyer(session_id=cart, cbid=cbid, shipping_zip=ZIP)
        said = _killed(shop, point, buyer)
        acks = _acknowledged(shop, cart)
        current = buyer.current()
        completed = current["status"] == "completed"
        # Before the vendor reads it, which would have a missing decision made.
        listed = shop.client.get("/v1/checkout_sessions", params={"session_id": cart}).json()
        cleared = listed["data"][0]["cleared"]
        states.add((completed, cleared))
        assert acks == ([current["ack_id"]] if completed else [])
        assert _events(shop, buyer, int(completed)) == ENDED[: int(completed)]
        if not completed:
            assert (current["status"], current["step"]) == ("open", "acknowledgment")
            assert buyer.acknowledge().json()["status"] == "completed"
        found = shop.read(buyer)
        assert (found["status"], found["cleared"]) == ("completed", True)
        assert _acknowledged(shop, cart) == [found["ack_id"]]
        assert _events(shop, buyer, 1) == ENDED
        clearances = shop.client.get("/v1/clearances", params={"ack_id": found["ack_id"]}).json()
        assert [one["clearance_id"] for one in clearances["data"]] == [found["clearance_id"]]
        if said:
            break  # it got to its end: there is no further point
    assert states == {(False, None), (True, True)}
    assert point > 15, "statements and commits of four acts"
