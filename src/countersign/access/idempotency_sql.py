"""Kept answers: written in the transaction of the act they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select

from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.db.database import Database
from countersign.db.tables import idempotency_keys
from countersign.errors import CountersignError
from countersign.mode import Mode

_INSERT: Final = insert(idempotency_keys)
_SELECT: Final = select(idempotency_keys).where(
    idempotency_keys.c.slot.in_(bindparam("slots", expanding=True))
)
_DELETE_EXPIRED: Final = delete(idempotency_keys).where(
    idempotency_keys.c.slot == bindparam("old_slot"),
    idempotency_keys.c.expires_at <= bindparam("now"),
)


def keep_answers(connection: Connection, entries: Sequence[IdempotencyEntry]) -> None:
    """Keep these answers; an expired one under the same key makes place."""
    if not entries:
        return
    connection.execute(
        _DELETE_EXPIRED, [{"old_slot": e.slot, "now": e.created_at} for e in entries]
    )
    connection.execute(_INSERT, [asdict(entry) for entry in entries])


class IdempotencyKeys:
    """See `ports.IdempotencyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, account_id: str, mode: Mode, slot: bytes) -> IdempotencyEntry | None:
        """The kept answer for this slot, whether or not it has expired."""
        entry = await self._database.read_batched(_get, slot)
        if entry is None or (entry.account_id, entry.mode) != (account_id, mode):
            return None
        return entry


def _get(
    connection: Connection, slots: Sequence[bytes]
) -> Sequence[IdempotencyEntry | CountersignError | None]:
    rows = connection.execute(_SELECT, {"slots": list(set(slots))})
    found = {
        row.slot: IdempotencyEntry(
            slot=row.slot,
            account_id=row.account_id,
            mode=Mode(row.mode),
            fingerprint=row.fingerprint,
            response=row.response,
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
        for row in rows
    }
    return [found.get(slot) for slot in slots]
