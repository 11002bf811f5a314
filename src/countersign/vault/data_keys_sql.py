"""Wrapped data keys in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, func, insert, select, update

from countersign.db.database import Database
from countersign.db.tables import data_keys, deployment
from countersign.vault.data_key import WrappedKey

COPIES_REMAIN: Final = "erased_copies"
"""Name of the deployment's value that exists while the write-ahead log may hold erased data."""


class DataKeys:
    """See `ports.DataKeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def for_month(self, scope: str, month: int) -> WrappedKey | None:
        """The key of a scope for a month."""
        return await self._database.read(_for_month, (scope, month))

    async def get(self, key_id: str) -> WrappedKey | None:
        """The key with this id."""
        return await self._database.read(_get, key_id)

    async def add(self, key: WrappedKey) -> WrappedKey:
        """Write a key; gives the one that is stored for its scope and month then."""
        return await self._database.write(_add, key)

    async def not_wrapped_with(self, key_encryption_id: bytes, limit: int) -> Sequence[WrappedKey]:
        """Keys that are wrapped with another key-encryption key than this."""
        return await self._database.scan(_not_wrapped_with, (key_encryption_id, limit))

    async def replace(self, key: WrappedKey, wrapped: bytes) -> None:
        """Store the key wrapped anew, unless another process has done so."""
        await self._database.write(_replace, (key, wrapped))

    async def counts(self) -> Mapping[bytes, int]:
        """How many keys are wrapped with each key-encryption key."""
        return await self._database.scan(_counts, None)


def _month_query(scope: str, month: int) -> Select[Any]:
    return select(data_keys).where(data_keys.c.scope == scope, data_keys.c.month == month)


def _for_month(connection: Connection, item: tuple[str, int]) -> WrappedKey | None:
    return _one(connection, _month_query(*item))


def _get(connection: Connection, key_id: str) -> WrappedKey | None:
    return _one(connection, select(data_keys).where(data_keys.c.id == key_id))


def _add(connection: Connection, key: WrappedKey) -> WrappedKey:
    # Where another server writes the same month's key at this moment, its row makes this
    # transaction fail, and each call is done again by itself: then the row is seen.
    stored = _one(connection, _month_query(key.scope, key.month))
    if stored is None:
        connection.execute(
            insert(data_keys),
            {
                "id": key.id,
                "scope": key.scope,
                "month": key.month,
                "wrapped": key.wrapped,
                "created_at": key.created_at,
            },
        )
        return key
    return stored


# The wrapped form begins with 0x01 and the four bytes of the key-encryption key's id.
_WRAPPED_WITH: ColumnElement[bytes] = func.substr(data_keys.c.wrapped, 2, 4)


def _not_wrapped_with(connection: Connection, item: tuple[bytes, int]) -> Sequence[WrappedKey]:
    key_encryption_id, limit = item
    rows = connection.execute(
        select(data_keys).where(_WRAPPED_WITH.is_distinct_from(key_encryption_id)).limit(limit)
    )
    return [_from_row(row) for row in rows]


def _replace(connection: Connection, item: tuple[WrappedKey, bytes]) -> None:
    key, wrapped = item
    connection.execute(
        update(data_keys)
        .where(data_keys.c.id == key.id, data_keys.c.wrapped == key.wrapped)
        .values(wrapped=wrapped)
    )


def _counts(connection: Connection, _: None) -> Mapping[bytes, int]:
    rows = connection.execute(select(_WRAPPED_WITH, func.count()).group_by(_WRAPPED_WITH))
    return {bytes(row[0]): row[1] for row in rows}


def _one(connection: Connection, query: Select[Any]) -> WrappedKey | None:
    row = connection.execute(query).one_or_none()
    return None if row is None else _from_row(row)


def _from_row(row: Row[Any]) -> WrappedKey:
    return WrappedKey(
        id=row.id, scope=row.scope, month=row.month, wrapped=row.wrapped, created_at=row.created_at
    )


def noted_copies(connection: Connection) -> bytes | None:
    """What an erasure has noted about copies in the write-ahead log; None: there are none."""
    noted = select(deployment.c.value).where(deployment.c.name == COPIES_REMAIN)
    return connection.execute(noted).scalar_one_or_none()
