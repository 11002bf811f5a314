"""Erasing in the database: disclosures and their keys go, records and their entries stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    delete,
    insert,
    not_,
    or_,
    select,
    text,
    union,
    update,
)

from countersign.access.audit_entry import AuditEntry
from countersign.access.audit_sql import write_audit
from countersign.buyers.model import BuyerStatus
from countersign.db.database import Database
from countersign.db.tables import (
    accounts,
    buyers,
    clearances,
    deployment,
    disclosures,
    erasures,
    fulfilments,
    legal_holds,
    pending_sessions,
    records,
    shred_keys,
    verification_evidence,
    verifications,
)
from countersign.errors import CountersignError, OnHold, UnknownSubject
from countersign.ids import ACKNOWLEDGMENT, BUYER, earliest_id
from countersign.instant import to_ms
from countersign.log.journal import Journal
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.ports import CbidIndex
from countersign.privacy.delete_buyer_sql import forget_buyer, identifiers_of
from countersign.privacy.model import (
    Erasable,
    ErasableBuyer,
    Hold,
    OldEvidence,
    RecordErasure,
)
from countersign.privacy.restored_sql import remember_erased
from countersign.vault.data_keys_sql import COPIES_REMAIN

_HOLDS_LOCK: Final = 0x636F756E68
_CHUNK: Final = 500
_NAMING: Final = (RecordType.ACKNOWLEDGMENT, RecordType.CLEARANCE)
_SELECT: Final = select(
    records.c.id,
    records.c.account_id,
    records.c.mode,
    records.c.at,
    records.c.body,
    erasures.c.at.label("erased_at"),
).outerjoin(erasures, erasures.c.record_id == records.c.id)


class _Erase(NamedTuple):
    parts: Sequence[RecordErasure]
    cbid: str | None
    cbid_index: CbidIndex
    audit: AuditEntry | None


class Erasures:
    """See `ports.ErasureStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def record(self, record_id: str) -> Erasable | None:
        """One record, of whichever account and mode."""
        found = await self._database.read(_by_ids, (record_id,))
        return found[0] if found else None

    async def of_buyer(self, cbid: str) -> ErasableBuyer | None:
        """A buyer, its identifiers and its verifications; None if there is no such buyer."""
        return await self._database.read(_of_buyer, cbid)

    async def naming(self, cbid_indexes: Sequence[bytes]) -> Sequence[Erasable]:
        """The acknowledgments and clearances under these blind indexes of a buyer identifier."""
        return await self._database.scan(_naming, tuple(cbid_indexes))

    async def of_orders(self, ack_ids: Sequence[str]) -> Sequence[Erasable]:
        """The clearances asked for with these acknowledgments, and what was reported of them."""
        return await self._database.scan(_of_orders, tuple(ack_ids))

    async def older(self, before: datetime, after_id: str, limit: int) -> Sequence[Erasable]:
        """Acknowledgments accepted before this time that still have disclosures, oldest first."""
        return await self._database.scan(_older, (before, after_id, limit))

    async def old_evidence(
        self, verified_before: datetime, other_before: datetime, after_id: str, limit: int
    ) -> Sequence[OldEvidence]:
        """Verifications from before then that still have evidence, oldest first."""
        item = (verified_before, other_before, after_id, limit)
        return await self._database.scan(_old_evidence, item)

    async def held(
        self, record_ids: Sequence[str], cbid_index: CbidIndex
    ) -> Mapping[str, tuple[str, str]]:
        """Of those of these records that a hold keeps: the hold's id, and what it is on."""
        return await self._database.scan(_held_records, (tuple(record_ids), cbid_index))

    async def erase(
        self,
        parts: Sequence[RecordErasure],
        cbid: str | None,
        cbid_index: CbidIndex,
        audit: AuditEntry | None = None,
    ) -> None:
        """Destroy the disclosures of these records, and what is known of the buyer, for good.

        All of it is done, or nothing.

        Raises:
            OnHold: a legal hold keeps the buyer or one of the records.
        """
        await self._database.write_batched(self._erase, _Erase(parts, cbid, cbid_index, audit))

    async def place_hold(self, hold: Hold, audit: AuditEntry) -> None:
        """Place a legal hold.

        Raises:
            UnknownSubject: there is nothing with this identifier.
        """
        await self._database.write(_place_hold, (hold, audit))

    async def release_hold(self, hold_id: str, at: datetime, audit: AuditEntry) -> None:
        """Release a hold; an earlier release is kept."""
        await self._database.write(_release_hold, (hold_id, at, audit))

    async def holds(self) -> Sequence[Hold]:
        """Every hold, oldest first."""
        return await self._database.read(_holds, None)

    def _erase(
        self, connection: Connection, items: Sequence[_Erase]
    ) -> list[CountersignError | None]:
        _in_turn(connection)
        outcomes: list[CountersignError | None] = []
        for item in items:
            held = _held(connection, item)
            if held is None:
                _destroy(connection, item)
                self._journal.write(connection, [part.erasure for part in item.parts])
                write_audit(connection, item.audit)
            outcomes.append(held)
        return outcomes


def _in_turn(connection: Connection) -> None:
    """Wait until no other server places a hold or erases: one must see what the other did.

    The embedded database has one writer in any case.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _HOLDS_LOCK})


def _destroy(connection: Connection, item: _Erase) -> None:
    for part in item.parts:
        _destroy_records(connection, part)
    if connection.dialect.name == "sqlite":
        connection.execute(delete(deployment).where(deployment.c.name == COPIES_REMAIN))
        noted = item.parts[0].erasure.id.encode()
        connection.execute(insert(deployment), {"name": COPIES_REMAIN, "value": noted})
    if item.cbid is not None:
        cbids = identifiers_of(connection, item.cbid)
        remember_erased(connection, cbids, item.cbid_index, item.parts[0].erasure.at)
        forget_buyer(connection, item.cbid)


def _destroy_records(connection: Connection, part: RecordErasure) -> None:
    for chunk in _chunks(part.record_ids):
        for table in (disclosures, verification_evidence):
            connection.execute(delete(table).where(table.c.record_id.in_(chunk)))
        there = set(
            connection.execute(
                select(erasures.c.record_id).where(erasures.c.record_id.in_(chunk))
            ).scalars()
        )
        new = [
            {"record_id": id_, "at": part.erasure.at, "erasure_id": part.erasure.id}
            for id_ in chunk
            if id_ not in there
        ]
        if new:
            connection.execute(insert(erasures), new)
        # Last: PostgreSQL lets the key of a record go only once its erasure is written.
        connection.execute(delete(shred_keys).where(shred_keys.c.record_id.in_(chunk)))


def _held(connection: Connection, item: _Erase) -> OnHold | None:
    """The refusal, if a hold keeps any part of this: what is erased together is held together."""
    active = _active_holds(connection)
    found = [(active[item.cbid], item.cbid)] if item.cbid in active else []
    if item.cbid is not None and not found:
        found += [(active[a], a) for a in _accounts_of(connection, item.cbid) if a in active]
    for part in item.parts:
        found += _holding(connection, active, part.record_ids, item.cbid_index).values()
    if not found:
        return None
    hold, subject = found[0]
    return OnHold(
        f"The legal hold {hold} on {subject} prevents this erasure; nothing was erased. When "
        f"the hold has ended, release it: `countersign holds release {hold}`."
    )


def _accounts_of(connection: Connection, cbid: str) -> list[str]:
    """The accounts of which something goes with a buyer, under whichever of its identifiers."""
    cbids = identifiers_of(connection, cbid)
    owned = [
        select(table.c.account_id).where(table.c.cbid.in_(cbids))
        for table in (buyers, verifications, pending_sessions)
    ]
    return [*connection.execute(union(*owned)).scalars()]


def _active_holds(connection: Connection) -> dict[str, str]:
    """The hold on each subject that there is one on; the oldest, if there are several."""
    rows = connection.execute(
        select(legal_holds.c.subject, legal_holds.c.id)
        .where(legal_holds.c.released_at.is_(None))
        .order_by(legal_holds.c.id.desc())
    )
    active = {row.subject: row.id for row in rows}
    for subject in [subject for subject in active if subject.startswith(f"{BUYER}_")]:
        # A person may be known by several identifiers.
        for other in identifiers_of(connection, subject):
            active.setdefault(other, active[subject])
    return active


def _holding(
    connection: Connection,
    active: Mapping[str, str],
    record_ids: Sequence[str],
    cbid_index: CbidIndex,
) -> dict[str, tuple[str, str]]:
    """Of those of these records that a hold keeps: the hold, and what it is on.

    A hold on a record, on its account, or on the buyer that it names. That name is encrypted, so
    it is found by its blind index, which differs from account to account.
    """
    held_buyers = [subject for subject in active if subject.startswith(f"{BUYER}_")]
    indexes: dict[str, dict[bytes, str]] = {}
    found = {}
    for chunk in _chunks(record_ids if active else ()):
        rows = connection.execute(
            select(
                records.c.id, records.c.account_id, disclosures.c.cbid_index, verifications.c.cbid
            )
            .outerjoin(disclosures, disclosures.c.record_id == records.c.id)
            .outerjoin(verifications, verifications.c.id == records.c.id)
            .where(records.c.id.in_(chunk))
        )
        for row in rows:
            if row.account_id not in indexes:
                indexes[row.account_id] = {cbid_index(row.account_id, s): s for s in held_buyers}
            named = row.cbid_index and indexes[row.account_id].get(bytes(row.cbid_index))
            subjects = (row.id, row.account_id, row.cbid, named)
            subject = next((s for s in subjects if s in active), None)
            if subject is not None:
                found[row.id] = (active[subject], subject)
    return found


def _chunks(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK)]


def _held_records(
    connection: Connection, item: tuple[tuple[str, ...], CbidIndex]
) -> Mapping[str, tuple[str, str]]:
    return _holding(connection, _active_holds(connection), *item)


def _by_ids(connection: Connection, ids: tuple[str, ...]) -> Sequence[Erasable]:
    return _found(connection, _SELECT.where(records.c.id.in_(ids)))


def _of_buyer(connection: Connection, cbid: str) -> ErasableBuyer | None:
    cbids = identifiers_of(connection, cbid)
    known = connection.execute(
        select(buyers.c.account_id, buyers.c.mode).where(buyers.c.cbid == cbids[0])
    ).one_or_none()
    if known is None:
        return None
    own = select(verifications.c.id).where(verifications.c.cbid.in_(cbids))
    return ErasableBuyer(
        cbids=tuple(cbids),
        account_id=known.account_id,
        mode=Mode(known.mode),
        verifications=_found(connection, _SELECT.where(records.c.id.in_(own))),
    )


def _naming(connection: Connection, indexes: tuple[bytes, ...]) -> Sequence[Erasable]:
    own = select(disclosures.c.record_id).where(disclosures.c.cbid_index.in_(indexes))
    return _found(
        connection,
        _SELECT.where(records.c.id.in_(own), records.c.type.in_(_NAMING)),
    )


def _of_orders(connection: Connection, ack_ids: tuple[str, ...]) -> Sequence[Erasable]:
    found: list[Erasable] = []
    for chunk in _chunks(ack_ids):
        for table in (clearances, fulfilments):
            own = select(table.c.id).where(table.c.ack_id.in_(chunk))
            found += _found(connection, _SELECT.where(records.c.id.in_(own)))
    return found


def _older(connection: Connection, item: tuple[datetime, str, int]) -> Sequence[Erasable]:
    before, after_id, limit = item
    query = (
        _SELECT.join(disclosures, disclosures.c.record_id == records.c.id)
        .where(
            records.c.type == RecordType.ACKNOWLEDGMENT,
            records.c.id > after_id,
            records.c.id < earliest_id(ACKNOWLEDGMENT, to_ms(before)),
        )
        .order_by(records.c.id)
        .limit(limit)
    )
    return _found(connection, query)


def _old_evidence(
    connection: Connection, item: tuple[datetime, datetime, str, int]
) -> Sequence[OldEvidence]:
    verified_before, other_before, after_id, limit = item
    verified = verifications.c.status == BuyerStatus.VERIFIED
    query = (
        _SELECT.add_columns(verified.label("verified"))
        .join(verifications, verifications.c.id == records.c.id)
        .join(verification_evidence, verification_evidence.c.record_id == records.c.id)
        .where(
            records.c.id > after_id,
            or_(
                and_(verified, verifications.c.at < verified_before),
                and_(not_(verified), verifications.c.at < other_before),
            ),
        )
        .order_by(records.c.id)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    return [OldEvidence(record=_erasable(row), verified=bool(row.verified)) for row in rows]


def _place_hold(connection: Connection, item: tuple[Hold, AuditEntry]) -> CountersignError | None:
    hold, audit = item
    _in_turn(connection)
    for column in (records.c.id, buyers.c.cbid, accounts.c.id):
        if connection.execute(select(column).where(column == hold.subject)).first() is not None:
            connection.execute(
                insert(legal_holds),
                {
                    "id": hold.id,
                    "subject": hold.subject,
                    "reason": hold.reason,
                    "placed_at": hold.placed_at,
                },
            )
            write_audit(connection, audit)
            return None
    return UnknownSubject(
        f"The acknowledgment, buyer or account {hold.subject!r} does not exist: give its "
        "identifier."
    )


def _release_hold(connection: Connection, item: tuple[str, datetime, AuditEntry]) -> None:
    hold_id, at, audit = item
    released = connection.execute(
        update(legal_holds)
        .where(legal_holds.c.id == hold_id, legal_holds.c.released_at.is_(None))
        .values(released_at=at)
    )
    if released.rowcount:
        write_audit(connection, audit)


def _holds(connection: Connection, _: None) -> Sequence[Hold]:
    rows = connection.execute(select(legal_holds).order_by(legal_holds.c.id))
    return [Hold(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name


def _found(connection: Connection, query: Select[Any]) -> Sequence[Erasable]:
    return [_erasable(row) for row in connection.execute(query)]


def _erasable(row: Row[Any]) -> Erasable:
    return Erasable(
        record_id=row.id,
        account_id=row.account_id,
        mode=Mode(row.mode),
        at=row.at,
        body=row.body,
        erased_at=row.erased_at,
    )


def delete_noted_copies(connection: Connection, noted: bytes) -> None:
    """Note that there are no more copies of this erasure."""
    connection.execute(
        delete(deployment).where(deployment.c.name == COPIES_REMAIN, deployment.c.value == noted)
    )
