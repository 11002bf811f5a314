"""How each account verifies live buyers: set by the operator, and ready for use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from countersign.access.account import find_account
from countersign.access.audit import Audit, AuditAction
from countersign.access.room import Access
from countersign.buyers.rules import (
    ACCEPTABLE,
    VerificationRules,
    VerificationSettings,
)
from countersign.config import AGE_MAX
from countersign.errors import InvalidArgument
from countersign.identity.base import IdentityProvider
from countersign.identity.model import Outcome
from countersign.identity.registry import IdentityProviders
from countersign.instant import from_ns
from countersign.ports import (
    Clock,
    Entropy,
    VerificationSettingsStore,
)
from countersign.vault.sealed_column import SealedColumn
from countersign.vault.vault import Vault

_ACCEPTED: Final = {Outcome.NOT_FOUND}


@dataclass(frozen=True, slots=True)
class Ready:
    """An account's settings, the deployment's floor included, and its provider."""

    settings: VerificationSettings
    rules: VerificationRules
    provider: IdentityProvider


class ManageVerification:
    """The acts on an account's settings."""

    def __init__(
        self,
        *,
        store: VerificationSettingsStore,
        access: Access,
        factory: IdentityProviders,
        vault: Vault,
        floor: VerificationRules,
        audit: Audit,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._access = access
        self._factory = factory
        self._credentials = SealedColumn(vault, entropy, "verification_settings", "credentials")
        self._floor = floor
        self._audit = audit
        self._clock = clock
        self._made: dict[str, tuple[int, datetime, IdentityProvider]] = {}
        self._replaced: list[IdentityProvider] = []

    @property
    def floor(self) -> VerificationRules:
        """What the deployment asks of every account."""
        return self._floor

    @property
    def providers(self) -> Sequence[str]:
        """The known providers."""
        return self._factory.names

    def review(self, provider: str, credentials: bytes) -> Sequence[str]:
        """What an operator should know about credentials before they are used.

        Raises:
            InvalidArgument: they cannot be this provider's, or never verify a live buyer.
        """
        return self._factory.review(provider, credentials)

    async def changed(
        self, id_or_name: str, given: Mapping[str, Any]
    ) -> tuple[VerificationRules | None, VerificationRules]:
        """The rules of an account now (None: it has none), and with `given` in their place.

        Raises:
            UnknownAccount: there is no such account.
        """
        known = await self.show(id_or_name)
        before = known.rules.at_least(self._floor) if known else None
        return before, msgspec.structs.replace(before or self._floor, **given)

    async def set(
        self,
        id_or_name: str,
        provider: str,
        credentials: bytes,
        rules: VerificationRules,
        *,
        base_url: str | None,
    ) -> VerificationSettings:
        """Set how an account verifies; counts for the next call of *verify*.

        Raises:
            UnknownAccount: there is no such account.
            InvalidArgument: a setting is not possible, or goes below the floor.
        """
        account = await find_account(self._access, id_or_name)
        _check_rules(rules, self._floor)
        if base_url is not None:
            _check_url(base_url)
        self._factory.review(provider, credentials)
        # Made to see whether it can be.
        await self._factory(provider, credentials, base_url).close()
        before = await self._store.get(account.id)
        time_ns = self._clock.time_ns()
        settings = VerificationSettings(
            account_id=account.id,
            revision=before[0].revision + 1 if before else 1,
            provider=provider,
            base_url=base_url,
            rules=rules,
            changed_at=from_ns(time_ns),
        )
        sealed = await self._credentials.seal(
            credentials, account=account.id, row_id=_row(settings), time_ns=time_ns
        )
        audit = self._audit.entry(
            AuditAction.VERIFICATION_SETTINGS_CHANGED,
            account.id,
            revision=settings.revision,
            provider=provider,
            base_url=base_url,
            rules=msgspec.to_builtins(rules),
        )
        await self._store.put(settings, sealed, audit)
        return settings

    async def show(self, id_or_name: str) -> VerificationSettings | None:
        """The settings of an account; None if it has none.

        Raises:
            UnknownAccount: there is no such account.
        """
        found = await self._store.get((await find_account(self._access, id_or_name)).id)
        return found[0] if found else None

    async def remove(self, id_or_name: str) -> bool:
        """Remove an account's settings and credentials; False if it had none.

        Raises:
            UnknownAccount: there is no such account.
        """
        account = await find_account(self._access, id_or_name)
        audit = self._audit.entry(AuditAction.VERIFICATION_SETTINGS_REMOVED, account.id)
        return await self._store.remove(account.id, audit)

    async def check(self, provider: str, credentials: bytes, base_url: str | None) -> None:
        """Try credentials at the provider, by asking for a session that there is not.

        Raises:
            InvalidArgument: the provider refuses them, or cannot be reached.
        """
        if base_url is not None:
            _check_url(base_url)
        made = self._factory(provider, credentials, base_url)
        try:
            result = await made.retrieve(made.probe_session_id)
        finally:
            await made.close()
        if result.outcome not in _ACCEPTED:
            why = result.reason_code or result.outcome.value
            if result.outcome is Outcome.PROVIDER_REJECTED:
                msg = f"{provider} rejects these credentials ({why}). Nothing was changed."
            else:
                msg = f"{provider} returned no usable response ({why}). Nothing was changed."
            raise InvalidArgument(msg)

    async def ready(self, account_id: str) -> Ready | None:
        """An account's settings and provider, for use; None if it has none.

        Raises:
            WrongKeyEncryptionKey: the credentials do not open.
        """
        found = await self._store.get(account_id)
        if found is None:
            return None
        settings, sealed = found
        key = (settings.revision, settings.changed_at)
        made = self._made.get(account_id)
        if made is None or made[:2] != key:
            credentials = await self._credentials.open(
                sealed, account=account_id, row_id=_row(settings)
            )
            # Meanwhile another call may have made it: all of them share one circuit breaker.
            made = self._made.get(account_id)
            if made is None or made[:2] != key:
                provider = self._factory(settings.provider, credentials, settings.base_url)
                if made is not None:
                    # It may be in use: its connections are closed with the service.
                    self._replaced.append(made[2])
                made = self._made[account_id] = (*key, provider)
        return Ready(settings, settings.rules.at_least(self._floor), made[2])

    async def close(self) -> None:
        """Close the connections to the providers."""
        for provider in (*self._replaced, *(made[2] for made in self._made.values())):
            await provider.close()
        self._replaced.clear()
        self._made.clear()


def _row(settings: VerificationSettings) -> str:
    return f"{settings.account_id}:{settings.revision}"


def _check_rules(rules: VerificationRules, floor: VerificationRules) -> None:
    if not floor.minimum_age <= rules.minimum_age <= AGE_MAX:
        msg = (
            f"The minimum age must be from {floor.minimum_age} (the deployment's minimum) to "
            f"{AGE_MAX}."
        )
        raise InvalidArgument(msg)
    if not 1 <= rules.validity_days <= floor.validity_days:
        msg = (
            f"A verification can be valid for 1 to {floor.validity_days} days (the deployment's "
            "maximum)."
        )
        raise InvalidArgument(msg)
    if not rules.zip_sources or not set(rules.zip_sources) <= set(ACCEPTABLE):
        msg = f"Allowed address sources, one or more: {', '.join(ACCEPTABLE)}."
        raise InvalidArgument(msg)
    try:
        ZoneInfo(rules.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"Unknown time zone {rules.zone!r}; expected a name such as America/Los_Angeles."
        raise InvalidArgument(msg) from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        clear = parts.scheme == "http" and not _is_loopback(parts.hostname or "")
    except ValueError:
        fine = clear = False
        parts = urlsplit("")
    if not fine or parts.query or parts.fragment or parts.username or parts.password:
        msg = f"Invalid base URL {url!r}; expected a URL such as http://127.0.0.1:9000."
        raise InvalidArgument(msg)
    if clear:
        msg = f"{url!r} would send the credentials unencrypted: use https:// for other machines."
        raise InvalidArgument(msg)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
