"""Buyers over the API: the evidence of their checks, and taking their status away."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from countersign.access.key import Scope
from countersign.buyers import admin
from countersign.buyers.model import Buyer, BuyerStatus
from countersign.buyers.room import Buyers
from countersign.console.reach import require_deployment, staff_route, within
from countersign.errors import NotFound, UnknownSubject
from countersign.http.body import parse_body
from countersign.http.examples import BuyerId
from countersign.http.headers import reason
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import Reference, Request, Timestamp, view


class BuyerReason(Request, frozen=True, kw_only=True):
    """Why."""

    reason: Annotated[
        Reference,
        Meta(
            description="Such as the number of a case. Kept: nothing personal.", examples=["case 7"]
        ),
    ]


class BuyerStanding(Struct, frozen=True, kw_only=True):
    """A buyer, as it stands now."""

    cbid: BuyerId
    livemode: bool
    status: Annotated[BuyerStatus, Meta(examples=[BuyerStatus.REVOKED])]


class CheckEvidence(Struct, frozen=True, kw_only=True):
    """The evidence of one identity check."""

    verification_id: Annotated[str, Meta(examples=["ver_01km9x4v8gen3rr1p6q1s2t3v4"])]
    account_id: Annotated[str, Meta(examples=["acct_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    provider: Annotated[str, Meta(examples=["stripe"])]
    status: Annotated[BuyerStatus, Meta(examples=[BuyerStatus.FAILED])]
    at: Timestamp
    erased_at: Timestamp | None
    content: Annotated[
        dict[str, Any] | None,
        Meta(
            description="All that is known of the person; `answer.text` is the provider's "
            "response. null: it was erased.",
        ),
    ]


class BuyerEvidence(Struct, frozen=True, kw_only=True):
    """The identity checks of a buyer, oldest first, with names, dates of birth and addresses."""

    cbid: BuyerId
    checks: list[CheckEvidence]


async def get_evidence(room: Buyers, call: Call) -> Reply:
    """What is known of the person from a buyer's identity checks.

    `Countersign-Reason` is needed, also of a key. For one account: only its own checks.
    """
    buyer = await _named(room, call)
    found = await admin.evidence(room, buyer.cbid, reason(call))
    checks = [
        view(CheckEvidence, one, content=admin.readable(content))
        for one, content in found
        if call.principal.account_id in {"", one.account_id}
    ]
    return Reply(encode(BuyerEvidence(cbid=buyer.cbid, checks=checks)))


async def revoke(room: Buyers, call: Call) -> Reply:
    """Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated."""
    return await _change(room, call, admin.revoke)


async def reinstate(room: Buyers, call: Call) -> Reply:
    """Undo a revocation. The buyer gets the earlier status back, or has to verify again."""
    return await _change(room, call, admin.reinstate)


async def _change(room: Buyers, call: Call, act: Any) -> Reply:  # noqa: ANN401 - of `admin`
    require_deployment(call.principal, Scope.BUYERS_REVIEW)
    body, buyer = parse_body(call.body, BuyerReason), await _named(room, call)

    return await call.kept(
        partial(view, BuyerStanding),
        lambda entry: act(room, buyer.cbid, body.reason, entry=entry),
    )


async def _named(room: Buyers, call: Call) -> Buyer:
    try:
        buyer, _ = await admin.show(room, call.parameter)
    except UnknownSubject as error:
        raise NotFound(error.message) from None
    if buyer.mode is not call.principal.mode or not (
        within(call.principal, buyer.account_id)
        or await admin.has_check(room, buyer.cbid, call.principal.account_id)
    ):
        raise NotFound("The buyer was not found.")
    return buyer


ROUTES: Final = grouped(
    "Staff: buyers",
    Buyers,
    staff_route(
        address="GET /v1/buyers/{cbid}/evidence",
        handler=get_evidence,
        operation="getBuyerEvidence",
        summary="See the evidence of a buyer's identity checks",
        scope=Scope.BUYERS_REVIEW,
        personal=True,
        response=BuyerEvidence,
    ),
    staff_route(
        address="POST /v1/buyers/{cbid}/revoke",
        handler=revoke,
        operation="revokeBuyer",
        summary="Revoke a buyer at every vendor",
        scope=Scope.BUYERS_REVIEW,
        fresh=True,
        request=BuyerReason,
        response=BuyerStanding,
    ),
    staff_route(
        address="POST /v1/buyers/{cbid}/reinstate",
        handler=reinstate,
        operation="reinstateBuyer",
        summary="Undo the revocation of a buyer",
        scope=Scope.BUYERS_REVIEW,
        request=BuyerReason,
        response=BuyerStanding,
    ),
)
