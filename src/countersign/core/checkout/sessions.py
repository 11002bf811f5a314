"""Checkout sessions as a vendor manages them: create, read, list, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from io import BytesIO
from typing import Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from msgspec import UNSET
from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.base.db.statements import run_deferred
from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidClientToken,
    InvalidRequest,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    OrderReferenceMismatch,
    OrderReferenceMissing,
    OriginNotRegistered,
    Refusal,
    VerificationNotConfigured,
)
from countersign.base.http import schemas as shared
from countersign.base.http.schemas import Page, page_of
from countersign.base.values import CHECKOUT_SESSION, Mode, from_ns, timed_id
from countersign.core.access.account import origin_of, origins_of, parse_origin
from countersign.core.access.clocks import AccountClock
from countersign.core.access.key import (
    CLIENT_TOKEN,
    ENTROPY_BYTES,
    Principal,
    Scope,
    compose_token,
    well_formed,
)
from countersign.core.access.reach import AccountReach, Reach, refuse_test_buyer
from countersign.core.acknowledgments.acknowledge import (
    CHECKOUT_FIELD,
    order_of_reference,
    reference_index,
)
from countersign.core.buyers.started import providers_for
from countersign.core.checkout import schemas, store
from countersign.core.checkout.model import (
    LIFETIME,
    Collected,
    Content,
    Session,
    Status,
    cancelled,
    decided,
)
from countersign.core.checkout.order import checked_order, destination_of
from countersign.core.checkout.room import Checkout
from countersign.core.checkout.schemas import (
    CheckoutSession,
    CheckoutSessionRequest,
    CheckoutSessionsQuery,
)
from countersign.core.clearances.clear import (
    Cleared,
    PreparedOrder,
    clear_together,
    notices_naming,
    prepare_order,
)
from countersign.core.clearances.facts_sql import refuse_unnamed
from countersign.core.clearances.schemas import ClearanceRequest
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Command
from countersign.core.notices.requirements import requirements_of
from countersign.core.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES
from countersign_evidence.record import SESSION_FIELD

_ID_ENTROPY: Final = 8
_ENTROPY: Final = _ID_ENTROPY + ENTROPY_BYTES + SHRED_KEY_BYTES + NONCE_BYTES
_OF_CONTENT: Final = (
    *("session_id", "order_reference", "notice_id", "identity_status", "receipt"),
    *("cleared", "exemption", "return_url", "origin"),
)
"""Members that an account reads unchanged from a session's content; null once that is erased."""
_ADDRESS: Final = "Expected an http or https address without user info - at `$.{}`."

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
    room: Checkout, who: Principal, wanted: CheckoutSessionRequest, write: Writing
) -> CheckoutSession:
    """Create a link for one buyer and one order. Its url and token are returned only once."""
    refuse_test_buyer(who.mode, wanted.cbid)
    clock = await room.access.test_clocks.of(who.account_id, who.mode)
    collect, notice_id = await _to_collect(room, who, wanted, clock)
    asserted = None if wanted.cart is None else wanted.cart.exemption
    if Collected.ACKNOWLEDGMENT in collect or asserted is not None:
        await refuse_unnamed(room.clearances, who, wanted.order_reference)
    if Collected.IDENTITY in collect:
        await _require_identity(room, who, wanted.shipping_zip)
    origin = await _check(room, who, wanted)
    if Collected.ACKNOWLEDGMENT in collect:
        if notice_id is None:
            raise InvalidRequest("A required field is missing - at `$.notice_id`.")
        await room.clearances.registry.in_force(notice_id, who.mode, clock)
    content = shared.view(
        Content,
        wanted,
        collect=collect,
        notice_id=notice_id,
        origin=origin,
        locale=wanted.locale or "en",
        by_browser=wanted.locale is None,
        order=checked_order(wanted.order),
        destination=destination_of(wanted.cart, wanted.shipping_zip),
        exemption=asserted,
    )
    if content.is_exempt and wanted.cart is not None and not wanted.classes:
        content = replace(content, product_classes=wanted.cart.product_classes)
    session, token, nonce = _new(room, who, content, wanted.expires_in_seconds, clock)
    shown = view(room, session, session.created_at, token)
    key = await room.vault.data_key(session.account_id, room.access.clock.time_ns())
    secret, named = room.access.secret, (content.session_id, content.order_reference)
    of_order = await order_of_reference(room.access, who, *named)
    of_session, of_link = (
        secret.blind_index(session.account_id, field, content.session_id)
        for field in (SESSION_FIELD, CHECKOUT_FIELD)
    )
    row = store.NewSession(
        session=session,
        session_index=of_link,
        order_key=of_order or of_session,
        cbid_index=store.cbid_index(room, session),
        reference_index=reference_index(secret, session.account_id, content.order_reference),
        content=store.seal(key, session, nonce),
        kept=None if write.remember is None else write.remember(shown),
    )
    await room.access.database.write_batched(store.write_new, row)
    return shown


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
    room: Checkout, who: Principal, query: CheckoutSessionsQuery
) -> Page[CheckoutSession]:
    """The checkout sessions of this account and mode, newest first."""
    found = await store.find_many(room, who, query)
    views = [view(room, one, await store.clock_of(room, one)) for one in found]
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
    session = await cleared(room, await store.find(room, reach, checkout_session_id))
    return view(room, session, await store.clock_of(room, session))


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
    room: Checkout, reach: Reach, checkout_session_id: str, _: schemas.Cancellation, write: Writing
) -> CheckoutSession:
    """Cancel an open checkout session: its link collects nothing any more."""
    session = await store.find(room, reach, checkout_session_id)
    now, keep = await store.clock_of(room, session), write.remember
    remember = None if keep is None else lambda ended: keep(view(room, ended, now))
    ended = await store.change(room, session, cancelled, remember=remember)
    return view(room, ended, now)


