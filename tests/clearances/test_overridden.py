"""After a manual override: the binding of the order, the end of the override, and erasures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import UNSET
from sqlalchemy import select

from countersign.base.db.tables import acknowledgment_uses, disclosures, overrides
from countersign.base.errors import Erased
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.retention import list_due
from tests.clearances.desk import Desk, order
from tests.clearances.overriding import ZIP, Shop, all_of, replaced, revoked, shop_of, shop_without
from tests.http.calls import SHIPPED_NOTICE


def test_an_order_without_an_acknowledgment_is_found_again(desk: Desk) -> None:
    shop = shop_without(desk)
    made = shop.override(shop.person())
    assert shop.again().override_id == made.override_id


@pytest.mark.parametrize(
    "changed",
    [
        {"shipping_zip": "94105"},
        {"product_class": "manufacturing_machine"},
        {"cbid": "cbid_another"},
        {"session_id": "another"},
        {"shipping_address": {"postal_code": ZIP}},
    ],
)
def test_a_changed_order_is_not_overridden(shop: Shop, changed: dict[str, Any]) -> None:
    """The override is of the order as refused: not of another place, buyer or class."""
    shop.override(shop.person())
    if "shipping_address" in changed:
        changed = {"shipping_address": order("a", "b", "c", ZIP, **changed).shipping_address}
    again = shop.again(**changed)
    assert not again.cleared
    assert not again.overridden
    assert again.clearance_id != shop.clearance_id


def test_a_new_reason_is_not_covered_by_an_earlier_override(shop: Shop) -> None:
    shop.override(shop.person())
    shop.desk.clock.advance(timedelta(days=8))
    again = shop.again()
    assert again.reasons == ("acknowledgment_too_old", "buyer_not_found")
    assert not again.overridden


def test_an_overridden_order_can_still_be_cleared(desk: Desk) -> None:
    """For its buyer; the dossier follows the state, also when that clearance has expired."""
    shop = revoked(desk)
    made = shop.override(shop.person())
    desk.reinstate(shop.order.cbid)
    cleared = shop.again()
    assert (cleared.cleared, cleared.overridden) == (True, UNSET)
    assert (shop.shown().state, shop.in_dossier()) == ("cleared", {cleared.clearance_id})
    desk.clock.advance(timedelta(days=2))
    desk.revoke(shop.order.cbid)
    assert shop.again().override_id == made.override_id
    assert shop.shown().state == "overridden"


def test_an_acknowledgment_belongs_to_the_order_that_was_overridden(desk: Desk) -> None:
    """One acknowledgment ships one parcel: another address or buyer is refused."""
    shop = revoked(desk)
    shop.override(shop.person())
    desk.reinstate(shop.order.cbid)
    assert "acknowledgment_already_used" in shop.again(shipping_zip="94111").reasons
    other = desk.sandbox_buyer(shop.key, "vs_other", ZIP)
    assert shop.again(cbid=other).reasons == ("buyer_mismatch",)


@pytest.mark.parametrize("differs", ["session", "buyer"])
def test_an_acknowledgment_of_another_is_used_up_by_an_override(desk: Desk, differs: str) -> None:
    """The order was refused for a session or a buyer of another: that one's order ships no more."""
    key = desk.account()
    own, other = (desk.sandbox_buyer(key, f"vs_{key.account_id}_{n}", ZIP) for n in range(2))
    rightful = order(desk.acknowledge(key, SHIPPED_NOTICE, "cs_1", own), own, "cs_1", ZIP)
    changed = {"cbid": other, "shipping_zip": "94111"}
    if differs == "session":
        changed = {"session_id": "cs_2"}
    wanted = replaced(rightful, **changed)
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    made = shop.override(shop.person())
    desk.clock.advance(timedelta(seconds=1))
    assert "acknowledgment_already_used" in desk.clear(key, rightful).reasons
    assert shop.again().override_id == made.override_id


def test_an_exempt_session_belongs_to_the_order_that_was_overridden(desk: Desk) -> None:
    """There is no acknowledgment: its session stands for one order."""
    key = desk.account()
    buyer, exemption = desk.sandbox_buyer(key, "vs_dealer", ZIP), {"reason": "a dealer"}
    wanted = replaced(order("nothing", buyer, "cs_1", ZIP, exemption=exemption), ack_id=None)
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    made = shop.override(shop.person())
    assert shop.again().override_id == made.override_id
    assert "acknowledgment_already_used" in shop.again(shipping_zip="94111").reasons


def test_a_later_refusal_hides_no_override(desk: Desk) -> None:
    """Neither from the order's state nor from the dossier; it can be overridden as well."""
    shop = revoked(desk)
    made = shop.override(shop.person())
    desk.clock.advance(timedelta(days=8))
    again = shop.again()
    assert (again.overridden, again.reasons[0]) == (UNSET, "acknowledgment_too_old")
    shown = shop.shown()
    assert (shown.state, shown.clearance_id) == ("overridden", shop.clearance_id)
    assert {*shown.missing} <= {"seal"}
    assert shop.in_dossier() == {shop.clearance_id, made.override_id}
    newer = shop.override(shop.person(), again.clearance_id)
    assert shop.shown().clearance_id == again.clearance_id
    assert shop.in_dossier() == {again.clearance_id, newer.override_id}


