"""Checkout sessions for vendors: create, read, list, cancel."""

from __future__ import annotations

from typing import Final

from countersign.base.errors import (
    CheckoutSessionClosed,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    OrderReferenceMismatch,
    OrderReferenceMissing,
    OriginNotRegistered,
    VerificationNotConfigured,
)
from countersign.base.http.schemas import Page, page_of
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import Reach, refuse_test_buyer
from countersign.core.checkout import schemas, sessions, store
from countersign.core.checkout.model import cancelled
from countersign.core.checkout.room import Checkout
from countersign.core.checkout.schemas import CheckoutSession
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Command

CHECKOUT: Final = Acts("Checkout sessions", Checkout, scope=Scope.CHECKOUT_SESSIONS_CREATE)


@CHECKOUT.act(
    "POST /v1/checkout_sessions",
    "Create a link for one buyer and one order",
    refusals=(
        NoticeNotFound,
        NoticeNotReviewed,
        NoticeNotInForce,
        OrderReferenceMismatch,
        OrderReferenceMissing,
        OriginNotRegistered,
        VerificationNotConfigured,
    ),
    request_examples={
        "shortest": schemas.CREATE,
        "all fields": schemas.CREATE_ALL,
        "from a cart": schemas.CREATE_FROM_CART,
        "the identity alone": schemas.CREATE_IDENTITY,
        "a known buyer again": schemas.VERIFY_AGAIN,
    },
    response_examples={"created": schemas.CREATED},
    links={"getCheckoutSession": {"checkout_session_id": "/checkout_session_id"}},
    commands=(
        Command(
            name="checkout-sessions create",
            names={"shipping_zip": "zip"},
            says="The checkout session {checkout_session_id} is open until {expires_at}.",
            shows=("url",),
        ),
    ),
)
async def create_checkout_session(
    room: Checkout, who: Principal, wanted: schemas.CheckoutSessionRequest, write: Writing
) -> CheckoutSession:
    """Create a link for one buyer and one order. Its url and token are returned only once."""
    refuse_test_buyer(who.mode, wanted.cbid)
    return (await sessions.create_session(room, who, wanted, write.remember)).shown


@CHECKOUT.act(
    "GET /v1/checkout_sessions",
    "List checkout sessions, newest first",
    commands=(
        Command(
            name="checkout-sessions list", shows=("checkout_session_id", "status", "session_id")
        ),
    ),
)
async def list_checkout_sessions(
    room: Checkout, who: Principal, query: schemas.CheckoutSessionsQuery
) -> Page[CheckoutSession]:
    """The checkout sessions of this account and mode, newest first."""
    found = await sessions.list_sessions(room, who, query)
    views = [sessions.view(room, one, await store.clock_of(room, one)) for one in found]
    return page_of(views, query.limit, lambda one: one.checkout_session_id)


@CHECKOUT.act(
    "GET /v1/checkout_sessions/{checkout_session_id}",
    "Get one checkout session",
    refusals=(NotFound,),
    response_examples={
        "completed": schemas.COMPLETED,
        "identity verified": schemas.VERIFIED,
        "try again": schemas.TRY_AGAIN,
    },
    commands=(Command(name="checkout-sessions show"),),
)
async def get_checkout_session(
    room: Checkout, reach: Reach, checkout_session_id: str
) -> CheckoutSession:
    """One checkout session. Decide by its `status`, never by where the buyer's browser returns."""
    # A completed session whose order was refused before is cleared now if possible.
    session = await sessions.cleared(room, await store.find(room, reach, checkout_session_id))
    return sessions.view(room, session, await store.clock_of(room, session))


@CHECKOUT.act(
    "POST /v1/checkout_sessions/{checkout_session_id}/cancel",
    "Cancel an open checkout session",
    refusals=(NotFound, CheckoutSessionClosed),
    request_examples={"nothing to say": {}},
    response_examples={"cancelled": {"status": "cancelled", "ended_at": "2026-11-20T21:31:00Z"}},
    commands=(
        Command(
            name="checkout-sessions cancel",
            asks="Cancel the checkout session {checkout_session_id}? Its link stops working.",
        ),
    ),
)
async def cancel_checkout_session(
    room: Checkout,
    reach: Reach,
    checkout_session_id: str,
    _: schemas.Cancellation,
    write: Writing,
) -> CheckoutSession:
    """Cancel an open checkout session: its link collects nothing any more."""
    session = await store.find(room, reach, checkout_session_id)
    now, keep = await store.clock_of(room, session), write.remember
    remember = None if keep is None else lambda ended: keep(sessions.view(room, ended, now))
    ended = await store.change(room, session, cancelled, remember=remember)
    return sessions.view(room, ended, now)


ROUTES: Final = CHECKOUT.routes
