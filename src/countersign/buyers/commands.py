"""`countersign buyers`: show buyers and their evidence, revoke and reinstate them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any, TypeAlias

import click
import msgspec

from countersign.buyers import admin
from countersign.buyers.admin_sql import StoredEvidence
from countersign.buyers.model import Buyer, BuyerStatus
from countersign.buyers.room import Buyers
from countersign.cli.support import (
    command,
    confirm,
    field_lines,
    json_text,
    say,
    show,
    with_room,
)
from countersign.instant import rfc3339

_Evidence: TypeAlias = tuple[StoredEvidence, dict[str, Any] | None]
_in_room = with_room(Buyers)


@click.group()
def buyers() -> None:
    """Show buyers and the evidence of their verifications, revoke and reinstate them."""


@buyers.command("show")
@click.argument("cbid")
@command
def show_(cbid: str, *, as_json: bool) -> None:
    """Show a buyer, without personal data."""
    buyer, status = _in_room(admin.show)(cbid)
    _show(buyer, status, as_json=as_json)


@buyers.command("revoke")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def revoke(cbid: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated."""
    confirm(f"Revoke {cbid} at every vendor?", yes=yes)
    buyer = _in_room(admin.revoke)(cbid, reason)
    say(f"{buyer.cbid} is revoked until `countersign buyers reinstate {buyer.cbid}`.")
    _show(buyer, buyer.status, as_json=as_json)


@buyers.command("reinstate")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why.")
@command
def reinstate(cbid: str, *, reason: str, as_json: bool) -> None:
    """Undo a revocation. The buyer gets the earlier status back, or has to verify again."""
    _in_room(admin.reinstate)(cbid, reason)
    buyer, status = _in_room(admin.show)(cbid)
    say(f"{buyer.cbid} is reinstated. The status is {status.value}.")
    _show(buyer, status, as_json=as_json)


@buyers.command("accept-zip")
@click.argument("cbid")
@click.argument("zip_", metavar="ZIP")
@click.option(
    "--document", required=True, help="The document that you checked, such as a utility bill."
)
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def accept_zip(
    cbid: str, zip_: str, *, document: str, reason: str, yes: bool, as_json: bool
) -> None:
    """Accept another ZIP code for a buyer whom a provider approved and who has moved.

    All other rules are applied again to the provider's result of that time. The record says that an
    operator accepted the ZIP code. It counts for accounts whose rules have `--zip-source operator`.
    """
    confirm(f"Accept {zip_} for {cbid} without a provider's confirmation?", yes=yes)
    buyer = _in_room(admin.accept_zip)(cbid, zip_, document=document, reason=reason)
    say(f"This was recorded in the audit log: countersign buyers audit {buyer.cbid}")
    _show(buyer, buyer.status, as_json=as_json)


@buyers.command("evidence")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why you look at it, such as a case number.")
@command
def evidence(cbid: str, *, reason: str, as_json: bool) -> None:
    """Show the evidence of a buyer's verifications: names, dates of birth, addresses.

    The audit log permanently records that you looked, when and why. `content.answer.body` has the
    exact bytes of the provider's response in base64, `content.answer.text` the same as text. If
    `content` is null, the evidence was erased.
    """
    found = _in_room(_evidence)(cbid, reason)
    view = [_opened(*one) for one in found]
    erased = sum(content is None for _, content in found)
    number = f"{len(found)} verification{'' if len(found) == 1 else 's'}"
    say(f"{number}, the evidence of {erased} erased." if erased else f"{number}.")
    say(f"This was recorded in the audit log: countersign audit {cbid}")
    show(view, json_text(view, indent=2), as_json=as_json)


@click.command()
@click.argument("subject", required=False)
@command
def audit(subject: str | None, *, as_json: bool) -> None:
    """List what operators did from the command line, oldest first: who, when, what and why."""
    found = _in_room(admin.audit_log)(subject)
    view = [msgspec.to_builtins(entry) | {"at": rfc3339(entry.at)} for entry in found]
    lines = [
        f"{rfc3339(entry.at)}  {entry.actor}  {entry.action}  {entry.subject}  "
        f"{json_text(entry.details)}"
        for entry in found
    ]
    if found or as_json:
        show(view, "\n".join(lines), as_json=as_json)
    else:
        say("No entries.")


buyers.add_command(audit)


async def _evidence(room: Buyers, cbid: str, reason: str) -> Sequence[_Evidence]:
    return [one async for one in admin.evidence(room, cbid, reason)]


def _opened(one: StoredEvidence, content: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "verification_id": one.verification_id,
        "account_id": one.account_id,
        "provider": one.provider,
        "status": one.status.value,
        "at": rfc3339(one.at),
        "erased_at": one.erased_at and rfc3339(one.erased_at),
        "content": content and content | {"answer": _readable(content["answer"])},
    }


def _readable(response: dict[str, Any] | None) -> dict[str, Any] | None:
    if response is None:
        return None
    text = b64decode(response["body"]).decode("utf-8", "replace")
    further = [_readable(more) for more in response["further"]]
    return response | {"text": text, "further": further}


def _show(buyer: Buyer, status: BuyerStatus, *, as_json: bool) -> None:
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
