"""`countersign accounts` and `countersign keys`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from countersign.access.account import (
    Account,
    all_accounts,
    find_account,
)
from countersign.access.key import (
    MACHINE,
    PEOPLE_SCOPES,
    ApiKey,
    Scope,
    parse_scopes,
)
from countersign.access.keys import (
    REVOCATION_LAG_SECONDS,
    NewKey,
    create_key,
    keys_of,
    live_origin,
    revoke_key,
    rotate_key,
    undescribed,
)
from countersign.access.origins import origins_of
from countersign.access.reach import DEPLOYMENT, AccountReach
from countersign.access.room import Access
from countersign.cli.deployment import say_if_local, with_room
from countersign.instant import from_ns, rfc3339
from countersign.mode import Mode
from countersign_evidence.cli.support import Duration, asking, command, say, show, show_all


@click.group()
def accounts() -> None:
    """Accounts, one for each vendor."""


@accounts.command("list")
@command
@with_room(Access)
async def list_accounts(access: Access, *, as_json: bool) -> None:
    """List the accounts, oldest first."""
    found = await access.database.scan(all_accounts)
    lines = [f"{a.id}  {rfc3339(a.created_at)}  {a.status:8}  {a.name}" for a in found]
    none = "No accounts yet. Create one: countersign accounts create NAME"
    show_all([_account_view(account) for account in found], lines, none, as_json=as_json)


@accounts.group("origins")
def origins() -> None:
    """The pages that checkout sessions of live keys may embed or return to."""


@origins.command("list")
@click.argument("account")
@command
@with_room(Access)
async def list_origins(access: Access, account: str, *, as_json: bool) -> None:
    """List the registered origins of an account."""
    owner = await find_account(access, account)
    found = [*await access.database.read(origins_of, owner.id)]
    if found or as_json:
        show(found, "\n".join(found), as_json=as_json)
    else:
        say("No origins yet. Register one: countersign accounts origins add ACCOUNT ORIGIN")


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
    f"server needs. Scopes: {', '.join(s for s in Scope if s not in PEOPLE_SCOPES)}.",
)
@click.option("--expires-in", type=Duration(), help="Lifetime, such as 24h or 365d.")
@command
@with_room(Access)
async def create_key_command(
    access: Access,
    account: str,
    mode: str,
    *,
    scopes: tuple[str, ...],
    expires_in: timedelta | None,
    as_json: bool,
) -> None:
    """Create a key, and print it. It is shown only once, and works immediately."""
    wanted = parse_scopes(scopes) if scopes else None
    owner = await find_account(access, account)
    new = await create_key(access, owner, Mode(mode), wanted, expires_in)
    origin = await access.database.read(live_origin)
    if new.key.mode is Mode.LIVE and origin is not None:
        say_if_local(origin)
        for scope in await access.database.read(undescribed, owner.id):
            what, how = (
                ("operates this service", "operator describe")
                if scope == "deployment"
                else (f"account {owner.name} is", f"accounts describe {scope}")
            )
            say(
                f"warning: no record says who {what}. Acknowledgments bind only what is recorded "
                f"before them: countersign {how} --legal-name NAME"
            )
    _show_new(new, owner, as_json=as_json)


@keys.command("list")
@click.option("--account", help="Only the keys of this account (id or name).")
@command
@with_room(Access)
async def list_keys(access: Access, account: str | None, *, as_json: bool) -> None:
    """List the ids and hints of keys, oldest first."""
    owner = None if account is None else (await find_account(access, account)).id
    reaches = [AccountReach(owner, mode) for mode in Mode] if owner else [DEPLOYMENT]
    found = await access.database.scan(keys_of, *reaches)
    now = from_ns(access.clock.time_ns())
    lines = [
        f"{k.id}  {k.hint}  {k.account_id}  {_state(k, now)}  "
        f"last used {_time(k.last_used_at) or 'never'}  made by {k.made_by or MACHINE}"
        for k in found
    ]
    none = "No keys yet. Create one: countersign keys create --account ACCOUNT --mode test"
    show_all([_view(key, now) for key in found], lines, none, as_json=as_json)


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
@with_room(Access)
async def rotate_key_command(
    access: Access, key_id: str, overlap: timedelta, *, as_json: bool
) -> None:
    """Create a successor with the same scopes, and print it.

    The old key works until the overlap ends.
    """
    new = await rotate_key(access, key_id, overlap)
    say(f"The old key {key_id} stops working when the overlap ends.")
    _show_new(new, await find_account(access, new.key.account_id), as_json=as_json)


@keys.command("revoke")
@click.argument("key_id")
@asking("Revoke the key {key_id}? This cannot be undone.")
@command
@with_room(Access)
async def revoke_key_command(access: Access, key_id: str, *, as_json: bool) -> None:
    """Revoke a key permanently."""
    key = await revoke_key(access, key_id)
    say(f"The key is revoked. Running servers refuse it within {REVOCATION_LAG_SECONDS} seconds.")
    show(_view(key, from_ns(access.clock.time_ns())), key.id, as_json=as_json)


def _account_view(account: Account) -> dict[str, str]:
    return {
        "account_id": account.id,
        "name": account.name,
        "created_at": rfc3339(account.created_at),
        "status": account.status,
    }


def _show_new(new: NewKey, owner: Account, *, as_json: bool) -> None:
    if owner.disabled_at is not None:
        say(
            f"warning: the account {owner.name} is disabled, so the key works only after "
            f"`countersign accounts enable {owner.id}`"
        )
    say(f"Key {new.key.id} ({new.key.mode}), shown this once:")
    view = _view(new.key, new.key.created_at) | {
        "key": new.token,
        "account_status": owner.status,
    }
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
        "made_by": key.made_by or MACHINE,
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)
