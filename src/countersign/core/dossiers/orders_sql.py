"""The records of one order in the database, of any type, and the places in the log that they have.

The selection depends only on the records under a checkpoint, so the dossier under one checkpoint
stays the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, Table, select, union_all

from countersign.base.db.tables import (
    clearances,
    deployment_records,
    disclosures,
    erasures,
    fulfilments,
    log_entries,
    overrides,
    parties,
    records,
    shred_keys,
    verifications,
)
from countersign.base.values import ACKNOWLEDGMENT, is_id, to_ms
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import refusing_damage
from countersign.core.clearances.fulfil import REPORTS_MAX
from countersign.core.log import tree_sql
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType
from countersign.core.orders.model import JoinedOrder, OrderAct, OrderState
from countersign_evidence.verification import party_digests

_EVENTS_MAX: Final = 16
_PLACE: Final = (log_entries.c.log_id, log_entries.c.leaf_index)


class Stored(NamedTuple):
    """A record as stored; without payload and shred key, it has no disclosures left."""

    id: str
    type: str
    body: bytes
    payload: bytes | None
    shred_key: bytes | None
    log_id: int | None
    leaf_index: int | None
    """Its place in the log; both None while it waits."""


class Within(NamedTuple):
    """The account and mode of the records, and the log size that they must be within; None: all."""

    who: Principal
    log_id: int | None = None
    size: int | None = None
    alone: bool = False
    """For an acknowledgment without its clearance."""

    def holds(self, row: Stored) -> bool:
        if self.size is None:
            return self.log_id is None or row.log_id in {None, self.log_id}
        return (
            row.log_id == self.log_id and row.leaf_index is not None and row.leaf_index < self.size
        )


_members: Final = msgspec.json.Decoder(dict[str, Any]).decode


def find_record(connection: Connection, who: Principal, id_: str) -> Stored | None:
    """One record of this account and mode."""
    return next(iter(_read(connection, Within(who), [id_])), None)


def find_order(connection: Connection, within: Within, id_: str) -> list[Stored]:
    """The records of the order of an acknowledgment or clearance, but for identity checks."""
    if is_id(ACKNOWLEDGMENT, id_):
        ack_id: str | None = id_
        clearance_id = None if within.alone else _clearance_of(connection, within, id_)
    else:
        ack_id = connection.scalar(select(clearances.c.ack_id).where(clearances.c.id == id_))
        clearance_id = id_
    named = ack_id if ack_id and is_id(ACKNOWLEDGMENT, ack_id) else None
    found = _read(connection, within, [one for one in (named, clearance_id) if one])
    if clearance_id in {row.id for row in found}:
        found += _reports(connection, within, str(clearance_id))
        made = select(overrides.c.id).where(overrides.c.clearance_id == clearance_id)
        found += _read(connection, within, connection.scalars(made))
    for row in found:
        if row.type == RecordType.ACKNOWLEDGMENT:
            return found + _events(connection, within, row)
    return found


def find_checks(connection: Connection, within: Within, ids: Collection[str]) -> list[Stored]:
    """These records, as far as they are identity checks."""
    return [row for row in _read(connection, within, ids) if row.type == RecordType.VERIFICATION]


def find_check_of(
    connection: Connection, within: Within, cbid: str, cbid_index: bytes
) -> list[Stored]:
    """The newest check of a buyer by this account; `cbid_index` finds one that a hold keeps."""
    own = verifications.c.account_id == within.who.account_id
    check = select(records.c.id).where(records.c.type == RecordType.VERIFICATION)
    ids = set[str]()
    for newest in (
        select(verifications.c.id)
        .where(own, verifications.c.cbid == cbid)
        .order_by(verifications.c.id.desc()),
        check.join(disclosures, disclosures.c.record_id == records.c.id)
        .where(found_by(connection, disclosures.c.cbid_index, cbid_index))
        .order_by(records.c.id.desc()),
    ):
        ids |= set(connection.execute(newest.limit(_EVENTS_MAX)).scalars())
    return sorted(_read(connection, within, ids), key=lambda row: row.id)[-1:]


def find_around(connection: Connection, within: Within, found: Sequence[Stored]) -> list[Stored]:
    """The records of parties named in these records, and those of their erasures."""
    scopes = parties.c.scope.in_(("deployment", within.who.account_id))
    with refusing_damage(", ".join(row.id for row in found)):
        members = [_members(row.body) for row in found]
    digests = {bytes.fromhex(d) for each in members for d in party_digests(each) if d}
    of_parties = select(parties.c.record_id).where(scopes, parties.c.mode == within.who.mode)
    named = connection.scalars(of_parties.where(parties.c.digest.in_(digests)))
    gone = erasures.c.record_id.in_([row.id for row in found])
    erased = connection.scalars(select(erasures.c.erasure_id).where(gone))
    around = _read(connection, within, {*named, *erased})
    # After a restore an erasure can name several records: it would show which belong together.
    return [
        row
        for row in around
        if row.type != RecordType.ERASURE or len(_members(row.body)["erased"]) == 1
    ]


def paths(
    connection: Connection, log_id: int, indexes: Iterable[int], size: int
) -> list[Sequence[bytes]]:
    """For each of these entries, the hashes that lead to the root of the tree of this size."""
    return [tree_sql.inclusion(connection, log_id, index, size) for index in indexes]


def _clearance_of(connection: Connection, within: Within, ack_id: str) -> str | None:
    """The clearance of an acknowledgment's shipment, else the one behind the order's state."""
    ids = select(fulfilments.c.id).where(fulfilments.c.ack_id == ack_id)
    reports = [_members(one.body) for one in _read(connection, within, connection.scalars(ids))]
    shipped = {one["clearance_id"] for one in reports if "paid_at" not in one}
    who, c, o = within.who, clearances.c, overrides.c
    own = (c.ack_id == ack_id, who.reach.rows(clearances))
    decided = select(c.id, c.at, c.id.label("of"), c.kid).where(*own)
    made = select(o.id, o.at, c.id.label("of"), c.kid).join(clearances, c.id == o.clearance_id)
    rows = union_all(decided, made.where(*own)).subquery()
    placed = select(rows, *_PLACE).outerjoin(log_entries, log_entries.c.record_id == rows.c.id)
    acts, of = list[OrderAct](), dict[str, str]()
    for row in connection.execute(placed.order_by(rows.c.at, rows.c.id)):
        if within.holds(Stored(row.id, "", b"", None, None, row.log_id, row.leaf_index)):
            state = OrderState.CLEARED if row.kid else OrderState.REFUSED
            state = state if row.id == row.of else OrderState.OVERRIDDEN
            at, of[row.id] = to_ms(row.at), row.of
            acts.append(OrderAct(who.account_id, who.mode, at, b"", row.id, state=state))
    sent = max(shipped & of.keys(), default=None)
    return sent or (of[JoinedOrder(tuple(acts)).decisive(acts[-1].at).member_id] if acts else None)


def _reports(connection: Connection, within: Within, clearance_id: str) -> list[Stored]:
    """The newest reports of the fulfilment of a clearance."""
    ack_id = select(clearances.c.ack_id).where(clearances.c.id == clearance_id).scalar_subquery()
    own = (fulfilments.c.ack_id == ack_id, fulfilments.c.clearance_id == clearance_id)
    ids = connection.scalars(select(fulfilments.c.id).where(*own))
    return sorted(_read(connection, within, ids), key=lambda row: row.id)[-REPORTS_MAX:]


def _events(connection: Connection, within: Within, acknowledgment: Stored) -> list[Stored]:
    """The newest events of the notice that was acknowledged."""
    with refusing_damage(acknowledgment.id):
        digest = _members(acknowledgment.body)["notice_digest"]
    r, events = deployment_records.c, RecordType.NOTICE_EVENT
    every = _of(deployment_records).where(r.mode == within.who.mode, r.type == events)
    found = [Stored(*row) for row in connection.execute(every.order_by(r.id))]
    with refusing_damage(acknowledgment.id):
        own = [row for row in found if _members(row.body)["notice_digest"] == digest]
    return [row for row in own if within.holds(row)][-_EVENTS_MAX:]


def _read(connection: Connection, within: Within, ids: Iterable[str]) -> list[Stored]:
    """These records, as far as they count."""
    found: list[Stored] = []
    wanted = list(ids)
    for table in (records, deployment_records) if wanted else ():
        statement = _of(table).where(table.c.id.in_(wanted), table.c.mode == within.who.mode)
        if table is records:
            statement = statement.where(records.c.account_id == within.who.account_id)
        found += [Stored(*row) for row in connection.execute(statement)]
    return [row for row in found if within.holds(row)]


def _of(table: Table) -> Select[Any]:
    """The records in a table, with the columns to show and to prove them."""
    shown = (table.c.id, table.c.type, table.c.body, disclosures.c.payload, shred_keys.c.key)
    query = select(*shown, *_PLACE).select_from(table)
    for of_record in (log_entries, disclosures, shred_keys):
        query = query.outerjoin(of_record, of_record.c.record_id == table.c.id)
    return query
