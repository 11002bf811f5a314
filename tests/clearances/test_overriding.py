"""A refusal is overridden by hand: with a reason, visibly, and never as a clearance."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from sqlalchemy import Connection, select

from countersign.base.db.tables import (
    acknowledgment_uses,
    clearances,
    disclosures,
    overrides,
    records,
)
from countersign.base.errors import (
    Erased,
    InvalidRequest,
    NotFound,
    OrderNotRefused,
    OrderReferenceMismatch,
    OverrideLimitReached,
    OverrideNotAllowed,
    SecondPersonRequired,
)
from countersign.base.values import Mode, timed_id
from countersign.core.access.account import set_settings
from countersign.core.access.audit import AuditAction, AuditEntry, find_audit
from countersign.core.access.key import PersonAsking, Principal
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.room import acting
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.override import override_clearance
from countersign.core.clearances.read import get_clearance
from countersign.core.clearances.schemas import Clearance, Overridden, OverrideRequest
from countersign.core.dossiers.orders_sql import Within, find_order
from countersign.core.gate.act import Writing
from countersign.core.notices.rule import COMPARED_ZIP
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.retention import list_due
from countersign.staff.acts.orders import FoundOrder, get_order
from tests.clearances.desk import Desk, MovingClock, open_desk, order
from tests.http.backstage import notice_file
from tests.http.calls import SHIPPED_NOTICE
from tests.support.acts import done

ZIP = "94110"
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


@dataclass(frozen=True)
class Shop:
    """An account whose order was refused: its buyer is not known."""

    desk: Desk
    key: Principal
    clearance_id: str
    order: Any

    def person(self, number: int = 1) -> Principal:
        asking = PersonAsking(
            id=timed_id("per", 0, bytes([number] * 8)), role="owner", looks=frozenset(),
            sees_personal_data=True, is_fresh=True,
        )  # fmt: skip
        return replace(self.key, key_id=f"session_{number}", person=asking)

    def override(self, who: Principal, clearance_id: str = "", **said: Any) -> Overridden:  # noqa: ANN401 - fields
        access = self.desk.deployment.access
        room = acting(self.desk.deployment.clearances, access.audit.of(who.actor, who.reach))
        wanted = OverrideRequest(**{"reason": "case 4712", **said})
        write = Writing(access.database)
        id_ = clearance_id or self.clearance_id
        return self.desk.do(override_clearance(room, who, id_, wanted, write))

    def override_after(self, work: Callable[[], Awaitable[None]]) -> None:
        """Something else is written after the override has read the order."""

        @dataclass(frozen=True)
        class Late(Writing):
            async def __call__(self, act: Any, /, *args: Any, **named: Any) -> Any:  # noqa: ANN401
                await work()
                return await super().__call__(act, *args, **named)

        who, access = self.person(), self.desk.deployment.access
        room = acting(self.desk.deployment.clearances, access.audit.of(who.actor, who.reach))
        wanted, write = OverrideRequest(reason="case 4712"), Late(access.database)
        self.desk.do(override_clearance(room, who, self.clearance_id, wanted, write))

    def allow(self, a_day: int) -> None:
        self.desk.rules(self.key, ClearanceRules(overrides_per_day=a_day))

    def again(self, **changed: Any) -> Any:  # noqa: ANN401 - a decision
        self.desk.clock.advance(timedelta(seconds=1))
        return self.desk.clear(self.key, replaced(self.order, **changed))

    def read(self) -> Clearance:
        room = self.desk.deployment.clearances
        return self.desk.do(get_clearance(room, self.key, self.clearance_id))

    def shown(self) -> FoundOrder:
        return self.desk.do(get_order(self.desk.deployment.privacy, self.key, self.clearance_id))

    def in_dossier(self) -> set[str]:
        """The decision and its override in the dossier of the acknowledgment."""
        database, within = self.desk.deployment.database, Within(self.key)
        found = self.desk.do(database.read(find_order, within, self.order.ack_id))
        return {one.id for one in found if one.type in {"clearance", "override"}}

    def audit(self, action: AuditAction) -> list[AuditEntry]:
        found = self.desk.do(
            self.desk.deployment.access.database.read(find_audit, self.clearance_id)
        )
        return [one for one in found if one.action == action]


def replaced(wanted: Any, **changed: Any) -> Any:  # noqa: ANN401 - a request
    members = {name: getattr(wanted, name) for name in wanted.__struct_fields__} | changed
    return type(wanted)(**members)


def shop_of(desk: Desk, mode: Mode = Mode.TEST, **more: Any) -> Shop:  # noqa: ANN401 - of the order
    key = desk.account(mode)
    session = f"cs_{key.account_id}"
    ack_id = desk.acknowledge(key, SHIPPED_NOTICE, session)
    wanted = order(ack_id, "cbid_nobody", session, ZIP, **more)
    refused = desk.clear(key, wanted)
    assert refused.reasons, refused
    return Shop(desk, key, refused.clearance_id, wanted)


def shop_without(desk: Desk) -> Shop:
    """An account whose order was refused: it has no acknowledgment, which has an age."""
    key = desk.account()
    wanted = order("nothing", "cbid_nobody", "cs_1", ZIP)
    return Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)


@pytest.fixture
def shop(desk: Desk) -> Shop:
    return shop_of(desk)


def test_a_person_releases_a_refused_order_which_stays_refused(shop: Shop) -> None:
    """Asked again, it is not cleared, has no token, and says that it was released."""
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


def test_a_key_releases_as_many_orders_a_day_as_its_account_says(desk: Desk, shop: Shop) -> None:
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
    """Later the second person proposes anew."""
    shop = shop_without(desk)
    access = shop.desk.deployment.access
    shop.desk.do(done(set_settings, access, shop.key.account_id, reviewers=2))
    shop.override(shop.person(1))
    shop.desk.clock.advance(timedelta(days=30))
    assert not shop.override(shop.person(2)).overridden
    shop.desk.clock.advance(timedelta(days=29))
    assert shop.override(shop.person(1)).overridden


def test_where_two_people_decide_one_alone_releases_nothing(shop: Shop) -> None:
    """The first proposes, another one releases; a key does neither."""
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


def test_a_second_release_of_one_refusal_is_the_first(shop: Shop) -> None:
    first = shop.override(shop.person(1))
    assert shop.override(shop.person(2), reason="another") == first
    assert shop.override(shop.key, **USER) == first
    query = select(overrides.c.id).where(overrides.c.clearance_id == shop.clearance_id)
    assert _all(shop, query) == [first.override_id]


@pytest.mark.parametrize(
    "goods",
    [
        {"product_class": "barrel"},
        {"product_class": None, "product_classes": ("accessory", "barrel")},
        {"product_class": None},
    ],
)
def test_a_barrel_is_never_released(desk: Desk, goods: dict[str, Any]) -> None:
    """Nor goods whose class was not said: they can be barrels."""
    shop = shop_of(desk, **goods)
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person())


def test_a_barrel_is_never_released_without_an_acknowledgment_either(desk: Desk) -> None:
    key = desk.account()
    wanted = order("nothing", "cbid_nobody", "cs_1", ZIP, product_class="barrel")
    shop = Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)
    with pytest.raises(OverrideNotAllowed):
        shop.override(shop.person())


def test_an_order_without_an_acknowledgment_is_found_again(desk: Desk) -> None:
    shop = shop_without(desk)
    made = shop.override(shop.person())
    assert shop.again().override_id == made.override_id


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
def test_a_changed_order_is_not_released(shop: Shop, changed: dict[str, Any]) -> None:
    """The release is of the order as it was refused: another place, buyer or class is anew."""
    shop.override(shop.person())
    if "shipping_address" in changed:
        changed = {"shipping_address": order("a", "b", "c", ZIP, **changed).shipping_address}
    again = shop.again(**changed)
    assert not again.cleared
    assert not again.overridden
    assert again.clearance_id != shop.clearance_id


def test_a_new_reason_is_not_covered_by_an_earlier_release(shop: Shop) -> None:
    shop.override(shop.person())
    shop.desk.clock.advance(timedelta(days=8))
    again = shop.again()
    assert again.reasons == ("acknowledgment_too_old", "buyer_not_found")
    assert not again.overridden


def test_a_cleared_order_needs_no_release(desk: Desk) -> None:
    """Neither by its clearance, nor by a refusal before it."""
    shop = shop_of(desk)
    buyer = desk.sandbox_buyer(shop.key, "vs_released", ZIP)
    cleared = shop.again(cbid=buyer)
    assert cleared.cleared
    for clearance_id in (cleared.clearance_id, shop.clearance_id):
        with pytest.raises(OrderNotRefused):
            shop.override(shop.person(), clearance_id)


def revoked(desk: Desk) -> Shop:
    """An account whose order was refused: its buyer is revoked."""
    key = desk.account()
    session = f"cs_{key.account_id}"
    buyer = desk.sandbox_buyer(key, f"vs_{key.account_id}", ZIP)
    desk.revoke(buyer)
    wanted = order(desk.acknowledge(key, SHIPPED_NOTICE, session), buyer, session, ZIP)
    return Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)


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
    assert _all(forged, query) == [None]
    assert forged.override(forged.person()).overridden
    assert forged.clearance_id in desk.erase(forged.clearance_id)
    assert shop.read().erased_at is None


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
        _all(shop, select(overrides.c.id).where(overrides.c.clearance_id == shop.clearance_id))
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
    assert _all(shop, left) == []


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
    [index] = _all(shop, select(uses.order_index).where(uses.ack_id == ack_id))
    desk.erase(other, with_acknowledgments=True)
    assert index not in _all(shop, select(uses.order_index).where(uses.ack_id == ack_id))


def test_only_its_own_account_and_mode_release_an_order(desk: Desk, shop: Shop) -> None:
    stranger = shop_of(desk)
    for who in (stranger.person(), replace(shop.person(), mode=Mode.LIVE)):
        with pytest.raises(NotFound):
            shop.override(who)


def test_another_order_reference_is_refused(desk: Desk) -> None:
    shop = shop_of(desk, order_reference="A-1")
    with pytest.raises(OrderReferenceMismatch):
        shop.override(shop.person(), order_reference="A-2")
    assert shop.override(shop.person(), order_reference="A-1").overridden


def test_an_erasure_takes_people_and_reasons_and_the_release_ends(shop: Shop) -> None:
    """The record stays; nothing leads from it to the order any more."""
    made = shop.override(shop.person())
    assert made.override_id in shop.desk.erase(shop.order.ack_id)
    left = select(disclosures.c.record_id).where(disclosures.c.record_id == made.override_id)
    assert _all(shop, left) == []
    index = select(overrides.c.order_index).where(overrides.c.id == made.override_id)
    assert _all(shop, index) == [None]
    assert shop.read().override.keys() == {"override_id", "created_at"}  # type: ignore[union-attr]
    assert not shop.again().overridden
    with pytest.raises(Erased):
        shop.override(shop.person())


def test_the_record_says_who_released_which_refusal_and_nothing_personal(shop: Shop) -> None:
    made = shop.override(shop.person(), **USER)
    [body] = _all(shop, select(records.c.body).where(records.c.id == made.override_id))
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


def _all(shop: Shop, query: Any) -> list[Any]:  # noqa: ANN401 - a query
    def read(connection: Connection) -> list[Any]:
        return [*connection.execute(query).scalars()]

    return shop.desk.do(shop.desk.deployment.database.read(read))
