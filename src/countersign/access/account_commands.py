"""`countersign accounts`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from countersign.access.account import Account
from countersign.bootstrap import Deployment
from countersign.cli.support import command, say, show, with_deployment
from countersign.instant import rfc3339


@click.group()
def accounts() -> None:
    """Accounts, one for each vendor."""


@accounts.command("create")
@click.argument("name")
@command
def create(name: str, *, as_json: bool) -> None:
    """Create an account, and print its id."""
    account = _create(name)
    say(f"Account {account.name} was created.")
    show(_view(account), account.id, as_json=as_json)


@accounts.command("list")
@command
def list_(*, as_json: bool) -> None:
    """List the accounts, oldest first."""
    found = _list()
    lines = [f"{a.id}  {rfc3339(a.created_at)}  {a.name}" for a in found]
    if found or as_json:
        show([_view(account) for account in found], "\n".join(lines), as_json=as_json)
    else:
        say("No accounts yet. Create one: countersign accounts create NAME")


@with_deployment
async def _create(deployment: Deployment, name: str) -> Account:
    return await deployment.access.accounts.create(name)


@with_deployment
async def _list(deployment: Deployment) -> Sequence[Account]:
    return await deployment.access.accounts.list()


def _view(account: Account) -> dict[str, str]:
    return {
        "account_id": account.id,
        "name": account.name,
        "created_at": rfc3339(account.created_at),
    }
