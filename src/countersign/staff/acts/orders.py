"""Orders: listed, read, or found by anything that names one; each with its parts and timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from sqlalchemy import Connection, Row

from countersign.base.errors import NotFound
from countersign.base.http.schemas import (
    ACK_ID,
    CBID,
    CHECKOUT_SESSION_ID,
    CLEARANCE_ID,
    ORDER,
    GivenNotice,
    GivenSession,
    Listing,
    NamesOrder,
    OrderReference,
    Page,
    Reference,
    Request,
    Timestamp,
    in_full,
    view,
)
from countersign.base.values import from_ms, to_ms
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.checkout.model import Status
from countersign.core.gate.act import Acts
from countersign.core.log.record import RecordType
from countersign.core.notices.rule import ADULT_SIGNATURE
from countersign.core.orders.model import WAITING, OrderState
from countersign.core.orders.sql import Wanted, find_page
from countersign.core.privacy.held import find_held
from countersign.core.privacy.room import Privacy
from countersign.staff.acts import order_sql as sql
from countersign.staff.acts.accounts import AccountId
from countersign_evidence.record import REFERENCE_FIELD

_SENT: Final = {OrderState.SHIPPED, OrderState.DELIVERED}
_DECIDED: Final = {OrderState.CLEARED, OrderState.REFUSED}
_NOT_CLEARED: Final = {OrderState.REFUSED, OrderState.OVERRIDDEN}
_CURSOR: Final = Meta(
    description="The `next_cursor` of the previous page.",
    examples=["5f4dcc3b5aa765d61d8327deb882cf99.1764374400000"],
    pattern=in_full(r"^([0-9a-f]{32}|[0-9a-f]{52})\.[0-9]{1,15}$"),
)
HOLD_ID: Final = "hold_01km9wtz3tfs8v8j2c7n5k9m0d"
ORDER_ID: Final = "ord_4g2m8x0qk7v1c9z3r5t6w8y0ab"
_YesNo = Literal["true", "false"]
_Part = Literal[
    "checkout_session", "acknowledgment", "verification", "clearance", "fulfilment", "override"
]


class OrdersQuery(Listing[Annotated[str, _CURSOR]], NamesOrder, frozen=True, kw_only=True):
    """Which orders to list: by what names them, or the newest."""

    session_id: GivenSession | None = None
    """Only the order of this checkout session of yours."""
    order_reference: OrderReference | None = None
    """Only orders with this order reference."""
    state: Annotated[OrderState | None, Meta(examples=["waiting_for_decision"])] = None
    """Only orders in this state."""
    waiting: Annotated[_YesNo | None, Meta(examples=["true"])] = None
    """Only orders that wait for the buyer or for a decision; false: the others."""
    held: Annotated[_YesNo | None, Meta(examples=["true"])] = None
    """Only orders that a legal hold keeps; false: the others."""
    notice_id: GivenNotice | None = None
    """Only orders with this notice."""
    opened_after: Timestamp | None = None
    """Only orders opened at or after this time."""
    opened_before: Timestamp | None = None
    """Only orders opened before this time."""


class SearchRequest(Request, frozen=True, kw_only=True):
    """What to look for."""

    query: Annotated[Reference, Meta(examples=[ORDER])]
    """An identifier (ord_…, ack_…, chk_…, clr_…, ful_…, ovr_…, ver_…, rec_…, cbid_…), the vendor's
    session, or an order reference."""


class OrderPart(Struct, frozen=True, kw_only=True):
    """A part of an order."""

    id: Annotated[str, Meta(examples=[ACK_ID])]
    type: Annotated[_Part, Meta(examples=["acknowledgment"])]
    at: Timestamp
    status: Annotated[str | None, Meta(examples=["completed"])]
    """Of a session, a verification or a clearance: how it stands."""
    sealed: bool | None
    """Whether the log contains it; null: it is no record."""
    erased_at: Timestamp | None
    """When its personal data went."""
    hold_id: str | None
    """The legal hold that keeps it."""


class OrderStep(Struct, frozen=True, kw_only=True):
    """What happened, and when."""

    at: Timestamp
    what: Annotated[str, Meta(examples=["acknowledged"])]
    """Such as `link_made`, `identity_check_started`, `identity_check_verified`,
    `identity_check_made` (with a result that was erased), `acknowledged`, `cleared`, `not_cleared`,
    `overridden` (a manual override),
    `fulfilment_reported`, `payment_reported`, `order_closed`, `session_completed`, `erased`,
    `name_used_again` (an acknowledgment of another buyer, or after a shipment)."""
    id: Annotated[str, Meta(examples=[ACK_ID])]
    reasons: list[str]
    """Stable codes, where it was refused."""


class FoundOrder(Struct, frozen=True, kw_only=True):
    """An order: what is known of it, without personal values."""

    order_id: Annotated[str, Meta(examples=[ORDER_ID])]
    """It never changes, and stays after an erasure."""
    account_id: AccountId
    livemode: bool
    opened_at: Timestamp
    """When the first act named it."""
    state: Annotated[OrderState, Meta(examples=["cleared"])]
    """Where it stands now."""
    reasons: list[str]
    """Why it was refused: stable codes."""
    ack_id: Annotated[str | None, Meta(examples=[ACK_ID])]
    """The one that counts, else the newest."""
    cbid: Annotated[str | None, Meta(examples=[CBID])]
    clearance_id: Annotated[str | None, Meta(examples=[CLEARANCE_ID])]
    """That of the shipment, else the newest decision."""
    checkout_session_id: Annotated[str | None, Meta(examples=[CHECKOUT_SESSION_ID])]
    notice_id: Annotated[str | None, Meta(examples=["ab1263"])]
    notice_version: Annotated[str | None, Meta(examples=["2026-01-01"])]
    capture: Annotated[str | None, Meta(examples=["hosted"])]
    cleared: bool
    hold_id: Annotated[str | None, Meta(examples=[HOLD_ID])]
    """A legal hold that keeps it."""
    missing: Annotated[list[str], Meta(examples=[["fulfilment"]])]
    """What a complete order has and this one lacks: `acknowledgment`, `identity_check`,
    `clearance`, `granted_clearance`, `fulfilment`, `delivery`, `adult_signature`, `seal`,
    `personal_data`."""
    parts: list[OrderPart]
    """The newest; `timeline` and `missing` are of these."""
    more_parts: Annotated[
        bool, Meta(description=f"Whether it has more than {sql.PARTS_MAX} parts.")
    ]
    timeline: list[OrderStep]


class SearchResult(Struct, frozen=True, kw_only=True):
    """The orders that were found, newest first."""

    found_by: Annotated[str, Meta(examples=["text"])]
    """`identifier`, `buyer`, or `text`: the vendor's session or an order reference."""
    orders: list[FoundOrder]
    more: Annotated[bool, Meta(description=f"Whether there are more than {sql.ORDERS_MAX}.")]


