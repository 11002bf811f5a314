"""`countersign checkout-sessions`, links for buyers for a shop without code, and their brand."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

import click
from msgspec import Struct, to_builtins

from countersign.access.account import find_account
from countersign.access.key import KeyKind, Principal
from countersign.access.room import Access
from countersign.checkout import sessions, store
from countersign.checkout.brand import change_brand
from countersign.checkout.model import Collected, Session
from countersign.checkout.room import Checkout
from countersign.checkout.schemas import CheckoutSession, CheckoutSessionRequest
from countersign.checkout.words import LOCALES
from countersign.cli.support import Duration, asking, command, say, show, with_room
from countersign.http.body import parse_body
from countersign.http.paging import LIMIT_DEFAULT
from countersign.http.reply import encode
from countersign.mode import Mode

_MODES: Final = click.Choice([mode.value for mode in Mode])
account_option: Final = click.option("--account", required=True, help="Id or name of the account.")
mode_option: Final = click.option("--mode", required=True, type=_MODES, help="test or live.")


@click.group("checkout-sessions")
def checkout_sessions() -> None:
    """Links by which one buyer initials a notice for one order."""


@checkout_sessions.command("create")
@account_option
@mode_option
@click.option("--session", "session_id", required=True, help="Your name for this order or cart.")
@click.option("--return-url", required=True, help="Where the buyer goes afterwards.")
@click.option("--notice", "notice_id", help="The notice to acknowledge, such as ab1263.")
@click.option(
    "--collect",
    type=click.Choice([kind.value for kind in Collected]),
    multiple=True,
    help="What to collect; may be repeated. Left out: the acknowledgment.",
)
@click.option("--cbid", help="The buyer identifier, if known.")
@click.option("--zip", "shipping_zip", help="The order's ZIP code.")
@click.option("--product-class", help="The class of the product, such as accessory.")
@click.option("--origin", help="The page that embeds the component, such as https://shop.example.")
@click.option("--locale", type=click.Choice(LOCALES), help="Language of the page.")
@click.option(
    "--expires-in", type=Duration(), help="How long the link works, up to 24h. Left out: 30m."
)
@command
@with_room(Checkout)
async def create_command(
    room: Checkout,
    /,
    account: str,
    mode: str,
    *,
    collect: tuple[str, ...],
    expires_in: timedelta | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Create a link for a buyer, and print it. It is shown only once."""
    who = await acting_for(room, account, mode)
    asked = fields | {
        "collect": collect or None,
        "expires_in_seconds": None if expires_in is None else int(expires_in.total_seconds()),
    }
    # Judged as the body of a request is.
    wanted = parse_body(encode(asked), CheckoutSessionRequest)
    made = await sessions.create_session(room, who, wanted)
    view = sessions.view(room, made.session, made.session.created_at, made.token)
    say(f"The checkout session {made.session.id} is open until {view.expires_at.isoformat()}.")
    show(to_builtins(view), view.url or "", as_json=as_json)


@checkout_sessions.command("list")
@account_option
@mode_option
@click.option("--session", "session_id", help="Only sessions with this name.")
@click.option("--limit", type=click.IntRange(1, 1000), default=LIMIT_DEFAULT, show_default=True)
@command
@with_room(Checkout)
async def list_command(
    room: Checkout, account: str, mode: str, *, session_id: str | None, limit: int, as_json: bool
) -> None:
    """List the sessions of an account, newest first."""
    who = await acting_for(room, account, mode)
    found = await sessions.list_sessions(room, who, session_id=session_id, limit=limit)
    views = [await _view(room, session) for session in found[:limit]]
    lines = [f"{v.checkout_session_id}  {v.status}  {v.session_id or '(erased)'}" for v in views]
    show([to_builtins(view) for view in views], "\n".join(lines), as_json=as_json)


@checkout_sessions.command("show")
@account_option
@mode_option
@click.argument("checkout_session_id")
@command
@with_room(Checkout)
async def show_command(
    room: Checkout, account: str, mode: str, checkout_session_id: str, *, as_json: bool
) -> None:
    """Show how a session stands."""
    who = await acting_for(room, account, mode)
    show_view(
        await _view(room, await sessions.get_session(room, who, checkout_session_id)), as_json
    )


@checkout_sessions.command("cancel")
@account_option
@mode_option
@click.argument("checkout_session_id")
@asking("Cancel the checkout session {checkout_session_id}? Its link stops working.")
@command
@with_room(Checkout)
async def cancel_command(
    room: Checkout, account: str, mode: str, checkout_session_id: str, *, as_json: bool
) -> None:
    """Cancel an open session: its link collects nothing any more."""
    who = await acting_for(room, account, mode)
    session = await store.find(room, who.account_id, who.mode, checkout_session_id)
    show_view(await _view(room, await sessions.cancel_session(room, session)), as_json)


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


async def _view(room: Checkout, session: Session) -> CheckoutSession:
    return sessions.view(room, session, await store.clock_of(room, session))


def show_view(view: Struct, as_json: bool) -> None:  # noqa: FBT001 - the flag of a command
    """Print a session with each of its members on a line, or as JSON."""
    values: dict[str, Any] = to_builtins(view)
    plain = "\n".join(
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in values.items()
        if value not in (None, [])
    )
    show(values, plain, as_json=as_json)
