"""The operator's acts on API keys: create, rotate and revoke."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec
from sqlalchemy import Connection, insert, or_, select, update

from countersign.base.db.tables import api_keys, parties, person_grants
from countersign.base.errors import (
    Forbidden,
    InvalidApiKey,
    InvalidArgument,
    KeyNotUsable,
    UnknownKey,
)
from countersign.base.values import Mode, from_ns, rfc3339, timed_id
from countersign.core.access.account import lock_account, lock_grants
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.authenticate import stored_key
from countersign.core.access.key import (
    ENTROPY_BYTES,
    PEOPLE_SCOPES,
    VENDOR_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    compose_key,
    key_hint,
)
from countersign.core.access.reach import Reach
from countersign.core.access.room import Access

REVOCATION_LAG_SECONDS: Final = 5
"""How long a revoked key may still work on a running server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A new key. `token` is the key itself: it is shown now and never again."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.hint})"


def create_key(
    connection: Connection,
    access: Access,
    account_id: str,
    mode: Mode,
    scopes: frozenset[Scope] | None = None,
    *,
    name: str | None = None,
    lifetime: timedelta | None = None,
    made_by: str | None = None,
    by_key: str | None = None,
    reason: str | None = None,
) -> NewKey:
    """A new key; it works at once. Without scopes: all that a vendor's server needs.

    `made_by` is the person (`per_…`) behind it; None: it is made on the machine. `reason` is
    required from a person who may not see personal data, for a key that reads it; `by_key` is the
    key that asks.

    Raises UnknownAccount, AccountClosed, InvalidArgument for a scope that only people have, or as
    `_refuse_gone`.
    """
    if refused := sorted((scopes or frozenset()) & PEOPLE_SCOPES):
        raise InvalidArgument(
            f"No key may have the scope {refused[0]}: only people do, so that the audit has a name."
        )
    new = _compose(access, account_id, mode, scopes, name=name, lifetime=lifetime, made_by=made_by)
    _refuse_gone(connection, account_id, made_by, by_key, new.key.created_at)
    details = {
        "key_id": new.key.id,
        "scopes": None if scopes is None else sorted(scopes),
        "expires_at": None if new.key.expires_at is None else rfc3339(new.key.expires_at),
        **_because(reason),
    }
    _add(connection, access, new, AuditAction.KEY_CREATED, details)
    return new


def rotate_key(
    connection: Connection,
    access: Access,
    key_id: str,
    overlap: timedelta,
    *,
    by: str | None = None,
    by_key: str | None = None,
    reason: str | None = None,
) -> NewKey:
    """A successor with the same scopes; the old key works until the overlap ends.

    The successor has the lifetime that the old key was created with, counted from now, and the same
    maker. A machine's key becomes that of the person `by`, who sees the successor.

    Raises UnknownKey, KeyNotUsable, AccountClosed, or as `_refuse_gone`.
    """
    # Locked: a concurrent revocation comes before or after this.
    old = lock_key(connection, key_id)
    scopes = old.scopes if old.kind is KeyKind.RESTRICTED else None
    new = _compose(
        *(access, old.account_id, old.mode, scopes),
        name=old.name,
        lifetime=old.lifetime,
        made_by=old.made_by or by,
        replaces=old.id,
    )
    _refuse_gone(connection, old.account_id, by, by_key, new.key.created_at)
    if not old.works_at(new.key.created_at):
        raise KeyNotUsable(f"The key {key_id} is revoked or expired; make a new one instead.")
    until = new.key.created_at + overlap
    details = {"key_id": old.id, "successor": new.key.id, "works_until": rfc3339(until)}
    _add(connection, access, new, AuditAction.KEY_ROTATED, details | _because(reason))
    if old.expires_at is None or old.expires_at > until:
        change_key(connection, key_id, expires_at=until)
    return new


def revoke_key(connection: Connection, access: Access, key_id: str) -> ApiKey:
    """Make a key stop working, within REVOCATION_LAG_SECONDS on running servers.

    An earlier revocation is kept.

    Raises UnknownKey if there is no such key.
    """
    key = lock_key(connection, key_id)
    if key.revoked_at is not None:
        return key
    now = from_ns(access.clock.time_ns())
    change_key(connection, key_id, revoked_at=now)
    about = {"key_id": key_id, "mode": key.mode.value}
    write_audit(connection, access.audit.entry(AuditAction.KEY_REVOKED, key.account_id, **about))
    return replace(key, revoked_at=now)


