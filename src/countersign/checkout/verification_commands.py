"""`countersign buyers verification-sessions`: links that verify a buyer, made by hand."""

from __future__ import annotations

from datetime import timedelta

import click
from msgspec import to_builtins

from countersign.checkout import store, verification
from countersign.checkout.commands import account_option, acting_for, mode_option, show_view
from countersign.checkout.room import Checkout
from countersign.checkout.verification_schemas import VerificationSessionRequest
from countersign.checkout.words import LOCALES
from countersign.cli.deployment import with_room
from countersign.http.body import parse_body
from countersign.http.reply import encode
from countersign_evidence.cli.support import Duration, command, say, show


@click.group("verification-sessions")
def verification_sessions() -> None:
    """Links by which one buyer is verified, without a notice."""


@verification_sessions.command("create")
@account_option
@mode_option
@click.option("--session", "session_id", required=True, help="Your name for this order or cart.")
@click.option("--return-url", required=True, help="Where the buyer goes afterwards.")
@click.option("--zip", "shipping_zip", required=True, help="The order's ZIP code.")
@click.option("--cbid", help="A buyer you know, who is to be checked again.")
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
    expires_in: timedelta | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Start an identity check for a buyer, and print its link. It is shown only once."""
    who = await acting_for(room, account, mode)
    seconds = None if expires_in is None else int(expires_in.total_seconds())
    # Judged as the body of a request is.
    asked = encode(fields | {"expires_in_seconds": seconds})
    wanted = parse_body(asked, VerificationSessionRequest)
    made = await verification.create_verification(room, who, wanted)
    view = verification.view(room, made.session, made.session.created_at, made.token)
    say(f"The verification session {made.session.id} is open until {view.expires_at.isoformat()}.")
    show(to_builtins(view), view.url or "", as_json=as_json)


@verification_sessions.command("show")
@account_option
@mode_option
@click.argument("verification_session_id")
@command
@with_room(Checkout)
async def show_command(
    room: Checkout, account: str, mode: str, verification_session_id: str, *, as_json: bool
) -> None:
    """Show how a verification session stands."""
    who = await acting_for(room, account, mode)
    session = await verification.find_verification(room, who, verification_session_id)
    show_view(verification.view(room, session, await store.clock_of(room, session)), as_json)
