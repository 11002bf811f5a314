"""Accounts and their API keys in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from countersign.access.account import Account
from countersign.access.audit_entry import AuditEntry
from countersign.access.audit_sql import write_audit
from countersign.access.key import VENDOR_SCOPES, ApiKey, KeyKind, Scope
from countersign.db.database import Database
from countersign.db.engine import is_violation
from countersign.db.tables import accounts, api_keys
from countersign.errors import AccountExists, CountersignError, KeyNotUsable
from countersign.mode import Mode

_SELECT_ACCOUNT: Final = select(accounts).where(
    or_(accounts.c.id == bindparam("wanted"), accounts.c.name == bindparam("wanted"))
)
_SELECT_BY_DIGEST: Final = select(api_keys).where(
    api_keys.c.digest.in_(bindparam("digests", expanding=True))
)
_SECOND: Final = timedelta(seconds=1)
_decode_scopes: Final = msgspec.json.Decoder(frozenset[Scope]).decode


class Accounts:
    """See `ports.AccountStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, account: Account, audit: AuditEntry | None = None) -> None:
        """Write a new account, or raise AccountExists."""
        await self._database.write_batched(_add_account, (account, audit))

    async def get(self, id_or_name: str) -> Account | None:
        """The account with this id or name."""
        return await self._database.read(_get_account, id_or_name)

    async def list(self) -> Sequence[Account]:
        """All accounts, oldest first."""
        return await self._database.scan(_list_accounts, None)


class Keys:
    """See `ports.KeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey, digest: bytes, audit: AuditEntry | None = None) -> None:
        """Write a new key."""
        await self._database.write(_add_key, (key, digest, audit))

    async def by_digest(self, digest: bytes) -> ApiKey | None:
        """The key with this keyed hash."""
        return await self._database.read_batched(_by_digest, digest)

    async def get(self, key_id: str) -> ApiKey | None:
        """The key with this id."""
        return await self._database.read(_get_key, key_id)

    async def list(self, account_id: str | None) -> Sequence[ApiKey]:
        """The keys of one account or of all, oldest first."""
        return await self._database.scan(_list_keys, account_id)

    async def rotate(
        self,
        successor: ApiKey,
        digest: bytes,
        old_expires_at: datetime,
        audit: AuditEntry | None = None,
    ) -> None:
        """Write the successor and let the old key expire, or raise KeyNotUsable."""
        await self._database.write(_rotate, (successor, digest, old_expires_at, audit))

    async def revoke(self, key_id: str, at: datetime, audit: AuditEntry | None = None) -> None:
        """Mark a key revoked; an earlier revocation is kept."""
        await self._database.write(_revoke, (key_id, at, audit))

    async def touch(self, key_id: str, at: datetime) -> None:
        """Note when a key was last used."""
        await self._database.write(_touch, (key_id, at))


def _add_account(
    connection: Connection, items: Sequence[tuple[Account, AuditEntry | None]]
) -> Sequence[CountersignError | None]:
    outcomes: list[CountersignError | None] = []
    for account, audit in items:
        try:
            with connection.begin_nested():
                connection.execute(
                    insert(accounts),
                    {"id": account.id, "name": account.name, "created_at": account.created_at},
                )
                write_audit(connection, audit)
        except IntegrityError as error:
            if not (
                is_violation(error, "accounts.name") or is_violation(error, "uq_accounts_name")
            ):
                raise
            outcomes.append(AccountExists(f"An account named {account.name!r} exists already."))
        else:
            outcomes.append(None)
    return outcomes


def _get_account(connection: Connection, wanted: str) -> Account | None:
    row = connection.execute(_SELECT_ACCOUNT, {"wanted": wanted}).one_or_none()
    return _account(row) if row is not None else None


def _list_accounts(connection: Connection, _: None) -> Sequence[Account]:
    return [_account(row) for row in connection.execute(select(accounts).order_by(accounts.c.id))]


def _add_key(connection: Connection, item: tuple[ApiKey, bytes, AuditEntry | None]) -> None:
    key, digest, audit = item
    connection.execute(insert(api_keys), _key_row(key, digest))
    write_audit(connection, audit)


def _by_digest(
    connection: Connection, digests: Sequence[bytes]
) -> Sequence[ApiKey | CountersignError | None]:
    rows = connection.execute(_SELECT_BY_DIGEST, {"digests": list(set(digests))})
    found = {row.digest: _key(row) for row in rows}
    return [found.get(digest) for digest in digests]


def _get_key(connection: Connection, key_id: str) -> ApiKey | None:
    row = connection.execute(select(api_keys).where(api_keys.c.id == key_id)).one_or_none()
    return _key(row) if row is not None else None


def _list_keys(connection: Connection, account_id: str | None) -> Sequence[ApiKey]:
    statement = select(api_keys).order_by(api_keys.c.id)
    if account_id is not None:
        statement = statement.where(api_keys.c.account_id == account_id)
    return [_key(row) for row in connection.execute(statement)]


def _rotate(
    connection: Connection, item: tuple[ApiKey, bytes, datetime, AuditEntry | None]
) -> CountersignError | None:
    successor, digest, old_expires_at, audit = item
    # Locked: a revocation at the same moment comes before this, or after it.
    old = select(api_keys).where(api_keys.c.id == successor.replaces).with_for_update()
    if not _key(connection.execute(old).one()).works_at(successor.created_at):
        return KeyNotUsable(
            f"The key {successor.replaces} is revoked or expired; make a new one instead."
        )
    connection.execute(insert(api_keys), _key_row(successor, digest))
    write_audit(connection, audit)
    connection.execute(
        update(api_keys)
        .where(
            api_keys.c.id == successor.replaces,
            or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > old_expires_at),
        )
        .values(expires_at=old_expires_at)
    )
    return None


def _revoke(connection: Connection, item: tuple[str, datetime, AuditEntry | None]) -> None:
    key_id, at, audit = item
    changed = connection.execute(
        update(api_keys)
        .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=at)
    )
    if changed.rowcount:
        write_audit(connection, audit)


def _touch(connection: Connection, item: tuple[str, datetime]) -> None:
    key_id, at = item
    connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(last_used_at=at))


def _account(row: Row[Any]) -> Account:
    return Account(id=row.id, name=row.name, created_at=row.created_at)


def _key_row(key: ApiKey, digest: bytes) -> dict[str, object]:
    all_of_a_vendor = key.kind is KeyKind.SECRET
    return {
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
