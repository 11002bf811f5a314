"""`countersign accounts` and `countersign keys`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from countersign.access.account import Account, all_accounts, create_account, find_account
from countersign.access.key import RESERVED_SCOPES, ApiKey, Scope, parse_scopes
from countersign.access.keys import (
    REVOCATION_LAG_SECONDS,
    NewKey,
    create_key,
    revoke_key,
    rotate_key,
)
from countersign.access.keys_sql import keys_of, live_origin
from countersign.access.room import Access
from countersign.cli.support import (
    Duration,
    command,
    confirm,
    say,
    say_if_local,
    show,
    with_room,
)
from countersign.instant import from_ns, rfc3339
from countersign.mode import Mode


@click.group()
def accounts() -> None:
    """Accounts, one for each vendor."""


@accounts.command("create")
@click.argument("name")
@command
def create_account_command(name: str, *, as_json: bool) -> None:
    """Create an account, and print its id."""
    account = _create_account(name)
    say(f"Account {account.name} was created.")
    show(_account_view(account), account.id, as_json=as_json)


@accounts.command("list")
@command
def list_accounts(*, as_json: bool) -> None:
    """List the accounts, oldest first."""
    found = _list_accounts()
    lines = [f"{a.id}  {rfc3339(a.created_at)}  {a.name}" for a in found]
    if found or as_json:
        show([_account_view(account) for account in found], "\n".join(lines), as_json=as_json)
    else:
        say("No accounts yet. Create one: countersign accounts create NAME")


@click.group()
def keys() -> None:
    """API keys. A key is shown once and stored as a keyed hash."""


@keys.command("create")
@click.option("--account", required=True, help="Id or name of the account.")
@click.option(
    "--mode", required=True, type=click.Choice([m.value for m in Mode]), help="test or live."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="Restrict the key to this scope; may be repeated. Left out: all scopes that a vendor's "
    f"server needs. Scopes: {', '.join(s for s in Scope if s not in RESERVED_SCOPES)}. "
    f"Reserved, since no operation needs them yet: {', '.join(sorted(RESERVED_SCOPES))}.",
)
@click.option("--expires-in", type=Duration(), help="Lifetime, such as 24h or 365d.")
@command
def create_key_command(
    account: str, mode: str, scopes: tuple[str, ...], expires_in: timedelta | None, *, as_json: bool
) -> None:
    """Create a key, and print it. It is shown only once, and works immediately."""
    _show_new(
        _create_key(account, Mode(mode), parse_scopes(scopes) if scopes else None, expires_in),
        as_json=as_json,
    )


@keys.command("list")
@click.option("--account", help="Only the keys of this account (id or name).")
@command
def list_keys(account: str | None, *, as_json: bool) -> None:
    """List the ids and hints of keys, oldest first."""
    now, found = _list_keys(account)
    lines = [
        f"{k.id}  {k.hint}  {k.account_id}  {_state(k, now)}  "
        f"last used {_time(k.last_used_at) or 'never'}"
        for k in found
    ]
    if found or as_json:
        show([_view(key, now) for key in found], "\n".join(lines), as_json=as_json)
    else:
        say("No keys yet. Create one: countersign keys create --account ACCOUNT --mode test")


@keys.command("rotate")
@click.argument("key_id")
@click.option(
    "--overlap",
    type=Duration(),
    default="24h",
    show_default=True,
    help="How long the old key continues to work.",
)
@command
def rotate_key_command(key_id: str, overlap: timedelta, *, as_json: bool) -> None:
    """Create a successor with the same scopes, and print it.

    The old key works until the overlap ends.
    """
    new = _rotate(key_id, overlap)
    say(f"The old key {key_id} stops working when the overlap ends.")
    _show_new(new, as_json=as_json)


@keys.command("revoke")
@click.argument("key_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def revoke_key_command(key_id: str, *, yes: bool, as_json: bool) -> None:
    """Revoke a key permanently."""
    confirm(f"Revoke the key {key_id}? This cannot be undone.", yes=yes)
    now, key = _revoke(key_id)
    say(f"The key is revoked. Running servers refuse it within {REVOCATION_LAG_SECONDS} seconds.")
    show(_view(key, now), key.id, as_json=as_json)


_create_account = with_room(Access)(create_account)
_rotate = with_room(Access)(rotate_key)


@with_room(Access)
async def _list_accounts(access: Access) -> Sequence[Account]:
    return await access.database.scan(all_accounts)


@with_room(Access)
async def _create_key(
    access: Access,
    account: str,
    mode: Mode,
    scopes: frozenset[Scope] | None,
    lifetime: timedelta | None,
) -> NewKey:
    owner = await find_account(access, account)
    made = await create_key(access, owner, mode, scopes, lifetime)
    origin = await access.database.read(live_origin)
    if mode is Mode.LIVE and origin is not None:
        say_if_local(origin)
    return made


@with_room(Access)
async def _list_keys(access: Access, account: str | None) -> tuple[datetime, Sequence[ApiKey]]:
    owner = None if account is None else (await find_account(access, account)).id
    return from_ns(access.clock.time_ns()), await access.database.scan(keys_of, owner)


@with_room(Access)
async def _revoke(access: Access, key_id: str) -> tuple[datetime, ApiKey]:
    key = await revoke_key(access, key_id)
    return from_ns(access.clock.time_ns()), key


def _account_view(account: Account) -> dict[str, str]:
    return {
        "account_id": account.id,
        "name": account.name,
        "created_at": rfc3339(account.created_at),
    }


def _show_new(new: NewKey, *, as_json: bool) -> None:
    say(f"Key {new.key.id} ({new.key.mode}), shown this once:")
    view = _view(new.key, new.key.created_at) | {"key": new.token}
    show(view, new.token, as_json=as_json)


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return f"revoked {rfc3339(key.revoked_at)}"
    if not key.works_at(now):
        return f"expired {_time(key.expires_at)}"
    return f"expires {_time(key.expires_at)}" if key.expires_at else "works"


def _view(key: ApiKey, now: datetime) -> dict[str, Any]:
    return {
        "key_id": key.id,
        "account_id": key.account_id,
        "mode": key.mode.value,
        "hint": key.hint,
        "scopes": sorted(key.scopes),
        "works": key.works_at(now),
        "created_at": rfc3339(key.created_at),
        "expires_at": _time(key.expires_at),
        "revoked_at": _time(key.revoked_at),
        "last_used_at": _time(key.last_used_at),
        "replaces": key.replaces,
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
