"""What a hold keeps of an order: all of it, whichever of its records the hold is on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, select

from countersign.access.secrets import DeploymentSecret
from countersign.clearances.clear import VERIFICATION_FIELD
from countersign.db.rows import chunks
from countersign.db.tables import clearances, disclosures, fulfilments, records, shred_keys
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, FULFILMENT, VERIFICATION, is_id
from countersign.log.append_record import open_disclosures
from countersign.log.blind_runs import found_by
from countersign.log.record import RecordType
from countersign.privacy.erase_sql import of_own
from countersign.privacy.holds import active_holds, find_holding
from countersign.privacy.room import Privacy
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.process import PROCESS

HeldRecords: TypeAlias = Mapping[str, tuple[str, str]]
"""By record: the hold that keeps it, and the subject of that hold."""
Rests: TypeAlias = Mapping[str, str | None]
"""By acknowledgment and clearance: the identity check that its disclosures name."""

_OF_ORDERS: Final = (ACKNOWLEDGMENT, CLEARANCE, FULFILMENT)


class UnreadRecord(NamedTuple):
    """A record of an order whose disclosures have to be opened to know its check."""

    record_id: str
    account_id: str
    payload: bytes
    shred_key: bytes


class KeptRecords(NamedTuple):
    """What holds keep of these records, and what that was found by."""

    held: HeldRecords
    rests: Rests


NOTHING_KEPT: Final = KeptRecords({}, {})


async def kept_of(privacy: Privacy, record_ids: Sequence[str]) -> KeptRecords:
    """Which of these records a hold keeps, be it on another record of the same order."""
    rests: dict[str, str | None] = {}
    while True:
        held, sealed = await privacy.access.database.scan(
            find_held, privacy.access.secret, record_ids, rests
        )
        if not sealed:
            return KeptRecords(held, rests)
        for one in sealed:
            rests[one.record_id] = await _check_of(privacy, one)


def find_held(
    connection: Connection, secret: DeploymentSecret, record_ids: Sequence[str], rests: Rests
) -> tuple[HeldRecords, list[UnreadRecord]]:
    """Which of these records a hold keeps; second, what has to be opened first to know.

    The check of an order is what its disclosures name, or else the newest of the same account and
    buyer: that is the one that a dossier shows.
    """
    active = active_holds(connection)
    if not active:
        return {}, []
    on = [subject for subject in active if _is_record(subject)]
    checks_matter = any(is_id(VERIFICATION, id_) for id_ in (*record_ids, *on))
    orders = orders_of(connection, [*record_ids, *on, *_near(connection, on)])
    sealed = list[UnreadRecord]()
    if checks_matter:
        for members in orders.values():
            sealed += _sealed(connection, [m for m in members if m not in rests])
            named = {check for m in members if (check := rests.get(m))}
            members.update(named or _newest_check(connection, members))
    everything = {*record_ids, *(one for members in orders.values() for one in members)}
    on_it = find_holding(connection, secret, active, sorted(everything))
    held = dict(on_it)
    for members in orders.values():
        holds = [on_it[one] for one in sorted(members) if one in on_it]
        if holds:
            held = dict.fromkeys(members, holds[0]) | held
    return {id_: held[id_] for id_ in record_ids if id_ in held}, sealed


def _is_record(subject: str) -> bool:
    return any(is_id(kind, subject) for kind in (*_OF_ORDERS, VERIFICATION))


def _near(connection: Connection, on: Sequence[str]) -> Sequence[str]:
    """The records that name the same buyer as the checks that a hold is on."""
    buyers = _named_by(connection, [id_ for id_ in on if is_id(VERIFICATION, id_)])
    near = select(disclosures.c.record_id).where(buyers)
    return connection.execute(near).scalars().all()


def _named_by(connection: Connection, record_ids: Iterable[str]) -> ColumnElement[bool]:
    """That disclosures are of a buyer whom one of these records names."""
    d = disclosures.c
    indexes = select(d.cbid_index).where(d.record_id.in_([*record_ids]), d.cbid_index.is_not(None))
    return found_by(connection, d.cbid_index, *set(connection.execute(indexes).scalars()))


def orders_of(connection: Connection, ids: Iterable[str]) -> dict[str, set[str]]:
    """The orders of these records, each with the records of it: by the acknowledgment if any.

    A clearance that names no acknowledgment of its own account and mode is an order of its own.
    """
    found = set(ids)
    keys = {id_ for id_ in found if is_id(ACKNOWLEDGMENT, id_)}
    for chunk in chunks(sorted(found - keys)):
        joined = of_own(clearances).label("joined")
        own = select(clearances.c.id, clearances.c.ack_id, joined)
        rows = connection.execute(own.where(clearances.c.id.in_(chunk)))
        keys |= {row.ack_id if row.joined else row.id for row in rows}
        reports = select(fulfilments.c.ack_id).where(fulfilments.c.id.in_(chunk))
        keys |= set(connection.execute(reports).scalars())
    orders: dict[str, set[str]] = {key: {key} for key in keys}
    for chunk in chunks(sorted(keys)):
        for table in (clearances, fulfilments):
            members = select(table.c.id, table.c.ack_id).where(
                table.c.ack_id.in_(chunk), of_own(table)
            )
            for row in connection.execute(members):
                orders[row.ack_id].add(row.id)
    return orders


def _sealed(connection: Connection, ids: Sequence[str]) -> list[UnreadRecord]:
    d, k = disclosures.c, shred_keys.c
    wanted = [id_ for id_ in ids if is_id(ACKNOWLEDGMENT, id_) or is_id(CLEARANCE, id_)]
    rows = connection.execute(
        select(d.record_id, d.account_id, d.payload, k.key)
        .join(shred_keys, k.record_id == d.record_id)
        .where(d.record_id.in_(wanted))
    )
    return [UnreadRecord(*row) for row in rows]


def _newest_check(connection: Connection, members: Iterable[str]) -> set[str]:
    """The newest check of the buyer whom these name, by the same account."""
    newest = (
        select(records.c.id)
        .join(disclosures, disclosures.c.record_id == records.c.id)
        .where(_named_by(connection, members), records.c.type == RecordType.VERIFICATION)
        .order_by(records.c.id.desc())
        .limit(1)
    )
    return set(connection.execute(newest).scalars())


async def _check_of(privacy: Privacy, one: UnreadRecord) -> str | None:
    vault = privacy.log.vault.vault
    encoded = await open_disclosures(
        vault, one.account_id, one.record_id, one.payload, one.shred_key
    )
    values = {name: value for _, name, value in map(read_disclosure, encoded)}
    process = values.get(PROCESS)
    named = values.get(VERIFICATION_FIELD) or (
        process.get(VERIFICATION_FIELD) if isinstance(process, dict) else None
    )
    return named if isinstance(named, str) else None