ROUTES: Final = CHECKOUT.routes


async def _require_identity(room: Checkout, who: Principal, shipping_zip: str | None) -> None:
    """See that a session of this account can verify its buyer.

    Raises:
        VerificationNotConfigured: there is no provider.
        InvalidRequest: without a ZIP code no provider's decision verifies anybody.
    """
    names = await providers_for(room.buyers, AccountReach(who.account_id, who.mode))
    if names and shipping_zip is None:
        raise InvalidRequest(
            "A required field is missing: the identity cannot be decided without it - at "
            "`$.shipping_zip`."
        )
    if not names and who.mode is Mode.LIVE:
        raise VerificationNotConfigured


def _new(
    room: Checkout, who: Principal, content: Content, seconds: int | None, clock: AccountClock
) -> tuple[Session, str, bytes]:
    """A session before it is written, its token, and the nonce of its content."""
    time_ns, drawn = room.access.clock.time_ns(), BytesIO(room.access.entropy(_ENTROPY))
    id_ = timed_id(CHECKOUT_SESSION, time_ns, drawn.read(_ID_ENTROPY))
    token = compose_token(f"{CLIENT_TOKEN}_{who.mode}", drawn.read(ENTROPY_BYTES))
    now = clock.at(from_ns(time_ns))
    session = Session(
        id=id_,
        account_id=who.account_id,
        mode=who.mode,
        revision=0,
        token_digest=room.access.secret.key_digest(token),
        shred_key=drawn.read(SHRED_KEY_BYTES),
        status=Status.OPEN,
        created_at=now,
        expires_at=now + (LIFETIME if seconds is None else timedelta(seconds=seconds)),
        ended_at=None,
        ack_id=None,
        clearance_id=None,
        content=content,
    )
    return session, token, drawn.read(NONCE_BYTES)


async def session_of_token(room: Checkout, token: bytes) -> Session:
    """The session that this client token is for, also after its end.

    Raises:
        InvalidClientToken: it is not valid.
    """
    text = token.decode("ascii", "replace")
    if text.startswith(CLIENT_TOKEN + "_") and well_formed(text):
        session = await store.find_by_token(room, room.access.secret.key_digest(text))
        if session is not None:
            return session
    raise InvalidClientToken


async def order_of(room: Checkout, session: Session) -> PreparedOrder | None:
    """The order of a session, to be decided in a transaction; None: facts are missing."""
    order = clearance_request(session) if session.may_clear else None
    if order is None:
        return None
    with suppress(Refusal):  # whatever is wrong with the order, the session is completed
        return await prepare_order(room.clearances, principal_of(session), order)
    return None


def clearance_request(session: Session) -> ClearanceRequest | None:
    """The order of a session, to be decided; None: its buyer or its ZIP code is not known."""
    content, cbid = session.content, session.cbid
    if content is None or cbid is None or content.shipping_zip is None:
        return None
    ack_id = None if content.is_exempt else session.ack_id or ""
    return shared.view(ClearanceRequest, content, ack_id=ack_id, cbid=cbid)


def with_decisions(
    connection: Connection, orders: Sequence[tuple[PreparedOrder, Session]]
) -> list[Session]:
    """Decide orders in the transaction of their sessions' changes; the sessions as they are then.

    No decision is made if an order is refused or the notices must be read again.
    """
    done = clear_together(connection, [order for order, _ in orders])
    run_deferred(connection)
    return [
        decided(session, one.decision) if isinstance(one, Cleared) else session
        for one, (_, session) in zip(done, orders, strict=True)
    ]


