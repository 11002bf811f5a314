"""A hold binds its owner, in one mode, and keeps the whole order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from countersign.base.errors import OnHold
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.role import Role
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import ErasureOutcome, request_erasure
from countersign.core.privacy.retention import list_due
from countersign.operate import bootstrap
from tests.checkout.buyer import Buyer as CheckoutBuyer
from tests.http.backstage import make_client
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk
from tests.staff.street import Street, erase_as_the_buyer, erase_as_the_command, noted
from tests.support.holding import place_hold, release_hold

pytestmark = pytest.mark.both_engines


def test_a_hold_of_one_vendor_neither_binds_another_nor_is_shown_to_it(street: Street) -> None:
    """The deployment's own hold binds both."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    ack_id, _ = other.buy(cbid, zip_=street.zip)
    hold = first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    first.ask("/v1/holds", {"subject": first.id, "reason": "case 1"})
    assert other.live.get("/v1/holds").json()["data"] == []
    preview = other.ask("/v1/erasures/preview", {"subject": cbid, "with_acknowledgments": True})
    assert (preview["kept"], preview["prevented_by"]) == ([], None)
    until = {"until": "2999-01-01T00:00:00Z"}
    due = other.live.get("/v1/retention", params=until).json()["data"]
    assert {one["hold_id"] for one in due} <= {None}
    other.ask("/v1/erasures", {"subject": ack_id})
    other.ask("/v1/erasures", {"subject": cbid})
    refused = first.ask("/v1/erasures", {"subject": cbid}, 409)
    assert hold in refused["error"]["message"]


def test_the_holds_of_an_order_are_those_on_it_its_parts_its_buyer_and_its_account(
    street: Street,
) -> None:
    """No ended one, and none of another order or another vendor."""
    first = street.first
    cbid = first.verified(street.played)
    ack_id, _ = first.buy(cbid, zip_=street.zip)
    elsewhere = acknowledge(first.live, notice_id="law", session_id="another").json()["ack_id"]
    order_id = first.live.get(f"/v1/orders/{ack_id}").json()["order_id"]

    def held(subject: str) -> str:
        return str(first.ask("/v1/holds", {"subject": subject, "reason": "case 1"})["hold_id"])

    on_it = [held(one) for one in (order_id, ack_id, cbid, first.id)]
    first.ask(f"/v1/holds/{held(ack_id)}/release", {})
    held(elsewhere)
    asked = {"order_id": order_id}
    shown = first.live.get("/v1/holds", params=asked).json()["data"]
    assert [one["hold_id"] for one in shown] == on_it
    assert street.other.live.get("/v1/holds", params=asked).json()["data"] == []


@pytest.mark.parametrize("way", ["command", "buyer"])
@pytest.mark.parametrize("on", ["initials", "decision"])
def test_a_test_hold_keeps_no_live_data(street: Street, way: str, on: str) -> None:
    """A test order may name a live buyer, whom the deployment or the buyer then erases."""
    first = street.first
    cbid = first.verified(street.played)
    [check] = street.ids("verifications", first.id)
    order = dict(zip(("initials", "decision"), first.buy(cbid, "test", street.zip), strict=True))
    held = {"subject": order[on], "reason": "a developer's try"}
    hold = first.ask("/v1/holds", held, mode="test")["hold_id"]
    assert street.operator.act(held_when_due)[check] is None
    if way == "command":
        kept = street.operator.act(lambda opened: erase_as_the_command(opened, cbid))
        assert check not in kept
    else:
        outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        assert outcome is ErasureOutcome.ERASED
    assert check not in street.ids("verification_evidence", first.id)
    assert first.test.get(f"/v1/acknowledgments/{order['initials']}").json()["erased_at"] is None
    first.ask(f"/v1/holds/{hold}/release", {}, mode="test")


