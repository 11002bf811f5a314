"""`countersign buyers`: show buyers and their evidence, revoke and reinstate them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from countersign.bootstrap import Deployment
from countersign.buyers.admin import OpenedEvidence
from countersign.buyers.audit_command import audit
from countersign.buyers.model import Buyer, BuyerStatus
from countersign.cli.support import (
    command,
    confirm,
    field_lines,
    json_text,
    say,
    show,
    with_deployment,
)
from countersign.instant import rfc3339


@click.group()
def buyers() -> None:
    """Show buyers and the evidence of their verifications, revoke and reinstate them."""


@buyers.command("show")
@click.argument("cbid")
@command
def show_(cbid: str, *, as_json: bool) -> None:
    """Show a buyer, without personal data."""
    buyer, status = _find(cbid)
    _show(buyer, status, as_json=as_json)


@buyers.command("revoke")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def revoke(cbid: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated."""
    confirm(f"Revoke {cbid} at every vendor?", yes=yes)
    buyer = _revoke(cbid, reason)
    say(f"{buyer.cbid} is revoked until `countersign buyers reinstate {buyer.cbid}`.")
    _show(buyer, buyer.status, as_json=as_json)


@buyers.command("reinstate")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why.")
@command
def reinstate(cbid: str, *, reason: str, as_json: bool) -> None:
    """Undo a revocation. The buyer gets the earlier status back, or has to verify again."""
    _reinstate(cbid, reason)
    buyer, status = _find(cbid)
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
    buyer = _accept_zip(cbid, zip_, document, reason)
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
    found = _evidence(cbid, reason)
    view = [_opened(one) for one in found]
    erased = sum(one.content is None for one in found)
    number = f"{len(found)} verification{'' if len(found) == 1 else 's'}"
    say(f"{number}, the evidence of {erased} erased." if erased else f"{number}.")
    say(f"This was recorded in the audit log: countersign audit {cbid}")
    show(view, json_text(view, indent=2), as_json=as_json)


buyers.add_command(audit)


@with_deployment
async def _find(deployment: Deployment, cbid: str) -> tuple[Buyer, BuyerStatus]:
    return await deployment.buyers.admin.show(cbid)


@with_deployment
async def _revoke(deployment: Deployment, cbid: str, reason: str) -> Buyer:
    return await deployment.buyers.admin.revoke(cbid, reason)


@with_deployment
async def _reinstate(deployment: Deployment, cbid: str, reason: str) -> Buyer:
    return await deployment.buyers.admin.reinstate(cbid, reason)


@with_deployment
async def _accept_zip(
    deployment: Deployment, cbid: str, zip_: str, document: str, reason: str
) -> Buyer:
    operate = deployment.buyers.admin
    return await operate.accept_zip(cbid, zip_, document=document, reason=reason)


@with_deployment
async def _evidence(deployment: Deployment, cbid: str, reason: str) -> Sequence[OpenedEvidence]:
    return [one async for one in deployment.buyers.admin.evidence(cbid, reason)]


def _opened(one: OpenedEvidence) -> dict[str, Any]:
    return {
        "verification_id": one.verification_id,
        "account_id": one.account_id,
        "provider": one.provider,
        "status": one.status.value,
        "at": rfc3339(one.at),
        "erased_at": one.erased_at and rfc3339(one.erased_at),
        "content": one.content and one.content | {"answer": _readable(one.content["answer"])},
    }


def _readable(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    text = b64decode(answer["body"]).decode("utf-8", "replace")
    return answer | {"text": text, "further": [_readable(more) for more in answer["further"]]}


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
