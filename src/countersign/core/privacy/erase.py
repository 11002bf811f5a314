"""Erase personal data and keep the proof; after a restore, erase it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection, Row, delete, select, update

from countersign.base.db.database import Database
from countersign.base.db.schema import value_of
from countersign.base.db.tables import (
    acknowledgment_uses,
    buyers,
    clearances,
    deployment,
    disclosures,
    records,
    shred_keys,
)
from countersign.base.errors import CountersignError, OnHold, UnknownSubject
from countersign.base.values import (
    ACKNOWLEDGMENT,
    BUYER,
    CLEARANCE,
    FACT,
    SANDBOX_BUYER,
    VERIFICATION,
    Mode,
    earliest_id,
    from_ns,
    is_id,
    timed_id,
)
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit
from countersign.core.access.idempotency import Remember, keep_answer
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach, mode_of_buyer, reach_of
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.sql import ERASED_BUYER, erased_name
from countersign.core.log.journal import Journal
from countersign.core.log.record import RecordType
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.held import HeldRecords, find_held
from countersign.core.privacy.holds import active_holds, hold_on, relying_elsewhere, take_turn
from countersign.core.privacy.model import Erasable, ErasureReason, Outdated, Plan, RecordErasure
from countersign.core.privacy.person_sql import (
    Person,
    accounts_of,
    find_person,
    forget_checks,
    identifiers_of,
    is_played,
    lock_person,
)
from countersign.core.privacy.room import Privacy
from countersign.core.vault.vault import COPIES_REMAIN

KEYS_MISSING: Final = "restored_keys_missing"
"""Name of the deployment's value that means: data without a shred key here is erased."""
ERASURE_DUE: Final = b"due"
"""Value of a remembered erasure after a restore, until the buyer is erased again."""
_DONE: Final = b"done"
_DUE: Final = deployment.c.name.startswith(ERASED_BUYER) & (deployment.c.value == ERASURE_DUE)
_PAGE: Final = 500

_log: Final = structlog.get_logger("countersign.restore")


async def plan_erasure(
    privacy: Privacy, subject: str, reach: Reach, *, with_acknowledgments: bool = False
) -> Plan:
    """The plan to erase an acknowledgment, a verification or a buyer in this reach.

    An account erases its own part of a buyer; other accounts keep theirs.
    `with_acknowledgments`: for a buyer, also the acknowledgments that name the buyer.

    Raises UnknownSubject if nothing in reach is it, or names it.
    """
    naming = with_acknowledgments
    return await privacy.access.database.scan(_plan, privacy, subject, reach, naming=naming)


def _plan(
    connection: Connection, privacy: Privacy, subject: str, reach: Reach, *, naming: bool
) -> Plan | UnknownSubject:
    buyer, found, secret = None, list[Erasable](), privacy.access.secret
    if any(is_id(kind, subject) for kind in (ACKNOWLEDGMENT, CLEARANCE, VERIFICATION)):
        # An exempt order is that of its first clearance.
        own = clearances.c.id == subject, clearances.c.ack_id > earliest_id(CLEARANCE, 0)
        granted = select(clearances.c.ack_id).where(*own, clearances.c.kid.is_not(None))
        first: str = connection.scalar(granted) or subject
        found += sql.find_records(connection, reach, records.c.id == first)
        found += sql.find_order_records(connection, [first] if found else [], reach)
    elif is_id(BUYER, subject) or is_id(SANDBOX_BUYER, subject):
        buyer = sql.find_buyer(connection, secret, subject, reach)
        found += buyer.verifications if buyer else ()
        if buyer and naming:
            found += _naming(connection, secret, buyer.cbids, reach)
    if not found and buyer is None:
        return _unknown(subject)
    found = [*{record.record_id: record for record in found}.values()]
    years, now = sql.find_retention_years(connection), from_ns(privacy.access.clock.time_ns())
    ends = [end for record in found if (end := sql.kept_until(record, years)) and end > now]
    return Plan(
        subject=subject,
        reach=reach,
        buyer=buyer,
        records=tuple(record for record in found if record.erased_at is None),
        kept_until=max(ends, default=None),
    )


def _unknown(subject: str) -> UnknownSubject:
    return UnknownSubject(
        f"The acknowledgment, verification or buyer {subject!r} does not exist, or was erased."
    )


