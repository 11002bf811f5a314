"""Records that are here no more, since the evidence of their account has ended."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from countersign.base.db.database import Database
from countersign.base.db.statements import chunks
from countersign.base.db.tables import ended_records
from countersign.base.errors import NotFound
from countersign.core.access.key import Principal


def ended(connection: Connection, record_ids: Sequence[str]) -> frozenset[str]:
    """The records among these whose evidence has ended; their entries in the log stay."""
    id_ = ended_records.c.record_id
    queries = [select(id_).where(id_.in_(chunk)) for chunk in chunks(record_ids)]
    return frozenset(one for query in queries for one in connection.execute(query).scalars())


async def missing(database: Database, who: Principal, record_id: str, noun: str) -> NotFound:
    """The refusal for a missing record; the account and mode that had it learn why."""
    e = ended_records.c
    own = (e.record_id == record_id, e.account_id == who.account_id, e.mode == who.mode)

    def has_ended(connection: Connection) -> bool:
        return connection.execute(select(e.at).where(*own)).first() is not None

    # The caller may have sent anything: PostgreSQL takes no U+0000.
    if record_id.isascii() and record_id.isprintable() and await database.read(has_ended):
        return NotFound(f"The evidence of this {noun} has ended, and its record was deleted.")
    return NotFound(f"The {noun} was not found.")
