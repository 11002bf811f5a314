"""Report what was done for an order that was cleared, and close it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.key import Principal
from countersign.clearances.read import (
    CARRIER_FIELD,
    TRACKING_FIELD,
    decided_in,
    fulfilments_of,
    stored_clearance,
)
from countersign.clearances.room import Clearances
from countersign.clearances.schemas import FulfilmentReceipt, FulfilmentRequest
from countersign.db.tables import acknowledgment_uses, fulfilments
from countersign.errors import ClearanceClosed, ClearanceNotGranted, CountersignError
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.http.reply import encode
from countersign.ids import FULFILMENT, timed_id
from countersign.instant import rfc3339, to_the_second
from countersign.log.record import NewRecord, RecordType
from countersign.notices.obligations import ADULT_SIGNATURE

_SELECT_USE: Final = (
    select(acknowledgment_uses.c.closed_at)
    .where(acknowledgment_uses.c.ack_id == bindparam("ack_id"))
    .with_for_update()
)


async def fulfil_order(
    room: Clearances,
    who: Principal,
    clearance_id: str,
    reported: FulfilmentRequest,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> FulfilmentReceipt:
    """Write down what was done; with the last report the order is closed.

    Raises:
        NotFound: there is no such clearance for this key.
        ClearanceNotGranted: the order was not cleared.
        ClearanceClosed: all was reported already.
    """
    stored = await stored_clearance(room, who, clearance_id)
    decided = decided_in(stored.record)
    if not decided.cleared or stored.ack_id is None:
        raise ClearanceNotGranted
    record = await room.recorder.of_account(
        RecordType.FULFILMENT,
        record_id=timed_id(FULFILMENT, room.clock.time_ns(), room.entropy(8)),
        account_id=who.account_id,
        mode=who.mode,
        members={
            "clearance_id": clearance_id,
            "adult_signature_obtained": reported.adult_signature_obtained,
            "shipped_at": _time(reported.shipped_at),
            "delivered_at": _time(reported.delivered_at),
        },
        personal=(
            (CARRIER_FIELD, reported.carrier),
            (TRACKING_FIELD, reported.tracking_number),
        ),
    )
    return await room.database.write(
        _fulfil,
        room,
        record,
        clearance_id=clearance_id,
        ack_id=stored.ack_id,
        adult_signature=bool(reported.adult_signature_obtained),
        obligations=decided.obligations,
        entry=entry,
    )


def _fulfil(
    connection: Connection,
    room: Clearances,
    record: NewRecord,
    *,
    clearance_id: str,
    ack_id: str,
    adult_signature: bool,
    obligations: Sequence[Mapping[str, Any]],
    entry: Callable[[bytes], IdempotencyEntry] | None,
) -> FulfilmentReceipt | CountersignError:
    # Two reports at once take turns.
    use = connection.execute(_SELECT_USE, {"ack_id": ack_id}).one_or_none()
    if use is not None and use.closed_at is not None:
        return ClearanceClosed()
    earlier = fulfilments_of(connection, [ack_id])
    obtained = adult_signature or any(row.adult_signature for row in earlier)
    # Complete after at least one report, with the signature if the order asks for it.
    closes = obtained or not any(duty.get("type") == ADULT_SIGNATURE for duty in obligations)
    room.journal.write(connection, [record])
    connection.execute(
        insert(fulfilments),
        {
            "id": record.id,
            "account_id": record.account_id,
            "mode": record.mode,
            "clearance_id": clearance_id,
            "ack_id": ack_id,
            "adult_signature": adult_signature,
            "closes": closes,
            "at": record.at,
        },
    )
    if closes:
        _close(connection, record, clearance_id, ack_id)
    receipt = FulfilmentReceipt(
        fulfilment_id=record.id,
        clearance_id=clearance_id,
        closed_at=to_the_second(record.at) if closes else None,
    )
    if entry is not None:
        keep_answers(connection, [entry(encode(receipt))])
    return receipt


def _close(connection: Connection, record: NewRecord, clearance_id: str, ack_id: str) -> None:
    connection.execute(
        update(acknowledgment_uses)
        .where(acknowledgment_uses.c.ack_id == ack_id)
        .values(closed_at=record.at)
    )
    account_id = record.account_id
    assert account_id is not None  # noqa: S101 - a fulfilment is an account's
    closed = NewEvent(account_id, record.mode, EventType.CLEARANCE_CLOSED, clearance_id, record.at)
    write_events(connection, [closed])


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
