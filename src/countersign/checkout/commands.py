"""`countersign accounts brand`: how hosted pages look."""

from __future__ import annotations

from dataclasses import asdict

import click

from countersign.access.room import Access
from countersign.checkout.brand import change_brand
from countersign.cli.deployment import with_room
from countersign_evidence.cli.support import command, show


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
