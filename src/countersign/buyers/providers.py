"""How each account verifies live buyers: its stored settings, and its provider ready for use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, insert, select

from countersign.access.audit import AuditEntry, write_audit
from countersign.buyers.rules import VerificationRules, VerificationSettings
from countersign.db.database import Database
from countersign.db.tables import verification_settings
from countersign.identity.base import IdentityProvider
from countersign.identity.registry import IdentityProviders
from countersign.vault.sealed_column import SealedColumn

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(VerificationRules).decode


@dataclass(frozen=True, slots=True)
class Integration:
    """An account's settings, its rules with the deployment's minimum, and its provider."""

    settings: VerificationSettings
    rules: VerificationRules
    provider: IdentityProvider

    @property
    def namespace(self) -> str:
        """Within which a session id is unique: the provider, or the URL in its place."""
        return f"{self.settings.provider}\x00{self.settings.base_url or ''}"


class Providers:
    """Keeps one provider client for each account: all calls share its circuit breaker."""

    def __init__(
        self,
        database: Database,
        credentials: SealedColumn,
        factory: IdentityProviders,
        floor: VerificationRules,
    ) -> None:
        self.factory = factory
        self.credentials = credentials
        self.floor = floor
        """What the deployment asks of every account."""
        self._database = database
        self._made: dict[str, tuple[int, datetime, IdentityProvider]] = {}
        self._replaced: list[IdentityProvider] = []

    async def of(self, account_id: str) -> Integration | None:
        """An account's settings and provider; None if it has none.

        Raises:
            WrongKeyEncryptionKey: the credentials cannot be decrypted.
        """
        found = await self._database.read(stored_settings, account_id)
        if found is None:
            return None
        settings, sealed = found
        key = (settings.revision, settings.changed_at)
        made = self._made.get(account_id)
        if made is None or made[:2] != key:
            credentials = await self.credentials.open(
                sealed, account=account_id, row_id=credentials_row(settings)
            )
            # Another call may have made it in the meantime.
            made = self._made.get(account_id)
            if made is None or made[:2] != key:
                provider = self.factory(settings.provider, credentials, settings.base_url)
                if made is not None:
                    # It may be in use: its connections are closed with the service.
                    self._replaced.append(made[2])
                made = self._made[account_id] = (*key, provider)
        return Integration(settings, settings.rules.at_least(self.floor), made[2])

    async def close(self) -> None:
        """Close the connections to the providers."""
        for provider in (*self._replaced, *(made[2] for made in self._made.values())):
            await provider.close()
        self._replaced.clear()
        self._made.clear()


def credentials_row(settings: VerificationSettings) -> str:
    """What identifies the credentials among all that are sealed in their column."""
    return f"{settings.account_id}:{settings.revision}"


class StoredSettings(NamedTuple):
    """The settings of an account, and its credentials as the vault sealed them."""

    settings: VerificationSettings
    credentials: bytes


def stored_settings(connection: Connection, account_id: str) -> StoredSettings | None:
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


def put_settings(connection: Connection, new: StoredSettings, audit: AuditEntry) -> None:
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


def remove_settings(connection: Connection, account_id: str, audit: AuditEntry) -> bool:
    """Remove the settings of an account; False if it had none."""
    removed = _delete(connection, account_id)
    if removed:
        write_audit(connection, audit)
    return removed


def _delete(connection: Connection, account_id: str) -> bool:
    of_account = verification_settings.c.account_id == account_id
    return connection.execute(delete(verification_settings).where(of_account)).rowcount > 0
