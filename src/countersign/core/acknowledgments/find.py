"""Read acknowledgments: one by its id, or a list by a submitted value."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import asdict, replace
from sqlalchemy import Column, Connection, select

from countersign.base.db.statements import DriverStatement, of_row
from countersign.base.db.tables import (
    Field,
    acknowledgment_uses,
    disclosures,
    erasures,
    log_entries,
    logs,
    records,
    shred_keys,
)
from countersign.base.errors import DamagedValue, EvidenceDamaged
from countersign.base.http.schemas import Evidence
from countersign.base.values import ACKNOWLEDGMENT as ID_PREFIX
from countersign.base.values import Mode, earliest_id, from_ms, is_id, to_ms
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.model import AS_SUBMITTED, RecordView, StoredAcknowledgment
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.schemas import Acknowledgment, AcknowledgmentsQuery
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import RecordType, missing, open_disclosures
from countersign_evidence.process import PROCESS
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD, SESSION_FIELD

_decode_disclosure: Final = msgspec.json.Decoder(tuple[str, str, Any]).decode
read_record: Final = msgspec.json.Decoder(RecordView).decode
_log: Final = structlog.get_logger("countersign.evidence")

SELECT_RECORDS: Final = select(
    records.c.id,
    records.c.account_id,
    records.c.mode,
    records.c.body,
    disclosures.c.payload,
    shred_keys.c.key.label("shred_key"),
    log_entries.c.leaf_index,
    logs.c.origin,
    acknowledgment_uses.c.clearance_id,
    records.c.at,
    erasures.c.at.label("erased_at"),
).select_from(
    records.outerjoin(disclosures, disclosures.c.record_id == records.c.id)
    .outerjoin(shred_keys, shred_keys.c.record_id == records.c.id)
    .outerjoin(log_entries, log_entries.c.record_id == records.c.id)
    .outerjoin(logs, logs.c.id == log_entries.c.log_id)
    .outerjoin(erasures, erasures.c.record_id == records.c.id)
    .outerjoin(acknowledgment_uses, acknowledgment_uses.c.ack_id == records.c.id)
)
"""Records of any type as they are stored; without payload and shred key, they are erased."""
_SELECT: Final = SELECT_RECORDS.where(records.c.type == RecordType.ACKNOWLEDGMENT)
_INDEXES: Final[Mapping[Field, Column[bytes]]] = {
    SESSION_FIELD: disclosures.c.session_index,
    CBID_FIELD: disclosures.c.cbid_index,
    REFERENCE_FIELD: disclosures.c.reference_index,
}
"""For each searchable field, the column of its blind index."""
_select_one: Final = DriverStatement(
    f"{_SELECT.compile(compile_kwargs={'literal_binds': True})}"
    " AND records.id = ? AND records.account_id = ? AND records.mode = ?"
)


def get(connection: Connection, who: Principal, ack_id: str) -> StoredAcknowledgment | None:
    row = _select_one(connection, ack_id, who.account_id, who.mode.value).fetchone()
    if row is None:
        return None
    *others, at, erased_at = row
    return _from_row((*others, from_ms(at), None if erased_at is None else from_ms(erased_at)))


def find_order_owner(connection: Connection, id_: str) -> tuple[str, Mode] | None:
    """The account and mode of an acknowledgment or clearance of any account."""
    kinds = (RecordType.ACKNOWLEDGMENT, RecordType.CLEARANCE)
    owner = select(records.c.account_id, records.c.mode).where(records.c.id == id_)
    row = connection.execute(owner.where(records.c.type.in_(kinds))).one_or_none()
    return None if row is None else (row.account_id, Mode(row.mode))


def find(
    connection: Connection,
    who: Principal,
    search: AcknowledgmentsQuery,
    indexes: Mapping[Field, bytes],
) -> Sequence[StoredAcknowledgment]:
    """The matches in the account and mode of this key, newest first.

    The blind indexes are those of `session_id`, `cbid` and `order_reference`, by field.
    """
    # By a blind index, a few disclosures lead to their records; else the account's own records are
    # walked. The conditions are on the first table, so the planner has no choice.
    start = disclosures if indexes else records
    id_ = records.c.id if start is records else disclosures.c.record_id
    statement = _SELECT.where(start.c.account_id == who.account_id, start.c.mode == who.mode)
    for field, index in indexes.items():
        statement = statement.where(found_by(connection, _INDEXES[field], index))
    if search.notice_id is not None:
        statement = statement.where(records.c.notice_id == search.notice_id)
    # Identifiers begin with the millisecond of acceptance, so a range of times is one of ids.
    if search.accepted_after is not None:
        statement = statement.where(id_ >= earliest_id(ID_PREFIX, to_ms(search.accepted_after)))
    if search.accepted_before is not None:
        statement = statement.where(id_ < earliest_id(ID_PREFIX, to_ms(search.accepted_before)))
    if search.after is not None:
        statement = statement.where(id_ < search.after)
    statement = statement.order_by(id_.desc()).limit(search.limit)
    return [_from_row(row) for row in connection.execute(statement)]


def _from_row(row: Sequence[Any]) -> StoredAcknowledgment:
    try:
        return of_row(row, StoredAcknowledgment)
    except msgspec.ValidationError:
        # The disclosures may be damaged: whoever opens them finds out, others need none.
        with refusing_damage(row[0]):
            return of_row((*row[:4], b"", b"", *row[6:]), StoredAcknowledgment)


async def find_one(room: Acknowledgments, who: Principal, ack_id: str) -> Acknowledgment:
    """One acknowledgment of the account and mode of this key; EvidenceDamaged if unreadable."""
    return await _view(room, await stored(room, who, ack_id))


async def find_many(
    room: Acknowledgments, who: Principal, search: AcknowledgmentsQuery
) -> tuple[Sequence[Acknowledgment], str | None]:
    """A page, newest first, and the cursor of the next one (None on the last page)."""
    one_more = replace(search, limit=search.limit + 1)
    index = partial(room.log.access.secret.blind_index, who.account_id)
    sought = {field: getattr(search, field) for field in _INDEXES}
    indexes = {field: index(field, value) for field, value in sought.items() if value is not None}
    found = await room.log.database.scan(find, who, one_more, indexes)
    page = [await _listed(room, item) for item in found[: search.limit]]
    return page, page[-1].ack_id if len(found) > len(page) else None


async def stored(room: Acknowledgments, who: Principal, ack_id: str) -> StoredAcknowledgment:
    """One acknowledgment with its disclosures encrypted; NotFound if this key has no such."""
    known = is_id(ID_PREFIX, ack_id)
    found = await room.log.database.read(get, who, ack_id) if known else None
    if found is None:
        raise await missing(room.log.database, who, ack_id, "acknowledgment")
    return found


@contextmanager
def refusing_damage(ack_id: str) -> Iterator[None]:
    """Log and refuse whatever stored evidence causes here that sound evidence cannot."""
    try:
        yield
    except (DamagedValue, msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
        _log.error("evidence_damaged", ack_id=ack_id, kind=type(error).__name__, reason=str(error))
        raise EvidenceDamaged from error


async def _listed(room: Acknowledgments, found: StoredAcknowledgment) -> Acknowledgment:
    """The same for a list, where a damaged row does not fail the others."""
    try:
        return await _view(room, found)
    except EvidenceDamaged:  # which was logged
        return replace(_shown(found, ()), unreadable=True)


async def _view(room: Acknowledgments, found: StoredAcknowledgment) -> Acknowledgment:
    """An acknowledgment as its account reads it, with times to the millisecond."""
    with refusing_damage(found.ack_id):
        sealed = (found.account_id, found.ack_id, found.payload, found.shred_key)
        return _shown(found, await open_disclosures(room.log.vault.vault, *sealed))


def _shown(found: StoredAcknowledgment, opened_ones: Sequence[str]) -> Acknowledgment:
    """With its disclosures as personal fields, in the shapes of spec/evidence-format.md."""
    with refusing_damage(found.ack_id):
        # Salt, name and value of a disclosure of ours: nobody else can seal one.
        opened = (_decode_disclosure(urlsafe_b64decode(f"{one}==")) for one in opened_ones)
        shown = {name: value for _, name, value in opened}
        ip, agent = shown.get("ip") or {}, shown.get("user_agent") or {}
        submitted: dict[str, Any] = {name: shown.get(name) for name in AS_SUBMITTED}
        return Acknowledgment(
            **asdict(read_record(found.record)),
            ack_id=found.ack_id,
            livemode=found.mode is Mode.LIVE,
            **submitted,
            order_reference=shown.get(REFERENCE_FIELD),
            ip=ip.get("ip"),
            ip_source=ip.get("source"),
            peer_ip=ip.get("peer_ip"),
            user_agent=agent.get("user_agent"),
            user_agent_source=agent.get("source"),
            user_agent_truncated=agent.get("truncated"),
            process=shown.get(PROCESS),
            accepted_at=found.accepted_at,
            clearance_id=found.clearance_id,
            evidence=evidence_of(found.origin, found.leaf_index),
            erased_at=found.erased_at,
        )


def evidence_of(origin: str | None, index: int | None) -> Evidence:
    status = "pending" if origin is None else "sealed"
    return Evidence(status=status, log=origin, index=index)
