"""Clearances read back, with what was reported of their orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, select, union

from countersign.access.key import Principal
from countersign.acknowledgments.routes import evidence_of
from countersign.clearances import schemas
from countersign.clearances.model import Order
from countersign.clearances.record import order_of
from countersign.clearances.room import Clearances
from countersign.clearances.token import token_claims
from countersign.db.tables import (
    clearances,
    disclosures,
    erasures,
    fulfilments,
    log_entries,
    logs,
    records,
    shred_keys,
)
from countersign.errors import NotFound
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.record import CBID_FIELD, SESSION_FIELD
from countersign.http.paging import Page
from countersign.ids import CLEARANCE, is_id
from countersign.instant import from_ns, to_the_second
from countersign.log.append_record import open_disclosures
from countersign.log.record import RecordType, Sealed
from countersign.mode import Mode

CARRIER_FIELD: Final = "carrier"
TRACKING_FIELD: Final = "tracking_number"

_SELECT_RECORDS: Final = (
    select(
        records.c.id,
        records.c.at,
        records.c.body,
        disclosures.c.payload,
        shred_keys.c.key,
        log_entries.c.leaf_index,
        logs.c.origin,
        erasures.c.at.label("erased_at"),
    )
    .select_from(
        records.outerjoin(disclosures, disclosures.c.record_id == records.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == records.c.id)
        .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
        .outerjoin(logs, logs.c.id == log_entries.c.log_id)
        .outerjoin(erasures, erasures.c.record_id == records.c.id)
    )
    .where(records.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(records.c.id)
)
_SELECT_FULFILMENTS: Final = (
    select(fulfilments)
    .where(fulfilments.c.ack_id.in_(bindparam("ack_ids", expanding=True)))
    .order_by(fulfilments.c.id)
)


class Decided(msgspec.Struct):
    """The members of a clearance's record that are read back."""

    cleared: bool
    reasons: tuple[str, ...]
    obligations: tuple[dict[str, Any], ...]
    test_clock: datetime | None = None


class _Reported(msgspec.Struct):
    """The members of a fulfilment's record that are read back."""

    clearance_id: str
    adult_signature_obtained: bool | None
    shipped_at: datetime | None
    delivered_at: datetime | None


_read_decided: Final = msgspec.json.Decoder(Decided).decode
_read_reported: Final = msgspec.json.Decoder(_Reported).decode


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as stored; without payload and shred key, its disclosures are erased."""

    id: str
    at: datetime
    body: bytes
    payload: bytes | None
    shred_key: bytes | None
    sealed: Sealed | None
    erased_at: datetime | None


class StoredClearance(msgspec.Struct, frozen=True, kw_only=True):
    """A clearance as stored."""

    record: StoredRecord
    ack_id: str | None
    kid: str | None
    expires_at: datetime | None
    fulfilments: Sequence[StoredRecord]
    """Of its order, whichever of its clearances they were reported for; oldest first."""
    closed_at: datetime | None


async def get_clearance(room: Clearances, who: Principal, clearance_id: str) -> schemas.Clearance:
    """One clearance of this account and mode.

    Raises:
        NotFound: there is none with this id for this key.
    """
    return await _view(room, who, await stored_clearance(room, who, clearance_id))


async def list_clearances(
    room: Clearances, who: Principal, query: schemas.ClearancesQuery
) -> Page[schemas.Clearance]:
    """A page of the account's clearances, newest first."""
    session_index = _index(room, who, SESSION_FIELD, query.session_id)
    cbid_index = _index(room, who, CBID_FIELD, query.cbid)
    found = await room.database.scan(_find, who, query, session_index, cbid_index)
    page = found[: query.limit]
    return Page(
        data=[await _view(room, who, stored) for stored in page],
        next_cursor=page[-1].record.id if len(found) > len(page) else None,
    )


async def stored_clearance(room: Clearances, who: Principal, clearance_id: str) -> StoredClearance:
    """One clearance of this account and mode, as stored.

    Raises:
        NotFound: there is none with this id for this key.
    """
    stored = None
    if is_id(CLEARANCE, clearance_id):
        stored = await room.database.read(_get, who, clearance_id)
    if stored is None:
        msg = "The clearance was not found."
        raise NotFound(msg)
    return stored


