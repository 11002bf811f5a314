"""Reading clearances, with the reports about their orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, bindparam, select, union

from countersign.base.db.statements import rows as of_all
from countersign.base.db.tables import (
    Field,
    acknowledgment_uses,
    clearances,
    disclosures,
    fulfilments,
    overrides,
    records,
)
from countersign.base.errors import NotFound, OrderReferenceMismatch
from countersign.base.http.schemas import Page, page_of, view
from countersign.base.values import CLEARANCE, from_ns, is_id, rfc3339
from countersign.core.access.key import Principal, Scope
from countersign.core.acknowledgments.acknowledge import reference_index
from countersign.core.acknowledgments.find import SELECT_RECORDS, evidence_of
from countersign.core.clearances import schemas
from countersign.core.clearances.clear import EXEMPTION_FIELD, SHIPPING_FIELD
from countersign.core.clearances.keys import order_digest, token_claims
from countersign.core.clearances.model import GrantedClearance
from countersign.core.clearances.room import Clearances
from countersign.core.gate.act import Acts
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType, missing, open_disclosures
from countersign.core.notices.requirements import NoticeRequirement
from countersign.core.notices.rule import Exemption
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD, SESSION_FIELD

CARRIER_FIELD: Final = "carrier"
TRACKING_FIELD: Final = "tracking_number"
OVERRIDE_FIELD: Final = "override"

_SELECT_RECORDS: Final = (
    SELECT_RECORDS.add_columns(disclosures.c.reference_index)
    .where(records.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(records.c.id)
)


class ReadDecision(msgspec.Struct):
    """The members of a clearance's record that are read back."""

    cleared: bool
    reasons: tuple[str, ...]
    obligations: tuple[dict[str, Any], ...]
    ack_id: str | None = None
    test_clock: datetime | None = None
    order_named: bool | None = None
    paid_at: datetime | None = None
    overridden: bool = False
    """Of a response: that the refusal has a manual override."""
    exempt_from: tuple[NoticeRequirement, ...] | msgspec.UnsetType = msgspec.UNSET


decided_in: Final = msgspec.json.Decoder(ReadDecision).decode
_members: Final = msgspec.json.Decoder(dict[str, Any]).decode


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as stored; without payload and shred key, its disclosures are erased."""

    id: str
    at: datetime
    body: bytes
    payload: bytes | None
    shred_key: bytes | None
    origin: str | None
    leaf_index: int | None
    """Its place in the log, once sealed."""
    reference_index: bytes | None
    erased_at: datetime | None


class StoredClearance(msgspec.Struct, frozen=True, kw_only=True):
    """A clearance as stored."""

    record: StoredRecord
    ack_id: str | None
    """Of an order without one: its first clearance."""
    kid: str | None
    expires_at: datetime | None
    fulfilments: Sequence[StoredRecord]
    """Of its order, whichever of its clearances they were reported for; oldest first."""
    closed_at: datetime | None
    override: StoredRecord | None
    """Its manual override."""


CLEARANCES: Final = Acts("Clearances", Clearances, scope=Scope.CLEARANCES_READ, personal=True)


@CLEARANCES.act("GET /v1/clearances", "Find clearances, newest first")
async def list_clearances(
    room: Clearances, who: Principal, query: schemas.ClearancesQuery
) -> Page[schemas.Clearance]:
    """The account's clearances, newest first."""
    fields: Sequence[Field] = (SESSION_FIELD, CBID_FIELD, REFERENCE_FIELD)
    sought, index = {f: getattr(query, f) for f in fields}, room.access.secret.blind_index
    indexes: dict[str, bytes] = {
        f: index(who.account_id, f, value) for f, value in sought.items() if value is not None
    }
    found = await room.access.database.scan(_find, who, query, indexes)
    page = page_of(found, query.limit, lambda stored: stored.record.id)
    views = [await _view(room, who, stored) for stored in page.data]
    return Page(data=views, next_cursor=page.next_cursor)


@CLEARANCES.act(
    "GET /v1/clearances/{clearance_id}",
    "Get one clearance, with the reports of its fulfilment",
    refusals=(NotFound,),
)
async def get_clearance(room: Clearances, who: Principal, clearance_id: str) -> schemas.Clearance:
    """One clearance of this account."""
    return await _view(room, who, await stored_clearance(room, who, clearance_id))


async def stored_clearance(room: Clearances, who: Principal, clearance_id: str) -> StoredClearance:
    stored = None
    if is_id(CLEARANCE, clearance_id):
        stored = await room.access.database.read(_get, who, clearance_id)
    if stored is None:
        raise await missing(room.access.database, who, clearance_id, "clearance")
    return stored


