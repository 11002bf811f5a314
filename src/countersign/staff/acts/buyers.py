"""Buyers over the API: the evidence of their checks, and taking their status away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from msgspec import Meta, Struct
from sqlalchemy import Connection

from countersign.base.errors import NotFound, UnknownSubject
from countersign.base.http.schemas import BuyerId, Reference, Request, view
from countersign.base.values import BUYER, SANDBOX_BUYER, Mode, from_ns, is_id
from countersign.core.access.clocks import sandbox_state
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach, DeploymentReach, mode_of_buyer
from countersign.core.buyers import admin
from countersign.core.buyers.model import Buyer, BuyerStatus, status_at
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.schemas import BuyerEvidence
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Call, Command, reason


class BuyerReason(Request, frozen=True, kw_only=True):
    """Why."""

    reason: Annotated[Reference, Meta(examples=["case 7"])]
    """Such as the number of a case. Kept: nothing personal."""


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


async def _deployment_of(_: Buyers, cbid: str) -> tuple[str, Mode]:
    return "", mode_of_buyer(cbid)


BUYERS: Final = Acts("Staff: buyers", Buyers, scope=Scope.BUYERS_REVIEW, console=True, fresh=True)


@BUYERS.act(
    "GET /v1/buyers/{cbid}/evidence",
    "See the evidence of a buyer's identity checks",
    fresh=False,
    personal=True,
)
async def get_buyer_evidence(room: Buyers, call: Call, cbid: str) -> BuyerEvidence:
    """What is known of the person from a buyer's identity checks.

    The header `Countersign-Reason` is needed, also of a key. For one account: only its own checks.
    """
    with _not_found(call.principal.mode, cbid):
        return await admin.evidence(room, call.principal.reach, cbid, reason(call))


@BUYERS.act(
    "POST /v1/buyers/{cbid}/block",
    "Refuse the orders of a buyer",
    reach=AccountReach,
    response_examples={"blocked": {"blocked": True}},
)
def block_buyer(
    connection: Connection, room: Buyers, who: Principal, cbid: str, wanted: BuyerReason
) -> BuyerBlock:
    """Refuse the orders of a buyer: clearances of this account have `refused_by_vendor`.

    The buyer's status stays as it is, and no other account learns of it.
    """
    return _set_block(connection, room, who, cbid, wanted.reason, blocked=True)


@BUYERS.act(
    "POST /v1/buyers/{cbid}/unblock",
    "Clear the orders of a buyer again",
    reach=AccountReach,
    response_examples={"not blocked": {"blocked": False}},
)
def unblock_buyer(
    connection: Connection, room: Buyers, who: Principal, cbid: str, wanted: BuyerReason
) -> BuyerBlock:
    """Clear the orders of a buyer again, as far as nothing else speaks against them."""
    return _set_block(connection, room, who, cbid, wanted.reason, blocked=False)


@BUYERS.act(
    "POST /v1/buyers/{cbid}/revoke",
    "Revoke a buyer at every vendor",
    reach=DeploymentReach,
    commands=(
        Command(
            name="buyers revoke",
            help="Revoke a buyer and the buyer's documents at every vendor, until the buyer is "
            "reinstated.",
            owner=_deployment_of,
            asks="Revoke {cbid} at every vendor?",
            says="{cbid} is revoked until `countersign buyers reinstate {cbid}`.",
        ),
    ),
)
def revoke_buyer(
    connection: Connection, room: Buyers, who: Principal, cbid: str, wanted: BuyerReason
) -> BuyerStanding:
    """Revoke a buyer and the buyer's documents at every vendor, until the buyer is reinstated.

    For staff of the deployment alone, who name no account: no key may do this.
    """
    with _not_found(who.mode, cbid):
        return _standing(connection, room, admin.revoke(connection, room, cbid, wanted.reason))


@BUYERS.act(
    "POST /v1/buyers/{cbid}/reinstate",
    "Undo the revocation of a buyer",
    reach=DeploymentReach,
    commands=(
        Command(
            name="buyers reinstate",
            help="Undo a revocation. The buyer gets the earlier status back, or has to verify "
            "again.",
            owner=_deployment_of,
            says="{cbid} is reinstated. The status is {status}.",
        ),
    ),
)
def reinstate_buyer(
    connection: Connection, room: Buyers, who: Principal, cbid: str, wanted: BuyerReason
) -> BuyerStanding:
    """Undo a revocation. The buyer gets the earlier status back, or has to verify again.

    For staff of the deployment alone, who name no account: no key may do this.
    """
    with _not_found(who.mode, cbid):
        return _standing(connection, room, admin.reinstate(connection, room, cbid, wanted.reason))


def _set_block(
    connection: Connection, room: Buyers, who: Principal, cbid: str, why: str, *, blocked: bool
) -> BuyerBlock:
    with _not_found(who.mode, cbid):
        buyer = admin.set_block(connection, room, who.reach, cbid, why, blocked=blocked)
    return view(BuyerBlock, buyer, cbid=cbid, blocked=blocked)


def _standing(connection: Connection, room: Buyers, buyer: Buyer) -> BuyerStanding:
    now = from_ns(room.access.clock.time_ns())
    if buyer.mode is Mode.TEST:
        now = sandbox_state(connection, [None])[0].clock(buyer.account_id).at(now)
    return view(BuyerStanding, buyer, status=status_at(buyer, now))


@contextmanager
def _not_found(mode: Mode, cbid: str) -> Iterator[None]:
    """The same words for a buyer out of reach, of the other mode, erased, or never there."""
    missing = NotFound("The buyer was not found.")
    if not is_id(BUYER if mode is Mode.LIVE else SANDBOX_BUYER, cbid):
        raise missing
    try:
        yield
    except UnknownSubject:
        raise missing from None


ROUTES: Final = BUYERS.routes