SEARCH: Final = Acts("Staff: search", Privacy, scope=Scope.SEARCH_READ, console=True)
ORDERS: Final = Acts("Orders", Privacy, scope=Scope.ORDERS_READ)


@SEARCH.act("POST /v1/search", "Find an order by anything that names it", reads=True)
async def search(privacy: Privacy, who: Principal, wanted: SearchRequest) -> SearchResult:
    """Find an order by anything that names it, in one account and mode.

    Staff who name no account search all of them. The result has no personal value: read those at
    the parts.
    """
    scan, secret = privacy.access.database.scan, privacy.access.secret
    keys, by = await scan(sql.find, secret, who, wanted.query.strip())
    stored = await scan(sql.read, who, keys)
    orders = await _views(privacy, who, stored[: sql.ORDERS_MAX])
    return SearchResult(found_by=by, orders=orders, more=len(stored) > len(orders))


@ORDERS.act("GET /v1/orders", "List orders, the latest act first")
async def list_orders(privacy: Privacy, who: Principal, query: OrdersQuery) -> Page[FoundOrder]:
    """The account's orders, that of the latest act first, each with its parts and its timeline.

    A page with filters can be short: go on until `next_cursor` is null.
    """
    access = privacy.access
    now = to_ms(await access.test_clocks.now(who.account_id, who.mode))
    found, more = await access.database.scan(_page, access.secret, who, query, now)
    orders = await _views(privacy, who, found)
    if query.held is not None:
        orders = [one for one in orders if (one.hold_id is not None) is (query.held == "true")]
    return Page(data=orders, next_cursor=more)


