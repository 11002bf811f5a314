"""examples/bridge: an order that was paid is held until the notice is done, on each platform.

Requests and answers are judged by the platforms' published documents, see mocks.py.
"""

from __future__ import annotations

import json

import pytest

from countersign_client import Countersign, Retries
from tests.bridge.conftest import DAY, Between
from tests.clients.conftest import Place, allow_overrides
from tests.support.service import free_port

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]


def test_an_order_is_held_until_the_notice_is_done(between: Between) -> None:
    """Then it is released, once; a message that comes again changes nothing."""
    between.place()
    assert between.shop.acts == ["held"]
    [(to, about, link)] = between.mails
    assert (to, about.endswith("waits for you")) == ("jo@example.com", True)
    assert link.startswith("http://bridge.example/notice/cs_")
    between.place()
    assert between.shop.acts == ["held"]
    between.finish()
    for _ in range(2):
        between.place()
        assert between.shop.acts == ["held", "released"]
    assert len(between.mails) == 1
    assert between.link is None


def test_a_message_that_is_not_the_platforms_is_refused(between: Between) -> None:
    headers, body = between.shop.message("another secret")
    assert between.bridge.placed(headers, body) == 401
    assert between.bridge.placed({}, body) == 401
    between.bridge.advance()
    assert between.shop.acts == []


@pytest.mark.parametrize("state", ["new", "held"])
def test_goods_without_a_class_are_left_alone(between: Between, state: str) -> None:
    """Also where somebody else holds them."""
    between.shop.sku, between.shop.state = "APRON", state
    between.place()
    assert (between.shop.acts, between.mails) == ([], [])


def test_an_order_that_is_not_cleared_stays_held(between: Between) -> None:
    """It is asked about once an hour; the buyer can do it again, for the address as it is now."""
    between.place()
    between.finish()
    between.shop.ship_to = ("California", "CA", "90210")
    for _ in range(5):
        between.bridge.advance()
    # The first decision is that of the buyer's last page.
    assert [one.cleared for one in between.client.clearances.list()] == [False, True]
    assert between.shop.acts == ["held"]
    between.finish()
    between.bridge.advance()
    assert between.shop.acts == ["held", "released"]


def test_an_order_with_a_manual_override_is_released_within_the_hour(
    between: Between, place: Place, account: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is written down as what it is, with its duties, also in a file of an earlier bridge."""
    between.bridge.rows.execute("ALTER TABLE orders DROP override")
    between.open()
    between.place()
    between.finish()
    cleared = next(iter(between.client.clearances.list())).clearance_id
    buyer = str(between.client.clearances.retrieve(cleared).cbid)
    between.client.sandbox.move_buyer(cbid=buyer, status="revoked")
    between.bridge.advance()
    allow_overrides(place, account)
    refused = next(iter(between.client.clearances.list()))
    assert refused.reasons == ("buyer_revoked",)
    made = between.client.clearances.override(
        refused.clearance_id, reason="case 4712", claimed_user="shop user 17"
    )
    between.bridge.advance()
    assert between.shop.acts == ["held"]
    between.now = 60 * 60
    between.bridge.advance()
    assert between.shop.acts == ["held", "released"]
    [order] = between.bridge._where("state = 'released'")
    assert order.clearance == refused.clearance_id
    assert json.loads(order.override) == [made.override_id, [{"type": "compared", "what": "zip"}]]
    said = f"Manual override {made.override_id}: shipped on your own responsibility"
    assert said in capsys.readouterr().err
    assert not between.client.clearances.retrieve(refused.clearance_id).fulfilments


def test_a_buyer_of_another_state_needs_nothing_where_the_shop_says_where_buyers_live(
    between: Between,
) -> None:
    """Without that setting it is not known, and the order is held."""
    between.shop.ship_to, between.shop.residence = ("Nevada", "NV", "89501"), "NV"
    between.open(lives_at_billing=True)
    between.place()
    assert (between.shop.acts, between.mails) == ([], [])


def test_goods_that_no_notice_frees_stay_held(between: Between) -> None:
    """Staff read it; the buyer gets no link."""
    between.shop.sku = "BL-1"
    between.place()
    between.now = 30 * DAY
    between.bridge.advance()
    assert (between.shop.acts, between.mails) == (["held"], [])


def test_a_buyer_is_reminded_twice_then_the_order_is_cancelled(between: Between) -> None:
    """After one day and after three; the link works until the end, with a new session each day."""
    between.place()
    first = between.link
    assert first
    assert between.link == first
    sent = []
    for hour in range(0, 7 * 24 + 2, 6):
        between.now = hour * 3600
        between.bridge.advance()
        sent.append(len(between.mails))
    assert [6 * sent.index(number) for number in (1, 2, 3)] == [0, 24, 72]
    assert sent[-1] == 3
    assert all(about.startswith("Reminder: ") for _, about, _ in between.mails[1:])
    assert between.shop.acts[0] == "held"
    assert between.shop.acts[-1] == "cancelled"
    assert between.link is None
    assert [one.status for one in between.client.checkout_sessions.list()] == ["cancelled"]


def test_a_declined_notice_can_be_opened_again(between: Between) -> None:
    between.place()
    first = between.link
    [session] = between.client.checkout_sessions.list()
    between.client.checkout_sessions.cancel(session.checkout_session_id)
    assert between.link not in {first, None}
    between.finish()
    between.bridge.advance()
    assert between.shop.acts == ["held", "released"]


def test_without_the_service_an_order_is_held(between: Between) -> None:
    """And asked about when the service is back."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    with Countersign(api_key="test", base_url=nowhere, retries=Retries(attempts=1)) as away:
        between.open(client=away)
        between.place()
        assert (between.shop.acts, between.mails) == (["held"], [])
        between.bridge.advance()
    between.open()
    between.bridge.advance()
    assert (between.shop.acts, len(between.mails)) == (["held"], 1)


def test_an_order_that_needed_nothing_is_released_when_the_service_is_back(
    between: Between,
) -> None:
    between.shop.ship_to, between.shop.residence = ("Nevada", "NV", "89501"), "NV"
    nowhere = f"http://127.0.0.1:{free_port()}"
    with Countersign(api_key="test", base_url=nowhere, retries=Retries(attempts=1)) as away:
        between.open(client=away, lives_at_billing=True)
        between.place()
    between.open(lives_at_billing=True)
    between.bridge.advance()
    assert (between.shop.acts, between.mails) == (["held", "released"], [])


def test_an_order_that_staff_moved_on_is_theirs(between: Between) -> None:
    """What the bridge does not hold, it does not release."""
    between.place()
    between.shop.state = "refunded" if between.shop.name == "bigcommerce" else "closed"
    between.finish()
    between.bridge.advance()
    assert between.shop.acts == ["held"]


@pytest.mark.parametrize("act", ["held", "released", "cancelled"])
def test_a_step_that_was_done_is_done_again_without_harm(between: Between, act: str) -> None:
    """As after a process that was killed between the act and its note."""
    between.bridge.placed(*between.shop.message())
    shop, order = between.bridge.shop, between.shop.order
    shop.hold(order)
    done = {"held": shop.hold, "released": shop.release, "cancelled": shop.cancel}[act]
    done(order)
    before = [*between.shop.acts]
    if (between.shop.name, act) != ("magento", "cancelled"):
        done(order)
        assert between.shop.acts == before
    assert between.shop.state == act