def test_a_live_hold_keeps_no_test_data(street: Street) -> None:
    """The deployment's own holds keep data of both modes."""
    first = street.first
    cbid = first.verified(street.played)
    [check] = street.ids("verifications", first.id)
    ack_ids = [first.buy(cbid, "test", street.zip)[0] for _ in range(2)]
    first.ask("/v1/holds", {"subject": check, "reason": "case 1"})
    first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})

    async def erase(opened: bootstrap.Deployment, ack_id: str) -> None:
        plan = await plan_erasure(opened.privacy, ack_id, DEPLOYMENT)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    street.operator.act(lambda opened: erase(opened, ack_ids[0]))
    own = street.operator.act(lambda opened: place_hold(opened.privacy, cbid, "case 2")).id
    with pytest.raises(OnHold, match=own):
        street.operator.act(lambda opened: erase(opened, ack_ids[1]))
    street.operator.act(lambda opened: release_hold(opened.privacy, own))


async def held_when_due(opened: bootstrap.Deployment) -> dict[str, str | None]:
    """All that will have outlived its retention, as `countersign retention run` lists it."""
    late = datetime(2999, 1, 1, tzinfo=UTC)
    return {due.record_id: due.hold async for due in list_due(opened.privacy, DEPLOYMENT, late)}


def test_a_release_carries_out_waiting_erasures_in_its_own_reach(
    desk: Desk, street: Street
) -> None:
    """The response tells the person who released it."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    held, waits = dict[str, str](), dict[str, list[str]]()
    for one in (first, other):
        waits[one.id] = one.buy(cbid, zip_=street.zip)
        order = {"subject": waits[one.id][0], "reason": "case 1"}
        held[one.id] = one.ask("/v1/holds", order)["hold_id"]
        done = one.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True})
        assert {*waits[one.id]} <= {kept["record_id"] for kept in done["kept"]}
    before = street.rows(other.id, "live")
    released = first.ask(f"/v1/holds/{held[first.id]}/release", {})
    assert {*waits[first.id]} <= {*released["erased"]}
    assert not {*waits[other.id]} & {*released["erased"]}
    assert street.rows(other.id, "live") == before


def test_a_hold_on_erased_data_is_refused(street: Street) -> None:
    """Instead of promising to keep erased data."""
    ack_id = acknowledge(street.first.live, notice_id="law").json()["ack_id"]
    street.first.ask("/v1/erasures", {"subject": ack_id})
    said = street.first.ask("/v1/holds", {"subject": ack_id, "reason": "too late"}, 404)
    assert "erased" in said["error"]["message"]


@pytest.mark.parametrize("way", ["api", "command", "buyer"])
@pytest.mark.parametrize("held_by", ["ack_id", "clearance_id", "order_reference"])
def test_a_held_order_keeps_its_session_with_all_that_it_showed(
    street: Street, way: str, held_by: str
) -> None:
    """Whichever way its buyer is erased; it goes when the hold ends. Others of the buyer go."""
    account = street.first
    cbid = verify(account.test, shipping_zip="94105").json()["cbid"]

    def session(**more: str) -> dict[str, Any]:
        asked = {"return_url": "https://shop.example/", "cbid": cbid, "notice_id": "ab1263"}
        return account.ask("/v1/checkout_sessions", asked | more, mode="test")

    def read(one: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = account.test.get(
            f"/v1/checkout_sessions/{one['checkout_session_id']}"
        ).json()
        return found

    one = session(session_id="cart-7", order_reference=f"order-{account.id}", shipping_zip="94105")
    other = session(session_id="cart-8")
    with make_client(street.server, one["client_token"]) as browser:
        assert CheckoutBuyer(one, browser).acknowledge().status_code == 200
    before = read(one)
    subject = before["ack_id"]
    if held_by == "clearance_id":
        subject = before["clearance_id"]
    elif held_by == "order_reference":
        more = {"session_id": "phone", "order_reference": before["order_reference"]}
        subject = acknowledge(account.test, **more).json()["ack_id"]
    order = {"subject": subject, "reason": "case 1"}
    hold = account.ask("/v1/holds", order, mode="test")["hold_id"]
    id_ = before["checkout_session_id"]
    if way == "api":
        erase = {"subject": cbid, "with_acknowledgments": True}
        preview = account.ask("/v1/erasures/preview", erase, mode="test")
        kept = account.ask("/v1/erasures", erase, mode="test")["kept"]
        assert kept == preview["kept"]
        assert id_ in {one["record_id"] for one in kept}
    elif way == "command":
        kept_ids = street.operator.act(lambda opened: erase_as_the_command(opened, cbid))
        assert id_ in kept_ids
    else:
        street.operator.act(lambda opened: erase_as_the_buyer(opened, cbid))
    assert read(one) == before
    assert read(other)["session_id"] is None
    released = account.ask(f"/v1/holds/{hold}/release", {}, mode="test")
    assert id_ in released["erased"] or before["ack_id"] in released["erased"]
    assert read(one)["session_id"] is None


@pytest.mark.parametrize("way", ["account", "buyer"])
def test_a_hold_of_an_account_that_left_keeps_the_buyer(street: Street, way: str) -> None:
    """Neither another account nor the buyer can erase the buyer."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    ack_id, _ = other.buy(cbid, zip_=street.zip)
    other.ask("/v1/erasures", {"subject": cbid})
    hold = other.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    before, status = street.rows(other.id, "live"), other.live.get(f"/v1/buyers/{cbid}/status")
    if way == "account":
        first.ask("/v1/erasures", {"subject": cbid})
    else:
        outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        assert outcome is ErasureOutcome.ON_HOLD
        asked = "SELECT 1 FROM erasure_requests WHERE cbid = :cbid"
        assert street.operator.rows(asked, cbid=cbid)
    assert not street.rows(first.id, "live")["verifications"]
    assert street.rows(other.id, "live") == before
    after = other.live.get(f"/v1/buyers/{cbid}/status")
    assert (after.status_code, after.json()) == (200, status.json())
    assert [one["subject"] for one in other.live.get("/v1/holds").json()["data"]] == [cbid]
    other.ask("/v1/erasures", {"subject": ack_id}, 409)
    other.ask(f"/v1/holds/{hold}/release", {})
    if way == "account":
        other.ask("/v1/erasures", {"subject": cbid})
    assert other.live.get(f"/v1/buyers/{cbid}/status").status_code == 404


