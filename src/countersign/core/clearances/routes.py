"""Clearing orders, reading clearances back, and reporting what was done."""

from __future__ import annotations

from typing import Any, Final

from countersign.base.errors import OrderReferenceMismatch, OrderReferenceMissing
from countersign.base.http.body import parse_body
from countersign.base.http.schemas import Request
from countersign.base.values import Mode
from countersign.core.access.key import Scope
from countersign.core.access.reach import refuse_test_buyer
from countersign.core.clearances import schemas
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.facts_sql import refuse_unnamed
from countersign.core.clearances.fulfil import FULFILMENTS
from countersign.core.clearances.override import OVERRIDES
from countersign.core.clearances.read import CLEARANCES, decided_in
from countersign.core.clearances.room import Clearances
from countersign.core.gate.route import (
    LIVE_WOULD_REFUSE,
    PERSONAL,
    Call,
    Header,
    Reply,
    Route,
    encode,
    grouped,
)
from countersign.core.notices.rule import COMPARED_ZIP

_JWK_SET: Final[tuple[Header, ...]] = (
    (b"content-type", b"application/jwk-set+json"),
    # Less than the overlap of a rotation, by far.
    (b"cache-control", b"public, max-age=300"),
    (b"access-control-allow-origin", b"*"),
)


class KeysQuery(Request, frozen=True, kw_only=True):
    """The mode of the public keys."""

    mode: Mode = Mode.LIVE


async def clear(room: Clearances, call: Call, *, input_required: bool = False) -> Reply:
    """Decide whether an order may ship. The response contains every reason against it."""
    # `input_required` decides as if the buyer's status were `requires_input`, to rehearse that.
    order = parse_body(call.body, schemas.ClearanceRequest)
    refuse_test_buyer(call.principal.mode, order.cbid)
    await refuse_unnamed(room, call.principal, order.order_reference)
    item = await prepare_order(
        room, call.principal, order, call.entry, input_required=input_required
    )
    cleared = await clear_order(item)
    if not cleared.live_would_refuse:
        return Reply(cleared.body)
    reasons = ", ".join(cleared.live_would_refuse).encode()
    return Reply(cleared.body, (*PERSONAL, (LIVE_WOULD_REFUSE, reasons)))


async def get_keys(room: Clearances, call: Call) -> Reply:
    """The public keys that clearance tokens of a mode are signed with (RFC 7517).

    Live by default, so that no warehouse accepts a sandbox token because it omitted a parameter.
    """
    query: KeysQuery = call.query
    return Reply(encode(await room.keys.published([query.mode])), _JWK_SET)


_REFUSED: Final[dict[str, Any]] = {
    "cleared": False,
    "reasons": ["acknowledgment_too_old", "buyer_expired"],
    "obligations": [],
    "expires_at": None,
    "token": None,
}
_OVERRIDDEN: Final = {
    "obligations": [COMPARED_ZIP],
    "overridden": True,
    "override_id": "ovr_01kmcg2a7ke4d1p8z6h0s5n9rz",
}
_ROUTES: Final = grouped(
    "Clearances",
    Clearances,
    Route(
        address="POST /v1/clearances",
        handler=clear,
        operation="clearOrder",
        slot_decides=True,
        # A clearance holds only as long as nothing changes, and then the response has the same
        # bytes.
        decide_again=lambda response: (of := decided_in(response)).cleared or of.overridden,
        summary="Decide whether an order may ship",
        scope=Scope.CLEARANCES_CREATE,
        request=schemas.ClearanceRequest,
        response=schemas.ClearanceDecision,
        refusals=(OrderReferenceMismatch, OrderReferenceMissing),
        response_examples={
            "cleared": {},
            "not cleared": _REFUSED,
            "not cleared, manually overridden": _REFUSED | _OVERRIDDEN,
        },
        optional_response_headers={
            "Countersign-Live-Would-Refuse": "Test keys only: reasons that a live key would get "
            "for this order. Absent in a replayed response."
        },
        links={"getClearance": {"clearance_id": "/clearance_id"}},
    ),
    Route(address="GET /.well-known/jwks.json", handler=get_keys, query=KeysQuery),
)

ROUTES: Final = (*_ROUTES, *CLEARANCES.routes, *FULFILMENTS.routes, *OVERRIDES.routes)
