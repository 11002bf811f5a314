"""A hold keeps the whole order, whichever of its members it is on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, select, tuple_

from countersign.base.db.tables import checkout_sessions, disclosures, records
from countersign.base.values import VERIFICATION, is_id
from countersign.core.access.reach import Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType
from countersign.core.orders.model import JoinedOrder
from countersign.core.orders.sql import orders_of
from countersign.core.privacy.holds import active_holds, find_holding, hold_on

HeldRecords: TypeAlias = Mapping[str, tuple[str, str]]
"""By member of an order: the id and the subject of the hold on it."""


def find_held(
    connection: Connection, secret: DeploymentSecret, ids: Sequence[str], reach: Reach
) -> HeldRecords:
    """Those of these records and checkout sessions in reach that a hold keeps."""
    active = active_holds(connection, reach) if ids else {}
    if not active:
        return {}
    orders = orders_of(connection, reach, [*ids, *_near(connection, ids)])
    members = {order: order.members | _checks_of(connection, order) for order in orders}
    on_it = find_holding(connection, secret, active, sorted({*ids}.union(*members.values())))
    held = dict(on_it)
    for order, own in members.items():
        owner = (order.first.account_id, order.first.mode)
        holds = [on_it[one] for one in sorted(own) if one in on_it]
        for subject in (order.id, *sorted(own)):
            hold = hold_on(active, subject, *owner)
            holds += [(hold, subject)] if hold else []
        if holds:
            held = dict.fromkeys(own, holds[0]) | held
    return {id_: held[id_] for id_ in ids if id_ in held}


def _near(connection: Connection, ids: Iterable[str]) -> Sequence[str]:
    """The records of the same account and mode that name the buyer of one of these checks."""
    checks = [id_ for id_ in ids if is_id(VERIFICATION, id_)]
    near = select(disclosures.c.record_id).where(_of_buyer(connection, checks))
    return connection.execute(near).scalars().all()


def _checks_of(connection: Connection, order: JoinedOrder) -> set[str]:
    """The account's checks of the buyers of an order that has none of theirs.

    Such as that of an acknowledgment alone, or an order of an earlier release.
    """
    first, d, s = order.first, disclosures.c, checkout_sessions.c
    checks = {one for one in order.members if is_id(VERIFICATION, one)}
    of_buyers = select(d.cbid_index).where(d.cbid_index.is_not(None))
    linked = select(s.cbid_index).where(s.cbid_index.is_not(None), s.id.in_(order.members))
    named = {
        *connection.execute(of_buyers.where(d.record_id.in_(order.members - checks))).scalars()
    }
    named |= {*connection.execute(linked).scalars()}
    named -= {*connection.execute(of_buyers.where(d.record_id.in_(checks))).scalars()}
    if not named:
        return set()
    made = (
        select(records.c.id)
        .join(disclosures, disclosures.c.record_id == records.c.id)
        .where(records.c.type == RecordType.VERIFICATION, records.c.mode == first.mode)
        .where(records.c.account_id == first.account_id)
        .where(found_by(connection, d.cbid_index, *named))
    )
    return {*connection.execute(made).scalars()}


def _of_buyer(connection: Connection, record_ids: Iterable[str]) -> ColumnElement[bool]:
    """The condition that disclosures are of a buyer named in one of these records, same mode.

    The hash differs from account to account, not from mode to mode: a test order may name a live
    buyer, and rests on no live check.
    """
    d = disclosures.c
    named = (d.record_id.in_([*record_ids]), d.cbid_index.is_not(None))
    pairs = connection.execute(select(d.cbid_index, d.mode).where(*named).distinct()).all()
    among = found_by(connection, d.cbid_index, *(index for index, _ in pairs))
    return among & tuple_(d.cbid_index, d.mode).in_([(*pair,) for pair in pairs])