def _naming(
    connection: Connection, secret: DeploymentSecret, cbids: Sequence[str], reach: Reach
) -> list[Erasable]:
    """The acknowledgments and clearances that name the buyer, and all that is of their orders."""
    # Also those that were made without the buyer, and bound when their order was cleared.
    u = acknowledgment_uses.c
    bound = select(u.ack_id).where(u.cbid.in_(cbids), reach.rows(acknowledgment_uses))
    named = sql.find_naming(connection, secret, cbids, reach)
    named += sql.find_records(connection, reach, records.c.id.in_(bound))
    return named + sql.find_order_records(connection, [r.record_id for r in named], reach)


async def kept_of_plan(privacy: Privacy, plan: Plan) -> HeldRecords:
    """The part of the plan that legal holds currently keep.

    Raises OnHold as `erase_planned` does.
    """
    held = await _held(privacy, plan)
    cbid = plan.subject if plan.buyer else None
    await privacy.access.database.scan(refusal, held, cbid, plan.reach)
    return held


async def _held(privacy: Privacy, plan: Plan) -> HeldRecords:
    access = privacy.access
    return await access.database.scan(find_held, access.secret, plan.ids, plan.reach)


async def erase_planned(
    privacy: Privacy,
    plan: Plan,
    reason: ErasureReason,
    *,
    remember: Remember[HeldRecords] = None,
    **details: object,
) -> HeldRecords:
    """Destroy it permanently, and write that down; `details` are for the audit.

    `remember` makes the stored response from the held records, in the transaction.

    Returns what legal holds keep of a buyer: whatever the orders on hold need, with their checkout
    sessions. All other data is erased at once, and the held data when the holds have ended:
    `carry_out_waiting`.

    The records themselves, their entries in the log and every proof stay valid. Each erasure has
    its own record, in random order: one record with all records of a buyer would show permanently
    that they belong together.

    Data of the buyer or the order written since the plan is erased too.

    Raises OnHold if a legal hold keeps the buyer itself, or part of a subject that is not a buyer;
    nothing was destroyed.
    """
    while True:
        # Without a buyer the transaction refuses what a hold keeps.
        kept = await _held(privacy, plan) if plan.buyer else {}
        outdated = await erase_as_planned(
            privacy, plan, reason, kept, details=details, remember=remember
        )
        if outdated is None:
            return kept
        buyer = plan.buyer and replace(plan.buyer, sessions=outdated.sessions)
        left = (record for record in plan.records if record.record_id not in outdated.gone)
        plan = replace(plan, records=(*left, *outdated.found), buyer=buyer)


async def erase_as_planned(
    privacy: Privacy,
    plan: Plan,
    reason: ErasureReason,
    kept: HeldRecords,
    *,
    details: Mapping[str, object] | None,
    remember: Remember[HeldRecords] = None,
) -> Outdated | None:
    """The same, except `kept`; nothing is erased of a buyer who has data that the plan lacks.

    Without `details` the audit has no entry.
    """
    access = privacy.access
    going = [r for r in plan.records if plan.buyer is None or r.record_id not in kept]
    parts = [
        await make_erasure(privacy, record.account_id, record.mode, [record.record_id], reason)
        for record in sorted(going, key=lambda _: access.entropy(8))
    ]
    number = Counter((r.account_id, r.mode) for r in going)
    if plan.buyer:
        if plan.buyer.owner not in number:
            parts.append(await make_erasure(privacy, *plan.buyer.owner, [], reason))
        number.update(dict.fromkeys(plan.buyer.accounts, 0))
    if parts:
        audit = []
        if details is not None:
            audit = erased_entries(privacy, plan.subject, number, reason, **details)
        cbid = plan.subject if plan.buyer else None
        secret, journal = access.secret, privacy.log.journal
        own = (secret, journal, parts, plan.reach)
        act = partial(carry_out, cbid=cbid, audit=audit, kept=kept, reason=reason)
        return await access.database.write(act, *own, remember=remember)
    return None


