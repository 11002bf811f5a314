"""Checkout sessions for vendors: create, read, list, cancel."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.access.key import Scope
from countersign.access.reach import refuse_test_buyer
from countersign.checkout import schemas, sessions, store
from countersign.checkout.model import Session
from countersign.checkout.room import Checkout
from countersign.errors import (
    CheckoutSessionClosed,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    OriginNotRegistered,
    VerificationNotConfigured,
)
from countersign.http.body import parse_body
from countersign.http.paging import Page, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Command, Route, grouped


async def create(room: Checkout, call: Call) -> Reply:
    """Create a link for one buyer and one order. Its url and token are returned only once."""
    body = parse_body(call.body, schemas.CheckoutSessionRequest)
    refuse_test_buyer(call.principal.mode, body.cbid)
    return Reply((await sessions.create_session(room, call.principal, body, call.entry)).body)


async def get(room: Checkout, call: Call) -> Reply:
    """One checkout session. Decide by its `status`, never by where the buyer's browser returns."""
    session = await sessions.get_session(room, call.principal, call.parameter)
    return Reply(await _body(room, session))


async def list_sessions(room: Checkout, call: Call) -> Reply:
    """The checkout sessions of this account and mode, newest first."""
    query: schemas.CheckoutSessionsQuery = call.query
    found = await sessions.list_sessions(
        room,
        call.principal,
        session_id=query.session_id,
        order_reference=query.order_reference,
        after=query.after,
        limit=query.limit,
    )
    now = [await store.clock_of(room, session) for session in found]
    views = [sessions.view(room, *pair) for pair in zip(found, now, strict=True)]
    return Reply(encode(page_of(views, query.limit, lambda one: one.checkout_session_id)))


async def cancel(room: Checkout, call: Call) -> Reply:
    """Cancel an open checkout session: its link collects nothing any more."""
    parse_body(call.body, schemas.Cancellation)
    who = call.principal
    session = await store.find(room, who.reach, call.parameter)
    now = await store.clock_of(room, session)

    return await call.kept(
        lambda ended: sessions.view(room, ended, now),
        partial(sessions.cancel_session, room, session),
    )


async def _body(room: Checkout, session: Session) -> bytes:
    return encode(sessions.view(room, session, await store.clock_of(room, session)))


_route: Final = partial(Route, scope=Scope.CHECKOUT_SESSIONS_CREATE)

ROUTES: Final = grouped(
    "Checkout sessions",
    Checkout,
    _route(
        address="POST /v1/checkout_sessions",
        handler=create,
        operation="createCheckoutSession",
        summary="Create a link for one buyer and one order",
        request=schemas.CheckoutSessionRequest,
        response=schemas.CheckoutSession,
        refusals=(
            NoticeNotFound,
            NoticeNotReviewed,
            NoticeNotInForce,
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
    ),
    _route(
        address="GET /v1/checkout_sessions",
        handler=list_sessions,
        operation="listCheckoutSessions",
        summary="List checkout sessions, newest first",
        query=schemas.CheckoutSessionsQuery,
        response=Page[schemas.CheckoutSession],
        commands=(
            Command(
                name="checkout-sessions list",
                shows=("checkout_session_id", "status", "session_id"),
            ),
        ),
    ),
    _route(
        address="GET /v1/checkout_sessions/{checkout_session_id}",
        handler=get,
        operation="getCheckoutSession",
        summary="Get one checkout session",
        response=schemas.CheckoutSession,
        refusals=(NotFound,),
        response_examples={
            "completed": schemas.COMPLETED,
            "identity verified": schemas.VERIFIED,
            "try again": schemas.TRY_AGAIN,
        },
        commands=(Command(name="checkout-sessions show"),),
    ),
    _route(
        address="POST /v1/checkout_sessions/{checkout_session_id}/cancel",
        handler=cancel,
        operation="cancelCheckoutSession",
        summary="Cancel an open checkout session",
        request=schemas.Cancellation,
        response=schemas.CheckoutSession,
        refusals=(NotFound, CheckoutSessionClosed),
        request_examples={"nothing to say": {}},
        response_examples={
            "cancelled": {"status": "cancelled", "ended_at": "2026-11-20T21:31:00Z"}
        },
        commands=(
            Command(
                name="checkout-sessions cancel",
                asks="Cancel the checkout session {checkout_session_id}? Its link stops working.",
            ),
        ),
    ),
)
