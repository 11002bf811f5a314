"""Refused orders, and people and keys who override the refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from countersign.base.values import Mode, timed_id
from countersign.core.access.audit import AuditAction, AuditEntry, find_audit
from countersign.core.access.key import PersonAsking, Principal
from countersign.core.access.room import acting
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.override import override_clearance
from countersign.core.clearances.read import get_clearance
from countersign.core.clearances.schemas import Clearance, Overridden, OverrideRequest
from countersign.core.dossiers.orders_sql import Within, find_order
from countersign.core.gate.act import Writing
from countersign.staff.acts.orders import FoundOrder, get_order
from tests.clearances.desk import Desk, order
from tests.http.calls import SHIPPED_NOTICE

ZIP = "94110"


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


def revoked(desk: Desk) -> Shop:
    """An account whose order was refused: its buyer is revoked."""
    key = desk.account()
    session = f"cs_{key.account_id}"
    buyer = desk.sandbox_buyer(key, f"vs_{key.account_id}", ZIP)
    desk.revoke(buyer)
    wanted = order(desk.acknowledge(key, SHIPPED_NOTICE, session), buyer, session, ZIP)
    return Shop(desk, key, desk.clear(key, wanted).clearance_id, wanted)


def all_of(shop: Shop, query: Any) -> list[Any]:  # noqa: ANN401 - a query
    def read(connection: Connection) -> list[Any]:
        return [*connection.execute(query).scalars()]

    return shop.desk.do(shop.desk.deployment.database.read(read))
