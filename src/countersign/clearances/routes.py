"""Clearing orders, reading clearances back, and reporting what was done."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from countersign.acknowledgments.model import OPAQUE_LENGTH_MAX
from countersign.acknowledgments.routes import evidence_of
from countersign.bootstrap import Deployment
from countersign.clearances.fulfil import ClearanceSearch, ClearanceView, FulfilmentView
from countersign.clearances.fulfilment import Fulfilment, FulfilmentReceipt
from countersign.clearances.model import Clearance, Order
from countersign.errors import InvalidRequest
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.paging import read_limit
from countersign.http.reply import LIVE_WOULD_REFUSE, PERSONAL, Call, Header, Reply, encode
from countersign.identity.postal_code import is_zip
from countersign.ids import CLEARANCE, is_id
from countersign.instant import to_the_second
from countersign.mode import Mode

_JWK_SET: Final[tuple[Header, ...]] = (
    (b"content-type", b"application/jwk-set+json"),
    # Less than the overlap of a rotation, by far.
    (b"cache-control", b"public, max-age=300"),
    (b"access-control-allow-origin", b"*"),
)


class _Cleared(msgspec.Struct):
    cleared: bool


_read_cleared: Final = msgspec.json.Decoder(_Cleared).decode


async def clear(deployment: Deployment, call: Call, *, input_required: bool = False) -> Reply:
    """Decide whether an order may ship. The response contains every reason against it."""
    # `input_required` is how a conformance run provokes an order that is not cleared.
    body = parse_body(call.body, schemas.ClearanceRequest)
    address = body.shipping_address
    _check_zip(body.shipping_zip, "$.shipping_zip")
    if address is not None:
        _check_zip(address.postal_code, "$.shipping_address.postal_code")
    decided = await deployment.clearances.clear(
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


def is_granted(answer: bytes) -> bool:
    """Whether this answer of `clear` is a yes.

    It holds only while it is true: who asks again, with the same `Idempotency-Key` too, is told how
    it is now. As long as nothing has changed those are the same bytes.
    """
    return bool(_read_cleared(answer).cleared)


async def get_clearance(deployment: Deployment, call: Call) -> Reply:
    """One clearance of this account."""
    return Reply(
        encode(_view(await deployment.clearances.fulfil.one(call.principal, call.parameter)))
    )


async def list_clearances(deployment: Deployment, call: Call) -> Reply:
    """The account's clearances, newest first."""
    query = call.query
    after = query.get("after")
    if after is not None and not is_id(CLEARANCE, after):
        msg = "The query parameter after must be a next_cursor returned by this list."
        raise InvalidRequest(msg)
    for name in ("ack_id", "session_id", "cbid"):
        if len(query.get(name, "")) > OPAQUE_LENGTH_MAX:
            msg = f"The query parameter {name} can have at most {OPAQUE_LENGTH_MAX} characters."
            raise InvalidRequest(msg)
    found, cursor = await deployment.clearances.fulfil.many(
        call.principal,
        ClearanceSearch(
            ack_id=query.get("ack_id"),
            session_id=query.get("session_id"),
            cbid=query.get("cbid"),
            after=after,
            limit=read_limit(call),
        ),
    )
    return Reply(encode(schemas.Page(data=[_view(item) for item in found], next_cursor=cursor)))


async def fulfil(deployment: Deployment, call: Call) -> Reply:
    """Report the fulfilment of an order. The order is closed when every obligation is reported.

    Several reports add up. A report cannot be changed.
    """
    body = parse_body(call.body, schemas.FulfilmentRequest)
    values = msgspec.structs.asdict(body)
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = _utc(value, f"$.{name}")
    if all(value is None for value in values.values()):
        msg = f"At least one of these query parameters is required: {', '.join(values)}."
        raise InvalidRequest(msg)
    receipt = await deployment.clearances.fulfil.report(
        call.principal, call.parameter, Fulfilment(**values), call.remembering(_render_receipt)
    )
    return Reply(_render_receipt(receipt))


async def get_keys(deployment: Deployment, call: Call) -> Reply:
    """The public keys that tokens of clearances are signed with (RFC 7517); of both modes, or one.

    Raises:
        InvalidRequest: `mode` is neither `live` nor `test`.
    """
    try:
        modes = [Mode(call.query["mode"])] if "mode" in call.query else [Mode.LIVE, Mode.TEST]
    except ValueError:
        msg = "The query parameter mode must be `live` or `test`."
        raise InvalidRequest(msg) from None
    return Reply(encode(await deployment.clearances.keys.published(modes)), _JWK_SET)


def _check_zip(text: str, path: str) -> None:
    # The schema's pattern lets a final line break through.
    if not is_zip(text):
        msg = f"Expected five digits or ZIP+4 - at `{path}`."
        raise InvalidRequest(msg)


def _utc(instant: datetime, path: str) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        msg = f"This time does not exist in UTC - at `{path}`."
        raise InvalidRequest(msg) from None


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
