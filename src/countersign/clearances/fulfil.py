"""Report what was done for an order that was cleared, and close it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

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
from countersign.evidence.canonical import Json
from countersign.http.body import in_utc
from countersign.http.reply import encode
from countersign.ids import FULFILMENT, timed_id
from countersign.instant import from_ns, rfc3339, to_the_second
from countersign.log.append_record import account_fact
from countersign.log.record import RecordType
from countersign.notices.obligations import ADULT_SIGNATURE
from countersign.parties.sql import bound_now


async def fulfil_order(
    room: Clearances,
    who: Principal,
    clearance_id: str,
    reported: FulfilmentRequest,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> FulfilmentReceipt:
    """Write down what was done; with the last report the order is closed."""
    members: dict[str, Json] = {
        "clearance_id": clearance_id,
        "adult_signature_obtained": reported.adult_signature_obtained,
        "shipped_at": _time(reported.shipped_at, "$.shipped_at"),
        "delivered_at": _time(reported.delivered_at, "$.delivered_at"),
    }
    stored = await stored_clearance(room, who, clearance_id)
    decided = decided_in(stored.record.body)
    if not decided.cleared or stored.ack_id is None:
        raise ClearanceNotGranted
    time_ns = room.access.clock.time_ns()
    key = await room.log.vault.vault.data_key(who.account_id, time_ns)
    # Complete after at least one report, with the signature if the order asks for it.
    signature = any(duty.get("type") == ADULT_SIGNATURE for duty in decided.obligations)
    at, of_order = from_ns(time_ns), acknowledgment_uses.c.ack_id == stored.ack_id

    def fulfil(connection: Connection) -> FulfilmentReceipt | CountersignError:
        # Two reports at once take turns.
        lock = select(acknowledgment_uses.c.closed_at).where(of_order).with_for_update()
        if connection.execute(lock).scalar_one_or_none() is not None:
            return ClearanceClosed()
        record = account_fact(
            key,
            room.access.entropy,
            RecordType.FULFILMENT,
            record_id=timed_id(FULFILMENT, time_ns, room.access.entropy(8)),
            account_id=who.account_id,
            mode=who.mode,
            time_ns=time_ns,
            members=members | bound_now(connection, who.account_id, who.mode).members(),
            personal=(
                (CARRIER_FIELD, reported.carrier),
                (TRACKING_FIELD, reported.tracking_number),
            ),
        )
        row = {
            "id": record.id,
            "account_id": who.account_id,
            "mode": who.mode,
            "clearance_id": clearance_id,
            "ack_id": stored.ack_id,
            "adult_signature": bool(reported.adult_signature_obtained),
            "at": at,
        }
        earlier = fulfilments_of(connection, [str(stored.ack_id)])
        obtained = row["adult_signature"] or any(report.adult_signature for report in earlier)
        closes = obtained or not signature
        room.log.journal.write(connection, [record])
        connection.execute(insert(fulfilments), row | {"closes": closes})
        if closes:
            connection.execute(update(acknowledgment_uses).where(of_order).values(closed_at=at))
            closed = EventType.CLEARANCE_CLOSED
            write_events(connection, [NewEvent(who.account_id, who.mode, closed, clearance_id, at)])
        receipt = FulfilmentReceipt(
            fulfilment_id=record.id,
            clearance_id=clearance_id,
            closed_at=to_the_second(at) if closes else None,
        )
        if entry is not None:
            keep_answers(connection, [entry(encode(receipt))])
        return receipt

    return await room.access.database.write(fulfil)


def _time(instant: datetime | None, path: str) -> str | None:
    return None if instant is None else rfc3339(in_utc(instant, path))
