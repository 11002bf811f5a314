"""Legal holds: they prevent erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, insert, select, text, update

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.access.references import named, refer
from countersign.access.secrets import DeploymentSecret
from countersign.db.rows import chunks, rows
from countersign.db.tables import accounts, buyers, disclosures, legal_holds, records, verifications
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.ids import BUYER, timed_id
from countersign.instant import from_ns
from countersign.privacy.model import Hold
from countersign.privacy.person_sql import identifiers_of
from countersign.privacy.room import Privacy
from countersign_evidence.record import CBID_FIELD

_HOLDS_LOCK: Final = 0x636F756E68


async def place_hold(privacy: Privacy, subject: str, reason: str) -> Hold:
    """Prevent the erasure of an order, or of all data of a buyer or an account.

    On any record of an order, it keeps what the order needs: acknowledgment, clearances, reports
    of its fulfilment, and the identity check that it rests on. On a buyer, it also keeps the
    orders that name the buyer, of every account.
    """
    reason = reason.strip()
    if not reason:
        raise InvalidArgument("Give a reason: --reason TEXT.")
    access = privacy.access
    time_ns = access.clock.time_ns()
    hold = Hold(
        id=timed_id("hold", time_ns, access.entropy(8)),
        subject=subject,
        reason=reason,
        placed_at=from_ns(time_ns),
        released_at=None,
    )
    audit = access.audit.entry(AuditAction.HOLD_PLACED, subject, hold_id=hold.id, reason=reason)
    await access.database.write(place, hold, audit)
    return hold


def place(connection: Connection, hold: Hold, audit: AuditEntry) -> UnknownSubject | None:
    """Place a hold in this transaction."""
    take_turn(connection)
    if not any(
        connection.execute(select(column).where(column == hold.subject)).first()
        for column in (records.c.id, buyers.c.cbid, accounts.c.id)
    ):
        return UnknownSubject(
            f"The record, buyer or account {hold.subject!r} does not exist: give its identifier."
        )
    subject, reason = refer(connection, hold.id, hold.subject, hold.reason)
    row = asdict(hold) | {"subject": subject, "reason": reason}
    connection.execute(insert(legal_holds), row)
    write_audit(connection, audit)
    return None


async def release_hold(privacy: Privacy, hold_id: str) -> None:
    """End a hold; an earlier end is kept.

    Raises UnknownSubject if there is no such hold.
    """
    await privacy.access.database.write(_release, privacy, hold_id)


def _release(connection: Connection, privacy: Privacy, hold_id: str) -> UnknownSubject | None:
    hold = next((hold for hold in list_holds(connection) if hold.id == hold_id), None)
    if hold is None:
        return UnknownSubject(
            f"The hold {hold_id!r} does not exist; `countersign holds list` shows all holds."
        )
    if end_hold(connection, hold_id, from_ns(privacy.access.clock.time_ns())):
        audit = privacy.access.audit.entry(AuditAction.HOLD_RELEASED, hold.subject, hold_id=hold_id)
        write_audit(connection, audit)
    return None


def take_turn(connection: Connection) -> None:
    """Wait until no other server places a hold or erases: each must see what the other did.

    The embedded database has one writer in any case.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _HOLDS_LOCK})


def end_hold(connection: Connection, hold_id: str, at: datetime) -> bool:
    """End a hold; False: it has ended already."""
    statement = update(legal_holds).where(
        legal_holds.c.id == hold_id, legal_holds.c.released_at.is_(None)
    )
    return connection.execute(statement.values(released_at=at)).rowcount > 0


def list_holds(connection: Connection) -> Sequence[Hold]:
    """Every hold, oldest first, including ended ones; a buyer who is gone is not named."""
    holds = rows(connection, select(legal_holds).order_by(legal_holds.c.id), Hold)
    shown = named(connection, [(hold.subject, hold.reason) for hold in holds])
    return [
        replace(hold, subject=subject, reason=reason)
        for hold, (subject, reason) in zip(holds, shown, strict=True)
    ]


def active_holds(connection: Connection) -> dict[str, str]:
    """The id of the hold on each subject; the oldest, if there are several."""
    rows = connection.execute(
        select(legal_holds.c.subject, legal_holds.c.id)
        .where(legal_holds.c.released_at.is_(None))
        .order_by(legal_holds.c.id.desc())
    ).all()
    subjects = named(connection, [[row.subject] for row in rows])
    active = {subject: row.id for row, [subject] in zip(rows, subjects, strict=True)}
    for subject in [subject for subject in active if subject.startswith(f"{BUYER}_")]:
        # A person may be known by several identifiers.
        for other in identifiers_of(connection, subject):
            active.setdefault(other, active[subject])
    return active


def find_holding(
    connection: Connection,
    secret: DeploymentSecret,
    active: Mapping[str, str],
    record_ids: Sequence[str],
) -> dict[str, tuple[str, str]]:
    """Of those of these records that one of the active holds is on: its id, and its subject.

    A hold on a record, on its account, or on the buyer that it names. That name is encrypted, so
    it is found by its blind index, which differs from account to account.
    """
    held_buyers = [subject for subject in active if subject.startswith(f"{BUYER}_")]
    indexes: dict[str, dict[bytes, str]] = {}
    found = {}
    for chunk in chunks(record_ids if active else ()):
        rows = connection.execute(
            select(
                records.c.id, records.c.account_id, disclosures.c.cbid_index, verifications.c.cbid
            )
            .outerjoin(disclosures, disclosures.c.record_id == records.c.id)
            .outerjoin(verifications, verifications.c.id == records.c.id)
            .where(records.c.id.in_(chunk))
        )
        for id_, account_id, index, cbid in rows:
            if account_id not in indexes:
                indexes[account_id] = {
                    secret.blind_index(account_id, CBID_FIELD, held): held for held in held_buyers
                }
            buyer = index and indexes[account_id].get(bytes(index))
            subject = next((s for s in (id_, account_id, cbid, buyer) if s in active), None)
            if subject is not None:
                found[id_] = (active[subject], subject)
    return found
