"""The component in the vendor's page, and the session of a client token for it.

No other operation takes such a token, and its operations take no API key. A browser may ask only
from the origin that the session was created for.
"""

from __future__ import annotations

from functools import partial
from importlib.resources import files
from typing import Final

from countersign.base.errors import (
    CheckoutSessionClosed,
    EmptyInitials,
    EvidenceDamaged,
    InitialsCountMismatch,
    InvalidClientToken,
    InvalidRequest,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
    OriginNotAllowed,
    Unauthorized,
    UnsupportedMediaType,
)
from countersign.base.generics import T
from countersign.base.http.body import BODY_BYTES_MAX, parse_body
from countersign.base.http.schemas import view
from countersign.base.values import Mode
from countersign.core.checkout import model, schemas, sessions, store
from countersign.core.checkout.model import Collected, Session, Status
from countersign.core.gate.route import (
    Call,
    Reply,
    Route,
    bearer,
    encode,
    etag_of,
    grouped,
    is_plain_json,
    tagged,
)
from countersign.core.notices.model import NoticeEdition
from countersign.hosted.pages import buyer
from countersign.hosted.pages.cookies import copy_address
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.pages.visits import count, locale_of, owners_of
from countersign.hosted.toolkit.screens import WORDS, browser, words_of
from countersign_evidence.process import Surface

_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
    (b"vary", b"origin"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"retry-after, x-request-id")

_COMPONENT: Final = (
    files("countersign.hosted.pages") / "component" / "countersign-notice.js"
).read_bytes()
_COMPONENT_TAG: Final = etag_of(_COMPONENT)
_COMPONENT_HEADERS: Final = (
    (b"content-type", b"text/javascript; charset=utf-8"),
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"public, max-age=3600"),
)


async def component(_: HostedPages, call: Call) -> Reply:
    """The file of the component, as web/ makes it."""
    return tagged(call, _COMPONENT, _COMPONENT_TAG, *_COMPONENT_HEADERS)


async def preflight(_: HostedPages, call: Call) -> Reply:
    """The response to a CORS preflight, which browsers send before a token (Fetch).

    Any origin may ask this: only the request itself has the token, and is judged by it.
    """
    origin = call.headers.get(b"origin", b"*")
    return Reply(b"", (*_PREFLIGHT, (b"access-control-allow-origin", origin)), 204)


async def get_current(room: HostedPages, call: Call) -> Reply:
    """The session of this client token, with the notice to show."""
    session = await _session(room, call)
    is_open = session.status_at(await store.clock_of(room, session)) is Status.OPEN
    if not is_open or session.step is not Collected.ACKNOWLEDGMENT:
        return await _reply(room, call, session)
    notice = await buyer.notice_of(room, session)
    locale = locale_of(session.asked, call)
    if call.method != "HEAD":
        session = await buyer.show(room, session, notice, Surface.COMPONENT, None, locale)
    return await _reply(room, call, session, notice)


async def claim_events(room: HostedPages, call: Call) -> Reply:
    """Keep what the browser says that the buyer did. The record marks it as claimed."""
    session = await _session(room, call)
    body = await _body(call, session, schemas.ClaimsRequest)
    events = [(one.line, one.event) for one in body.events]
    claimed = partial(model.claimed, events=events, viewport=body.viewport)
    await store.change(room, session, claimed)
    return Reply(encode(schemas.Nothing()))


async def acknowledge_current(room: HostedPages, call: Call) -> Reply:
    """Acknowledge with the initials on every line, and complete the session.

    Sent again with the same initials, it returns the same.
    """
    session = await _session(room, call)
    body = await _body(call, session, schemas.CurrentAcknowledgmentRequest)
    for name in ("agreement", "consent"):
        if not getattr(body, name):
            raise InvalidRequest(f"Expected true: without it nothing is recorded - at `$.{name}`.")
    try:
        ended = await _acknowledged(room, call, session, body)
    except CheckoutSessionClosed:
        # Sent again, perhaps while the same request was running: that one counted.
        ended = await sessions.session_of_token(room, bearer(call))
        if not await buyer.repeated(room, ended, body.initials_per_line):
            raise
    return await _reply(room, call, ended, copy_url=copy_address(room, ended))


async def _acknowledged(
    room: HostedPages, call: Call, session: Session, body: schemas.CurrentAcknowledgmentRequest
) -> Session:
    model.require_open(session, await store.clock_of(room, session), Collected.ACKNOWLEDGMENT)
    notice = await buyer.notice_of(room, session)
    if (body.notice_version, body.notice_digest) != (notice.content.version, notice.digest):
        raise NoticeVersionMismatch
    initials, origin = body.initials_per_line, browser(room, call)
    session = await buyer.initial(
        room, session, notice.digest, initials, origin.client, body.surface_digest
    )
    named = call.headers.get(b"origin")
    page_origin = None if named is None else named.decode("latin-1")
    return await buyer.accept(room, session, origin, page_origin)


async def decline_current(room: HostedPages, call: Call) -> Reply:
    """End the session because the buyer declines."""
    session = await _session(room, call)
    await _body(call, session, schemas.Cancellation)
    return await _reply(room, call, await store.change(room, session, model.declined))


