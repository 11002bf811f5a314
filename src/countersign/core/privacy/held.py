"""A hold keeps the whole order, whichever of its members it is on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Connection, select, tuple_

from countersign.base.db.statements import chunks
from countersign.base.db.tables import disclosures, records
from countersign.base.values import VERIFICATION, is_id
from countersign.core.access.reach import Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType
from countersign.core.orders.model import JoinedOrder
from countersign.core.orders.sql import orders_of
from countersign.core.privacy.holds import find_holding, hold_on, is_any_active, naming

HeldRecords: TypeAlias = Mapping[str, tuple[str, str]]
"""By member of an order: the id and the subject of the hold on it."""


def find_held(
    connection: Connection, secret: DeploymentSecret, ids: Sequence[str], reach: Reach
) -> HeldRecords:
    """Those of these records and checkout sessions in reach that a hold keeps."""
    if not ids or not is_any_active(connection, reach):
        return {}
    orders = orders_of(connection, reach, [*ids, *_near(connection, ids)])
    checks = _checks_of(connection, orders)
    members = {order: order.members | own for order, own in zip(orders, checks, strict=True)}
    every, of = sorted({*ids}.union(*members.values())), [order.id for order in orders]
    active, on_it = find_holding(connection, secret, reach, every, of)
    held = dict(on_it)
    for order, own in members.items():
        holds = [on_it[one] for one in sorted(own) if one in on_it]
        for subject in (order.id, *sorted(own)):
            hold = hold_on(active, subject, *order.first[:2])
            holds += [(hold, subject)] if hold else []
        if holds:
            held = dict.fromkeys(own, holds[0]) | held
    return {id_: held[id_] for id_ in ids if id_ in held}


def _near(connection: Connection, ids: Iterable[str]) -> Sequence[str]:
    """The records of the same account and mode that name the buyer of one of these checks."""
    d, checks = disclosures.c, [id_ for id_ in ids if is_id(VERIFICATION, id_)]
    if not checks:
        return ()
    # The hash differs from account to account, not from mode to mode: a test order may name a live
    # buyer, and rests on no live check.
    named = select(d.cbid_index, d.mode).where(d.record_id.in_(checks), d.cbid_index.is_not(None))
    pairs = [(*pair,) for pair in connection.execute(named.distinct())]
    among = found_by(connection, d.cbid_index, *(index for index, _ in pairs))
    near = select(d.record_id).where(among, tuple_(d.cbid_index, d.mode).in_(pairs))
    return connection.execute(near).scalars().all()


def _checks_of(connection: Connection, orders: Sequence[JoinedOrder]) -> list[frozenset[str]]:
    """For each order, the account's checks of its buyers, where it has none of theirs.

    Such as that of an acknowledgment alone, or an order of an earlier release.
    """
    d, members = disclosures.c, sorted({one for order in orders for one in order.members})
    found = naming(connection, members)
    named = {member: bytes(buyer) for member, _, _, buyer, _ in found if buyer}
    buyers = [_unchecked(order, named) for order in orders]
    checks: dict[tuple[str, str, bytes], set[str]] = {}
    for indexes in chunks(sorted({index for some in buyers for *_, index in some})):
        made = select(records.c.id, d.account_id, d.mode, d.cbid_index)
        made = made.join(disclosures, d.record_id == records.c.id)
        made = made.where(records.c.type == RecordType.VERIFICATION)
        made = made.where(found_by(connection, d.cbid_index, *indexes))
        for id_, account_id, mode, buyer in connection.execute(made):
            checks.setdefault((account_id, mode, bytes(buyer)), set()).add(id_)
    return [frozenset[str]().union(*(checks.get(one, ()) for one in some)) for some in buyers]


def _unchecked(order: JoinedOrder, named: Mapping[str, bytes]) -> set[tuple[str, str, bytes]]:
    """Account, mode and keyed hash of each buyer of an order without a check in it."""
    known = {member: named.get(member, b"") for member in order.members}
    checked = {buyer for member, buyer in known.items() if is_id(VERIFICATION, member)}
    left = {*known.values()} - checked - {b""}
    # An erased check names no buyer: it was of the only one who has no other.
    if b"" in checked and len(left) == 1:
        return set()
    return {(*order.first[:2], buyer) for buyer in left}
