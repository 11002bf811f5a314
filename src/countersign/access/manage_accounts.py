"""Accounts and keys, as an operator handles them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from countersign.access.account import Account, checked_account_name
from countersign.access.audit import Audit
from countersign.access.audit_entry import AuditAction
from countersign.access.key import (
    ENTROPY_BYTES,
    VENDOR_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    compose_key,
    key_hint,
)
from countersign.access.secrets import DeploymentSecret
from countersign.errors import AccountExists, UnknownAccount, UnknownKey
from countersign.ids import timed_id
from countersign.instant import from_ns, rfc3339
from countersign.mode import Mode
from countersign.ports import AccountStore, Clock, Entropy, KeyStore

REVOCATION_LAG_SECONDS: Final = 5
"""How long a revoked key may still work on a running server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key just made. `token` is the key itself: it is shown now and never again."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.hint})"


class Accounts:
    """Making and finding accounts."""

    def __init__(self, store: AccountStore, audit: Audit, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._entropy = entropy

    async def create(self, name: str) -> Account:
        """A new account.

        Raises:
            InvalidArgument: the name is not usable.
            AccountExists: the name is taken.
        """
        time_ns = self._clock.time_ns()
        checked = checked_account_name(name)
        for known in await self._store.list():
            if known.name != checked and known.name.casefold() == checked.casefold():
                msg = f"An account named {known.name!r} exists already."
                raise AccountExists(msg)
        account = Account(
            id=timed_id("acct", time_ns, self._entropy(8)),
            name=checked,
            created_at=from_ns(time_ns),
        )
        await self._store.add(account, self._audit.entry(AuditAction.ACCOUNT_CREATED, account.id))
        return account

    async def get(self, id_or_name: str) -> Account:
        """The account with this id or name.

        Raises:
            UnknownAccount: there is none.
        """
        account = await self._store.get(id_or_name)
        if account is None:
            msg = (
                f"The account {id_or_name!r} does not exist; `countersign accounts list` shows "
                "all accounts."
            )
            raise UnknownAccount(msg)
        return account

    async def list(self) -> Sequence[Account]:
        """All accounts, oldest first."""
        return await self._store.list()


class Keys:
    """Making, rotating and revoking keys."""

    def __init__(
        self,
        store: KeyStore,
        audit: Audit,
        secret: DeploymentSecret,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._audit = audit
        self._secret = secret
        self._clock = clock
        self._entropy = entropy

    async def create(
        self,
        account: Account,
        mode: Mode,
        scopes: frozenset[Scope] | None = None,
        lifetime: timedelta | None = None,
    ) -> NewKey:
        """A new key; it works at once. Without scopes: all that a vendor's server needs."""
        kind = KeyKind.SECRET if scopes is None else KeyKind.RESTRICTED
        powers = VENDOR_SCOPES if scopes is None else scopes
        new = self._compose(
            account_id=account.id,
            mode=mode,
            kind=kind,
            scopes=powers,
            lifetime=lifetime,
            replaces=None,
        )
        audit = self._audit.entry(
            AuditAction.KEY_CREATED,
            account.id,
            key_id=new.key.id,
            mode=mode.value,
            scopes=None if scopes is None else sorted(scopes),
            expires_at=None if new.key.expires_at is None else rfc3339(new.key.expires_at),
        )
        await self._store.add(new.key, self._secret.key_digest(new.token), audit)
        return new

    async def rotate(self, key_id: str, overlap: timedelta) -> NewKey:
        """A successor with the same powers; the old key works on until the overlap is over.

        The successor lives as long as the old key was made to live, counted from now.

        Raises:
            UnknownKey: there is no such key.
            KeyNotUsable: the old key no longer works, so there is nothing to hand over.
        """
        old = await self.get(key_id)
        new = self._compose(
            account_id=old.account_id,
            mode=old.mode,
            kind=old.kind,
            scopes=old.scopes,
            lifetime=old.lifetime,
            replaces=old.id,
        )
        until = new.key.created_at + overlap
        audit = self._audit.entry(
            AuditAction.KEY_ROTATED,
            old.account_id,
            key_id=old.id,
            successor=new.key.id,
            works_until=rfc3339(until),
        )
        await self._store.rotate(new.key, self._secret.key_digest(new.token), until, audit)
        return new

    async def revoke(self, key_id: str) -> ApiKey:
        """Make a key stop working, within REVOCATION_LAG_SECONDS on running servers.

        Raises:
            UnknownKey: there is no such key.
        """
        key = await self.get(key_id)
        now = from_ns(self._clock.time_ns())
        audit = self._audit.entry(AuditAction.KEY_REVOKED, key.account_id, key_id=key.id)
        await self._store.revoke(key.id, now, audit)
        return replace(key, revoked_at=key.revoked_at or now)

    async def get(self, key_id: str) -> ApiKey:
        """The key with this id.

        Raises:
            UnknownKey: there is none.
        """
        key = await self._store.get(key_id)
        if key is None:
            msg = f"The key {key_id!r} does not exist; `countersign keys list` shows all key ids."
            raise UnknownKey(msg)
        return key

    async def list(self, account: Account | None) -> Sequence[ApiKey]:
        """The keys of one account or of all, oldest first."""
        return await self._store.list(None if account is None else account.id)

    def now(self) -> datetime:
        """The time by which keys are judged."""
        return from_ns(self._clock.time_ns())

    def _compose(
        self,
        *,
        account_id: str,
        mode: Mode,
        kind: KeyKind,
        scopes: frozenset[Scope],
        lifetime: timedelta | None,
        replaces: str | None,
    ) -> NewKey:
        time_ns = self._clock.time_ns()
        now = from_ns(time_ns)
        token = compose_key(kind, mode, self._entropy(ENTROPY_BYTES))
        key = ApiKey(
            id=timed_id("key", time_ns, self._entropy(8)),
            account_id=account_id,
            mode=mode,
            kind=kind,
            scopes=scopes,
            hint=key_hint(token),
            created_at=now,
            lifetime=lifetime,
            expires_at=None if lifetime is None else now + lifetime,
            revoked_at=None,
            last_used_at=None,
            replaces=replaces,
        )
        return NewKey(key=key, token=token)
