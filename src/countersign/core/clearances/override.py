"""Release a refused order by hand: on somebody's responsibility, and never as a clearance."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection, func, insert, select

from countersign.base.db.tables import overrides
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
from countersign.base.values import OVERRIDE, from_ns, timed_id, to_ms
from countersign.core.access.account import lock_account
from countersign.core.access.audit import AuditAction, find_audit, write_audit
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.four_eyes import needs_two, refuse_alone
from countersign.core.clearances.clear import EXEMPTION_FIELD, SHIPPING_FIELD
from countersign.core.clearances.facts_sql import rules_of
from countersign.core.clearances.model import ClearanceRules, order_identity
from countersign.core.clearances.read import (
    OVERRIDE_FIELD,
    ReadDecision,
    classes_of,
    decided_in,
    opened,
    refuse_another,
    stored_clearance,
)
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import ClearanceReason, Overridden, OverrideRequest
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import REASON_LENGTH_MIN
from countersign.core.log.record import RecordType, account_fact
from countersign.core.notices.rule import SOLD_IN_PERSON
from countersign.core.orders.model import OrderState
from countersign.core.orders.sql import orders_of, write_act_with
from countersign.core.parties import bound_now
from countersign_evidence.canonical import Json
from countersign_evidence.record import SESSION_FIELD

_DAY: Final = timedelta(days=1)
_DONE: Final = frozenset({OrderState.CLEARED, OrderState.SHIPPED, OrderState.DELIVERED})
_UNKNOWN_GOODS: Final = {
    ClearanceReason.NOTICE_NOT_SUFFICIENT,
    ClearanceReason.PRODUCT_CLASS_MISSING,
}
_PROPOSED: Final = AuditAction.CLEARANCE_OVERRIDE_PROPOSED

OVERRIDES: Final = Acts("Clearances", Clearances, scope=Scope.CLEARANCES_OVERRIDE, audited=True)


@OVERRIDES.act(
    "POST /v1/clearances/{clearance_id}/override",
    "Release a refused order by hand",
    reach=AccountReach,
    fresh=True,
    refusals=(
        *(NotFound, OverrideNotAllowed, OrderNotRefused, OverrideLimitReached),
        *(OrderReferenceMismatch, SecondPersonRequired, Erased),
    ),
    response_examples={"released": {}, "proposed": {"overridden": False, "override_id": None}},
)
async def override_clearance(
    room: Clearances, who: Principal, clearance_id: str, wanted: OverrideRequest, write: Writing
) -> Overridden:
    """Release a refused order by hand, on the responsibility of whoever does. It stays refused.

    There is no token, and nothing is cleared: a record of its own type says who released which
    refusal, and why. Asked again, the order has `overridden` as long as nothing else is against it.
    A second release of one refusal gets the first. Where two people decide at the account, the
    first request is a proposal, and another person releases the order; a key releases nothing
    there.
    """
    stored, clock = await stored_clearance(room, who, clearance_id), room.access.clock
    refuse_another(room, who, stored, wanted.order_reference)
    own, claimed = {"actor": who.actor, "reason": wanted.reason.strip()}, wanted.claimed_user
    if len(own["reason"]) < REASON_LENGTH_MIN:
        raise InvalidRequest("A required field is missing or blank - at `$.reason`.")
    if who.person is None and not claimed:
        raise InvalidRequest("A key names the user who decided - at `$.claimed_user`.")
    decided, personal = decided_in(stored.record.body), await opened(room, who, stored.record)
    shipping = personal.get(SHIPPING_FIELD, {})
    _refuse_goods(decided, classes_of(shipping), is_erased=not personal)
    identity = order_identity(
        *(stored.ack_id, personal[SESSION_FIELD], shipping["zip"]),
        *(classes_of(shipping), shipping["address"]),
        exemption=personal.get(EXEMPTION_FIELD),
    )
    index = room.access.secret.blind_index(who.account_id, "order", identity)
    at = from_ns(time_ns := clock.time_ns())
    now = to_ms((await room.access.test_clocks.of(who.account_id, who.mode)).at(at))
    key = await room.log.vault.vault.data_key(who.account_id, time_ns)
    audit = partial(room.access.audit.entry, subject=clearance_id, reason=own["reason"])

    def override(connection: Connection) -> Overridden:
        # Two at once take turns, and are counted together.
        lock_account(connection, who.account_id)
        there = select(overrides.c.id).where(overrides.c.clearance_id == clearance_id)
        done: str | None = connection.execute(there).scalar()
        if done is None:
            orders = orders_of(connection, who.reach, [clearance_id])
            if any(order.decisive(now).state_at(now) in _DONE for order in orders):
                raise OrderNotRefused
            first = _first_of_two(connection, who, clearance_id, at - _DAY)
            if first is None:
                write_audit(connection, audit(_PROPOSED))
            else:
                done = add(connection, [*first, own])
        return Overridden(
            clearance_id=clearance_id,
            overridden=done is not None,
            override_id=done,
            reasons=decided.reasons,
            obligations=decided.obligations,
        )

    def add(connection: Connection, by: list[dict[str, str]]) -> str:
        people = len(by) if who.person else 0
        members: dict[str, Json] = {"clearance_id": clearance_id, "people": people}
        members |= {"reasons": [*decided.reasons]}
        record = account_fact(
            *(key, room.access.entropy, RecordType.OVERRIDE),
            record_id=timed_id(OVERRIDE, time_ns, room.access.entropy(8)),
            account_id=who.account_id,
            mode=who.mode,
            time_ns=time_ns,
            members=members | bound_now(connection, who.account_id, who.mode).members(),
            personal=[(OVERRIDE_FIELD, {"by": by, "claimed_user": claimed})],
        )
        room.log.journal.write(connection, [record])
        row = {"id": record.id, "account_id": who.account_id, "mode": who.mode, "at": at}
        row |= {"clearance_id": clearance_id, "order_index": index, "by_key": not people}
        connection.execute(insert(overrides), row)
        write_act_with(connection, clearance_id, record.id, at, OrderState.OVERRIDDEN)
        write_audit(connection, audit(AuditAction.CLEARANCE_OVERRIDDEN, override=record.id))
        return record.id

    return await write(override)


def _refuse_goods(decided: ReadDecision, classes: list[str], *, is_erased: bool) -> None:
    """Refuse what is cleared, erased, or of a class that is sold in person or unknown."""
    if decided.cleared:
        raise OrderNotRefused
    if is_erased:
        raise Erased("The personal data of this order was erased.")
    if not SOLD_IN_PERSON.isdisjoint(classes):
        raise OverrideNotAllowed("These goods are sold in person only.")
    if not classes or not _UNKNOWN_GOODS.isdisjoint(decided.reasons):
        raise OverrideNotAllowed("The class of goods is missing, or the notice does not cover it.")


def _first_of_two(
    connection: Connection, who: Principal, clearance_id: str, since: datetime
) -> list[dict[str, str]] | None:
    """Whoever decided before, where two people do; None: no one has, and one has to.

    Raises:
        SecondPersonRequired: the same person asks again, or a key.
        OverrideLimitReached: keys have released as many as they may within a day.
    """
    if who.person is None:
        if (refused := refuse_alone(connection, who.account_id)) is not None:
            raise refused
        rules = rules_of(connection, [who.account_id]).get(who.account_id, ClearanceRules())
        o, most = overrides.c, rules.overrides_per_day
        made = select(func.count()).where(who.reach.rows(overrides), o.by_key, o.at > since)
        if connection.execute(made).scalar_one() >= most:
            raise OverrideLimitReached(f"Keys of this account release {most} orders a day by hand.")
    if who.person is None or not needs_two(connection, who.account_id):
        return []
    found = [one for one in find_audit(connection, clearance_id) if one.action == _PROPOSED]
    if found and found[-1].actor == who.actor:
        raise SecondPersonRequired
    return [{"actor": e.actor, "reason": str(e.details["reason"])} for e in found[-1:]] or None
