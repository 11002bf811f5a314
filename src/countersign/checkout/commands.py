"""`countersign checkout-sessions`, links for buyers for a shop without code, and their brand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click
from msgspec import Struct, to_builtins

from countersign.access.account import find_account
from countersign.access.key import KeyKind, Principal
from countersign.access.room import Access
from countersign.checkout.brand import change_brand
from countersign.checkout.room import Checkout
from countersign.cli.deployment import with_room
from countersign.mode import Mode
from countersign_evidence.cli.support import command, show

_MODES: Final = click.Choice([mode.value for mode in Mode])
account_option: Final = click.option("--account", required=True, help="Id or name of the account.")
mode_option: Final = click.option("--mode", required=True, type=_MODES, help="test or live.")


@click.command("brand")
@click.argument("account")
@click.option("--name", help="The name that buyers see. Left out: the account's own.")
@click.option("--color", metavar="#RRGGBB", help="The colour of the header and the buttons.")
@click.option("--logo", metavar="FILE", help="A PNG, JPEG or WebP picture of at most 64 KiB.")
@command
@with_room(Access)
async def brand_command(
    access: Access,
    account: str,
    *,
    name: str | None,
    color: str | None,
    logo: str | None,
    as_json: bool,
) -> None:
    """Set how buyers see an account on hosted pages, and print it. An empty value removes one."""
    brand = await change_brand(access, account, name=name, color=color, logo=logo)
    shown = asdict(brand)
    lines = [f"{part}: {value or '(none)'}" for part, value in shown.items()]
    show(shown, "\n".join(lines), as_json=as_json)


async def acting_for(room: Checkout, account: str, mode: str) -> Principal:
    """The operator in the place of a key of this account."""
    owner = await find_account(room.access, account)
    return Principal(
        key_id="operator",
        account_id=owner.id,
        mode=Mode(mode),
        scopes=frozenset(),
        credential=KeyKind.SECRET.credential,
    )


def show_view(view: Struct, as_json: bool) -> None:  # noqa: FBT001 - the flag of a command
    """Print a session with each of its members on a line, or as JSON."""
    values: dict[str, Any] = to_builtins(view)
    plain = "\n".join(
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in values.items()
        if value not in (None, [])
    )
    show(values, plain, as_json=as_json)
