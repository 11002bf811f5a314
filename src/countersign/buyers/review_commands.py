"""`countersign buyers queue` and `decide`: the review queue of the deployment's operator."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from countersign.access.account import find_account
from countersign.access.reach import reach_of
from countersign.buyers import admin, review
from countersign.buyers.model import Buyer, BuyerStatus
from countersign.buyers.room import Buyers
from countersign.cli.deployment import with_room
from countersign.errors import InvalidArgument
from countersign.instant import rfc3339
from countersign.mode import Mode
from countersign_evidence.cli.support import asking, command, field_lines, say, show, show_all

_in_room = with_room(Buyers)


@click.command()
@click.option("--account", help="Only the attempts of this account (id or name).")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.LIVE.value,
    show_default=True,
    help="Buyers of live keys, or those of the sandboxes.",
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in review.REVIEWED]),
    multiple=True,
    help="Only buyers with this status; may be repeated.",
)
@command
@_in_room
async def queue(
    room: Buyers, *, account: str | None, mode: str, statuses: tuple[str, ...], as_json: bool
) -> None:
    """List the buyers whose last attempt did not verify them, the oldest attempt first."""
    own = "" if account is None else (await find_account(room.access, account)).id
    found = await review.queue(
        room,
        reach_of(own, Mode(mode)),
        Mode(mode),
        statuses=[BuyerStatus(status) for status in statuses] or review.REVIEWED,
    )
    view = [
        msgspec.to_builtins(one)
        | {
            "attempted_at": rfc3339(one.attempted_at),
            "proposal": one.proposal and msgspec.to_builtins(one.proposal.shown),
        }
        for one in found
    ]
    lines = [
        f"{rfc3339(one.attempted_at)}  {one.cbid}  {one.account_id}  {one.provider}  {one.status}  "
        f"{one.reference or '-'}  {', '.join(one.reasons)}".rstrip()
        for one in found
    ]
    show_all(view, lines, "No buyer waits for a review.", as_json=as_json)


@click.command()
@click.argument("cbid")
@click.argument("decision", type=click.Choice([one.value for one in review.ReviewDecision]))
@click.option("--zip", "zip_", metavar="ZIP", help="With accept_zip: the ZIP code to accept.")
@click.option("--document", help="With accept_zip: the document that you checked.")
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@asking("Decide on {cbid}: {decision}?")
@command
@_in_room
async def decide(
    room: Buyers,
    cbid: str,
    decision: str,
    *,
    zip_: str | None,
    document: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Decide on a buyer in the queue. `accept_zip` is the same as `buyers accept-zip`.

    `dismiss` takes the buyer out of the queue until the next attempt; the status stays as it is.
    """
    if decision == review.ReviewDecision.ACCEPT_ZIP:
        if zip_ is None or document is None:
            raise InvalidArgument("accept_zip needs --zip ZIP and --document TEXT.")
        await admin.accept_zip(room, cbid, zip_, document=document, reason=reason)
    elif zip_ is not None or document is not None:
        raise InvalidArgument("Only accept_zip takes --zip and --document.")
    else:
        await review.dismiss(room, None, cbid, admin.checked(reason))
    buyer, status = await admin.show(room, cbid)
    say(f"This was recorded in the audit log: countersign buyers audit {buyer.cbid}")
    show_buyer(buyer, status, as_json=as_json)


def show_buyer(buyer: Buyer, status: BuyerStatus, *, as_json: bool) -> None:
    """Show a buyer, without personal data."""
    view: dict[str, Any] = {
        "cbid": buyer.cbid,
        "livemode": buyer.mode == "live",
        "status": status.value,
        "reasons": [reason.value for reason in buyer.reasons],
        "account_id": buyer.account_id,
        "verified_at": buyer.verified_at and rfc3339(buyer.verified_at),
        "expires_at": buyer.expires_at and rfc3339(buyer.expires_at),
        "proved": [msgspec.to_builtins(proof.facts) for proof in buyer.proofs],
    }
    show(view, field_lines(view), as_json=as_json)
