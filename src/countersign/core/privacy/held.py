"""A hold keeps the whole order, whichever of its records it is on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, select, tuple_

from countersign.base.db.statements import chunks
from countersign.base.db.tables import (
    checkout_sessions,
    clearances,
    disclosures,
    fulfilments,
    records,
    shred_keys,
    started_checks,
)
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CHECKOUT_SESSION,
    CLEARANCE,
    EARLIER_SESSION,
    FULFILMENT,
    VERIFICATION,
    is_id,
)
from countersign.core.access.reach import Reach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.clearances.clear import VERIFICATION_FIELD
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType, open_disclosures
from countersign.core.privacy.erase_sql import of_own
from countersign.core.privacy.holds import active_holds, find_holding
from countersign.core.privacy.room import Privacy
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.process import PROCESS

HeldRecords: TypeAlias = Mapping[str, tuple[str, str]]
"""By record or checkout session: the id and the subject of the hold on it."""
Rests: TypeAlias = Mapping[str, str | None]
"""By acknowledgment and clearance: the identity check that its disclosures name."""
_OF_ORDERS: Final = (ACKNOWLEDGMENT, CLEARANCE, FULFILMENT)


class UnreadRecord(NamedTuple):
    """A record of an order whose disclosures must be opened to find its check."""

    record_id: str
    account_id: str
    payload: bytes
    shred_key: bytes


class KeptRecords(NamedTuple):
    """The records that holds keep, and the data to find them by."""

    held: HeldRecords
    rests: Rests


NOTHING_KEPT: Final = KeptRecords({}, {})


async def kept_of(privacy: Privacy, ids: Sequence[str], reach: Reach) -> KeptRecords:
    """The records and checkout sessions in reach that a hold keeps, among these.

    It may be on another record of the same order.
    """
    rests: dict[str, str | None] = {}
    while True:
        held, sealed = await privacy.access.database.scan(
            find_held, privacy.access.secret, ids, rests, reach
        )
        if not sealed:
            return KeptRecords(held, rests)
        for one in sealed:
            rests[one.record_id] = await _check_of(privacy, one)


def find_held(
    connection: Connection,
    secret: DeploymentSecret,
    ids: Sequence[str],
    rests: Rests,
    reach: Reach,
) -> tuple[HeldRecords, list[UnreadRecord]]:
    """The records that a hold keeps; second, those to decrypt before this is known.

    The check of an order is the one in its disclosures, or else the newest of the same account and
    buyer: a dossier shows the same one. A checkout session is kept with its resulting records.
    """
    active = active_holds(connection, reach)
    if not active:
        return {}, []
    on = [subject for subject in active if _is_of(subject, *_OF_ORDERS, VERIFICATION)]
    led_to = _led_to(
        connection, [id_ for id_ in ids if _is_of(id_, CHECKOUT_SESSION, EARLIER_SESSION)]
    )
    record_ids = [*ids, *(one for records in led_to.values() for one in sorted(records))]
    checks_matter = any(is_id(VERIFICATION, id_) for id_ in (*record_ids, *on))
    orders = orders_of(connection, [*record_ids, *on, *_near(connection, on)])
    sealed = list[UnreadRecord]()
    if checks_matter:
        for members in orders.values():
            sealed += _sealed(connection, [m for m in members if m not in rests])
            named = [check for m in members if (check := rests.get(m))]
            members.update(_check_of_order(connection, members, named))
    everything = {*record_ids, *(one for members in orders.values() for one in members)}
    on_it = find_holding(connection, secret, active, sorted(everything))
    held = dict(on_it)
    for members in orders.values():
        holds = [on_it[one] for one in sorted(members) if one in on_it]
        if holds:
            held = dict.fromkeys(members, holds[0]) | held
    for session, own in led_to.items():
        if keeping := own & held.keys():
            held[session] = held[min(keeping)]
    return {id_: held[id_] for id_ in ids if id_ in held}, sealed


def _led_to(connection: Connection, session_ids: Sequence[str]) -> dict[str, set[str]]:
    """By checkout session, the records of its order; without any, its checks."""
    c, d, s = checkout_sessions.c, disclosures.c, started_checks.c
    found: dict[str, set[str]] = {}
    named: dict[tuple[bytes, str], list[str]] = {}
    for chunk in chunks(session_ids):
        own = select(c.id, c.mode, c.ack_id, c.clearance_id, c.reference_index)
        for id_, mode, ack_id, clearance_id, index in connection.execute(
            own.where(c.id.in_(chunk))
        ):
            found[id_] = {one for one in (ack_id, clearance_id) if one}
            if index:
                named.setdefault((bytes(index), mode), []).append(id_)
        checks = select(s.reference, s.verification_id).where(s.reference.in_(chunk))
        alone = {id_ for id_ in chunk if not found.get(id_)}
        for id_, check in connection.execute(checks.where(s.verification_id.is_not(None))):
            found.setdefault(id_, set()).update([check] if id_ in alone else [])
    for keys in chunks([*named]):
        same = found_by(connection, d.reference_index, *(index for index, _ in keys))
        query = select(d.record_id, d.reference_index, d.mode).where(same)
        for record_id, index, mode in connection.execute(query):
            for id_ in named.get((bytes(index), mode), ()):
                found[id_].add(record_id)
    return found


def _is_of(id_: str, *kinds: str) -> bool:
    return any(is_id(kind, id_) for kind in kinds)


def _near(connection: Connection, on: Sequence[str]) -> Sequence[str]:
    """The records of the same account and mode that name the buyer of a check that is on hold."""
    buyers = _named_by(connection, [id_ for id_ in on if is_id(VERIFICATION, id_)])
    near = select(disclosures.c.record_id).where(buyers)
    return connection.execute(near).scalars().all()


def _named_by(connection: Connection, record_ids: Iterable[str]) -> ColumnElement[bool]:
    """The condition that disclosures are of a buyer named in one of these records, same mode.

    The hash differs from account to account, not from mode to mode: a test order may name a live
    buyer, and rests on no live check.
    """
    d = disclosures.c
    named = (d.record_id.in_([*record_ids]), d.cbid_index.is_not(None))
    pairs = connection.execute(select(d.cbid_index, d.mode).where(*named).distinct()).all()
    among = found_by(connection, d.cbid_index, *(index for index, _ in pairs))
    return among & tuple_(d.cbid_index, d.mode).in_([(*pair,) for pair in pairs])


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


def _check_of_order(
    connection: Connection, members: Collection[str], named: Sequence[str]
) -> set[str]:
    """The identity check of an order: the one that it names, or else its buyer's newest.

    It has the same account and mode, as in a dossier, so that it widens no hold.
    """
    r, own = records.c, records.alias().c
    same = select(own.id).where(own.id.in_([*members]), own.account_id == r.account_id)
    check = select(r.id).where(r.type == RecordType.VERIFICATION)
    check = check.where(same.where(own.mode == r.mode).exists())
    if named:
        wanted = check.where(r.id.in_(named))
    else:
        wanted = check.join(disclosures, disclosures.c.record_id == r.id).order_by(r.id.desc())
        wanted = wanted.where(_named_by(connection, members)).limit(1)
    return set(connection.execute(wanted).scalars())


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