def test_an_override_ends_with_the_age_of_acknowledgments(desk: Desk) -> None:
    """Seven days by default, although nothing but the buyer is against the order."""
    shop = shop_without(desk)
    shop.override(shop.person())
    desk.clock.advance(timedelta(days=7, seconds=-2))
    assert shop.again().overridden
    assert shop.again().overridden is UNSET


def test_an_override_is_of_one_order_number(desk: Desk) -> None:
    """One without a number is of no number; a request without one names any."""
    shop = shop_of(desk)
    shop.override(shop.person())
    assert shop.again(order_reference="B-1").overridden is UNSET
    assert shop.again().overridden
    named = shop_of(desk, order_reference="A-1")
    named.override(named.person())
    assert named.again().overridden
    assert named.again(order_reference="A-1").overridden


def test_without_an_acknowledgment_the_evidence_stays_as_long_as_a_notice_says(
    desk: Desk,
) -> None:
    """A refusal that nobody overrode goes after a year."""
    key, kept = desk.account(), []
    for number in range(2):
        wanted = order("nothing", "cbid_nobody", f"cs_{number}", ZIP)
        kept.append(Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted))
    kept[1].override(kept[1].person())

    def due() -> set[str]:
        async def listed() -> set[str]:
            found = list_due(desk.deployment.privacy, DEPLOYMENT)
            return {one.record_id async for one in found}

        return {one.clearance_id for one in kept} & desk.do(listed())

    desk.clock.advance(timedelta(days=366))
    assert due() == {kept[0].clearance_id}
    desk.clock.advance(timedelta(days=366 * 50))
    assert due() == {one.clearance_id for one in kept}


def test_an_override_waits_for_an_erasure_and_writes_nothing_after_it(shop: Shop) -> None:
    """It was read before, and is written after: the reason is not kept."""

    async def erase() -> None:
        privacy = shop.desk.deployment.privacy
        plan = await plan_erasure(privacy, shop.order.ack_id, DEPLOYMENT)
        await erase_planned(privacy, plan, ErasureReason.REQUEST)

    with pytest.raises(Erased):
        shop.override_after(erase)
    assert (
        all_of(shop, select(overrides.c.id).where(overrides.c.clearance_id == shop.clearance_id))
        == []
    )


@pytest.mark.parametrize("named", ["acknowledgment", "clearance"])
def test_an_erasure_takes_what_was_written_after_its_plan(desk: Desk, named: str) -> None:
    """Else the reason would stay for good: no period ends it."""
    shop, privacy = shop_of(desk), desk.deployment.privacy
    if named == "clearance":
        shop = shop_without(desk)
    subject = shop.clearance_id if named == "clearance" else shop.order.ack_id
    plan = desk.do(plan_erasure(privacy, subject, DEPLOYMENT))
    made = shop.override(shop.person())
    desk.do(erase_planned(privacy, plan, ErasureReason.REQUEST))
    left = select(disclosures.c.record_id).where(disclosures.c.record_id == made.override_id)
    assert all_of(shop, left) == []


def test_an_erasure_leaves_nothing_of_an_order_with_the_acknowledgment_of_another(
    desk: Desk,
) -> None:
    key = desk.account()
    own, other = (desk.sandbox_buyer(key, f"vs_{key.account_id}_{n}", ZIP) for n in range(2))
    ack_id = desk.acknowledge(key, SHIPPED_NOTICE, "cs_1", own)
    wanted = order(ack_id, other, "cs_1", "94111")
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    shop.override(shop.person())
    uses = acknowledgment_uses.c
    [index] = all_of(shop, select(uses.order_index).where(uses.ack_id == ack_id))
    desk.erase(other, with_acknowledgments=True)
    assert index not in all_of(shop, select(uses.order_index).where(uses.ack_id == ack_id))


def test_an_erasure_takes_people_and_reasons_and_ends_the_override(shop: Shop) -> None:
    """The record stays; nothing leads from it to the order any more."""
    made = shop.override(shop.person())
    assert made.override_id in shop.desk.erase(shop.order.ack_id)
    left = select(disclosures.c.record_id).where(disclosures.c.record_id == made.override_id)
    assert all_of(shop, left) == []
    index = select(overrides.c.order_index).where(overrides.c.id == made.override_id)
    assert all_of(shop, index) == [None]
    assert shop.read().override.keys() == {"override_id", "created_at"}  # type: ignore[union-attr]
    assert not shop.again().overridden
    with pytest.raises(Erased):
        shop.override(shop.person())