async def cleared(room: Checkout, session: Session) -> Session:
    """Decide an order that was not decided when the session ended; else no-op.

    It is decided at each view: a buyer for whom too many ZIP codes were tried has new tries
    tomorrow.
    """
    order = await order_of(room, session) if session.may_clear else None
    if order is None:
        return session
    # Notices read as long ago as this session might refuse the decision again.
    fresh = order._replace(notices=await room.clearances.registry.notices(fresh=True), fresh=True)

    def decide(before: Session, _: datetime) -> Session:
        return replace(before) if before.may_clear else before

    return await store.change(room, session, decide, with_decisions, fresh)


def principal_of(session: Session) -> Principal:
    """The principal of a session: its own token, for the account that created it."""
    return Principal(
        key_id=session.id,
        account_id=session.account_id,
        mode=session.mode,
        scopes=frozenset(),
        credential="checkout_session",
    )


def view(
    room: Checkout, session: Session, now: datetime, token: str | None = None
) -> CheckoutSession:
    """A session as its account reads it; `token` only when it was just made."""
    content, status = session.content, session.status_at(now)
    check = content.check if content else None
    ended_at = session.expires_at if status is Status.EXPIRED else session.ended_at
    return shared.view(
        CheckoutSession,
        session,
        **{name: getattr(content, name, None) for name in _OF_CONTENT},
        checkout_session_id=session.id,
        status=status,
        collect=list(content.collect) if content else [],
        provider_identity_session_id=check.provider_session if check else None,
        reasons=list(content.reasons) if content else [],
        locale=None if content is None or content.by_browser else content.locale,
        url=None if token is None else f"{room.public_url}/c/{token}",
        client_token=token,
        ended_at=ended_at,
        unreadable=True if session.is_unreadable else UNSET,
    )


def return_url(session: Session) -> str:
    """The vendor's address with the session's identifier alone.

    An address stays in histories, logs and analytics, and is sent on in `Referer`: a vendor reads
    the collected data with its key.
    """
    parts = urlsplit(session.asked.return_url)
    query = "&".join(filter(None, (parts.query, urlencode({"checkout_session_id": session.id}))))
    return urlunsplit(parts._replace(query=query))


async def _to_collect(
    room: Checkout, who: Principal, wanted: CheckoutSessionRequest, clock: AccountClock
) -> tuple[tuple[Collected, ...], str | None]:
    """The steps to collect, identity first, and the notice: as requested, or by the cart."""
    if wanted.cart is None:
        kinds = wanted.collect or [Collected.ACKNOWLEDGMENT]
        if len(set(kinds)) != len(kinds):
            raise InvalidRequest("Expected each value once - at `$.collect`.")
        return tuple(sorted(kinds, reverse=True)), wanted.notice_id
    if wanted.collect is not None or wanted.notice_id is not None:
        raise InvalidRequest("Send either cart, or collect and notice_id - at `$.cart`.")
    registry = room.clearances.registry
    at, known = clock.at(registry.now()), await registry.notices(fresh=True)
    notice_ids, identity = requirements_of(known, wanted.cart, who.mode, at).to_collect()
    kinds = [Collected.IDENTITY] if identity and wanted.cbid is None else []
    kinds += [Collected.ACKNOWLEDGMENT] if notice_ids else []
    if not kinds:
        raise InvalidRequest("This cart needs nothing to be collected - at `$.cart`.")
    if len(notice_ids) > 1:
        raise InvalidRequest(
            "This cart needs several notices: create a session for each of them, with notice_id, "
            f"that is {', '.join(notice_ids)} - at `$.cart`."
        )
    return tuple(kinds), next(iter(notice_ids), None)


async def _check(room: Checkout, who: Principal, wanted: CheckoutSessionRequest) -> str | None:
    """Check addresses and the product's class; returns the origin as browsers write it."""
    origin = None if wanted.origin is None else parse_origin(wanted.origin)
    if wanted.origin is not None and origin is None:
        raise InvalidRequest("Expected scheme, host and port of a page - at `$.origin`.")
    await notices_naming(room.clearances, wanted)
    back = origin_of(wanted.return_url)
    if back is None or "#" in wanted.return_url:
        raise InvalidRequest(_ADDRESS.format("return_url"))
    if who.mode is Mode.LIVE:
        registered = await room.access.database.read(origins_of, who.account_id)
        for given in (back, origin):
            if given is not None and given not in registered:
                raise OriginNotRegistered(f"The origin {given} is not registered for this account.")
    return origin