def fulfilments_of(connection: Connection, ack_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """The rows of the reports on the orders of these acknowledgments, oldest first.

    With `closed_at`, of the order.
    """
    uses = acknowledgment_uses.c
    of_orders = select(fulfilments, uses.closed_at).outerjoin(
        acknowledgment_uses, uses.ack_id == fulfilments.c.ack_id
    )
    of_orders = of_orders.where(fulfilments.c.ack_id.in_(ack_ids))
    return connection.execute(of_orders.order_by(fulfilments.c.id)).all()


def _get(connection: Connection, who: Principal, clearance_id: str) -> StoredClearance | None:
    own = select(clearances).where(clearances.c.id == clearance_id, who.reach.rows(clearances))
    return next(iter(_read(connection, connection.execute(own).all())), None)


def _find(
    connection: Connection,
    who: Principal,
    query: schemas.ClearancesQuery,
    indexes: Mapping[str, bytes],
) -> list[StoredClearance]:
    """One more than the page holds, if there are as many; blind indexes are by field."""
    # The filter decides the first table: acknowledgment, blind index, or else the account's
    # records. The conditions are on that table, so the planner has no choice.
    statement = select(clearances)
    id_: ColumnElement[str] = clearances.c.id
    if query.ack_id is not None:
        statement = statement.where(clearances.c.ack_id == query.ack_id, who.reach.rows(clearances))
    if SESSION_FIELD in indexes:
        # Refused ones are found by their session, cleared ones by their acknowledgment's.
        of_session = (
            who.reach.rows(disclosures),
            found_by(connection, disclosures.c.session_index, indexes[SESSION_FIELD]),
        )
        cleared = clearances.alias()
        granted = (
            select(cleared.c.id)
            .join(disclosures, disclosures.c.record_id == cleared.c.ack_id)
            .where(cleared.c.expires_at.is_not(None), *of_session)
        )
        refused = select(disclosures.c.record_id).where(*of_session)
        statement = statement.where(clearances.c.id.in_(union(refused, granted)))
    own = {CBID_FIELD: disclosures.c.cbid_index, REFERENCE_FIELD: disclosures.c.reference_index}
    found = [found_by(connection, own[f], indexes[f]) for f in own.keys() & indexes.keys()]
    if found:
        statement = statement.join(disclosures, disclosures.c.record_id == clearances.c.id)
        statement = statement.where(who.reach.rows(disclosures), *found)
        id_ = disclosures.c.record_id
    if query.ack_id is None and not indexes:
        id_ = records.c.id
        statement = statement.join(records, records.c.id == clearances.c.id).where(
            who.reach.rows(records), records.c.type == RecordType.CLEARANCE
        )
    if query.after is not None:
        statement = statement.where(id_ < query.after)
    statement = statement.order_by(id_.desc()).limit(query.limit + 1)
    return _read(connection, connection.execute(statement).all())


def _read(connection: Connection, rows: Sequence[Row[Any]]) -> list[StoredClearance]:
    """These clearances with their reports: four queries, however many they are."""
    reports: dict[str, list[Row[Any]]] = {r.ack_id: [] for r in rows if r.expires_at is not None}
    for report in fulfilments_of(connection, sorted(reports)) if reports else ():
        reports[report.ack_id].append(report)
    ids = [row.id for row in rows]
    o = overrides.c
    made = select(o.clearance_id, o.id).where(o.clearance_id.in_(ids))
    overriding = {row.clearance_id: row.id for row in (connection.execute(made) if ids else ())}
    ids += [report.id for of_order in reports.values() for report in of_order]
    ids += overriding.values()
    found = of_all(connection, _SELECT_RECORDS, StoredRecord, {"ids": ids}) if ids else ()
    stored = {one.id: one for one in found}
    return [
        StoredClearance(
            record=stored[row.id],
            ack_id=row.ack_id,
            kid=row.kid,
            expires_at=row.expires_at,
            fulfilments=[stored[report.id] for report in of_order],
            closed_at=next((report.closed_at for report in of_order), None),
            override=stored.get(overriding.get(row.id, "")),
        )
        for row in rows
        for of_order in [reports.get(row.ack_id, []) if row.expires_at is not None else []]
    ]


async def _view(room: Clearances, who: Principal, stored: StoredClearance) -> schemas.Clearance:
    """The clearance as its account reads it; without its order once that is erased."""
    record, decided = stored.record, decided_in(stored.record.body)
    personal = await opened(room, who, record)
    shipping = personal.get(SHIPPING_FIELD, {})
    return view(
        schemas.Clearance,
        *(who, decided, stored),
        clearance_id=record.id,
        ack_id=decided.ack_id,
        exemption=msgspec.convert(personal.get(EXEMPTION_FIELD), Exemption | None),
        cbid=personal.get(CBID_FIELD),
        session_id=personal.get(SESSION_FIELD),
        order_reference=await _reference(room, who, stored, personal),
        shipping_zip=shipping.get("zip"),
        shipping_address=shipping.get("address"),
        product_class=shipping.get("product_class"),
        product_classes=classes_of(shipping),
        created_at=record.at,
        test_clock=decided.test_clock or msgspec.UNSET,
        paid_at=decided.paid_at or msgspec.UNSET,
        token=await _token(room, who, stored, personal, decided),
        override=await _override(room, who, stored.override),
        fulfilments=[await report_of(room, who, report) for report in stored.fulfilments],
        evidence=evidence_of(record.origin, record.leaf_index),
        erased_at=record.erased_at,
    )


def classes_of(shipping: Mapping[str, Any]) -> list[str]:
    """The classes of an order; none once it is erased."""
    one = shipping.get("product_class")
    return shipping.get("product_classes") or ([one] if one else [])


async def _reference(
    room: Clearances, who: Principal, stored: StoredClearance, personal: Mapping[str, Any]
) -> str | None:
    """The order's reference: its own, else the acknowledgment's."""
    if REFERENCE_FIELD in personal or stored.record.reference_index is None:
        return personal.get(REFERENCE_FIELD)
    ids = {"ids": [stored.ack_id]}
    of_order = await room.access.database.read(of_all, _SELECT_RECORDS, StoredRecord, ids)
    theirs = [await opened(room, who, one) for one in of_order]
    return next((one.get(REFERENCE_FIELD) for one in theirs), None)


async def _token(
    room: Clearances,
    who: Principal,
    stored: StoredClearance,
    personal: Mapping[str, Any],
    decided: ReadDecision,
) -> str | None:
    """The token as it was issued; None unless it is granted and still valid."""
    record, now = stored.record, from_ns(room.access.clock.time_ns())
    if not personal or stored.expires_at is None or stored.kid is None:
        return None
    test_clock = await room.access.test_clocks.of(who.account_id, who.mode)
    if test_clock.at(now) >= stored.expires_at:
        return None
    granted = GrantedClearance(
        clearance_id=record.id,
        kid=stored.kid,
        at=record.at,
        clock_at=decided.test_clock or record.at,
        expires_at=stored.expires_at,
    )
    shipping = personal[SHIPPING_FIELD]
    claims = token_claims(
        room.public_url,
        who.mode,
        who.account_id,
        granted,
        ack_id=decided.ack_id or "",
        order_sha256=order_digest(shipping["zip"], classes_of(shipping), personal[SESSION_FIELD]),
        obligations=decided.obligations,
    )
    return (await room.keys.signers(who.mode)).of(stored.kid, now).sign(claims)


async def report_of(room: Clearances, who: Principal, record: StoredRecord) -> schemas.Fulfilment:
    """One report; without its personal fields once they are erased."""
    personal = await opened(room, who, record)
    hidden = {name: personal.get(name) for name in (CARRIER_FIELD, TRACKING_FIELD)}
    own = {"fulfilment_id": record.id, "reported_at": record.at.replace(microsecond=0)}
    return msgspec.convert(_members(record.body) | own | hidden, schemas.Fulfilment)


async def _override(
    room: Clearances, who: Principal, record: StoredRecord | None
) -> dict[str, Any] | msgspec.UnsetType:
    """The manual override; without people and reasons once they are erased."""
    if record is None:
        return msgspec.UNSET
    sealed = (await opened(room, who, record)).get(OVERRIDE_FIELD, {})
    return {"override_id": record.id, "created_at": rfc3339(record.at), **sealed}


def refuse_another(
    room: Clearances, who: Principal, stored: StoredClearance, reference: str | None
) -> None:
    """Refuse a reference of another order.

    Raises:
        OrderReferenceMismatch: the clearance has another one.
    """
    index = reference_index(room.access.secret, who.account_id, reference)
    if None not in {index, known := stored.record.reference_index} and index != known:
        raise OrderReferenceMismatch


async def opened(room: Clearances, who: Principal, record: StoredRecord) -> Mapping[str, Any]:
    """The personal fields of a record; none once they are erased."""
    sealed = record.payload, record.shred_key
    opened = await open_disclosures(room.log.vault.vault, who.account_id, record.id, *sealed)
    return {name: value for _, name, value in map(read_disclosure, opened)}
