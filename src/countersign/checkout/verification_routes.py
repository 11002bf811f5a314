"""Verification sessions for vendors who want the identity alone: create, read, cancel."""

from __future__ import annotations

from typing import Final

from countersign.access.key import Scope
from countersign.checkout import schemas, sessions, store, verification
from countersign.checkout import verification_schemas as examples
from countersign.checkout.model import Session
from countersign.checkout.room import Checkout
from countersign.errors import (
    CheckoutSessionClosed,
    NotFound,
    OriginNotRegistered,
    ProviderUnavailable,
    VerificationMisconfigured,
    VerificationNotConfigured,
)
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped


async def create(room: Checkout, call: Call) -> Reply:
    """Start an identity check, and create its link. Only this response has the url.

    A request that is repeated with its `Idempotency-Key` gets the same response, with the url.
    """
    body = parse_body(call.body, examples.VerificationSessionRequest)
    made = await verification.create_verification(room, call.principal, body, call.entry)
    return Reply(made.body)


async def get(room: Checkout, call: Call) -> Reply:
    """One verification session. Decide by `status`, never by where the buyer's browser returns."""
    session = await verification.find_verification(room, call.principal, call.parameter)
    now = await store.clock_of(room, session)
    return Reply(encode(verification.view(room, session, now)))


async def cancel(room: Checkout, call: Call) -> Reply:
    """Cancel a verification session: its link stops working."""
    parse_body(call.body, schemas.Cancellation)
    session = await verification.find_verification(room, call.principal, call.parameter)
    now = await store.clock_of(room, session)

    def render(ended: Session) -> bytes:
        return encode(verification.view(room, ended, now))

    ended = await sessions.cancel_session(room, session, call.remembering(render))
    return Reply(render(ended))


_PATH: Final = "/v1/buyers/verification_sessions"

ROUTES: Final = grouped(
    "Buyers",
    Checkout,
    Route(
        address=f"POST {_PATH}",
        handler=create,
        operation="createVerificationSession",
        summary="Create a link by which one buyer is verified",
        scope=Scope.BUYERS_VERIFY,
        request=examples.VerificationSessionRequest,
        response=examples.VerificationSession,
        refusals=(
            OriginNotRegistered,
            VerificationNotConfigured,
            VerificationMisconfigured,
            ProviderUnavailable,
        ),
        request_examples={
            "shortest": examples.CREATE_VERIFICATION,
            "a known buyer": examples.VERIFY_AGAIN,
        },
        response_examples={"created": examples.CREATED},
        links={"getVerificationSession": {"verification_session_id": "/verification_session_id"}},
    ),
    Route(
        address=f"GET {_PATH}/{{verification_session_id}}",
        handler=get,
        operation="getVerificationSession",
        summary="Get one verification session",
        scope=Scope.BUYERS_READ,
        response=examples.VerificationSession,
        refusals=(NotFound,),
        response_examples={"completed": examples.COMPLETED, "try again": examples.TRY_AGAIN},
    ),
    Route(
        address=f"POST {_PATH}/{{verification_session_id}}/cancel",
        handler=cancel,
        operation="cancelVerificationSession",
        summary="Cancel a verification session",
        scope=Scope.BUYERS_VERIFY,
        request=schemas.Cancellation,
        response=examples.VerificationSession,
        refusals=(NotFound, CheckoutSessionClosed),
        request_examples={"nothing to say": {}},
        response_examples={"cancelled": examples.CANCELLED},
    ),
)
