"""Kept responses: written in the transaction of the act they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, select

from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.db.bulk import BulkInsert, BulkStatement
from countersign.db.tables import idempotency_keys
from countersign.instant import to_ms
from countersign.mode import Mode

_insert: Final = BulkInsert(
    idempotency_keys,
    *("slot", "account_id", "mode", "fingerprint", "response", "created_at", "expires_at"),
)
_delete_expired: Final = BulkStatement(
    "DELETE FROM idempotency_keys WHERE slot = ? AND expires_at <= ?"
)
_SELECT: Final = select(idempotency_keys).where(
    idempotency_keys.c.slot.in_(bindparam("slots", expanding=True))
)


def keep_answers(connection: Connection, entries: Sequence[IdempotencyEntry]) -> None:
    """Keep these responses; an expired one under the same key makes place."""
    if not entries:
        return
    rows = []
    for entry in entries:
        created, expires = to_ms(entry.created_at), to_ms(entry.expires_at)
        place = entry.slot, entry.account_id, entry.mode.value
        rows.append((*place, entry.fingerprint, entry.response, created, expires))
    _delete_expired(connection, [(row[0], row[5]) for row in rows])
    _insert(connection, rows)


def entries(connection: Connection, slots: Sequence[bytes]) -> Sequence[IdempotencyEntry | None]:
    """What is kept in each of these slots, whether or not it has expired."""
    found = {}
    for row in connection.execute(_SELECT, {"slots": list(set(slots))}):
        found[row.slot] = IdempotencyEntry(
            slot=row.slot,
            account_id=row.account_id,
            mode=Mode(row.mode),
            fingerprint=row.fingerprint,
            response=row.response,
            created_at=row.created_at,
            expires_at=row.expires_at,
        )
    return [*map(found.get, slots)]
