"""`countersign buyers`: looking at buyers and at the evidence, revoking, reinstating."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from countersign.bootstrap import Deployment
from countersign.cli.audit import audit
from countersign.cli.support import (
    command,
    confirm,
    field_lines,
    json_text,
    say,
    show,
    with_deployment,
)
from countersign.domain.buyer import Buyer, BuyerStatus
from countersign.domain.instant import rfc3339
from countersign.services.operate_buyers import OpenedEvidence


@click.group()
def buyers() -> None:
    """Buyers: their status, the evidence of their verifications, and revoking them."""


@buyers.command("show")
@click.argument("cbid")
@command
def show_(cbid: str, *, as_json: bool) -> None:
    """Show what is known of a buyer; nothing personal."""
    buyer, status = _find(cbid)
    _show(buyer, status, as_json=as_json)


@buyers.command("revoke")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def revoke(cbid: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Revoke a buyer at every vendor, with its documents, until it is reinstated."""
    confirm(f"Revoke {cbid} at every vendor?", yes=yes)
    buyer = _revoke(cbid, reason)
    say(f"{buyer.cbid} is revoked until `countersign buyers reinstate {buyer.cbid}`.")
    _show(buyer, buyer.status, as_json=as_json)


@buyers.command("reinstate")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why.")
@command
def reinstate(cbid: str, *, reason: str, as_json: bool) -> None:
    """Undo a revocation: the buyer is again what it was, or has to verify."""
    _reinstate(cbid, reason)
    buyer, status = _find(cbid)
    say(f"{buyer.cbid} is {status.value} again.")
    _show(buyer, status, as_json=as_json)


@buyers.command("accept-zip")
@click.argument("cbid")
@click.argument("zip_", metavar="ZIP")
@click.option("--document", required=True, help="What you looked at, such as a utility bill.")
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def accept_zip(
    cbid: str, zip_: str, *, document: str, reason: str, yes: bool, as_json: bool
) -> None:
    """Accept another ZIP code for a buyer whom a provider approved: who has moved house.

    All other rules are applied again, to what the provider said then. The record says that an
    operator accepted the ZIP code. It counts at accounts whose rules have `--zip-source operator`.
    """
    confirm(f"Accept {zip_} for {cbid} on your word?", yes=yes)
    buyer = _accept_zip(cbid, zip_, document, reason)
    say(f"That you accepted it was written down: countersign buyers audit {buyer.cbid}")
    _show(buyer, buyer.status, as_json=as_json)


@buyers.command("evidence")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why it is looked at, such as a case number.")
@command
def evidence(cbid: str, *, reason: str, as_json: bool) -> None:
    """Show the evidence of a buyer's verifications: names, dates of birth, addresses.

    That you looked, when and why is kept for good. The exact bytes of the provider's answer are
    in `content.answer.body`, in base64, and for reading in `content.answer.text`. Where `content`
    is null, the evidence was erased.
    """
    found = _evidence(cbid, reason)
    view = [_opened(one) for one in found]
    erased = sum(one.content is None for one in found)
    number = f"{len(found)} verification{'' if len(found) == 1 else 's'}"
    say(f"{number}, the evidence of {erased} erased." if erased else f"{number}.")
    say(f"That you looked was written down: countersign audit {cbid}")
    show(view, json_text(view, indent=2), as_json=as_json)


buyers.add_command(audit)


@with_deployment
async def _find(deployment: Deployment, cbid: str) -> tuple[Buyer, BuyerStatus]:
    return await deployment.operate_buyers.show(cbid)


@with_deployment
async def _revoke(deployment: Deployment, cbid: str, reason: str) -> Buyer:
    return await deployment.operate_buyers.revoke(cbid, reason)


@with_deployment
async def _reinstate(deployment: Deployment, cbid: str, reason: str) -> Buyer:
    return await deployment.operate_buyers.reinstate(cbid, reason)


@with_deployment
async def _accept_zip(
    deployment: Deployment, cbid: str, zip_: str, document: str, reason: str
) -> Buyer:
    operate = deployment.operate_buyers
    return await operate.accept_zip(cbid, zip_, document=document, reason=reason)


@with_deployment
async def _evidence(deployment: Deployment, cbid: str, reason: str) -> Sequence[OpenedEvidence]:
    return [one async for one in deployment.operate_buyers.evidence(cbid, reason)]


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
