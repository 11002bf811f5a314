"""Clearing orders, reading clearances back, and reporting what was done."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from countersign.access.key import Scope
from countersign.acknowledgments.routes import evidence_of
from countersign.clearances import schemas
from countersign.clearances.fulfil import ClearanceSearch, ClearanceView, FulfilmentView
from countersign.clearances.fulfilment import Fulfilment, FulfilmentReceipt
from countersign.clearances.model import Clearance, Order
from countersign.clearances.room import ClearancesRoom
from countersign.errors import ClearanceClosed, ClearanceNotGranted, InvalidRequest, NotFound
from countersign.http.body import in_utc, parse_body
from countersign.http.examples import ACK_ID, CBID, CLEARANCE_ID, SESSION
from countersign.http.paging import LIMIT_DEFAULT, Limit, Page, cursor
from countersign.http.reply import LIVE_WOULD_REFUSE, PERSONAL, Call, Header, Reply, encode
from countersign.http.route import Route, grouped
from countersign.http.schemas import Opaque, Request
from countersign.ids import CLEARANCE
from countersign.instant import to_the_second
from countersign.mode import Mode

_JWK_SET: Final[tuple[Header, ...]] = (
    (b"content-type", b"application/jwk-set+json"),
    # Less than the overlap of a rotation, by far.
    (b"cache-control", b"public, max-age=300"),
    (b"access-control-allow-origin", b"*"),
)


class ClearancesQuery(Request, frozen=True, kw_only=True):
    """Which clearances to list."""

    ack_id: Annotated[
        Opaque | None,
        Meta(
            description="Only clearances requested with this acknowledgment.",
            examples=[ACK_ID],
        ),
    ] = None
    session_id: Annotated[
        Opaque | None,
        Meta(description="Only items with this checkout session.", examples=[SESSION]),
    ] = None
    cbid: Annotated[
        Opaque | None, Meta(description="Only items with this buyer identifier.", examples=[CBID])
    ] = None
    limit: Limit = LIMIT_DEFAULT
    after: (
        Annotated[str, cursor("the id of that page's last clearance", CLEARANCE_ID, CLEARANCE)]
        | None
    ) = None


class KeysQuery(Request, frozen=True, kw_only=True):
    """The public keys of which mode; None: of both."""

    mode: Mode | None = None


class _Cleared(msgspec.Struct):
    cleared: bool


_read_cleared: Final = msgspec.json.Decoder(_Cleared).decode


async def clear(room: ClearancesRoom, call: Call, *, input_required: bool = False) -> Reply:
    """Decide whether an order may ship. The response contains every reason against it."""
    # `input_required` decides as if the buyer's status were `requires_input`, to rehearse that.
    body = parse_body(call.body, schemas.ClearanceRequest)
    address = body.shipping_address
    decided = await room.clear(
        call.principal,
        Order(
            ack_id=body.ack_id,
            cbid=body.cbid,
            session_id=body.session_id,
            shipping_zip=body.shipping_zip,
            product_class=body.product_class,
            shipping_address=None if address is None else _given(address),
        ),
        call.remembering(_render),
        input_required=input_required,
    )
    if not decided.live_would_refuse:
        return Reply(_render(decided))
    reasons = ", ".join(decided.live_would_refuse).encode()
    return Reply(_render(decided), (*PERSONAL, (LIVE_WOULD_REFUSE, reasons)))


def is_granted(response: bytes) -> bool:
    """Whether this response of `clear` grants a clearance.

    It holds only as long as nothing changes: a repeated request, even with the same
    `Idempotency-Key`, is decided again. The response has the same bytes if nothing has changed.
    """
    return bool(_read_cleared(response).cleared)


async def get_clearance(room: ClearancesRoom, call: Call) -> Reply:
    """One clearance of this account."""
    return Reply(encode(_view(await room.fulfil.one(call.principal, call.parameter))))


async def list_clearances(room: ClearancesRoom, call: Call) -> Reply:
    """The account's clearances, newest first."""
    query: ClearancesQuery = call.query
    found, next_cursor = await room.fulfil.many(
        call.principal, ClearanceSearch(**msgspec.structs.asdict(query))
    )
    return Reply(encode(Page(data=[_view(item) for item in found], next_cursor=next_cursor)))


async def fulfil(room: ClearancesRoom, call: Call) -> Reply:
    """Report the fulfilment of an order. The order is closed when every obligation is reported.

    Several reports add up. A report cannot be changed.
    """
    body = parse_body(call.body, schemas.FulfilmentRequest)
    values = msgspec.structs.asdict(body)
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = in_utc(value, f"$.{name}")
    if all(value is None for value in values.values()):
        msg = f"At least one of these fields is required: {', '.join(values)}."
        raise InvalidRequest(msg)
    receipt = await room.fulfil.report(
        call.principal, call.parameter, Fulfilment(**values), call.remembering(_render_receipt)
    )
    return Reply(_render_receipt(receipt))