async def _session(room: HostedPages, call: Call) -> Session:
    """The session of the token, asked for from an origin that may.

    Raises:
        InvalidClientToken: no token was sent, or it is none.
        OriginNotAllowed: the request comes from a page of another origin.
    """
    origin = call.headers.get(b"origin")
    if origin is not None:
        # Also on a refusal: the component has to be able to read it.
        allowed = (b"access-control-allow-origin", origin)
        call.also = (allowed, _EXPOSED, (b"vary", b"origin"))
    try:
        token = bearer(call)
    except Unauthorized:
        raise InvalidClientToken("No client token was sent.") from None
    session = await sessions.session_of_token(room, token)
    content = session.content
    if origin is not None and (content is None or origin.decode("latin-1") != content.origin):
        call.also = ()
        raise OriginNotAllowed("The checkout session was not created for this origin.")
    await count(call, session)
    return session


async def _body(call: Call, session: Session, schema: type[T]) -> T:
    """The body, which counts for this session while it is here."""
    assert call.read_body is not None  # noqa: S101 - the route takes no key
    body = await call.read_body(BODY_BYTES_MAX, owners_of(session))
    if not is_plain_json(call):
        raise UnsupportedMediaType
    return parse_body(body, schema)


async def _reply(
    room: HostedPages,
    call: Call,
    session: Session,
    notice: NoticeEdition | None = None,
    *,
    copy_url: str | None = None,
) -> Reply:
    content, now = session.content, await store.clock_of(room, session)
    status, locale = session.status_at(now), locale_of(content, call) if content else "en"
    is_open, vendor = status is Status.OPEN, (await buyer.brand(room, session)).name
    return Reply(
        encode(
            schemas.CurrentCheckoutSession(
                checkout_session_id=session.id,
                livemode=session.mode is Mode.LIVE,
                status=status,
                vendor=vendor,
                locale=locale,
                steps=list(content.collect) if content else [],
                step=session.step if is_open else None,
                reasons=list(content.reasons) if content else [],
                # Open pages still show it; an expired token shows nothing.
                ack_id=session.ack_id if now < session.expires_at else None,
                copy_url=copy_url,
                return_url=None if is_open or content is None else sessions.return_url(session),
                expires_at=session.expires_at.replace(microsecond=0),
                notice=None if notice is None else _shown(notice),
                words=dict(words_of(locale, vendor)),
                agreement=None if notice is None else notice.content.attestation_text,
                consent=None if notice is None else WORDS[locale]["consent"],
            )
        )
    )


def _shown(notice: NoticeEdition) -> schemas.ShownNotice:
    content = notice.content
    return view(
        schemas.ShownNotice,
        content,
        notice_id=content.id,
        digest=notice.digest,
        bullets=[schemas.NoticeLine(id=one.id, text=one.text) for one in content.bullets],
        text_gaps=list(content.text_gaps or ()),
    )


_route: Final = partial(Route, client_token=True)
_PATH: Final = "/v1/checkout_sessions/current"
_SHOWING: Final = (NoticeNotReviewed, NoticeNotInForce)

ROUTES: Final = grouped(
    "Checkout sessions",
    HostedPages,
    _route(
        address=f"GET {_PATH}",
        handler=get_current,
        operation="getCurrentCheckoutSession",
        summary="Get the session of a client token",
        response=schemas.CurrentCheckoutSession,
        refusals=_SHOWING,
    ),
    _route(
        address=f"POST {_PATH}/events",
        handler=claim_events,
        operation="claimCheckoutEvents",
        summary="Report what the buyer did, as the browser claims",
        request=schemas.ClaimsRequest,
        response=schemas.Nothing,
        refusals=(CheckoutSessionClosed,),
        request_examples={"a line was initialed": schemas.CLAIMS},
    ),
    _route(
        address=f"POST {_PATH}/acknowledge",
        handler=acknowledge_current,
        operation="acknowledgeCurrentCheckoutSession",
        summary="Acknowledge, and complete the session",
        request=schemas.CurrentAcknowledgmentRequest,
        response=schemas.CurrentCheckoutSession,
        refusals=(
            *_SHOWING,
            CheckoutSessionClosed,
            NoticeVersionMismatch,
            InitialsCountMismatch,
            EmptyInitials,
            EvidenceDamaged,
        ),
        response_examples={"completed": {"copy_url": schemas.COPY_URL}},
    ),
    _route(
        address=f"POST {_PATH}/decline",
        handler=decline_current,
        operation="declineCurrentCheckoutSession",
        summary="Decline, and end the session",
        request=schemas.Cancellation,
        response=schemas.CurrentCheckoutSession,
        refusals=(CheckoutSessionClosed,),
        request_examples={"nothing to say": {}},
        response_examples={"declined": {"status": "declined", "ack_id": None}},
    ),
    Route(address="GET /component/v1/countersign-notice.js", handler=component),
    *(
        Route(address=f"OPTIONS {_PATH}{path}", handler=preflight)
        for path in ("", "/events", "/acknowledge", "/decline")
    ),
)