def erased_entries(
    privacy: Privacy,
    subject: str,
    number: Mapping[tuple[str, Mode], int],
    reason: ErasureReason,
    **details: object,
) -> list[AuditEntry]:
    """The audit entries of the accounts that lose data, with the number of their records.

    `by` decides in whose name it is done: the buyer's, if `details` say so, the account's own, or
    the deployment's, which also erases due data.
    """
    audit = privacy.access.audit
    said = {"reason": reason.value, "by": "account" if audit.owners else "deployment"} | details
    return [
        audit.entry(
            AuditAction.ERASED,
            subject,
            AccountReach(of, mode),
            # The deployment's list has the entries of all, without their owners.
            **said | {"account_id": of, "mode": mode.value, "records": erased},
        )
        for (of, mode), erased in sorted(number.items())
    ]


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
    reach: Reach,
    *,
    cbid: str | None = None,
    audit: Sequence[AuditEntry] = (),
    kept: HeldRecords | None = None,
    reason: ErasureReason = ErasureReason.OTHER,
    remember: Remember[HeldRecords] = None,
    whole: bool = True,
) -> CountersignError | Outdated | None:
    """Destroy the disclosures of these records, and the data about the buyer: all or nothing.

    `kept` is what stays of the buyer, since a hold keeps it. Nothing is destroyed if the holds keep
    something else now, if the plan for `parts` lacks data of the buyer or, where they are `whole`
    orders, of one of these, or if others have erased some of it.
    """
    take_turn(connection)
    if cbid is not None and sql.find_buyer(connection, secret, cbid, reach) is None:
        return _unknown(cbid)
    person = None if cbid is None else lock_person(connection, secret, cbid, reach)
    sessions = person.references if person else ()
    if cbid is not None and person is None:
        return Outdated((), sessions)
    going = [id_ for part in parts for id_ in part.record_ids]
    kept = kept or {}
    planned = {*going, *kept}
    held = find_held(connection, secret, [*planned.union(sessions)], reach)
    on_hold = refusal(connection, held, cbid, reach)
    if on_hold is not None:
        return on_hold
    known = sql.find_order_records(connection, going, reach) if whole else []
    known += sql.find_verifications(connection, person.cbids, reach) if person else []
    found = {r.record_id: r for r in known if r.erased_at is None and r.record_id not in planned}
    gone = sql.find_erased(connection, going)
    if found or gone or held.keys() != kept.keys():
        return Outdated([*found.values()], sessions, gone)
    for part in parts:
        sql.destroy_disclosures(connection, part)
        sql.forget_sessions(connection, secret, part.record_ids, reach, held=held)
    sql.note_copies(connection, parts[0].erasure.id)
    if person is not None:
        kept_here = _forget_person(connection, secret, person, held, reach)
        sql.wait_for_holds(connection, kept_here, reason, parts[0].erasure.at)
    journal.write(connection, [part.erasure for part in parts])
    for entry in audit:
        write_audit(connection, entry)
    keep_answer(connection, remember, kept)
    return None


def _forget_person(
    connection: Connection,
    secret: DeploymentSecret,
    person: Person,
    held: HeldRecords,
    reach: Reach,
) -> list[str]:
    """Destroy a buyer's data in reach, and the buyer itself if no other account relies on it.

    A simulated buyer belongs to its account alone. Returns the data that holds keep.
    """
    relying, within = dict[str, str](), reach
    if isinstance(reach, AccountReach):
        relying = relying_elsewhere(connection, secret, person.cbids, reach)
        within = reach if relying else DEPLOYMENT
        if is_played(connection, person.cbids[0], reach):
            relying = {}
        sql.leave_buyer(connection, relying, reach)
        sql.remember_erased(connection, secret, [*relying], reach)
    if within != reach:
        # Sessions elsewhere are no ties where a test key began them, or their account has left.
        named = find_person(connection, secret, person.cbids[0], within).references
        theirs = [id_ for id_ in named if id_ not in person.references]
        held = {**find_held(connection, secret, theirs, within), **held}
    going = [cbid for cbid in person.cbids if cbid not in relying]
    sql.remember_erased(connection, secret, going, DEPLOYMENT)
    forget_checks(connection, person, held, reach)
    sql.forget_ties(connection, secret, person.cbids, [*held], within)
    if going:
        sql.forget_buyer(connection, going)
    sql.forget_sessions(connection, secret, [], within, person.cbids, held)
    return [*held]


def refusal(
    connection: Connection, held: HeldRecords, cbid: str | None, reach: Reach
) -> OnHold | None:
    """The refusal, if a hold keeps the buyer, or without a buyer any of these records."""
    found = list[tuple[str, str]]()
    if cbid is None:
        found += held.values()
    else:
        names = identifiers_of(connection, cbid)
        relying = sql.find_accounts_of(connection, names, reach)
        active = active_holds(connection, reach, [*names, *(one for one, _ in relying)])
        found += [(hold, cbid) for hold, _ in active.get(cbid, ())]
        for account_id, mode in relying:
            hold = hold_on(active, account_id, account_id, mode)
            found += [(hold, account_id)] if hold else []
    if not found:
        return None
    hold, subject = found[0]
    return OnHold(
        f"The legal hold {hold} on {subject} prevents this erasure; nothing was erased. Erase it "
        "when the hold has been released."
    )


