"""Destroy what is personal, and keep the proof."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.access.secrets import DeploymentSecret
from countersign.db.database import Database
from countersign.errors import OnHold, UnknownSubject
from countersign.ids import (
    ACKNOWLEDGMENT,
    BUYER,
    FACT,
    SANDBOX_BUYER,
    VERIFICATION,
    is_id,
    timed_id,
)
from countersign.log.journal import Journal
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.privacy import erase_sql as sql
from countersign.privacy.holds import active_holds, find_holding, take_turn
from countersign.privacy.model import Erasable, ErasureReason, Plan, RecordErasure, years_after
from countersign.privacy.room import Privacy
from countersign.vault.data_keys_sql import noted_copies


async def plan_erasure(
    privacy: Privacy, subject: str, *, with_acknowledgments: bool = False
) -> Plan:
    """What would be destroyed.

    Args:
        privacy: the room.
        subject: an acknowledgment, a verification or a buyer.
        with_acknowledgments: of a buyer, also the acknowledgments that name the buyer, in all
            accounts.

    Raises:
        UnknownSubject: there is none.
    """
    access = privacy.access
    return await access.database.scan(
        _plan, access.secret, subject, with_acknowledgments=with_acknowledgments
    )


def _plan(
    connection: Connection, secret: DeploymentSecret, subject: str, *, with_acknowledgments: bool
) -> Plan | UnknownSubject:
    owner: tuple[str, Mode] | None = None
    records: list[Erasable] = []
    if is_id(ACKNOWLEDGMENT, subject) or is_id(VERIFICATION, subject):
        records += sql.find_records(connection, [subject])
        if records:
            records += sql.find_order_records(connection, [subject])
    elif is_id(BUYER, subject) or is_id(SANDBOX_BUYER, subject):
        buyer = sql.find_buyer(connection, subject)
        if buyer is not None:
            owner = (buyer.account_id, buyer.mode)
            records += buyer.verifications
            if with_acknowledgments:
                records += _naming(connection, secret, buyer.cbids)
    if not records and owner is None:
        return UnknownSubject(
            f"The acknowledgment, verification or buyer {subject!r} does not exist, or was erased."
        )
    return Plan(
        subject=subject,
        buyer=owner,
        records=tuple(record for record in records if record.erased_at is None),
        kept_until=_kept_until(connection, records),
    )


def _naming(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str]
) -> list[Erasable]:
    """The acknowledgments that name the buyer, and the clearances and fulfilments after them."""
    named = sql.find_naming(connection, secret, cbids)
    acks = [r.record_id for r in named if is_id(ACKNOWLEDGMENT, r.record_id)]
    orders = sql.find_order_records(connection, acks)
    return [*{record.record_id: record for record in (*named, *orders)}.values()]


def _kept_until(connection: Connection, records: Sequence[Erasable]) -> datetime | None:
    years = sql.find_retention_years(connection)
    ends = [
        years_after(record.at, years[notice])
        for record in records
        if is_id(ACKNOWLEDGMENT, record.record_id) and (notice := sql.notice_of(record)) in years
    ]
    return max(ends, default=None)


async def erase_planned(privacy: Privacy, plan: Plan, reason: ErasureReason) -> None:
    """Destroy it permanently, and write that down.

    The records themselves, their entries in the log and every proof stay valid. Each erasure has a
    record of its own, and they are in random order: one that listed all records of a buyer would
    show permanently that they were of one buyer.

    Raises:
        OnHold: a legal hold keeps part of it; nothing was destroyed.
    """
    access = privacy.access
    parts = [
        await make_erasure(privacy, record.account_id, record.mode, [record.record_id], reason)
        for record in sorted(plan.records, key=lambda _: access.entropy(8))
    ]
    if plan.buyer and plan.buyer not in {(r.account_id, r.mode) for r in plan.records}:
        parts.append(await make_erasure(privacy, *plan.buyer, [], reason))
    if parts:
        audit = access.audit.entry(
            AuditAction.ERASED, plan.subject, reason=reason.value, records=len(plan.records)
        )
        cbid = plan.subject if plan.buyer else None
        await access.database.write(
            carry_out, access.secret, privacy.log.journal, parts, cbid=cbid, audit=audit
        )


async def make_erasure(
    privacy: Privacy, account_id: str, mode: Mode, ids: Sequence[str], reason: ErasureReason
) -> RecordErasure:
    """The erasure of these records of an account, with the record to write of it."""
    access = privacy.access
    erasure = await privacy.log.recorder.of_account(
        RecordType.ERASURE,
        record_id=timed_id(FACT, access.clock.time_ns(), access.entropy(8)),
        account_id=account_id,
        mode=mode,
        members={"erased": [*ids], "reason": reason.value},
    )
    return RecordErasure(ids, erasure)


def carry_out(
    connection: Connection,
    secret: DeploymentSecret,
    journal: Journal,
    parts: Sequence[RecordErasure],
    *,
    cbid: str | None = None,
    audit: AuditEntry | None = None,
) -> OnHold | None:
    """Destroy the disclosures of these records, and what is known of the buyer: all or nothing."""
    take_turn(connection)
    refusal = _refusal(connection, secret, parts, cbid)
    if refusal is not None:
        return refusal
    for part in parts:
        sql.destroy_disclosures(connection, part)
    sql.note_copies(connection, parts[0].erasure.id)
    if cbid is not None:
        cbids = sql.identifiers_of(connection, cbid)
        sql.remember_erased(connection, secret, cbids, parts[0].erasure.at)
        sql.forget_buyer(connection, cbids)
    journal.write(connection, [part.erasure for part in parts])
    write_audit(connection, audit)
    return None


def _refusal(
    connection: Connection,
    secret: DeploymentSecret,
    parts: Sequence[RecordErasure],
    cbid: str | None,
) -> OnHold | None:
    """The refusal, if a hold keeps any part of this: what is erased together is held together."""
    active = active_holds(connection)
    subjects: list[str] = []
    if cbid is not None:
        subjects += [cbid, *sql.find_accounts_of(connection, cbid)]
    found = [(active[subject], subject) for subject in subjects if subject in active]
    for part in parts:
        found += find_holding(connection, secret, active, part.record_ids).values()
    if not found:
        return None
    hold, subject = found[0]
    return OnHold(
        f"The legal hold {hold} on {subject} prevents this erasure; nothing was erased. When "
        f"the hold has ended, release it: `countersign holds release {hold}`."
    )


async def destroy_copies(database: Database) -> bool:
    """Destroy copies of what was erased; False if another process keeps some of them.

    They are pages in the write-ahead log of the embedded database. On PostgreSQL vacuum and
    archiving decide: nothing is known of copies here.
    """
    noted = await database.read(noted_copies)
    if noted is None:
        return True
    if not await database.empty_log():
        return False
    # Only what was noted before: something may have been erased since.
    await database.write(sql.delete_noted_copies, noted)
    return True
