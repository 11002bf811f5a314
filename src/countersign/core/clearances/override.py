"""Manual overrides of refusals: a record of its own type, never a clearance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec import convert, json
from msgspec.structs import replace
from sqlalchemy import Connection, func, insert, select

from countersign.base.db.statements import deferred_statements
from countersign.base.db.tables import disclosures, overrides, records
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
from countersign.base.values import CLEARANCE, OVERRIDE, from_ns, is_id, timed_id, to_ms
from countersign.core.access.account import lock_account
from countersign.core.access.audit import AuditAction, find_audit, write_audit
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.four_eyes import needs_two, refuse_alone
from countersign.core.clearances.clear import (
    EXEMPTION_FIELD,
    SHIPPING_FIELD,
    PreparedOrder,
    case_of,
    prepare_order,
)
from countersign.core.clearances.exempt import without_notice
from countersign.core.clearances.facts_sql import BatchFacts, rules_of, with_uses
from countersign.core.clearances.model import (
    ClearanceInput,
    ClearanceRules,
    failed_checks,
    reasons_of,
)
from countersign.core.clearances.read import (
    OVERRIDE_FIELD,
    ReadDecision,
    StoredClearance,
    classes_of,
    decided_in,
    opened,
    refuse_another,
    stored_clearance,
)
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import (
    ClearanceReason,
    ClearanceRequest,
    Overridden,
    OverrideRequest,
)
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import REASON_LENGTH_MIN
from countersign.core.log.record import RecordType, account_fact
from countersign.core.notices.model import is_blank
from countersign.core.notices.rule import COMPARED_ZIP, SOLD_IN_PERSON
from countersign.core.orders.model import OrderState
from countersign.core.orders.sql import orders_of, write_act_with
from countersign.core.parties import bound_now
from countersign_evidence.canonical import Json
from countersign_evidence.record import CBID_FIELD, SESSION_FIELD

_PROPOSED_FOR: Final = timedelta(days=30)
"""How long the proposal of the first of two people holds."""
_DONE: Final = frozenset({OrderState.CLEARED, OrderState.SHIPPED, OrderState.DELIVERED})
_UNKNOWN_GOODS: Final = {
    ClearanceReason.NOTICE_NOT_SUFFICIENT,
    ClearanceReason.PRODUCT_CLASS_MISSING,
}
_NO_ACKNOWLEDGMENT: Final = {
    ClearanceReason.ACKNOWLEDGMENT_NOT_FOUND,
    ClearanceReason.ACKNOWLEDGMENT_ERASED,
}
_PROPOSED: Final = AuditAction.CLEARANCE_OVERRIDE_PROPOSED
_SWITCHED_OFF: Final = "Manual overrides by keys are switched off for this account."
_ERASED: Final = "The personal data of this order was erased."

OVERRIDES: Final = Acts("Clearances", Clearances, scope=Scope.CLEARANCES_OVERRIDE, audited=True)


@OVERRIDES.act(
    "POST /v1/clearances/{clearance_id}/override",
    "Override the refusal of an order",
    reach=AccountReach,
    fresh=True,
    refusals=(
        *(NotFound, OverrideNotAllowed, OrderNotRefused, OverrideLimitReached),
        *(OrderReferenceMismatch, SecondPersonRequired, Erased),
    ),
    response_examples={"overridden": {}, "proposed": {"overridden": False, "override_id": None}},
)
async def override_clearance(
    room: Clearances, who: Principal, clearance_id: str, wanted: OverrideRequest, write: Writing
) -> Overridden:
    """Override the refusal of an order, at the caller's responsibility. The order stays refused.

    No token is issued. A record of its own type names the refusal, the people and their reasons.
    From now on the acknowledgment belongs to this order. The next clearance has `overridden`,
    until there is a new reason, or the maximum age of an acknowledgment has passed. A repeated
    override of one refusal returns the first. Where two people decide at the account, the first
    request is a proposal for 30 days, and another person overrides; a key cannot.
    """
    own, claimed = _said_by(who, wanted)
    stored = await stored_clearance(room, who, clearance_id)
    refuse_another(room, who, stored, wanted.order_reference)
    decided, personal = decided_in(stored.record.body), await opened(room, who, stored.record)
    item = await prepare_order(room, who, _order_of(stored, decided, personal))
    notices = await room.registry.notices(fresh=True)
    item = item._replace(new=replace(item.new, clearance_id=clearance_id), notices=notices)
    at = from_ns(time_ns := room.access.clock.time_ns())
    answer = partial(Overridden, clearance_id=clearance_id, reasons=decided.reasons)
    audit = partial(room.access.audit.entry, subject=clearance_id, reason=own["reason"])

    def override(connection: Connection) -> Overridden:
        # Two at once take turns, and are counted together; the order is not cleared meanwhile.
        lock_account(connection, who.account_id)
        [new] = with_uses(connection, [item.new])
        facts = BatchFacts(connection, room.access.secret, [new])
        kept = select(disclosures.c.record_id).where(disclosures.c.record_id == clearance_id)
        if connection.execute(kept.with_for_update()).scalar() is None:
            raise Erased(_ERASED)
        there = select(overrides.c.id, records.c.body).where(records.c.id == overrides.c.id)
        there = there.where(overrides.c.clearance_id == clearance_id)
        done = connection.execute(there).one_or_none()
        if done is not None:
            duties = tuple(json.decode(done.body)["obligations"])
            return answer(overridden=True, override_id=done.id, obligations=duties)
        _refuse_unless_overridable(item, decided)
        orders, now = orders_of(connection, who.reach, [clearance_id]), to_ms(new.clock_at)
        if any(order.decisive(now).state_at(now) in _DONE for order in orders):
            raise OrderNotRefused
        binds, duties = _reassessed(case_of(item._replace(new=new), facts.of(new)), item, decided)
        first = _first_of_two(connection, who, clearance_id, at)
        if first is None:
            write_audit(connection, audit(_PROPOSED))
            return answer(overridden=False, override_id=None, obligations=duties)
        if binds:
            facts.bind(new)
            facts.defer(connection, deferred_statements(connection))
        made = add(connection, [*first, own], duties)
        return answer(overridden=True, override_id=made, obligations=duties)

    def add(connection: Connection, by: list[Json], duties: Sequence[Mapping[str, Any]]) -> str:
        people = len(by) if who.person else 0
        members: dict[str, Json] = {"clearance_id": clearance_id, "people": people}
        members |= {"reasons": [*decided.reasons], "obligations": [dict(one) for one in duties]}
        record = account_fact(
            *(item.new.key, room.access.entropy, RecordType.OVERRIDE),
            record_id=timed_id(OVERRIDE, time_ns, room.access.entropy(8)),
            account_id=who.account_id,
            mode=who.mode,
            time_ns=time_ns,
            members=members | bound_now(connection, who.account_id, who.mode).members(),
            personal=[(OVERRIDE_FIELD, {"by": by, "claimed_user": claimed})],
        )
        room.log.journal.write(connection, [record])
        row = {"id": record.id, "account_id": who.account_id, "mode": who.mode, "at": at}
        row |= {"clearance_id": clearance_id, "order_index": item.new.order_index}
        row |= {"by_key": not people}
        connection.execute(insert(overrides), row)
        write_act_with(connection, clearance_id, record.id, at, OrderState.OVERRIDDEN)
        write_audit(connection, audit(AuditAction.CLEARANCE_OVERRIDDEN, override=record.id))
        return record.id

    return await write(override)


def _said_by(who: Principal, wanted: OverrideRequest) -> tuple[dict[str, Json], str | None]:
    """Who asks and why, and the user whom the vendor names."""
    reason, claimed = wanted.reason.strip(), wanted.claimed_user
    if is_blank(reason) or len(reason) < REASON_LENGTH_MIN:
        raise InvalidRequest("A required field is missing or blank - at `$.reason`.")
    if is_blank(claimed or "") and (who.person is None or claimed is not None):
        raise InvalidRequest("A key names the user who decided - at `$.claimed_user`.")
    return {"actor": who.actor, "reason": reason}, claimed


def _order_of(
    stored: StoredClearance, decided: ReadDecision, personal: Mapping[str, Any]
) -> ClearanceRequest:
    """The order as it was refused."""
    if decided.cleared:
        raise OrderNotRefused
    if not personal:
        raise Erased(_ERASED)
    shipping = personal[SHIPPING_FIELD]
    is_exempt = is_id(CLEARANCE, stored.ack_id or "")
    given = {one: personal.get(one) for one in (CBID_FIELD, SESSION_FIELD, EXEMPTION_FIELD)}
    given |= {"shipping_zip": shipping["zip"], "shipping_address": shipping["address"]}
    given |= {"product_classes": classes_of(shipping) or None}
    given |= {"ack_id": None if is_exempt else decided.ack_id or "none"}
    return convert(given, ClearanceRequest)


def _refuse_unless_overridable(item: PreparedOrder, decided: ReadDecision) -> None:
    """Refuse a second order of an acknowledgment, and goods for which the notices do not suffice.

    By the notices in force, since an order without an acknowledgment was judged by none.
    """
    new, notices, classes = item.new, item.notices, item.new.order.classes
    if ClearanceReason.ACKNOWLEDGMENT_ALREADY_USED in decided.reasons:
        raise OverrideNotAllowed("The acknowledgment belongs to another order.")
    if not SOLD_IN_PERSON.isdisjoint(classes):
        raise OverrideNotAllowed("These goods are sold in person only.")
    editions = [
        notices.current(o, new.mode, new.clock_at, remember=False) for o in notices.versions
    ]
    current = [(one.following, one.rule_for(new.mode)[0]) for one in editions if one is not None]
    covered = frozenset[str]().union(*(following.classes for following, _ in current))
    lacking = not covered.issuperset(classes) or any(
        rule is not None and named in rule.product_classes and not following.covers(named)
        for following, rule in current
        for named in classes
    )
    if not classes or lacking or not _UNKNOWN_GOODS.isdisjoint(decided.reasons):
        raise OverrideNotAllowed("The class of goods is missing, or the notice does not cover it.")


def _reassessed(
    case: ClearanceInput, item: PreparedOrder, decided: ReadDecision
) -> tuple[bool, tuple[Mapping[str, Any], ...]]:
    """Whether the order has an acknowledgment to bind, and its obligations.

    Raises OverrideNotAllowed for a reason that the refusal does not have.
    """
    failed = failed_checks(case)
    if not {*reasons_of(case, failed)} <= {*decided.reasons}:
        raise OverrideNotAllowed("There are new reasons by now: ask for the clearance again.")
    known = case.facts.acknowledgment is not None  # else: by what the order needs
    following = case.following if known else without_notice(case.new, item.notices)[0]
    return _NO_ACKNOWLEDGMENT.isdisjoint(failed), (*following.obligations, COMPARED_ZIP)


def _first_of_two(
    connection: Connection, who: Principal, clearance_id: str, at: datetime
) -> list[Json] | None:
    """Whoever decided before, where two people do; None: no one has, and one has to.

    Raises:
        SecondPersonRequired: the same person asks again, or a key.
        OverrideLimitReached: keys have made all overrides that they may within a day.
    """
    if who.person is None:
        _refuse_key(connection, who, at - timedelta(days=1))
    if who.person is None or not needs_two(connection, who.account_id):
        return []
    noted, since = find_audit(connection, clearance_id), at - _PROPOSED_FOR
    found = [one for one in noted if one.action == _PROPOSED and one.at > since]
    if found and found[-1].actor == who.actor:
        raise SecondPersonRequired
    return [{"actor": e.actor, "reason": str(e.details["reason"])} for e in found[-1:]] or None


def _refuse_key(connection: Connection, who: Principal, since: datetime) -> None:
    if (refused := refuse_alone(connection, who.account_id)) is not None:
        raise refused
    rules = rules_of(connection, [who.account_id]).get(who.account_id, ClearanceRules())
    o, most = overrides.c, rules.overrides_per_day
    made = select(func.count()).where(who.reach.rows(overrides), o.by_key, o.at > since)
    if connection.execute(made).scalar_one() >= most:
        allowed = f"Keys of this account override {most} refusals within 24 hours."
        raise OverrideLimitReached(allowed if most else _SWITCHED_OFF)
