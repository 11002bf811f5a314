"""Legal holds: they prevent erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, insert, select, text, update

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.access.idempotency import Remember, keeping
from countersign.access.key import Principal
from countersign.access.references import named, refer
from countersign.access.secrets import DeploymentSecret
from countersign.db.rows import chunks, row, rows
from countersign.db.tables import (
    accounts,
    buyers,
    disclosures,
    legal_holds,
    matters,
    records,
    verifications,
)
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.ids import BUYER, timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.privacy.model import Hold, Matter
from countersign.privacy.person_sql import identifiers_of
from countersign.privacy.room import Privacy
from countersign_evidence.record import CBID_FIELD

_HOLDS_LOCK: Final = 0x636F756E68


async def place_hold(
    privacy: Privacy,
    subject: str,
    reason: str,
    *,
    matter_id: str | None = None,
    who: Principal | None = None,
    entry: Remember[Hold] = None,
) -> Hold:
    """Prevent the erasure of an order, or of all data of a buyer or an account.

    On any record of an order, it keeps what the order needs: acknowledgment, clearances, reports
    of its fulfilment, and the identity check that it rests on. On a buyer, it also keeps the
    orders that name the buyer, of every account. `who`: the subject must be within the reach of
    this caller; None: of an operator, it can be any.
    """
    hold = new_hold(privacy, subject, reason, matter_id)
    audit = hold_audit(privacy, hold)

    def act(connection: Connection) -> Hold | UnknownSubject:
        if matter_id is not None:
            find_matter(connection, matter_id, who)
        return place(connection, hold, audit, who) or hold

    return await privacy.access.database.write(keeping(act, entry))


def new_hold(privacy: Privacy, subject: str, reason: str, matter_id: str | None) -> Hold:
    """A hold that is not placed yet. Raises InvalidArgument without a reason."""
    if not reason.strip():
        raise InvalidArgument("Give a reason: --reason TEXT.")
    access = privacy.access
    time_ns = access.clock.time_ns()
    return Hold(
        id=timed_id("hold", time_ns, access.entropy(8)),
        subject=subject,
        reason=reason.strip(),
        placed_at=from_ns(time_ns),
        released_at=None,
        matter_id=matter_id,
    )


def hold_audit(privacy: Privacy, hold: Hold) -> AuditEntry:
    """What the audit says of a hold that is placed."""
    of_matter = {} if hold.matter_id is None else {"matter_id": hold.matter_id}
    details = {"hold_id": hold.id, "reason": hold.reason, **of_matter}
    return privacy.access.audit.entry(AuditAction.HOLD_PLACED, hold.subject, **details)


def place(
    connection: Connection, hold: Hold, audit: AuditEntry, who: Principal | None = None
) -> UnknownSubject | None:
    """Place a hold in this transaction."""
    take_turn(connection)
    owner = owner_of(connection, hold.subject)
    if owner is None or not in_reach(who, *owner):
        return UnknownSubject(
            f"The record, buyer or account {hold.subject!r} does not exist: give its identifier."
        )
    subject, reason = refer(connection, hold.id, hold.subject, hold.reason)
    row = asdict(hold) | {"subject": subject, "reason": reason}
    connection.execute(insert(legal_holds), row)
    write_audit(connection, audit)
    return None


def owner_of(connection: Connection, subject: str) -> tuple[str, Mode | None] | None:
    """Account and mode of a record, a buyer or an account (of both modes); None: there is none."""
    for table, own in ((records, records.c.id), (buyers, buyers.c.cbid)):
        query = select(table.c.account_id, table.c.mode).where(own == subject)
        if row := connection.execute(query).first():
            return row.account_id, Mode(row.mode)
    account = connection.execute(select(accounts.c.id).where(accounts.c.id == subject)).first()
    return None if account is None else (subject, None)


def in_reach(who: Principal | None, account_id: str, mode: Mode | None) -> bool:
    """Whether this caller may act on what is of this account and mode; None: an operator may."""
    return who is None or (who.account_id in {"", account_id} and mode in {None, who.mode})


def find_matter(
    connection: Connection, matter_id: str, who: Principal | None, *, closed: bool = False
) -> Matter:
    """A matter within the reach of this caller; open, unless it may be `closed`.

    Raises UnknownSubject.
    """
    found = row(connection, select(matters).where(matters.c.id == matter_id), Matter)
    known = found is not None and in_reach(who, found.account_id, found.mode)
    if found is None or not known or not (closed or found.closed_at is None):
        raise UnknownSubject(f"The matter {matter_id!r} does not exist, or is closed.")
    return found


async def release_hold(privacy: Privacy, hold_id: str) -> None:
    """End a hold; an earlier end is kept.

    Raises UnknownSubject if there is no such hold.
    """
    await privacy.access.database.write(_release, privacy, hold_id)


def _release(connection: Connection, privacy: Privacy, hold_id: str) -> UnknownSubject | None:
    hold = next((hold for hold in list_holds(connection) if hold.id == hold_id), None)
    if hold is None:
        return UnknownSubject(f"The hold {hold_id!r} does not exist.")
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
