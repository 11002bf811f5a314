"""API keys in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, bindparam, insert, select, update

from countersign.access.key import VENDOR_SCOPES, ApiKey, KeyKind, Scope
from countersign.db.tables import api_keys, logs
from countersign.mode import Mode

_BY_DIGEST: Final = select(api_keys).where(
    api_keys.c.digest.in_(bindparam("digests", expanding=True))
)
_SECOND: Final = timedelta(seconds=1)
_decode_scopes: Final = msgspec.json.Decoder(frozenset[Scope]).decode


def add_key(connection: Connection, key: ApiKey, digest: bytes) -> None:
    """Write a new key, found by this keyed hash."""
    all_of_a_vendor = key.kind is KeyKind.SECRET
    row = {
        "id": key.id,
        "account_id": key.account_id,
        "mode": key.mode,
        "kind": key.kind,
        "digest": digest,
        "hint": key.hint,
        "scopes": None if all_of_a_vendor else msgspec.json.encode(sorted(key.scopes)).decode(),
        "created_at": key.created_at,
        "lifetime_seconds": None if key.lifetime is None else key.lifetime // _SECOND,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "replaces": key.replaces,
    }
    connection.execute(insert(api_keys), row)


def read_key(connection: Connection, key_id: str, *, to_change: bool = False) -> ApiKey | None:
    """The key with this id; `to_change`: no other transaction changes it until this one ends."""
    query = select(api_keys).where(api_keys.c.id == key_id)
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    return None if row is None else _key(row)


def keys_of(connection: Connection, account_id: str | None) -> Sequence[ApiKey]:
    """The keys of one account or of all, oldest first."""
    query = select(api_keys).order_by(api_keys.c.id)
    if account_id is not None:
        query = query.where(api_keys.c.account_id == account_id)
    return [_key(row) for row in connection.execute(query)]


def keys_by_digest(connection: Connection, digests: Sequence[bytes]) -> list[ApiKey | None]:
    """An act for `read_batched`: the key with each of these keyed hashes."""
    rows = connection.execute(_BY_DIGEST, {"digests": list(set(digests))})
    found = {row.digest: _key(row) for row in rows}
    return [found.get(digest) for digest in digests]


def change_key(connection: Connection, key_id: str, **values: datetime) -> None:
    """Set these columns of a key."""
    connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(**values))


def touch_key(connection: Connection, key_id: str, at: datetime) -> None:
    """Note when a key was last used."""
    change_key(connection, key_id, last_used_at=at)


def live_origin(connection: Connection) -> str | None:
    """The name of the live log, which appears in all evidence of live keys."""
    query = select(logs.c.origin).where(logs.c.mode == Mode.LIVE).order_by(logs.c.epoch.desc())
    return connection.execute(query.limit(1)).scalar_one_or_none()


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        account_id=row.account_id,
        mode=Mode(row.mode),
        kind=KeyKind(row.kind),
        scopes=VENDOR_SCOPES if row.scopes is None else _decode_scopes(row.scopes),
        hint=row.hint,
        created_at=row.created_at,
        lifetime=None if row.lifetime_seconds is None else row.lifetime_seconds * _SECOND,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        replaces=row.replaces,
    )
