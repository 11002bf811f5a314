"""Buyers over the API: the evidence of their checks, and taking their status away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from countersign.access.key import Scope
from countersign.access.reach import AccountReach, DeploymentReach
from countersign.buyers import admin
from countersign.buyers.model import BuyerStatus
from countersign.buyers.room import Buyers
from countersign.console.reach import staff_route
from countersign.errors import NotFound, UnknownSubject
from countersign.http.body import parse_body
from countersign.http.examples import BuyerId
from countersign.http.headers import reason
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import Reference, Request, Timestamp, view
from countersign.ids import BUYER, SANDBOX_BUYER, is_id
from countersign.mode import Mode


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


class BuyerBlock(Struct, frozen=True, kw_only=True):
    """Whether an account refuses the orders of a buyer."""

    cbid: BuyerId
    livemode: bool
    blocked: bool


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

    The header `Countersign-Reason` is needed, also of a key. For one account: only its own checks.
    """
    with _not_found(call):
        found = await admin.evidence(room, call.principal.reach, call.parameter, reason(call))
    checks = [view(CheckEvidence, one, content=admin.readable(content)) for one, content in found]
    return Reply(encode(BuyerEvidence(cbid=call.parameter, checks=checks)))


async def revoke(room: Buyers, call: Call) -> Reply:
    """Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated.

    For staff of the deployment alone, who name no account: no key may do this.
    """
    return await _change(room, call, admin.revoke)


async def reinstate(room: Buyers, call: Call) -> Reply:
    """Undo a revocation. The buyer gets the earlier status back, or has to verify again.

    For staff of the deployment alone, who name no account: no key may do this.
    """
    return await _change(room, call, admin.reinstate)


async def block(room: Buyers, call: Call) -> Reply:
    """Refuse the orders of a buyer: clearances of this account have `refused_by_vendor`.

    The buyer's status stays as it is, and no other account learns of it.
    """
    return await _block(room, call, blocked=True)


async def unblock(room: Buyers, call: Call) -> Reply:
    """Clear the orders of a buyer again, as far as nothing else speaks against them."""
    return await _block(room, call, blocked=False)


async def _block(room: Buyers, call: Call, *, blocked: bool) -> Reply:
    reach, why = call.principal.reach, parse_body(call.body, BuyerReason).reason
    act = partial(admin.set_block, room, reach, call.parameter, why, blocked=blocked)
    with _not_found(call):
        return await call.kept(
            partial(view, BuyerBlock, cbid=call.parameter, blocked=blocked),
            lambda entry: act(entry=entry),
        )


async def _change(room: Buyers, call: Call, act: Any) -> Reply:  # noqa: ANN401 - of `admin`
    body = parse_body(call.body, BuyerReason)
    with _not_found(call):
        return await call.kept(
            partial(view, BuyerStanding),
            lambda entry: act(room, call.parameter, body.reason, entry=entry),
        )


@contextmanager
def _not_found(call: Call) -> Iterator[None]:
    """The same words for a buyer out of reach, of the other mode, erased, or never there."""
    missing = NotFound("The buyer was not found.")
    if not is_id(BUYER if call.principal.mode is Mode.LIVE else SANDBOX_BUYER, call.parameter):
        raise missing
    try:
        yield
    except UnknownSubject:
        raise missing from None


_change_route: Final = partial(
    staff_route, scope=Scope.BUYERS_REVIEW, fresh=True, request=BuyerReason
)
_by_vendor: Final = partial(_change_route, reach=AccountReach, response=BuyerBlock)
_for_all: Final = partial(_change_route, reach=DeploymentReach, response=BuyerStanding)

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
    _by_vendor(
        address="POST /v1/buyers/{cbid}/block",
        handler=block,
        operation="blockBuyer",
        summary="Refuse the orders of a buyer",
        response_examples={"blocked": {"blocked": True}},
    ),
    _by_vendor(
        address="POST /v1/buyers/{cbid}/unblock",
        handler=unblock,
        operation="unblockBuyer",
        summary="Clear the orders of a buyer again",
        response_examples={"not blocked": {"blocked": False}},
    ),
    _for_all(
        address="POST /v1/buyers/{cbid}/revoke",
        handler=revoke,
        operation="revokeBuyer",
        summary="Revoke a buyer at every vendor",
    ),
    _for_all(
        address="POST /v1/buyers/{cbid}/reinstate",
        handler=reinstate,
        operation="reinstateBuyer",
        summary="Undo the revocation of a buyer",
    ),
)