async def destroy_copies(database: Database) -> bool:
    """Destroy copies of erased data; False if another process keeps some of them.

    They are pages in the write-ahead log of the embedded database. On PostgreSQL vacuum and
    archiving decide: this process knows no copies there.
    """
    noted = await database.read(value_of, COPIES_REMAIN)
    if noted is None:
        return True
    if not await database.empty_log():
        return False
    # Only earlier notes: there may have been an erasure since.
    await database.write(sql.delete_noted_copies, noted)
    return True


async def finish_restore(privacy: Privacy) -> int:
    """After a restore, repeat the erasures since the backup, and record that.

    Returns the number of records; no-op if it is done already. The records are those without a
    shred key. Buyers have no shred keys: their erasures are stored as keyed hashes, which a backup
    puts with the shred keys.
    """
    database, reason = privacy.access.database, ErasureReason.OTHER
    own = (privacy.access.secret, privacy.log.journal)
    again = partial(carry_out, reason=reason, whole=False)
    total, after = 0, ""
    while page := await database.scan(_find_keyless, after):
        for after, account_id, mode in page:
            part = await make_erasure(privacy, account_id, Mode(mode), [after], reason)
            # Ciphertext that a hold keeps stays, although nothing can decrypt it.
            with suppress(OnHold):
                done = await database.write(again, *own, [part], DEPLOYMENT)
                total += done is None
    await database.write(_finish_restore, buyers_too=not await _erase_buyers(privacy))
    return total


async def _erase_buyers(privacy: Privacy) -> int:
    """Erase the buyers again that were erased since the backup; returns how many a hold keeps."""
    database, secret, held = privacy.access.database, privacy.access.secret, 0
    for cbid, reach in await database.scan(_find_erased_buyers, secret):
        try:
            plan = await plan_erasure(privacy, cbid, reach)
        except UnknownSubject:
            # Erased with another identifier of the same buyer; or all that came back is no tie.
            await database.write(sql.forget_ties, secret, [cbid], [], reach)
            continue
        kept = await _held(privacy, plan)
        try:
            other = ErasureReason.OTHER
            outdated = await erase_as_planned(privacy, plan, other, kept, details=None)
            if outdated is not None:
                raise AssertionError("no server writes during a restore")
        except OnHold as error:
            # The hold was released before the erasure, and the backup is older than both.
            held += 1
            _log.error("erased_buyer_on_hold", reason=error.message)
    return held


def _find_keyless(connection: Connection, after_id: str) -> Sequence[Row[str, str, str]]:
    """Id, account and mode of the next records whose shred keys went since the backup, in order.

    None unless the database was restored and erasures are left to record.
    """
    if value_of(connection, KEYS_MISSING) is None:
        return ()
    return connection.execute(
        select(disclosures.c.record_id, disclosures.c.account_id, disclosures.c.mode)
        .outerjoin(shred_keys, shred_keys.c.record_id == disclosures.c.record_id)
        .where(disclosures.c.record_id > after_id, shred_keys.c.record_id.is_(None))
        .order_by(disclosures.c.record_id)
        .limit(_PAGE)
    ).all()


def _find_erased_buyers(
    connection: Connection, secret: DeploymentSecret
) -> Sequence[tuple[str, Reach]]:
    """Buyers that are present although they were erased after the backup, and in what reach.

    None unless the database was restored and erasures are left to repeat.
    """
    erased = set(connection.execute(select(deployment.c.name).where(_DUE)).scalars())
    if not erased:
        return ()
    there = connection.execute(select(buyers.c.cbid).order_by(buyers.c.cbid)).scalars()
    # An account's data may be found by its keyed hashes only: every pair is tried.
    owners = ["", *accounts_of(connection, DEPLOYMENT)]
    return [
        (cbid, reach)
        for cbid in there
        for reach in [reach_of(one, mode_of_buyer(cbid)) for one in owners]
        if erased_name(secret, cbid, reach) in erased
    ]


def _finish_restore(connection: Connection, *, buyers_too: bool) -> None:
    """Note that each such record has its erasure and, if `buyers_too`, that buyers were erased."""
    waits = select(deployment.c.name).where((deployment.c.name == KEYS_MISSING) | _DUE)
    if connection.execute(waits).first() is None:
        return  # a server's role, which may not write here, has nothing to write then
    connection.execute(delete(deployment).where(deployment.c.name == KEYS_MISSING))
    if buyers_too:
        # The others are of buyers that the backup does not contain.
        connection.execute(update(deployment).where(_DUE).values(value=_DONE))
