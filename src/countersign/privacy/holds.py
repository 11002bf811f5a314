"""Legal holds: they prevent erasure."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from countersign.access.audit_entry import AuditAction, AuditEntry
from countersign.access.audit_sql import write_audit
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.ids import timed_id
from countersign.instant import from_ns
from countersign.privacy import holds_sql as sql
from countersign.privacy.model import Hold
from countersign.privacy.room import Privacy

HOLD: Final = "hold"


async def place_hold(privacy: Privacy, subject: str, reason: str) -> Hold:
    """Prevent the erasure of an acknowledgment, or of all data of a buyer or an account.

    On a buyer, it also keeps the acknowledgments that name the buyer, of every account.

    Raises:
        UnknownSubject: there is nothing with this identifier.
        InvalidArgument: no reason is given.
    """
    if not reason.strip():
        msg = "Give a reason: --reason TEXT."
        raise InvalidArgument(msg)
    access = privacy.access
    time_ns = access.clock.time_ns()
    hold = Hold(
        id=timed_id(HOLD, time_ns, access.entropy(8)),
        subject=subject,
        reason=reason.strip(),
        placed_at=from_ns(time_ns),
        released_at=None,
    )
    audit = access.audit.entry(
        AuditAction.HOLD_PLACED, subject, hold_id=hold.id, reason=hold.reason
    )
    await access.database.write(place, hold, audit)
    return hold


def place(connection: Connection, hold: Hold, audit: AuditEntry) -> UnknownSubject | None:
    """Place a hold in this transaction."""
    sql.take_turn(connection)
    if not sql.exists(connection, hold.subject):
        return UnknownSubject(
            f"The acknowledgment, buyer or account {hold.subject!r} does not exist: give its "
            "identifier."
        )
    sql.insert_hold(connection, hold)
    write_audit(connection, audit)
    return None


async def release_hold(privacy: Privacy, hold_id: str) -> None:
    """End a hold; an earlier end is kept.

    Raises:
        UnknownSubject: there is no such hold.
    """
    await privacy.access.database.write(_release, privacy, hold_id)


def _release(connection: Connection, privacy: Privacy, hold_id: str) -> UnknownSubject | None:
    hold = next((hold for hold in sql.list_holds(connection) if hold.id == hold_id), None)
    if hold is None:
        return UnknownSubject(
            f"The hold {hold_id!r} does not exist; `countersign holds list` shows all holds."
        )
    if sql.release_hold(connection, hold_id, from_ns(privacy.access.clock.time_ns())):
        audit = privacy.access.audit.entry(AuditAction.HOLD_RELEASED, hold.subject, hold_id=hold_id)
        write_audit(connection, audit)
    return None
