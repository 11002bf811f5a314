"""Legal holds over the API, and the matters that they are part of."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from countersign.access.idempotency import keep_answers
from countersign.access.key import Scope
from countersign.console.accounts import NoWords
from countersign.console.reach import staff_route
from countersign.errors import UnknownSubject
from countersign.http.body import parse_body
from countersign.http.examples import ACK_ID, BuyerId
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import STORABLE, Reference, Request, Timestamp, view
from countersign.ids import id_pattern
from countersign.privacy.holds import find_holds, place_hold
from countersign.privacy.matters import (
    EndedHolds,
    close_matter,
    end_one,
    find_matters,
    open_matter,
)
from countersign.privacy.model import Hold, Matter
from countersign.privacy.room import Privacy

HOLD_ID: Final = "hold_01km9wtz3tfs8v8j2c7n5k9m0d"
MATTER_ID: Final = "mat_01km9wtz3tfs8v8j2c7n5k9m0d"
_ORDERS_MAX: Final = 100
_Reason = Annotated[
    str,
    Meta(
        description="Why, such as the number of a case. It is kept.",
        min_length=1,
        max_length=2000,
        extra_json_schema=STORABLE,
        examples=["case 24-1187"],
    ),
]
_Subject = Annotated[
    Reference,
    Meta(
        description="Any record of an order (ack_…, clr_…, ful_…, ver_…), a buyer (cbid_…) or an "
        "account (acct_…). On a record, the whole order is kept.",
        examples=[ACK_ID],
    ),
]
_MatterId = Annotated[str, Meta(examples=[MATTER_ID])]
_GivenMatter = Annotated[
    str, Meta(pattern=id_pattern("mat").removesuffix("$") + r"\Z", examples=[MATTER_ID])
]


class HeldOrder(Request, frozen=True, kw_only=True):
    """What to hold, and why."""

    subject: _Subject
    reason: _Reason


class HoldRequest(HeldOrder, frozen=True, kw_only=True):
    """A legal hold."""

    matter_id: Annotated[_GivenMatter | None, Meta(description="The matter it is part of.")] = None


class MatterRequest(Request, frozen=True, kw_only=True):
    """A matter, and the orders that it holds from the beginning."""

    name: Annotated[
        str,
        Meta(min_length=1, max_length=200, extra_json_schema=STORABLE, examples=["Case 24-1187"]),
    ]
    orders: Annotated[tuple[HeldOrder, ...], Meta(max_length=_ORDERS_MAX)] = ()


class HoldView(Struct, frozen=True, kw_only=True):
    """A legal hold."""

    hold_id: Annotated[str, Meta(examples=[HOLD_ID])]
    subject: Annotated[str, Meta(examples=[ACK_ID])]
    reason: Annotated[str, Meta(examples=["case 24-1187"])]
    matter_id: _MatterId | None
    placed_at: Timestamp
    released_at: Timestamp | None


class MatterView(Struct, frozen=True, kw_only=True):
    """A matter; `GET /v1/holds?matter_id=` lists its holds."""

    matter_id: _MatterId
    name: Annotated[str, Meta(examples=["Case 24-1187"])]
    opened_at: Timestamp
    closed_at: Timestamp | None
    holds: Annotated[int, Meta(description="How many holds of it last.", examples=[2])]


class WaitedErasure(Struct, frozen=True, kw_only=True):
    """A buyer who had asked to be erased, and what came of it."""

    cbid: BuyerId
    outcome: Annotated[Literal["erased", "kept", "on_hold", "requested"], Meta(examples=["erased"])]


class ReleasedHolds(Struct, frozen=True, kw_only=True):
    """The holds that ended, and what was to be erased and had waited for that."""

    hold_ids: Annotated[list[str], Meta(examples=[[HOLD_ID]])]
    erased: Annotated[
        list[str], Meta(description="Records and checkout sessions of the caller's own reach.")
    ]
    requested: list[WaitedErasure]


class HoldsQuery(
    Listing[Annotated[str, cursor("that page's last hold", HOLD_ID)]], frozen=True, kw_only=True
):
    status: Annotated[
        Literal["active", "released"] | None, Meta(description="Only those.", examples=["active"])
    ] = None
    matter_id: Annotated[_GivenMatter | None, Meta(description="Only of this matter.")] = None


MattersQuery = Listing[Annotated[str, cursor("that page's last matter", MATTER_ID)]]


async def place(room: Privacy, call: Call) -> Reply:
    """Prevent the erasure of an order, a buyer or an account.

    On a record, the hold keeps what the whole order needs: acknowledgment, clearances, reports of
    fulfilment, and the identity check that it rests on. On a buyer, it also keeps the orders that
    name the buyer.
    """
    body = parse_body(call.body, HoldRequest)
    reach, of = call.principal.reach, body.matter_id
    return await call.kept(
        _view,
        lambda e: place_hold(room, reach, body.subject, body.reason, matter_id=of, entry=e),
    )


async def list_holds(room: Privacy, call: Call) -> Reply:
    """The legal holds, oldest first."""
    query: HoldsQuery = call.query
    found = await room.access.database.scan(
        find_holds,
        call.principal.reach,
        matter_id=query.matter_id,
        active=None if query.status is None else query.status == "active",
        after=query.after or "",
        limit=query.limit + 1,
    )
    views = [_view(one) for one in found]
    return Reply(encode(page_of(views, query.limit, lambda one: one.hold_id)))


async def release(room: Privacy, call: Call) -> Reply:
    """End a hold, and erase what was to be erased and waited for its end. Nothing else goes."""
    parse_body(call.body, NoWords)
    return await _ended(room, call, await end_one(room, call.parameter, call.principal.reach))


async def create_matter(room: Privacy, call: Call) -> Reply:
    """Open a matter, with a hold on each of the orders: on all of them, or nothing is written."""
    body = parse_body(call.body, MatterRequest)
    orders = [(one.subject, one.reason) for one in body.orders]

    return await call.kept(
        lambda matter: _matter_view(matter, len(orders)),
        partial(open_matter, room, call.principal.reach, body.name, orders),
    )


async def list_matters(room: Privacy, call: Call) -> Reply:
    """The matters, oldest first."""
    query: MattersQuery = call.query
    found = await room.access.database.scan(
        find_matters, call.principal.reach, query.after or "", query.limit + 1
    )
    views = [_matter_view(*one) for one in found]
    return Reply(encode(page_of(views, query.limit, lambda one: one.matter_id)))


async def release_matter(room: Privacy, call: Call) -> Reply:
    """Close a matter: all its holds end, and what waited for that is erased.

    A closed one has no holds.
    """
    parse_body(call.body, NoWords)
    reach = call.principal.reach
    return await _ended(room, call, await close_matter(room, reach, call.parameter))


async def _ended(room: Privacy, call: Call, released: EndedHolds) -> Reply:
    view = ReleasedHolds(
        hold_ids=[*released.hold_ids],
        erased=[*released.erased],
        requested=[
            WaitedErasure(cbid=cbid, outcome=outcome)  # type: ignore[arg-type] # its values
            for cbid, outcome in released.requested.items()
        ],
    )
    body = encode(view)
    if call.entry is not None:
        await room.access.database.write(keep_answers, [call.entry(body)])
    return Reply(body)


def _view(hold: Hold) -> HoldView:
    return view(HoldView, hold, hold_id=hold.id)


def _matter_view(matter: Matter, holds: int) -> MatterView:
    return view(MatterView, matter, matter_id=matter.id, holds=holds)


_route: Final = partial(staff_route, scope=Scope.HOLDS_MANAGE)

ROUTES: Final = grouped(
    "Staff: holds",
    Privacy,
    _route(
        address="POST /v1/holds",
        handler=place,
        operation="placeHold",
        summary="Place a legal hold",
        request=HoldRequest,
        response=HoldView,
        refusals=(UnknownSubject,),
    ),
    _route(
        address="GET /v1/holds",
        handler=list_holds,
        operation="listHolds",
        summary="List the legal holds, oldest first",
        query=HoldsQuery,
        response=Page[HoldView],
    ),
    _route(
        address="POST /v1/holds/{hold_id}/release",
        handler=release,
        operation="releaseHold",
        summary="Release a legal hold",
        fresh=True,
        request=NoWords,
        request_examples={"nothing to say": {}},
        response=ReleasedHolds,
        refusals=(UnknownSubject,),
    ),
    _route(
        address="POST /v1/matters",
        handler=create_matter,
        operation="openMatter",
        summary="Open a matter, with holds on its orders",
        request=MatterRequest,
        request_examples={
            "two orders": {
                "name": "Case 24-1187",
                "orders": [
                    {"subject": ACK_ID, "reason": "the order in dispute"},
                    {"subject": ACK_ID[:-1] + "5", "reason": "the order before it"},
                ],
            }
        },
        response=MatterView,
        refusals=(UnknownSubject,),
    ),
    _route(
        address="GET /v1/matters",
        handler=list_matters,
        operation="listMatters",
        summary="List the matters, oldest first",
        query=MattersQuery,
        response=Page[MatterView],
    ),
    _route(
        address="POST /v1/matters/{matter_id}/release",
        handler=release_matter,
        operation="releaseMatter",
        summary="Release all holds of a matter",
        fresh=True,
        request=NoWords,
        request_examples={"nothing to say": {}},
        response=ReleasedHolds,
        refusals=(UnknownSubject,),
    ),
)
