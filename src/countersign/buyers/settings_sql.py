"""How each account verifies live buyers."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, insert, select

from countersign.access.audit import AuditEntry, write_audit
from countersign.buyers.rules import VerificationRules, VerificationSettings
from countersign.db.database import Database
from countersign.db.tables import verification_settings

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(VerificationRules).decode


class StoredSettings(NamedTuple):
    """The settings of an account, and its credentials as the vault sealed them."""

    settings: VerificationSettings
    credentials: bytes


class _Change(NamedTuple):
    new: StoredSettings
    audit: AuditEntry


class SettingsOfAccounts:
    """See `ports.VerificationSettingsStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, account_id: str) -> tuple[VerificationSettings, bytes] | None:
        """The settings of an account, and its sealed credentials; None if it has none."""
        return await self._database.read(_get, account_id)

    async def put(
        self, settings: VerificationSettings, credentials: bytes, audit: AuditEntry
    ) -> None:
        """Write the settings of an account, and who changed them."""
        await self._database.write(_put, _Change(StoredSettings(settings, credentials), audit))

    async def remove(self, account_id: str, audit: AuditEntry) -> bool:
        """Remove the settings of an account; False if it had none."""
        return await self._database.write(_remove, (account_id, audit))


def _get(connection: Connection, account_id: str) -> StoredSettings | None:
    row = connection.execute(
        select(verification_settings).where(verification_settings.c.account_id == account_id)
    ).one_or_none()
    if row is None:
        return None
    settings = VerificationSettings(
        account_id=row.account_id,
        revision=row.revision,
        provider=row.provider,
        base_url=row.base_url,
        rules=_decode(row.rules),
        changed_at=row.changed_at,
    )
    return StoredSettings(settings, row.credentials)


def _put(connection: Connection, change: _Change) -> None:
    settings, credentials = change.new
    connection.execute(
        delete(verification_settings).where(
            verification_settings.c.account_id == settings.account_id
        )
    )
    connection.execute(
        insert(verification_settings),
        {
            "account_id": settings.account_id,
            "revision": settings.revision,
            "provider": settings.provider,
            "base_url": settings.base_url,
            "rules": _encode(settings.rules).decode(),
            "credentials": credentials,
            "changed_at": settings.changed_at,
        },
    )
    write_audit(connection, change.audit)


def _remove(connection: Connection, item: tuple[str, AuditEntry]) -> bool:
    account_id, audit = item
    removed = connection.execute(
        delete(verification_settings).where(verification_settings.c.account_id == account_id)
    )
    if removed.rowcount:
        write_audit(connection, audit)
    return bool(removed.rowcount)