def keys_made(connection: Connection, reach: Reach, now: datetime) -> Mapping[str, list[ApiKey]]:
    """Keys by the person who made them: of an account, in both modes, or all that work."""
    query = select(api_keys).where(api_keys.c.made_by.is_not(None))
    if reach.account_id is not None:
        query = query.where(api_keys.c.account_id == reach.account_id)
    made = defaultdict[str, list[ApiKey]](list)
    for row in connection.execute(query.order_by(api_keys.c.id)):
        key = stored_key(row)
        if key.works_at(now):
            made[row.made_by].append(key)
    return made


def _because(reason: str | None) -> dict[str, str]:
    return {} if reason is None else {"reason": reason}


def _compose(
    access: Access,
    account_id: str,
    mode: Mode,
    scopes: frozenset[Scope] | None,
    *,
    name: str | None,
    lifetime: timedelta | None,
    made_by: str | None,
    replaces: str | None = None,
) -> NewKey:
    time_ns = access.clock.time_ns()
    now = from_ns(time_ns)
    kind = KeyKind.SECRET if scopes is None else KeyKind.RESTRICTED
    token = compose_key(kind, mode, access.entropy(ENTROPY_BYTES))
    key = ApiKey(
        id=timed_id("key", time_ns, access.entropy(8)),
        account_id=account_id,
        mode=mode,
        kind=kind,
        scopes=VENDOR_SCOPES if scopes is None else scopes,
        hint=key_hint(token),
        created_at=now,
        lifetime=lifetime,
        expires_at=None if lifetime is None else now + lifetime,
        replaces=replaces,
        made_by=made_by,
        name=name,
    )
    return NewKey(key=key, token=token)


def _refuse_gone(
    connection: Connection, account_id: str, person: str | None, key_id: str | None, now: datetime
) -> None:
    """Refuse a person removed, or a key that has ended, since the gates checked.

    The gates may have read data some seconds old, and a new key would outlast it.

    Raises Forbidden, InvalidApiKey.
    """
    if key_id is not None and not lock_key(connection, key_id).works_at(now):
        raise InvalidApiKey
    if person is not None:
        lock_grants(connection)
        g = person_grants.c
        places = select(g.account_id).where(g.person_id == person)
        if not {account_id, None} & set(connection.execute(places).scalars()):
            raise Forbidden("You have no role there.", scope=Scope.KEYS_MANAGE)


def _add(
    connection: Connection,
    access: Access,
    new: NewKey,
    action: AuditAction,
    details: Mapping[str, object],
) -> None:
    lock_account(connection, new.key.account_id)
    add_key(connection, new.key, access.secret.key_digest(new.token))
    about = {"mode": new.key.mode.value, **details}
    write_audit(connection, access.audit.entry(action, new.key.account_id, **about))


def add_key(connection: Connection, key: ApiKey, digest: bytes) -> None:
    """Write a new key, found by this keyed hash."""
    scopes = msgspec.json.encode(sorted(key.scopes)).decode()
    row = asdict(key) | {
        "digest": digest,
        "scopes": None if key.kind is KeyKind.SECRET else scopes,
        "lifetime_seconds": None if key.lifetime is None else key.lifetime // timedelta(seconds=1),
    }
    del row["lifetime"]
    connection.execute(insert(api_keys), row)


def lock_key(connection: Connection, key_id: str) -> ApiKey:
    """The key with this id; no other transaction changes it until this one ends.

    Raises UnknownKey if there is none.
    """
    query = select(api_keys).where(api_keys.c.id == key_id).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise unknown_key(key_id)
    return stored_key(row)


def unknown_key(key_id: str) -> UnknownKey:
    """The refusal for an unknown key, or one out of reach."""
    return UnknownKey(f"The key {key_id!r} does not exist; see the list of keys.")


def keys_of(connection: Connection, *reaches: Reach) -> Sequence[ApiKey]:
    """The keys in any of these reaches, oldest first."""
    within = or_(*(reach.rows(api_keys) for reach in reaches))
    query = select(api_keys).where(within).order_by(api_keys.c.id)
    return [stored_key(row) for row in connection.execute(query)]


def change_key(connection: Connection, key_id: str, **values: datetime) -> None:
    connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(**values))


def has_live_key(connection: Connection, now: datetime) -> bool:
    """Whether any key works in live mode."""
    works = api_keys.c.expires_at.is_(None) | (api_keys.c.expires_at > now)
    live = select(api_keys.c.id).where(
        api_keys.c.mode == Mode.LIVE, api_keys.c.revoked_at.is_(None), works
    )
    return connection.execute(live.limit(1)).first() is not None


def undescribed(connection: Connection, account_id: str) -> Sequence[str]:
    """Of the operator (`deployment`) and this account, those without a describing record."""
    known = connection.execute(select(parties.c.scope).where(parties.c.mode == Mode.LIVE)).scalars()
    return sorted({"deployment", account_id} - set(known))
