"""`countersign staff` and `countersign members`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import click

from countersign.access.account import find_account
from countersign.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.access.role import Role
from countersign.cli.deployment import with_room
from countersign.errors import KeysRemain
from countersign.instant import rfc3339
from countersign.mode import Mode
from countersign.people import roles
from countersign.people.model import Link, Member
from countersign.people.room import People
from countersign_evidence.cli.support import asking, command, say, show, show_all

_ROLE = click.option(
    "--role",
    required=True,
    type=click.Choice([role.value for role in Role]),
    help="What the person may do, and whether the person sees personal data.",
)
_END_KEYS = click.option(
    "--end-keys",
    metavar="WHICH",
    help="Which of the working keys that the person made there end: all, none, or their ids with "
    "commas between them. Left out: it asks, if there are any.",
)
_ACCOUNT = click.option("--account", required=True, help="Id or name of the account.")


@click.group()
def staff() -> None:
    """People who work on the whole deployment, at /console."""


@click.group()
def members() -> None:
    """People of an account, who see at /console what is theirs."""


@staff.command("invite")
@click.argument("name")
@_ROLE
@command
@with_room(People)
async def invite_staff(room: People, name: str, *, role: str, as_json: bool) -> None:
    """Invite a person to the staff, and print the link by which the person comes in, once.

    NAME can be the id of a person (per_…), who gets this role too and signs in as before.
    """
    await _invite(room, name, role, DEPLOYMENT, as_json=as_json)


@members.command("invite")
@click.argument("name")
@_ACCOUNT
@_ROLE
@command
@with_room(People)
async def invite_member(room: People, name: str, *, account: str, role: str, as_json: bool) -> None:
    """Invite a person to an account, and print the link by which the person comes in, once.

    NAME can be the id of a person (per_…), who gets this role too and signs in as before.
    """
    await _invite(room, name, role, await _reach(room, account), as_json=as_json)


@staff.command("list")
@command
@with_room(People)
async def list_staff(room: People, *, as_json: bool) -> None:
    """List the staff with their roles."""
    await _list(room, DEPLOYMENT, "countersign staff invite NAME --role owner", as_json=as_json)


@members.command("list")
@_ACCOUNT
@command
@with_room(People)
async def list_members(room: People, *, account: str, as_json: bool) -> None:
    """List the people of an account with their roles."""
    reach = await _reach(room, account)
    first = f"countersign members invite NAME --account {reach.account_id} --role owner"
    await _list(room, reach, first, as_json=as_json)


@staff.command("remove")
@click.argument("name")
@_END_KEYS
@asking("Take the role of {name}? The person is signed out at once.")
@command
@with_room(People)
async def remove_staff(room: People, name: str, *, end_keys: str | None, as_json: bool) -> None:
    """Remove a person from the staff. The last owner stays."""
    await _remove(room, name, DEPLOYMENT, end_keys, as_json=as_json)


@members.command("remove")
@click.argument("name")
@_ACCOUNT
@_END_KEYS
@asking("Take the role of {name}? The person is signed out at once.")
@command
@with_room(People)
async def remove_member(
    room: People, name: str, *, account: str, end_keys: str | None, as_json: bool
) -> None:
    """Remove a person from an account. The last owner stays."""
    await _remove(room, name, await _reach(room, account), end_keys, as_json=as_json)


@staff.command("link")
@click.argument("name")
@command
@with_room(People)
async def link_staff(room: People, name: str, *, as_json: bool) -> None:
    """Print a link by which a person of the staff comes in again, with a new passkey."""
    link = await roles.way_back(room, name, DEPLOYMENT)
    _show_link(room, link, {}, as_json=as_json)


@members.command("link")
@click.argument("name")
@_ACCOUNT
@command
@with_room(People)
async def link_member(room: People, name: str, *, account: str, as_json: bool) -> None:
    """Print a link by which a person of an account comes in again, with a new passkey."""
    link = await roles.way_back(room, name, await _reach(room, account))
    _show_link(room, link, {}, as_json=as_json)


async def _reach(room: People, account: str) -> AccountReach:
    return AccountReach((await find_account(room.access, account)).id, Mode.LIVE)


async def _invite(room: People, name: str, role: str, reach: Reach, *, as_json: bool) -> None:
    invited = await roles.invite(room, name, Role(role), reach)
    said = {"person_id": invited.person_id, "name": invited.name, "role": role}
    if invited.link is None:
        say(f"{invited.name} has the role {role} now, and signs in as before.")
        show(said, invited.person_id, as_json=as_json)
        return
    say(f"{invited.name} ({invited.person_id}) is invited as {role}.")
    _show_link(room, invited.link, said, as_json=as_json)


def _show_link(room: People, link: Link, said: dict[str, Any], *, as_json: bool) -> None:
    if not room.is_on:
        say("warning: the console is off, so the link works only with COUNTERSIGN_CONSOLE=true")
    if room.party is None and room.provider is None:
        say(
            f"warning: browsers make no passkeys at {room.url}: they need https and a name, or "
            "localhost"
        )
    say(
        f"The link works once, until {rfc3339(link.expires_at)}. It ends what the person is signed "
        "in with, and asks for a new passkey. Give it to this person alone:"
    )
    until = rfc3339(link.expires_at)
    show(said | {"link": link.url, "expires_at": until}, link.url, as_json=as_json)


async def _list(room: People, reach: Reach, first: str, *, as_json: bool) -> None:
    found = await roles.members(room, reach)
    lines = [f"{one.id}  {one.role.value:10}  {_state(one):34}  {one.name}" for one in found]
    none = f"No one yet. Invite the first: {first}"
    show_all([_view(one) for one in found], lines, none, as_json=as_json)


async def _remove(
    room: People, name: str, reach: Reach, end_keys: str | None, *, as_json: bool
) -> None:
    def act(which: str | None) -> Awaitable[Member]:
        named = [] if which == "none" else [one.strip() for one in (which or "").split(",")]
        ends = which if which in {None, roles.ALL_KEYS} else named
        return roles.remove(room, name, reach, end_keys=ends)

    try:
        removed = await act(end_keys)
    except KeysRemain as refused:
        if click.get_current_context().params["yes"]:
            raise KeysRemain(
                f"{refused.message} With --yes, name them: --end-keys WHICH."
            ) from None
        removed = await act(click.prompt(f"{refused.message} (all, none, or ids)", err=True))
    say(f"{removed.name} has no role there any more.")
    for key in removed.keys:
        say(f"The key {key.id} {'works on' if key.revoked_at is None else 'is revoked'}.")
    show(_view(removed), removed.id, as_json=as_json)


def _state(one: Member) -> str:
    if one.last_used_at is not None:
        return f"signed in {rfc3339(one.last_used_at)}"
    return "has not come in yet"


def _view(one: Member) -> dict[str, Any]:
    return {
        "person_id": one.id,
        "name": one.name,
        "role": one.role.value,
        "granted_at": rfc3339(one.granted_at),
        "granted_by": one.granted_by,
        "has_passkey": one.has_passkey,
        "has_provider": one.has_provider,
        "link_until": None if one.link_until is None else rfc3339(one.link_until),
        "last_used_at": None if one.last_used_at is None else rfc3339(one.last_used_at),
        "keys": [{"key_id": key.id, "works": key.revoked_at is None} for key in one.keys],
    }
