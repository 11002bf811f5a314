"""One field to search by: the result is the order, with its parts and a timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from countersign.base.http.schemas import (
    ACK_ID,
    CBID,
    CHECKOUT_SESSION_ID,
    CLEARANCE_ID,
    ORDER,
    Reference,
    Request,
    Timestamp,
)
from countersign.base.values import ACKNOWLEDGMENT, CLEARANCE, FULFILMENT, Mode, is_id
from countersign.core.access.key import Principal, Scope
from countersign.core.gate.act import Acts
from countersign.core.privacy.held import kept_of
from countersign.core.privacy.room import Privacy
from countersign.staff.acts import order_sql as sql
from countersign.staff.acts.accounts import AccountId

_HOLD: Final = "hold_01km9wtz3tfs8v8j2c7n5k9m0d"
_KINDS: Final = {
    ACKNOWLEDGMENT: "acknowledgment",
    CLEARANCE: "clearance",
    FULFILMENT: "fulfilment",
}
_Part = Literal["checkout_session", "acknowledgment", "verification", "clearance", "fulfilment"]


class SearchRequest(Request, frozen=True, kw_only=True):
    """What to look for."""

    query: Annotated[
        Reference,
        Meta(
            description="An identifier (ack_…, chk_…, clr_…, ful_…, ver_…, rec_…, cbid_…), the "
            "vendor's session, or an order reference.",
            examples=[ORDER],
        ),
    ]


class OrderPart(Struct, frozen=True, kw_only=True):
    """A part of an order."""

    id: Annotated[str, Meta(examples=[ACK_ID])]
    type: Annotated[_Part, Meta(examples=["acknowledgment"])]
    at: Timestamp
    status: Annotated[
        str | None,
        Meta(
            description="Of a session, a verification or a clearance: how it stands.",
            examples=["completed"],
        ),
    ]
    sealed: Annotated[
        bool | None, Meta(description="Whether the log contains it; null: it is no record.")
    ]
    erased_at: Annotated[Timestamp | None, Meta(description="When its personal data went.")]
    hold_id: Annotated[str | None, Meta(description="The legal hold that keeps it.")]


class OrderStep(Struct, frozen=True, kw_only=True):
    """What happened, and when."""

    at: Timestamp
    what: Annotated[
        str,
        Meta(
            description="Such as `link_made`, `identity_check_started`, `identity_check_verified`, "
            "`acknowledged`, `cleared`, `not_cleared`, `fulfilment_reported`, `order_closed`, "
            "`session_completed`, `erased`.",
            examples=["acknowledged"],
        ),
    ]
    id: Annotated[str, Meta(examples=[ACK_ID])]
    reasons: Annotated[list[str], Meta(description="Stable codes, where it was refused.")]


class FoundOrder(Struct, frozen=True, kw_only=True):
    """An order: what is known of it, without personal values."""

    order_id: Annotated[
        str,
        Meta(
            description="Its acknowledgment, else its clearance or checkout session.",
            examples=[ACK_ID],
        ),
    ]
    account_id: AccountId
    livemode: bool
    ack_id: Annotated[str | None, Meta(examples=[ACK_ID])]
    cbid: Annotated[str | None, Meta(examples=[CBID])]
    clearance_id: Annotated[
        str | None,
        Meta(description="The newest that was granted, else the newest.", examples=[CLEARANCE_ID]),
    ]
    checkout_session_id: Annotated[str | None, Meta(examples=[CHECKOUT_SESSION_ID])]
    notice_id: Annotated[str | None, Meta(examples=["ab1263"])]
    notice_version: Annotated[str | None, Meta(examples=["2026-01-01"])]
    capture: Annotated[str | None, Meta(examples=["hosted"])]
    cleared: bool
    hold_id: Annotated[
        str | None, Meta(description="A legal hold that keeps it.", examples=[_HOLD])
    ]
    missing: Annotated[
        list[str],
        Meta(
            description="What a complete order has and this one lacks: `acknowledgment`, "
            "`identity_check`, `clearance`, `granted_clearance`, `fulfilment`, `seal`, "
            "`personal_data`.",
            examples=[["fulfilment"]],
        ),
    ]
    parts: list[OrderPart]
    timeline: list[OrderStep]


class SearchResult(Struct, frozen=True, kw_only=True):
    """The orders that were found, newest first."""

    found_by: Annotated[
        str,
        Meta(
            description="`identifier`, `buyer`, or `text`: the vendor's session or an order "
            "reference.",
            examples=["text"],
        ),
    ]
    orders: list[FoundOrder]
    more: Annotated[bool, Meta(description=f"Whether there are more than {sql.ORDERS_MAX}.")]


SEARCH: Final = Acts("Staff: search", Privacy, scope=Scope.SEARCH_READ, console=True)


@SEARCH.act("POST /v1/search", "Find an order by anything that names it", reads=True)
async def search(privacy: Privacy, who: Principal, wanted: SearchRequest) -> SearchResult:
    """Find an order by anything that names it, in one account and mode.

    Staff who name no account search all of them. The result has no personal value: read those at
    the parts.
    """
    scan, secret = privacy.access.database.scan, privacy.access.secret
    found = await scan(sql.find, secret, who, wanted.query.strip())
    stored = await scan(sql.read, who, found)
    shown = stored[: sql.ORDERS_MAX]
    ids = [id_ for one in shown for id_ in _record_ids(one)]
    kept = await kept_of(privacy, ids, who.reach)
    held = {id_: hold for id_, (hold, _) in kept.held.items()}
    orders = [_order(one, who.mode, held) for one in shown]
    return SearchResult(found_by=found.by, orders=orders, more=len(stored) > len(shown))


def _record_ids(stored: sql.StoredOrder) -> list[str]:
    checks = {one.verification_id for one in stored.checks if one.verification_id}
    checks |= {stored.verified.id} if stored.verified else set()
    return [*checks, *(one.id for one in stored.records)]


def _order(stored: sql.StoredOrder, mode: Mode, held: Mapping[str, str]) -> FoundOrder:
    bodies = {one.id: json.loads(one.body) for one in stored.records}
    acks = [one for one in stored.records if is_id(ACKNOWLEDGMENT, one.id)]
    clears = [one for one in stored.records if is_id(CLEARANCE, one.id)]
    granted = [one for one in clears if bodies[one.id].get("cleared")]
    ack = bodies[acks[0].id] if acks else {}
    newest = (granted or clears)[-1:]
    holds = [held[id_] for id_ in _record_ids(stored) if id_ in held]
    return FoundOrder(
        order_id=stored.key,
        account_id=(*stored.records, *stored.sessions)[0].account_id,
        livemode=mode is Mode.LIVE,
        ack_id=acks[0].id if acks else None,
        cbid=stored.cbid,
        clearance_id=newest[0].id if newest else None,
        checkout_session_id=stored.sessions[0].id if stored.sessions else None,
        notice_id=ack.get("notice_id"),
        notice_version=ack.get("notice_version"),
        capture=ack.get("capture"),
        cleared=bool(granted),
        hold_id=holds[0] if holds else None,
        missing=[*_missing(stored, has_ack=bool(acks), has=bool(clears), granted=bool(granted))],
        parts=[*_parts(stored, bodies, held)],
        timeline=sorted(_steps(stored, bodies), key=lambda step: step.at),
    )


def _missing(stored: sql.StoredOrder, *, has_ack: bool, has: bool, granted: bool) -> Iterator[str]:
    if not has_ack:
        yield "acknowledgment"
    if not granted and not any(one.status == "verified" for one in stored.checks):
        yield "identity_check"
    if not granted:
        yield "granted_clearance" if has else "clearance"
    if not any(is_id(FULFILMENT, one.id) for one in stored.records):
        yield "fulfilment"
    if any(one.leaf_index is None for one in stored.records):
        yield "seal"
    if any(one.erased_at is not None for one in stored.records):
        yield "personal_data"


def _parts(
    stored: sql.StoredOrder, bodies: Mapping[str, Any], held: Mapping[str, str]
) -> Iterator[OrderPart]:
    for one in stored.sessions:
        yield _part(one.id, "checkout_session", one.created_at, one.status)
    for one in stored.checks:
        if one.verification_id:
            hold = held.get(one.verification_id)
            at, status = one.changed_at, one.status
            yield _part(one.verification_id, "verification", at, status, hold_id=hold)
    if (own := stored.verified) is not None:
        hold = held.get(own.id)
        yield _part(own.id, "verification", own.at, "verified", hold_id=hold)
    for one in stored.records:
        kind: Any = next(name for prefix, name in _KINDS.items() if is_id(prefix, one.id))
        decided = bodies[one.id].get("cleared")
        status = None if decided is None else "cleared" if decided else "not_cleared"
        sealed, hold = one.leaf_index is not None, held.get(one.id)
        erased = one.erased_at and one.erased_at.replace(microsecond=0)
        yield _part(one.id, kind, one.at, status, sealed=sealed, erased_at=erased, hold_id=hold)


def _part(
    id_: str,
    kind: _Part,
    at: datetime,
    status: str | None,
    *,
    sealed: bool | None = None,
    erased_at: datetime | None = None,
    hold_id: str | None = None,
) -> OrderPart:
    return OrderPart(
        id=id_,
        type=kind,
        at=at.replace(microsecond=0),
        status=status,
        sealed=sealed,
        erased_at=erased_at,
        hold_id=hold_id,
    )


def _steps(stored: sql.StoredOrder, bodies: Mapping[str, Any]) -> Iterator[OrderStep]:
    for one in stored.sessions:
        yield _step(one.created_at, "link_made", one.id)
        if one.ended_at is not None:
            yield _step(one.ended_at, f"session_{one.status}", one.id)
    yield from _check_steps(stored)
    for one in stored.records:
        body = bodies[one.id]
        if is_id(ACKNOWLEDGMENT, one.id):
            yield _step(one.at, "acknowledged", one.id)
        elif is_id(CLEARANCE, one.id):
            what = "cleared" if body.get("cleared") else "not_cleared"
            yield _step(one.at, what, one.id, body.get("reasons", ()))
        else:
            yield _step(one.at, "fulfilment_reported", one.id)
        if one.erased_at is not None:
            yield _step(one.erased_at, "erased", one.id)
    if stored.closed_at is not None:
        yield _step(stored.closed_at, "order_closed", stored.key)


def _check_steps(stored: sql.StoredOrder) -> Iterator[OrderStep]:
    for one in stored.checks:
        yield _step(one.started_at, "identity_check_started", one.reference)
        if one.status is not None:
            id_, reasons = one.verification_id or one.reference, json.loads(one.reasons or "[]")
            yield _step(one.changed_at, f"identity_check_{one.status}", id_, reasons)
    if (own := stored.verified) is not None:
        yield _step(own.at, "identity_check_verified", own.id)


def _step(at: datetime, what: str, id_: str, reasons: Sequence[str] = ()) -> OrderStep:
    return OrderStep(at=at.replace(microsecond=0), what=what, id=id_, reasons=[*reasons])


ROUTES: Final = SEARCH.routes