def _index(room: Clearances, who: Principal, field: str, value: str | None) -> bytes | None:
    return None if value is None else room.secret.blind_index(who.account_id, field, value)


def decided_in(record: StoredRecord) -> Decided:
    """What the record of a clearance says was decided."""
    return _read_decided(record.body)


def fulfilments_of(connection: Connection, ack_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The rows of the reports on the orders of these acknowledgments, oldest first."""
    return connection.execute(_SELECT_FULFILMENTS, {"ack_ids": ack_ids}).all()


def _get(connection: Connection, who: Principal, clearance_id: str) -> StoredClearance | None:
    rows = connection.execute(
        select(clearances).where(
            clearances.c.id == clearance_id,
            clearances.c.account_id == who.account_id,
            clearances.c.mode == who.mode,
        )
    ).all()
    return next(iter(_read(connection, rows)), None)


def _find(
    connection: Connection,
    who: Principal,
    query: schemas.ClearancesQuery,
    session_index: bytes | None,
    cbid_index: bytes | None,
) -> list[StoredClearance]:
    """One more than the page holds, if there are as many."""
    statement = _find_statement(who, query, session_index, cbid_index)
    return _read(connection, connection.execute(statement).all())


def _find_statement(
    who: Principal,
    query: schemas.ClearancesQuery,
    session_index: bytes | None,
    cbid_index: bytes | None,
) -> Select[Any]:
    # What is sought decides where to begin: by the acknowledgment, by a blind index, or else by
    # walking the account's records. The conditions stand on that table, which leaves a planner
    # no choice.
    statement = select(clearances)
    id_: ColumnElement[str] = clearances.c.id
    if query.ack_id is not None:
        statement = statement.where(
            clearances.c.ack_id == query.ack_id,
            clearances.c.account_id == who.account_id,
            clearances.c.mode == who.mode,
        )
    if session_index is not None:
        # Those refused are found by their session, those cleared by their acknowledgment's.
        of_session = (
            disclosures.c.account_id == who.account_id,
            disclosures.c.mode == who.mode,
            disclosures.c.session_index == session_index,
        )
        cleared = clearances.alias()
        granted = (
            select(cleared.c.id)
            .join(disclosures, disclosures.c.record_id == cleared.c.ack_id)
            .where(cleared.c.expires_at.is_not(None), *of_session)
        )
        refused = select(disclosures.c.record_id).where(*of_session)
        statement = statement.where(clearances.c.id.in_(union(refused, granted)))
    if cbid_index is not None:
        statement = statement.join(disclosures, disclosures.c.record_id == clearances.c.id).where(
            disclosures.c.account_id == who.account_id,
            disclosures.c.mode == who.mode,
            disclosures.c.cbid_index == cbid_index,
        )
        id_ = disclosures.c.record_id
    if query.ack_id is None and session_index is None and cbid_index is None:
        id_ = records.c.id
        statement = statement.join(records, records.c.id == clearances.c.id).where(
            records.c.account_id == who.account_id,
            records.c.mode == who.mode,
            records.c.type == RecordType.CLEARANCE,
        )
    if query.after is not None:
        statement = statement.where(id_ < query.after)
    return statement.order_by(id_.desc()).limit(query.limit + 1)


def _read(connection: Connection, rows: Sequence[Row[Any]]) -> list[StoredClearance]:
    """These clearances, with what belongs to them: three queries, however many they are."""
    ack_ids = sorted({row.ack_id for row in rows if row.expires_at is not None})
    reports: dict[str, list[Row[Any]]] = {ack_id: [] for ack_id in ack_ids}
    if ack_ids:
        for report in fulfilments_of(connection, ack_ids):
            reports[report.ack_id].append(report)
    ids = [row.id for row in rows]
    ids += [report.id for of_order in reports.values() for report in of_order]
    stored = {}
    if ids:
        stored = {r.id: _stored(r) for r in connection.execute(_SELECT_RECORDS, {"ids": ids})}
    return [
        StoredClearance(
            record=stored[row.id],
            ack_id=row.ack_id,
            kid=row.kid,
            expires_at=row.expires_at,
            fulfilments=[stored[report.id] for report in of_order],
            closed_at=next((report.at for report in of_order if report.closes), None),
        )
        for row in rows
        for of_order in [reports.get(row.ack_id, []) if row.expires_at is not None else []]
    ]


def _stored(row: Row[*tuple[Any, ...]]) -> StoredRecord:
    return StoredRecord(
        id=row.id,
        at=row.at,
        body=row.body,
        payload=row.payload,
        shred_key=row.key,
        sealed=None if row.origin is None else Sealed(row.origin, row.leaf_index),
        erased_at=row.erased_at,
    )


async def _view(room: Clearances, who: Principal, stored: StoredClearance) -> schemas.Clearance:
    """The clearance as its account reads it; without its order once that is erased."""
    record, decided = stored.record, decided_in(stored.record)
    personal = await _opened(room, who, record)
    order = None if personal is None else order_of(stored.ack_id, personal)
    return schemas.Clearance(
        clearance_id=record.id,
        livemode=who.mode is Mode.LIVE,
        ack_id=stored.ack_id,
        cbid=order.cbid if order else None,
        session_id=order.session_id if order else None,
        shipping_zip=order.shipping_zip if order else None,
        shipping_address=order.shipping_address if order else None,
        product_class=order.product_class if order else None,
        cleared=decided.cleared,
        reasons=decided.reasons,
        obligations=decided.obligations,
        created_at=record.at.replace(microsecond=0),
        expires_at=stored.expires_at,
        test_clock=to_the_second(decided.test_clock) or msgspec.UNSET,
        token=await _token(room, who, stored, order, decided),
        fulfilments=[await _report(room, who, report) for report in stored.fulfilments],
        closed_at=to_the_second(stored.closed_at),
        evidence=evidence_of(record.sealed),
        erased_at=to_the_second(record.erased_at),
    )


async def _token(
    room: Clearances,
    who: Principal,
    stored: StoredClearance,
    order: Order | None,
    decided: Decided,
) -> str | None:
    """The token as it was issued; None unless it is granted and still valid."""
    now, expires_at = from_ns(room.clock.time_ns()), stored.expires_at
    if order is None or expires_at is None or stored.kid is None:
        return None
    test_clock = await room.test_clocks.of(who.account_id, who.mode)
    if test_clock.at(now) >= expires_at:
        return None
    signers = await room.keys.signers(who.mode)
    claims = token_claims(
        room.public_url,
        who.mode,
        who.account_id,
        stored.record.id,
        order=order,
        obligations=decided.obligations,
        at=stored.record.at,
        clock_at=decided.test_clock or stored.record.at,
        expires_at=expires_at,
    )
    return signers.of(stored.kid, now).sign(claims)


async def _report(room: Clearances, who: Principal, record: StoredRecord) -> schemas.Fulfilment:
    personal = await _opened(room, who, record) or {}
    reported = _read_reported(record.body)
    return schemas.Fulfilment(
        fulfilment_id=record.id,
        clearance_id=reported.clearance_id,
        reported_at=record.at.replace(microsecond=0),
        carrier=personal.get(CARRIER_FIELD),
        tracking_number=personal.get(TRACKING_FIELD),
        shipped_at=reported.shipped_at,
        delivered_at=reported.delivered_at,
        adult_signature_obtained=reported.adult_signature_obtained,
    )


async def _opened(
    room: Clearances, who: Principal, record: StoredRecord
) -> Mapping[str, Any] | None:
    """The personal fields of a record; None once they are erased."""
    if record.payload is None or record.shred_key is None:
        return None
    opened = await open_disclosures(
        room.vault, who.account_id, record.id, record.payload, record.shred_key
    )
    return {name: value for _, name, value in map(read_disclosure, opened)}
