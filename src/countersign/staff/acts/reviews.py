"""The review queue over the API: for the attempts of the caller's own account."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import Connection

from countersign.base.errors import InvalidRequest, NotFound, ReviewRefused, SecondPersonRequired
from countersign.base.http.schemas import (
    CHECKOUT_SESSION_ID,
    BuyerId,
    Listing,
    Page,
    Reference,
    Request,
    Timestamp,
    ZipCode,
    cursor,
    page_of,
    view,
)
from countersign.base.values import Reason
from countersign.core.access.idempotency import KeyedRequest
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.buyers import review
from countersign.core.buyers.four_eyes import ReviewProposal
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import REVIEWED, AcceptedZip, ReviewDecision, Waiting
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.schemas import UNDERAGE, ReviewedBuyer
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Command
from countersign.staff.acts.reach import command

_VERIFICATION_ID: Final = "ver_01km9x4v8gen3rr1p6q1s2t3v4"
_PROPOSED: Final = {**UNDERAGE, "proposed": True}


class ReviewsQuery(
    Listing[Annotated[str, cursor("the verification of that page's last buyer", _VERIFICATION_ID)]],
    frozen=True,
    kw_only=True,
):
    status: Annotated[
        Literal["pending", "requires_input", "failed"] | None, Meta(examples=["failed"])
    ] = None
    """Only buyers with this status."""
    verification_id: Annotated[Reference | None, Meta(examples=[_VERIFICATION_ID])] = None
    """Only this attempt."""


class BuyerReview(Struct, frozen=True, kw_only=True):
    """A buyer in the review queue, with the last attempt to verify it."""

    cbid: BuyerId
    status: Annotated[BuyerStatus, Meta(examples=[BuyerStatus.FAILED])]
    provider: Annotated[str, Meta(examples=["stripe"])]
    """The identity provider; `sandbox` for a played attempt."""
    verification_id: Annotated[str, Meta(examples=[_VERIFICATION_ID])]
    """The record of the attempt."""
    account_id: Annotated[str, Meta(examples=["acct_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    """The account whose attempt it was."""
    attempted_at: Timestamp
    reference: Annotated[str | None, Meta(examples=[CHECKOUT_SESSION_ID])]
    """The checkout session in which the attempt was made; null for any other attempt."""
    reasons: Annotated[tuple[Reason, ...] | UnsetType, Meta(examples=[["zip_mismatch"]])] = UNSET
    """The reasons against it; present only if there is a reason."""
    proposal: ReviewProposal | UnsetType = UNSET
    """Present only where two people decide, and one has: a second one has to decide the same, with
    the same ZIP code."""


class BuyerReviewRequest(Request, frozen=True, kw_only=True):
    """A decision on a buyer in the review queue."""

    decision: ReviewDecision
    reason: Reference
    """Why, such as the number of a case. Kept permanently: nothing personal."""
    zip: ZipCode | None = None
    """With `accept_zip`, required: the ZIP code to accept."""
    document: Reference | None = None
    """With `accept_zip`, required: the kind of document that you checked, such as a utility bill.
    Kept permanently: nothing personal."""


REVIEWS: Final = Acts("Buyers", Buyers, scope=Scope.BUYERS_REVIEW, audited=True)


@REVIEWS.act(
    "GET /v1/buyers/reviews",
    "List the buyers that wait for a review",
    commands=(
        Command(
            name="buyers queue",
            help="List the buyers whose last attempt did not verify them, the oldest attempt "
            "first.",
            anywhere=True,
            whole=True,
            shows=(
                *("attempted_at", "cbid", "account_id", "provider"),
                *("status", "reference", "reasons"),
            ),
        ),
    ),
)
def list_buyer_reviews(
    connection: Connection, who: Principal, query: ReviewsQuery
) -> Page[BuyerReview]:
    """Buyers whose last attempt did not verify them, oldest attempt first.

    Only attempts of this account, and not those that were dismissed. Staff who name no account see
    those of all accounts, and name it to decide.
    """
    found = review.queue(
        connection,
        who.reach,
        who.mode,
        statuses=REVIEWED if query.status is None else (BuyerStatus(query.status),),
        verification_id=query.verification_id,
        after=query.after or "",
        limit=query.limit + 1,
    )
    return page_of([_view(one) for one in found], query.limit, lambda one: one.verification_id)


@REVIEWS.act(
    "POST /v1/buyers/{cbid}/review",
    "Decide on a buyer in the review queue",
    reach=AccountReach,
    fresh=True,
    refusals=(NotFound, ReviewRefused, SecondPersonRequired),
    request_examples={
        "accept another ZIP code": {
            "decision": "accept_zip",
            "zip": "94110",
            "document": "a utility bill",
            "reason": "case 4712",
        },
        "dismiss": {"decision": "dismiss", "reason": "The buyer cancelled."},
    },
    response_examples={"accepted": {}, "dismissed": UNDERAGE, "proposed": _PROPOSED},
    commands=(
        command(
            name="buyers decide",
            help="Decide on a live buyer in the queue, for every account.\n\n"
            "`accept_zip` accepts another ZIP code, as `buyers accept-zip` does. `dismiss` takes "
            "the buyer out of the queue until the next attempt; the status stays as it is.",
            arguments=("decision",),
            asks="Decide on {cbid}: {decision}?",
            says="This was recorded in the audit log: countersign buyers audit {cbid}",
        ),
    ),
)
async def review_buyer(
    room: Buyers, who: Principal, cbid: str, wanted: BuyerReviewRequest, keep: KeyedRequest | None
) -> ReviewedBuyer:
    """Decide on a buyer in the review queue. The audit log names the person or key that decided.

    `accept_zip` accepts another ZIP code on sight of a document, if a provider approved the person
    for this account; all other rules are applied again. `dismiss` takes the buyer out of the queue
    until the next attempt; the status stays as it is.

    Where two people decide on the buyers of an account, the first decision is a proposal: the
    response has `proposed`, and nothing changes. Another person who decides the same makes it
    final; who decides otherwise makes another proposal. A key decides nothing there.
    """
    reason = _text(wanted.reason, "reason")
    if wanted.decision is ReviewDecision.ACCEPT_ZIP:
        accepted = AcceptedZip(_text(wanted.zip, "zip"), _text(wanted.document, "document"), reason)
        result = await review.accept(room, who, cbid, accepted, keep)
    elif wanted.zip is not None or wanted.document is not None:
        raise InvalidRequest("Only accept_zip takes a ZIP code and a document - at `$.zip`.")
    else:
        result = await review.dismiss(room, who, cbid, reason, keep)
    return msgspec.json.decode(result.body, type=ReviewedBuyer)


def _text(value: str | None, name: str) -> str:
    if value is None or not value.strip():
        raise InvalidRequest(f"A required field is missing or blank - at `$.{name}`.")
    return value.strip()


def _view(waiting: Waiting) -> BuyerReview:
    # Without the hash of the ZIP code: the second person must find that independently.
    proposal = UNSET if waiting.proposal is None else view(ReviewProposal, waiting.proposal)
    return view(BuyerReview, waiting, reasons=waiting.reasons or UNSET, proposal=proposal)


ROUTES: Final = REVIEWS.routes
