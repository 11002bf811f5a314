"""Buyers who want to be erased: at once where that may be, else as soon as it may be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select

from countersign.db.tables import erasure_requests, records, remembered, waiting_erasures
from countersign.errors import DatabasePermissionDenied, OnHold, UnknownSubject
from countersign.instant import from_ns
from countersign.privacy.erase import destroy_copies, erase_planned, plan_erasure
from countersign.privacy.erase_sql import find_records
from countersign.privacy.model import ErasureReason, Plan
from countersign.privacy.person_sql import identifiers_of
from countersign.privacy.room import Privacy


class ErasureOutcome(StrEnum):
    """What came of a request."""

    ERASED = "erased"
    KEPT = "kept"
    """Erased but for what orders on hold need; that is erased when the hold has ended."""
    ON_HOLD = "on_hold"
    """A legal hold keeps it; it is erased when the hold has ended."""
    REQUESTED = "requested"
    """The server may not erase: `countersign retention run` does, as the owner of the tables."""


async def request_erasure(privacy: Privacy, cbid: str) -> ErasureOutcome:
    """Erase a buyer at the buyer's own request, or keep the request; durable when this returns.

    What the buyer is remembered by goes in any case.
    """
    now = from_ns(privacy.access.clock.time_ns())
    await privacy.access.database.write(_request, cbid, now)
    return await carry_out_request(privacy, cbid)


async def carry_out_request(privacy: Privacy, cbid: str) -> ErasureOutcome:
    """Try to erase this buyer, who has asked for it."""
    try:
        plan = await plan_erasure(privacy, cbid)
        kept = await erase_planned(privacy, plan, ErasureReason.REQUEST, by="buyer")
    except UnknownSubject:
        await privacy.access.database.write(_settle, cbid)
    except OnHold:
        return ErasureOutcome.ON_HOLD
    except DatabasePermissionDenied:
        return ErasureOutcome.REQUESTED
    else:
        await destroy_copies(privacy.access.database)
        return ErasureOutcome.KEPT if kept else ErasureOutcome.ERASED
    return ErasureOutcome.ERASED


async def carry_out_waiting(privacy: Privacy) -> list[str]:
    """Erase the records that waited for the end of a hold, but for those that one still keeps.

    Returns those that were erased.
    """
    waiting, erased = await privacy.access.database.read(_waiting), list[str]()
    for record_id, reason in waiting:
        found = await privacy.access.database.read(find_records, records.c.id == record_id)
        left = tuple(record for record in found if record.erased_at is None)
        plan = Plan(subject=record_id, buyer=None, records=left, kept_until=None)
        with suppress(OnHold):
            await erase_planned(privacy, plan, ErasureReason(reason))
            erased.append(record_id)
    if erased:
        await destroy_copies(privacy.access.database)
    return erased


def _waiting(connection: Connection) -> Sequence[tuple[str, str]]:
    w = waiting_erasures.c
    rows = connection.execute(select(w.record_id, w.reason).order_by(w.record_id))
    return [(row.record_id, row.reason) for row in rows]


def requested(connection: Connection) -> Sequence[str]:
    """The buyers who are still to be erased, in the order of their requests."""
    waiting = select(erasure_requests.c.cbid).order_by(erasure_requests.c.requested_at)
    return connection.execute(waiting).scalars().all()


def _request(connection: Connection, cbid: str, now: datetime) -> None:
    cbids = identifiers_of(connection, cbid)
    connection.execute(delete(remembered).where(remembered.c.cbid.in_(cbids)))
    same = select(erasure_requests.c.cbid).where(erasure_requests.c.cbid == cbids[0])
    if connection.execute(same).first() is None:
        connection.execute(insert(erasure_requests), {"cbid": cbids[0], "requested_at": now})


def _settle(connection: Connection, cbid: str) -> None:
    connection.execute(delete(erasure_requests).where(erasure_requests.c.cbid == cbid))