def _page(
    connection: Connection, secret: DeploymentSecret, who: Principal, query: OrdersQuery, now: int
) -> tuple[list[sql.ReadOrder], str | None]:
    """The orders of a page, and where the next one begins."""
    keys = list[set[bytes]]()
    if query.session_id is not None:
        keys.append(sql.keys_of_session(connection, secret, who, query.session_id))
    if query.order_reference is not None:
        named = [query.order_reference]
        keys.append(sql.keys_by(connection, secret, who, [REFERENCE_FIELD], named))
    states = {query.state} if query.state else set(OrderState)
    if query.waiting is not None:
        states &= WAITING if query.waiting == "true" else set(OrderState) - WAITING
    place = None
    if query.after is not None:
        key, _, at = query.after.rpartition(".")
        place = int(at), bytes.fromhex(key)
    wanted = Wanted(
        keys=set.intersection(*keys) if keys else None,
        states=states,
        notice_id=query.notice_id,
        after=to_ms(query.opened_after) if query.opened_after else None,
        before=to_ms(query.opened_before) if query.opened_before else None,
        place=place,
    )
    found, more = find_page(
        connection, AccountReach(who.account_id, who.mode), wanted, now, query.limit
    )
    next_cursor = None if more is None else f"{more[1].hex()}.{more[0]}"
    return sql.read_members(connection, found), next_cursor


@ORDERS.act("GET /v1/orders/{order_id}", "Get one order", refusals=(NotFound,))
async def get_order(privacy: Privacy, who: Principal, order_id: str) -> FoundOrder:
    """One order of this account, by its id or that of any of its parts."""
    scan, secret = privacy.access.database.scan, privacy.access.secret
    keys, by = await scan(sql.find, secret, who, order_id)
    stored = await scan(sql.read, who, keys) if by == "identifier" else []
    if not stored:
        raise NotFound("The order was not found.")
    return (await _views(privacy, who, stored[:1]))[0]


async def _views(
    privacy: Privacy, who: Principal, found: Sequence[sql.ReadOrder]
) -> list[FoundOrder]:
    """The orders with their holds, as they stand now."""
    ids = [id_ for one in found for id_ in one.members]
    database, secret = privacy.access.database, privacy.access.secret
    kept = await database.scan(find_held, secret, ids, who.reach)
    held = {id_: hold for id_, (hold, _) in kept.items()}
    clocks = privacy.access.test_clocks
    return [_view(one, held, to_ms(await clocks.now(*one.order.first[:2]))) for one in found]


def _view(one: sql.ReadOrder, held: Mapping[str, str], now: int) -> FoundOrder:
    order, bodies = one.order, {row.id: json.loads(row.body) for row in one.records}
    decisive = order.decisive(now)
    state, by = decisive.state_at(now), bodies.get(decisive.member_id, {})
    decisions = (act.member_id for act in reversed(order.acts) if act.state in _DECIDED)
    told = by.get("clearance_id") or next(decisions, None)
    decided = bodies.get(told, {})
    acks = order.acknowledgments
    ack_id = next((one for one in (decided.get("ack_id"), *reversed(acks)) if one in acks), None)
    ack = bodies.get(ack_id, {})
    return view(
        FoundOrder,
        order.first,
        order_id=order.id,
        opened_at=from_ms(order.first.at),
        state=state,
        reasons=decided["reasons"] if state in _NOT_CLEARED else [],
        ack_id=ack_id,
        cbid=one.cbid,
        clearance_id=told,
        checkout_session_id=one.sessions[-1].id if one.sessions else None,
        notice_id=ack.get("notice_id"),
        notice_version=ack.get("notice_version"),
        capture=ack.get("capture"),
        cleared=decided.get("cleared", False),
        # A check can be part of another order, which is on hold.
        hold_id=held[min(one.members)] if one.members <= held.keys() else None,
        missing=[*_missing(one, bodies, decided, state)],
        parts=[*_parts(one, bodies, held, now)],
        more_parts=len(order.members) > len(one.members),
        timeline=sorted(_steps(one, bodies, now), key=lambda step: step.at),
    )


