"""How each account verifies live buyers."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, insert, select

from countersign.access.audit_entry import AuditEntry
from countersign.access.audit_sql import write_audit
from countersign.buyers.rules import VerificationRules, VerificationSettings
from countersign.db.tables import verification_settings

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(VerificationRules).decode


class StoredSettings(NamedTuple):
    """The settings of an account, and its credentials as the vault sealed them."""

    settings: VerificationSettings
    credentials: bytes


def find(connection: Connection, account_id: str) -> StoredSettings | None:
    """The settings of an account; None if it has none."""
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


def put(connection: Connection, new: StoredSettings, audit: AuditEntry) -> None:
    """Write the settings of an account, and who changed them."""
    settings = new.settings
    _delete(connection, settings.account_id)
    connection.execute(
        insert(verification_settings),
        {
            "account_id": settings.account_id,
            "revision": settings.revision,
            "provider": settings.provider,
            "base_url": settings.base_url,
            "rules": _encode(settings.rules).decode(),
            "credentials": new.credentials,
            "changed_at": settings.changed_at,
        },
    )
    write_audit(connection, audit)


def remove(connection: Connection, account_id: str, audit: AuditEntry) -> bool:
    """Remove the settings of an account; False if it had none."""
    removed = _delete(connection, account_id)
    if removed:
        write_audit(connection, audit)
    return removed


def _delete(connection: Connection, account_id: str) -> bool:
    of_account = verification_settings.c.account_id == account_id
    return connection.execute(delete(verification_settings).where(of_account)).rowcount > 0
