"""Manual overrides: with a reason, visible, and never a clearance."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from countersign.base.db.tables import (
    clearances,
    overrides,
    records,
)
from countersign.base.errors import (
    InvalidRequest,
    NotFound,
    OrderNotRefused,
    OrderReferenceMismatch,
    OverrideLimitReached,
    OverrideNotAllowed,
    SecondPersonRequired,
)
from countersign.base.values import Mode
from countersign.core.access.account import set_settings
from countersign.core.access.audit import AuditAction
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.notices.rule import COMPARED_ZIP
from tests.clearances.desk import Desk, MovingClock, open_desk, order
from tests.clearances.overriding import ZIP, Shop, all_of, replaced, revoked, shop_of, shop_without
from tests.http.backstage import notice_file
from tests.http.calls import SHIPPED_NOTICE
from tests.support.acts import done

BLANKS = ["", " ", "\t", "\u00a0", "\u200b"]
OTHER_LAW = """
[[obligations]]
type = "product_classes"
sufficient_for = ["accessory"]

[[obligations]]
type = "adult_signature"

[applies_to]
version = "1"
source = "another law"
product_classes = ["suppressor", "accessory"]
delivered_to = ["CA"]
residents_of = []
identity_checks = []
"""
USER = {"claimed_user": "shop user 17"}


def test_a_person_overrides_a_refusal_and_the_order_stays_refused(shop: Shop) -> None:
    """Asked again, it is not cleared, has no token, and `overridden`."""
    made = shop.override(shop.person())
    assert (made.cleared, made.overridden, made.reasons) == (False, True, ("buyer_not_found",))
    again = shop.again()
    assert (again.cleared, again.token, again.overridden) == (False, None, True)
    assert (again.override_id, again.clearance_id) == (made.override_id, shop.clearance_id)
    assert again.obligations == made.obligations == (COMPARED_ZIP,)
    assert shop.read().override["by"] == [  # type: ignore[index]
        {"actor": shop.person().actor, "reason": "case 4712"}
    ]
    assert shop.shown().state == "overridden"
    assert [step.what for step in shop.shown().timeline][-1] == "overridden"
    [noted] = shop.audit(AuditAction.CLEARANCE_OVERRIDDEN)
    assert noted.actor == shop.person().actor
    assert noted.details == {"reason": "case 4712", "override": made.override_id}


def test_a_key_overrides_as_many_refusals_a_day_as_its_account_says(desk: Desk, shop: Shop) -> None:
    """Off unless it was set; a day later it may again."""
    with pytest.raises(OverrideLimitReached):
        shop.override(shop.key, **USER)
    shop.allow(1)
    assert shop.override(shop.key, **USER).overridden
    assert shop.read().override["claimed_user"] == "shop user 17"  # type: ignore[index]
    session = f"two_{shop.key.account_id}"
    ack_id = desk.acknowledge(shop.key, SHIPPED_NOTICE, session)
    other = desk.clear(shop.key, order(ack_id, "cbid_nobody", session, ZIP)).clearance_id
    with pytest.raises(OverrideLimitReached):
        shop.override(shop.key, other, **USER)
    desk.clock.advance(timedelta(days=1))
    assert shop.override(shop.key, other, **USER).overridden


@pytest.mark.parametrize("blank", [{}, *({"claimed_user": text} for text in BLANKS)])
def test_a_key_names_the_user_who_decided(shop: Shop, blank: dict[str, str]) -> None:
    shop.allow(1)
    with pytest.raises(InvalidRequest):
        shop.override(shop.key, **blank)


def test_a_reason_can_be_read(shop: Shop) -> None:
    with pytest.raises(InvalidRequest):
        shop.override(shop.person(), reason="\u200b" * 3)


def test_a_proposal_holds_for_thirty_days(desk: Desk) -> None:
    """After that the second person has to propose again."""
    shop = shop_without(desk)
    access = shop.desk.deployment.access
    shop.desk.do(done(set_settings, access, shop.key.account_id, reviewers=2))
    shop.override(shop.person(1))
    shop.desk.clock.advance(timedelta(days=30))
    assert not shop.override(shop.person(2)).overridden
    shop.desk.clock.advance(timedelta(days=29))
    assert shop.override(shop.person(1)).overridden


def test_where_two_people_decide_one_alone_overrides_nothing(shop: Shop) -> None:
    """The first proposes, another one overrides; a key does neither."""
    access = shop.desk.deployment.access
    shop.allow(9)
    shop.desk.do(done(set_settings, access, shop.key.account_id, reviewers=2))
    with pytest.raises(SecondPersonRequired):
        shop.override(shop.key, **USER)
    proposed = shop.override(shop.person(1), reason="seen the papers")
    assert (proposed.overridden, proposed.override_id) == (False, None)
    assert not shop.again().overridden
    with pytest.raises(SecondPersonRequired):
        shop.override(shop.person(1))
    assert shop.override(shop.person(2)).overridden
    assert shop.read().override["by"] == [  # type: ignore[index]
        {"actor": shop.person(1).actor, "reason": "seen the papers"},
        {"actor": shop.person(2).actor, "reason": "case 4712"},
    ]


def test_a_second_override_of_one_refusal_is_the_first(shop: Shop) -> None:
    first = shop.override(shop.person(1))
    assert shop.override(shop.person(2), reason="another") == first
    assert shop.override(shop.key, **USER) == first
    query = select(overrides.c.id).where(overrides.c.clearance_id == shop.clearance_id)
    assert all_of(shop, query) == [first.override_id]


@pytest.mark.parametrize(
    "goods",
    [
        {"product_class": "barrel"},
        {"product_class": None, "product_classes": ("accessory", "barrel")},
        {"product_class": None},
    ],
)
def test_a_barrel_gets_no_override(desk: Desk, goods: dict[str, Any]) -> None:
    """Nor goods whose class was not said: they can be barrels."""
    shop = shop_of(desk, **goods)
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person())


def test_a_barrel_gets_no_override_without_an_acknowledgment_either(desk: Desk) -> None:
    key = desk.account()
    wanted = order("nothing", "cbid_nobody", "cs_1", ZIP, product_class="barrel")
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person())


@pytest.mark.parametrize("ack", ["acknowledged", "nothing", None])
@pytest.mark.parametrize("goods", ["suppressor", "accessory"])
def test_goods_that_no_notice_covers_are_never_overridden(
    tmp_path: Path, ack: str | None, goods: str
) -> None:
    """Whether the refusal says so or not; goods that it covers keep all obligations of the law."""
    with open_desk(tmp_path / "data", MovingClock(), None) as desk:
        desk.publish(notice_file("other-law", "1", applies_to=OTHER_LAW), reviewed=False)
        key, exemption = desk.account(), None
        if ack == "acknowledged":
            ack = desk.acknowledge(key, "other-law", "cs_1")
        elif ack is None:
            exemption = {"reason": "a dealer", "kind": "unknown"}
        more = {"product_class": goods, "exemption": exemption}
        wanted = replaced(order("nothing", "cbid_nobody", "cs_1", ZIP, **more), ack_id=ack)
        shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
        if goods == "suppressor":
            with pytest.raises(OverrideNotAllowed):
                shop.override(shop.person())
            return
        made = shop.override(shop.person())
        types = {duty["type"] for duty in made.obligations}
        assert types == {"adult_signature", "compared"}
        assert shop.override(shop.person()).obligations == made.obligations
        assert shop.again().obligations == made.obligations


def test_a_cleared_order_needs_no_override(desk: Desk) -> None:
    """Neither by its clearance, nor by a refusal before it."""
    shop = shop_of(desk)
    buyer = desk.sandbox_buyer(shop.key, "vs_cleared", ZIP)
    cleared = shop.again(cbid=buyer)
    assert cleared.cleared
    for clearance_id in (cleared.clearance_id, shop.clearance_id):
        with pytest.raises(OrderNotRefused):
            shop.override(shop.person(), clearance_id)


def test_no_second_order_of_an_acknowledgment_is_overridden(desk: Desk) -> None:
    shop = revoked(desk)
    shop.override(shop.person())
    elsewhere = shop.again(shipping_zip="94111")
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person(), elsewhere.clearance_id)


@pytest.mark.parametrize("reason", ["too old", "revoked", "used"])
def test_a_refusal_with_a_new_reason_is_asked_for_again(desk: Desk, reason: str) -> None:
    """Whoever decides sees every reason of the moment, not those of long ago."""
    key = desk.account()
    buyer = desk.sandbox_buyer(key, f"vs_{key.account_id}", ZIP)
    ack_id = desk.acknowledge(key, SHIPPED_NOTICE, "cs_1")
    wanted = order(ack_id, buyer, "cs_1", "94111")
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    if reason == "too old":
        desk.clock.advance(timedelta(days=8))
    elif reason == "revoked":
        desk.revoke(buyer)
    else:
        assert shop.again(shipping_zip=ZIP).cleared
        desk.clock.advance(timedelta(days=2))
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person())
    assert shop.shown().state != "overridden"


def test_without_a_notice_in_force_nothing_is_overridden(tmp_path: Path) -> None:
    with open_desk(tmp_path / "data", MovingClock(), None) as desk:
        shop, earlier = shop_of(desk), shop_of(desk)
        made = earlier.override(earlier.person())
        read = desk.deployment.notices.registry.notices(fresh=True)
        for version in desk.do(read).versions[SHIPPED_NOTICE]:
            desk.withdraw(SHIPPED_NOTICE, version.content.version)
        again = shop.again()
        with pytest.raises(OverrideNotAllowed):
            shop.override(shop.person(), again.clearance_id)
        assert earlier.override(earlier.person()) == made  # one of before is no second one


def test_a_clearance_is_no_acknowledgment(desk: Desk, shop: Shop) -> None:
    """Naming one, even that of another account, does not make two orders one."""
    key = desk.account()
    wanted = order(shop.clearance_id, "cbid_nobody", "cs_1", ZIP)
    forged = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    query = select(clearances.c.ack_id).where(clearances.c.id == forged.clearance_id)
    assert all_of(forged, query) == [None]
    assert forged.override(forged.person()).overridden
    assert forged.clearance_id in desk.erase(forged.clearance_id)
    assert shop.read().erased_at is None


def test_only_its_own_account_and_mode_override_a_refusal(desk: Desk, shop: Shop) -> None:
    stranger = shop_of(desk)
    for who in (stranger.person(), replace(shop.person(), mode=Mode.LIVE)):
        with pytest.raises(NotFound):
            shop.override(who)


def test_another_order_reference_is_refused(desk: Desk) -> None:
    shop = shop_of(desk, order_reference="A-1")
    with pytest.raises(OrderReferenceMismatch):
        shop.override(shop.person(), order_reference="A-2")
    assert shop.override(shop.person(), order_reference="A-1").overridden


def test_the_record_names_the_refusal_and_nothing_personal(shop: Shop) -> None:
    made = shop.override(shop.person(), **USER)
    [body] = all_of(shop, select(records.c.body).where(records.c.id == made.override_id))
    record = json.loads(body)
    assert (record["type"], record["clearance_id"]) == ("override", shop.clearance_id)
    assert (record["people"], record["reasons"]) == (1, ["buyer_not_found"])
    assert record["obligations"] == [COMPARED_ZIP]
    assert b"case 4712" not in body
    assert b"shop user" not in body


def test_an_order_is_not_cleared_and_overridden_at_once(desk: Desk) -> None:
    """Whichever is written first: the other one has read the order before."""
    cleared, overridden = revoked(desk), revoked(desk)
    for shop in (cleared, overridden):
        desk.reinstate(shop.order.cbid)

    async def clear() -> None:
        desk.clock.advance(timedelta(seconds=1))
        item = await prepare_order(desk.deployment.clearances, cleared.key, cleared.order)
        assert (await clear_order(item)).decision.cleared

    with pytest.raises(OrderNotRefused):
        cleared.override_after(clear)
    elsewhere = replaced(overridden.order, shipping_zip="94111")
    item = desk.do(prepare_order(desk.deployment.clearances, overridden.key, elsewhere))
    overridden.override(overridden.person())
    decision = desk.do(clear_order(item)).decision
    assert "acknowledgment_already_used" in decision.reasons