async def get_keys(room: ClearancesRoom, call: Call) -> Reply:
    """The public keys of both modes, or one, that clearance tokens are signed with (RFC 7517)."""
    query: KeysQuery = call.query
    modes = [Mode.LIVE, Mode.TEST] if query.mode is None else [query.mode]
    return Reply(encode(await room.keys.published(modes)), _JWK_SET)


def _given(address: schemas.ShippingAddress) -> Mapping[str, str]:
    given = msgspec.structs.asdict(address)
    return {name: value for name, value in sorted(given.items()) if value is not None}


def _render(decided: Clearance) -> bytes:
    return encode(
        schemas.ClearanceDecision(
            clearance_id=decided.clearance_id,
            cleared=decided.cleared,
            reasons=list(decided.reasons),
            obligations=_tables(decided.obligations),
            expires_at=decided.expires_at,
            token=decided.token,
        )
    )


def _render_receipt(receipt: FulfilmentReceipt) -> bytes:
    return encode(
        schemas.FulfilmentReceipt(
            fulfilment_id=receipt.fulfilment_id,
            clearance_id=receipt.clearance_id,
            closed_at=to_the_second(receipt.closed_at),
        )
    )


def _view(view: ClearanceView) -> schemas.Clearance:
    order = view.order
    address = order.shipping_address if order else None
    return schemas.Clearance(
        clearance_id=view.clearance_id,
        livemode=view.mode is Mode.LIVE,
        ack_id=view.ack_id,
        cbid=order.cbid if order else None,
        session_id=order.session_id if order else None,
        shipping_zip=order.shipping_zip if order else None,
        shipping_address=None if address is None else dict(address),
        product_class=order.product_class if order else None,
        cleared=view.cleared,
        reasons=list(view.reasons),
        obligations=_tables(view.obligations),
        created_at=view.at.replace(microsecond=0),
        expires_at=view.expires_at,
        test_clock=to_the_second(view.test_clock) or msgspec.UNSET,
        token=view.token,
        fulfilments=[_report(report) for report in view.fulfilments],
        closed_at=to_the_second(view.closed_at),
        evidence=evidence_of(view.sealed),
        erased_at=to_the_second(view.erased_at),
    )


def _report(view: FulfilmentView) -> schemas.Fulfilment:
    reported = view.reported
    return schemas.Fulfilment(
        fulfilment_id=view.fulfilment_id,
        clearance_id=view.clearance_id,
        reported_at=view.at.replace(microsecond=0),
        carrier=reported.carrier,
        tracking_number=reported.tracking_number,
        shipped_at=reported.shipped_at,
        delivered_at=reported.delivered_at,
        adult_signature_obtained=reported.adult_signature_obtained,
    )


def _tables(obligations: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - tables of any JSON
    return [dict(table) for table in obligations]


ROUTES: Final = grouped(
    "Clearances",
    ClearancesRoom,
    Route(
        address="POST /v1/clearances",
        handler=clear,
        operation="clearOrder",
        decide_again=is_granted,
        summary="Decide whether an order may ship",
        scope=Scope.CLEARANCES_CREATE,
        request=schemas.ClearanceRequest,
        response=schemas.ClearanceDecision,
        request_examples={"an order": schemas.CLEAR, "shortest": schemas.CLEAR_MIN},
        response_examples={"cleared": schemas.CLEARED, "not cleared": schemas.NOT_CLEARED},
        optional_response_headers={
            "Countersign-Live-Would-Refuse": "Test keys only: reasons that a live key would get "
            "for this order. Absent in a replayed response."
        },
        links={"getClearance": {"clearance_id": "/clearance_id"}},
    ),
    Route(
        address="GET /v1/clearances",
        handler=list_clearances,
        operation="listClearances",
        summary="Find clearances, newest first",
        scope=Scope.CLEARANCES_READ,
        query=ClearancesQuery,
        response=Page[schemas.Clearance],
        response_examples={"last page": schemas.CLEARANCES},
    ),
    Route(
        address="GET /v1/clearances/{clearance_id}",
        handler=get_clearance,
        operation="getClearance",
        summary="Get one clearance, with the reports of its fulfilment",
        scope=Scope.CLEARANCES_READ,
        response=schemas.Clearance,
        refusals=(NotFound,),
        response_examples={"closed": schemas.CLEARANCE},
    ),
    Route(
        address="POST /v1/clearances/{clearance_id}/fulfilment",
        handler=fulfil,
        operation="fulfilOrder",
        summary="Report the fulfilment of an order, and close it",
        scope=Scope.CLEARANCES_CREATE,
        request=schemas.FulfilmentRequest,
        response=schemas.FulfilmentReceipt,
        refusals=(NotFound, ClearanceNotGranted, ClearanceClosed),
        request_examples={"shipped": schemas.FULFIL},
        response_examples={"closed": schemas.FULFILLED},
    ),
    Route(address="GET /.well-known/jwks.json", handler=get_keys, query=KeysQuery),
)
