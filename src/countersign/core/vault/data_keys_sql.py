"""Data keys in the database, wrapped by a key-encryption key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, update

from countersign.base.db.statements import row, rows
from countersign.base.db.tables import data_keys, deployment

COPIES_REMAIN: Final = "erased_copies"
"""Name of the deployment's value that exists while the write-ahead log may hold erased data."""

# The wrapped form begins with 0x01 and the four bytes of the key-encryption key's id.
_WRAPPED_WITH: Final[ColumnElement[bytes]] = func.substr(data_keys.c.wrapped, 2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedKey:
    """The data key of a scope (an account, or the deployment itself) for a month, as yyyymm."""

    id: str
    scope: str
    month: int
    wrapped: bytes
    created_at: datetime


def for_month(connection: Connection, scope: str, month: int) -> WrappedKey | None:
    query = select(data_keys).where(data_keys.c.scope == scope, data_keys.c.month == month)
    return _one(connection, query)


def with_id(connection: Connection, key_id: str) -> WrappedKey | None:
    return _one(connection, select(data_keys).where(data_keys.c.id == key_id))


def add(connection: Connection, key: WrappedKey) -> WrappedKey:
    """Write a key, unless its scope and month have one; the result is the one stored then."""
    # Where another server writes the same month's key at this moment, its row makes this
    # transaction fail, and each call is done again by itself: then the row is seen.
    stored = for_month(connection, key.scope, key.month)
    if stored is None:
        connection.execute(insert(data_keys), asdict(key))
    return stored or key


def not_wrapped_with(
    connection: Connection, key_encryption_id: bytes, limit: int
) -> Sequence[WrappedKey]:
    """Keys that are wrapped with another key-encryption key than this."""
    others = select(data_keys).where(_WRAPPED_WITH.is_distinct_from(key_encryption_id))
    return rows(connection, others.limit(limit), WrappedKey)


def replace(connection: Connection, key: WrappedKey, wrapped: bytes) -> None:
    """Store the key in another wrapping, unless another process has done so."""
    connection.execute(
        update(data_keys)
        .where(data_keys.c.id == key.id, data_keys.c.wrapped == key.wrapped)
        .values(wrapped=wrapped)
    )


def counts(connection: Connection) -> Mapping[bytes, int]:
    """The number of keys wrapped with each key-encryption key."""
    rows = connection.execute(select(_WRAPPED_WITH, func.count()).group_by(_WRAPPED_WITH))
    return {bytes(row[0]): row[1] for row in rows}


def noted_copies(connection: Connection) -> bytes | None:
    """An erasure's note about copies in the write-ahead log; None: there are none."""
    noted = select(deployment.c.value).where(deployment.c.name == COPIES_REMAIN)
    return connection.execute(noted).scalar_one_or_none()


def _one(connection: Connection, query: Select[Any]) -> WrappedKey | None:
    return row(connection, query, WrappedKey)
