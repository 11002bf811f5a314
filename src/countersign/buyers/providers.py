"""The identity provider of each account, ready for use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from countersign.buyers import settings_sql
from countersign.buyers.rules import VerificationRules, VerificationSettings
from countersign.db.database import Database
from countersign.ports import IdentityProvider, ProviderFactory
from countersign.vault.sealed_column import SealedColumn


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
        factory: ProviderFactory,
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
        found = await self._database.read(settings_sql.find, account_id)
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
