"""The operator's acts on API keys: create, rotate and revoke."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from countersign.access.account import Account
from countersign.access.audit import AuditAction, write_audit
from countersign.access.key import (
    ENTROPY_BYTES,
    VENDOR_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    compose_key,
    key_hint,
)
from countersign.access.keys_sql import add_key, change_key, read_key
from countersign.access.room import Access
from countersign.errors import KeyNotUsable, UnknownKey
from countersign.ids import timed_id
from countersign.instant import from_ns, rfc3339
from countersign.mode import Mode

REVOCATION_LAG_SECONDS: Final = 5
"""How long a revoked key may still work on a running server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A new key. `token` is the key itself: it is shown now and never again."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.hint})"


async def create_key(
    access: Access,
    account: Account,
    mode: Mode,
    scopes: frozenset[Scope] | None = None,
    lifetime: timedelta | None = None,
) -> NewKey:
    """A new key; it works at once. Without scopes: all that a vendor's server needs."""
    new = _compose(
        access,
        account_id=account.id,
        mode=mode,
        kind=KeyKind.SECRET if scopes is None else KeyKind.RESTRICTED,
        scopes=VENDOR_SCOPES if scopes is None else scopes,
        lifetime=lifetime,
    )
    details = {
        "key_id": new.key.id,
        "mode": mode.value,
        "scopes": None if scopes is None else sorted(scopes),
        "expires_at": None if new.key.expires_at is None else rfc3339(new.key.expires_at),
    }
    await access.database.write(_add, access, new, AuditAction.KEY_CREATED, details)
    return new


async def rotate_key(access: Access, key_id: str, overlap: timedelta) -> NewKey:
    """A successor with the same scopes; the old key works until the overlap ends.

    The successor has the lifetime that the old key was created with, counted from now.

    Raises:
        UnknownKey: there is no such key.
        KeyNotUsable: the old key is revoked or expired.
    """
    return await access.database.write(_rotate, access, key_id, overlap)


def _rotate(
    connection: Connection, access: Access, key_id: str, overlap: timedelta
) -> NewKey | UnknownKey | KeyNotUsable:
    # Locked: a revocation at the same moment comes before this, or after it.
    old = read_key(connection, key_id, to_change=True)
    if old is None:
        return _unknown(key_id)
    new = _compose(
        access,
        account_id=old.account_id,
        mode=old.mode,
        kind=old.kind,
        scopes=old.scopes,
        lifetime=old.lifetime,
        replaces=old.id,
    )
    if not old.works_at(new.key.created_at):
        return KeyNotUsable(f"The key {key_id} is revoked or expired; make a new one instead.")
    until = new.key.created_at + overlap
    details = {"key_id": old.id, "successor": new.key.id, "works_until": rfc3339(until)}
    _add(connection, access, new, AuditAction.KEY_ROTATED, details)
    if old.expires_at is None or old.expires_at > until:
        change_key(connection, key_id, expires_at=until)
    return new


async def revoke_key(access: Access, key_id: str) -> ApiKey:
    """Make a key stop working, within REVOCATION_LAG_SECONDS on running servers.

    An earlier revocation is kept.

    Raises:
        UnknownKey: there is no such key.
    """
    return await access.database.write(_revoke, access, key_id)


def _revoke(connection: Connection, access: Access, key_id: str) -> ApiKey | UnknownKey:
    key = read_key(connection, key_id, to_change=True)
    if key is None:
        return _unknown(key_id)
    if key.revoked_at is not None:
        return key
    now = from_ns(access.clock.time_ns())
    change_key(connection, key_id, revoked_at=now)
    write_audit(
        connection, access.audit.entry(AuditAction.KEY_REVOKED, key.account_id, key_id=key_id)
    )
    return replace(key, revoked_at=now)


def _compose(
    access: Access,
    *,
    account_id: str,
    mode: Mode,
    kind: KeyKind,
    scopes: frozenset[Scope],
    lifetime: timedelta | None,
    replaces: str | None = None,
) -> NewKey:
    time_ns = access.clock.time_ns()
    now = from_ns(time_ns)
    token = compose_key(kind, mode, access.entropy(ENTROPY_BYTES))
    key = ApiKey(
        id=timed_id("key", time_ns, access.entropy(8)),
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


def _add(
    connection: Connection,
    access: Access,
    new: NewKey,
    action: AuditAction,
    details: Mapping[str, object],
) -> None:
    add_key(connection, new.key, access.secret.key_digest(new.token))
    write_audit(connection, access.audit.entry(action, new.key.account_id, **details))


def _unknown(key_id: str) -> UnknownKey:
    return UnknownKey(
        f"The key {key_id!r} does not exist; `countersign keys list` shows all key ids."
    )
