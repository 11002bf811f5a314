"""The record of what operators did: written in the transaction of what it tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, insert, select

from countersign.access.audit_entry import AuditAction, AuditEntry
from countersign.db.database import Database
from countersign.db.tables import audit_log

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class AuditLog:
    """See `ports.AuditStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entry: AuditEntry) -> None:
        """Write an act that changes nothing else."""
        await self._database.write(_add, entry)

    async def find(self, subject: str | None) -> Sequence[AuditEntry]:
        """The acts on one subject or on all, oldest first."""
        return await self._database.scan(find_audit, subject)


def write_audit(connection: Connection, entry: AuditEntry | None) -> None:
    """Write an act in the transaction that does it; None: it is no operator's."""
    if entry is None:
        return
    connection.execute(
        insert(audit_log),
        {
            "id": entry.id,
            "at": entry.at,
            "actor": entry.actor,
            "action": entry.action,
            "subject": entry.subject,
            "details": _encode(entry.details).decode(),
        },
    )


def _add(connection: Connection, entry: AuditEntry) -> None:
    write_audit(connection, entry)


def find_audit(connection: Connection, subject: str | None) -> Sequence[AuditEntry]:
    """The acts on one subject or on all, oldest first."""
    query = select(audit_log).order_by(audit_log.c.id)
    if subject is not None:
        query = query.where(audit_log.c.subject == subject)
    return [
        AuditEntry(
            id=row.id,
            at=row.at,
            actor=row.actor,
            action=AuditAction(row.action),
            subject=row.subject,
            details=_decode(row.details),
        )
        for row in connection.execute(query)
    ]