def _missing(
    one: sql.ReadOrder, bodies: Mapping[str, Any], decided: Mapping[str, Any], state: OrderState
) -> Iterator[str]:
    happened = {_happened(row, bodies[row.id]) for row in one.records}
    if "acknowledged" not in happened and not decided.get("exempt_from"):
        yield "acknowledgment"
    is_checked = "identity_check_verified" in happened
    cleared = decided.get("cleared")
    if not cleared and not is_checked and all(check.status != "verified" for check in one.checks):
        yield "identity_check"
    # What is overridden gets no clearance, and so no report.
    is_overridden = state is OrderState.OVERRIDDEN
    if not cleared and not is_overridden:
        yield "granted_clearance" if decided else "clearance"
    sent = [bodies[id_] for id_ in _sent(one) & bodies.keys()]
    if not sent and not is_overridden:
        yield "fulfilment"
    if sent and all(report["delivered_at"] is None for report in sent):
        yield "delivery"
    signature = any(duty.get("type") == ADULT_SIGNATURE for duty in decided.get("obligations", ()))
    if sent and signature and not any(report["adult_signature_obtained"] for report in sent):
        yield "adult_signature"
    if any(row.leaf_index is None for row in one.records):
        yield "seal"
    if any(row.erased_at is not None for row in one.records):
        yield "personal_data"


def _sent(one: sql.ReadOrder) -> frozenset[str]:
    """The reports of a shipment that count."""
    return frozenset(act.member_id for act in one.order.acts if act.state in _SENT)


def _link(row: Row[Any], now: int) -> tuple[str, datetime | None]:
    """The status and end of a link: it expires by itself, and at once if it was erased."""
    if row.status == Status.OPEN and (row.is_erased or to_ms(row.expires_at) <= now):
        return Status.EXPIRED, row.expires_at
    return row.status, row.ended_at


def _parts(
    one: sql.ReadOrder, bodies: Mapping[str, Any], held: Mapping[str, str], now: int
) -> Iterator[OrderPart]:
    for row in one.sessions:
        yield view(
            OrderPart,
            id=row.id,
            type="checkout_session",
            at=row.created_at,
            status=_link(row, now)[0],
            sealed=None,
            erased_at=None,
            hold_id=held.get(row.id),
        )
    for row in one.records:
        decided = bodies[row.id].get("cleared")
        status = row.checked
        if decided is not None:
            status = "cleared" if decided else "not_cleared"
        sealed, hold_id = row.leaf_index is not None, held.get(row.id)
        yield view(OrderPart, row, status=status, sealed=sealed, hold_id=hold_id)


def _steps(one: sql.ReadOrder, bodies: Mapping[str, Any], now: int) -> Iterator[OrderStep]:
    for row in one.sessions:
        yield _step(row.created_at, "link_made", row.id)
        status, ended_at = _link(row, now)
        if ended_at is not None:
            yield _step(ended_at, f"session_{status}", row.id)
    for row in one.checks:
        yield _step(row.started_at, "identity_check_started", row.reference)
        if row.status is not None:
            id_, reasons = row.verification_id or row.reference, json.loads(row.reasons or "[]")
            yield _step(row.changed_at, f"identity_check_{row.status}", id_, reasons)
    started = {row.verification_id for row in one.checks}
    for row in one.records:
        if row.id not in started:
            what = _happened(row, bodies[row.id])
            yield _step(row.at, what, row.id, bodies[row.id].get("reasons", ()))
        if row.erased_at is not None:
            yield _step(row.erased_at, "erased", row.id)
    for row in _reusing(one):
        yield _step(row.at, "name_used_again", row.id)
    if one.closed_at is not None:
        yield _step(one.closed_at, "order_closed", one.order.id)


def _reusing(one: sql.ReadOrder) -> Iterator[Row[Any]]:
    """The acknowledgments under the name of an order that had shipped, or of another buyer."""
    buyers, is_shipped, sent = set[bytes](), False, _sent(one)
    for row in one.records:
        is_shipped = is_shipped or row.id in sent
        if row.type == RecordType.ACKNOWLEDGMENT:
            named = {row.cbid_index} - {None}
            if is_shipped or (buyers and not named <= buyers):
                yield row
            buyers |= named


def _happened(row: Row[Any], body: Mapping[str, Any]) -> str:
    match row.type:
        case RecordType.VERIFICATION:
            return f"identity_check_{row.checked or 'made'}"
        case RecordType.CLEARANCE:
            return "cleared" if body["cleared"] else "not_cleared"
        case RecordType.OVERRIDE:
            return "overridden"
        case RecordType.FULFILMENT:
            return "payment_reported" if "paid_at" in body else "fulfilment_reported"
        case _:
            return "acknowledged"


def _step(at: datetime, what: str, id_: str, reasons: Sequence[str] = ()) -> OrderStep:
    return OrderStep(at=at.replace(microsecond=0), what=what, id=id_, reasons=[*reasons])


ROUTES: Final = (*SEARCH.routes, *ORDERS.routes)