def test_a_hold_is_in_the_audit_of_its_owner(desk: Desk, street: Street) -> None:
    """On a record or a whole account: of that account in that mode, else of the deployment."""
    first, other = street.first, street.other
    ack_id = acknowledge(first.test, notice_id="ab1263").json()["ack_id"]
    acts = ("hold_placed", "hold_released", "matter_opened", "matter_closed")
    for subject in (first.id, ack_id):
        asked = {"subject": subject, "reason": "case 1"}
        hold = first.ask("/v1/holds", asked, mode="test")["hold_id"]
        first.ask(f"/v1/holds/{hold}/release", {}, mode="test")
        orders = {"name": "Case 2", "orders": [asked]}
        matter = first.ask("/v1/matters", orders, mode="test")["matter_id"]
        if subject == ack_id:
            first.ask(f"/v1/matters/{matter}/release", {}, mode="test")
            continue
        with desk.person(Role.COMPLIANCE) as person:
            # The account has to know that the deployment's staff ended its hold.
            person.post(f"/v1/matters/{matter}/release")
            own = person.post("/v1/holds", asked)["hold_id"]
            person.post(f"/v1/holds/{own}/release")
            opened = person.post("/v1/matters", orders)["matter_id"]
            person.post(f"/v1/matters/{opened}/release")
            mine = person.get(f"/v1/audit?actor={person.id}&limit=100")["data"]
        assert len([one for one in mine if one["action"] in acts]) == 8
    each = ["hold_placed", "hold_released", "matter_opened", "hold_placed"]
    each += ["hold_released", "matter_closed"]
    in_test = [one["action"] for one in noted(first.test, *acts)]
    assert sorted(in_test) == sorted(each * 2)
    for client in (first.live, other.live, other.test):
        assert noted(client, *acts) == []
