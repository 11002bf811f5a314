"""`countersign staff remove` and `countersign members remove`, which ask about keys to end."""

from __future__ import annotations

import json
from collections.abc import Awaitable

import click

from countersign.base.cli import room_command
from countersign.base.errors import KeysRemain
from countersign.base.values import Mode
from countersign.core.access.account import find_account
from countersign.core.gate.commands import operator
from countersign.core.gate.route import encode
from countersign.staff.acts.people import PersonView, Removal, remove
from countersign.staff.people.room import People
from countersign_evidence.cli.support import asking, is_given, say, show

_END_KEYS = click.option(
    "--end-keys",
    metavar="WHICH",
    help="Which of the working keys that the person made there end: all, none, or their ids with "
    "commas between them. Left out: it asks, if there are any.",
)


@click.command("remove")
@click.argument("name")
@_END_KEYS
@asking("Take the role of {name}? The person is signed out at once.")
@room_command(People)
async def remove_staff(people: People, name: str, *, end_keys: str | None) -> None:
    """Remove a person from the staff. The last owner stays."""
    await _remove(people, "", name, end_keys)


@click.command("remove")
@click.argument("name")
@click.option("--account", required=True, help="Id or name of the account.")
@_END_KEYS
@asking("Take the role of {name}? The person is signed out at once.")
@room_command(People)
async def remove_member(people: People, name: str, *, account: str, end_keys: str | None) -> None:
    """Remove a person from an account. The last owner stays."""
    account_id = (await find_account(people.access, account)).id
    await _remove(people, account_id, name, end_keys)


async def _remove(people: People, account_id: str, name: str, end_keys: str | None) -> None:
    who = operator(account_id, Mode.LIVE)

    def act(which: str | None) -> Awaitable[PersonView]:
        named = [] if which == "none" else [one.strip() for one in (which or "").split(",")]
        wanted = Removal(end_keys=None if which is None else named)
        if which == "all":
            wanted = Removal(end_keys="all")
        return people.access.database.write(remove, people, who, name, wanted)

    try:
        removed = await act(end_keys)
    except KeysRemain as refused:
        if is_given("yes"):
            raise KeysRemain(
                f"{refused.message} With --yes, name them: --end-keys WHICH."
            ) from None
        removed = await act(click.prompt(f"{refused.message} (all, none, or ids)", err=True))
    say(f"{removed.name} has no role there any more.")
    for key in removed.keys:
        say(f"The key {key.key_id} {'works on' if key.works else 'is revoked'}.")
    show(json.loads(encode(removed)), removed.person_id)
