"""`countersign accounts brand` and `preview`: how hosted pages look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from countersign.base.cli import room_command
from countersign.core.access.account import find_account
from countersign.core.access.room import Access
from countersign.core.checkout.brand import brand_of, picture_in, put_brand, read_logo
from countersign.hosted.pages.preview import LOGO, preview_pages
from countersign_evidence.cli.support import show


@click.command("brand")
@click.argument("account")
@click.option("--name", help="The name that buyers see. Left out: the account's own.")
@click.option("--color", metavar="#RRGGBB", help="The colour of the header and the buttons.")
@click.option("--logo", metavar="FILE", help="A PNG, JPEG or WebP picture of at most 6 KiB.")
@click.option("--contact-url", metavar="URL", help="The shop's page for questions.")
@click.option("--privacy-url", metavar="URL", help="The shop's privacy notice.")
@click.option("--support-email", metavar="ADDRESS", help="Where a buyer can ask for help.")
@click.option("--font", metavar="NAME", help="sans, serif or rounded: what systems have already.")
@click.option(
    "--initials",
    metavar="HOW",
    help="typed, which is the default, or adopted_allowed: typed once, then a press on each line.",
)
@room_command(Access)
async def brand_command(
    access: Access,
    /,
    account: str,
    *,
    logo: str | None,
    **given: str | None,
) -> None:
    """Set what buyers see and do on an account's hosted pages, and print it.

    An empty value removes one.
    """
    owner = await find_account(access, account)
    brand = await access.database.write(
        put_brand,
        access,
        owner.id,
        # Read before the transaction: a slow disk must not keep others from writing.
        logo=picture_in(logo) if logo else None if logo is None else b"",
        **given,
    )
    shown = asdict(brand)
    lines = [f"{part}: {value or '(none)'}" for part, value in shown.items()]
    show(shown, "\n".join(lines))


@click.command("preview")
@click.argument("account")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the pages; it is made if it is not there.",
)
@room_command(Access)
async def preview_command(access: Access, account: str, *, out: Path) -> None:
    """Write the buyer's pages of an account into files, with an invented order: nothing is sent."""
    brand = await access.database.read(brand_of, (await find_account(access, account)).id)
    picture = await access.database.read(read_logo, brand.logo) if brand.logo else None
    names = _write(out, preview_pages(brand), picture)
    show({"pages": names}, f"Open {out / names[0]} in a browser.")


def _write(folder: Path, pages: Mapping[str, str], picture: bytes | None) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    if picture is not None:
        (folder / LOGO).write_bytes(picture)
    return sorted(pages)
