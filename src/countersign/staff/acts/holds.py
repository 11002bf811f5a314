"""Legal holds over the API, and the matters that they are part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from sqlalchemy import Connection

from countersign.base.errors import UnknownSubject
from countersign.base.http.schemas import (
    ACK_ID,
    STORABLE,
    BuyerId,
    Listing,
    Page,
    Reference,
    Request,
    Timestamp,
    cursor,
    in_full,
    page_of,
    view,
)
from countersign.base.values import id_pattern
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import Reach
from countersign.core.gate.act import Acts
from countersign.core.orders.model import keys_of_id
from countersign.core.privacy.holds import (
    begin_matter,
    close_matter,
    find_holds,
    find_matter,
    find_matters,
    place,
    release,
)
from countersign.core.privacy.model import Hold
from countersign.core.privacy.requests import carry_out_request, carry_out_waiting, requested
from countersign.core.privacy.room import Privacy
from countersign.staff.acts import order_sql
from countersign.staff.acts.orders import HOLD_ID, ORDER_ID
from countersign.staff.acts.reach import command

MATTER_ID: Final = "mat_01km9wtz3tfs8v8j2c7n5k9m0d"
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
        description="An order (ord_…) or anything of it (ack_…, clr_…, ful_…, ver_…, chk_…), which "
        "keeps the whole order; a buyer (cbid_…) or an account (acct_…).",
        examples=[ACK_ID],
    ),
]
_MatterId = Annotated[str, Meta(examples=[MATTER_ID])]
_GivenMatter = Annotated[str, Meta(pattern=in_full(id_pattern("mat")), examples=[MATTER_ID])]
_GivenOrder = Annotated[str, Meta(pattern=in_full(id_pattern("ord")), examples=[ORDER_ID])]


class HeldOrder(Request, frozen=True, kw_only=True):
    """What to hold, and why."""

    subject: _Subject
    reason: _Reason


class HoldRequest(HeldOrder, frozen=True, kw_only=True):
    """A legal hold."""

    matter_id: _GivenMatter | None = None
    """The matter it is part of."""


class MatterRequest(Request, frozen=True, kw_only=True):
    """A matter, and the orders that it holds from the beginning."""

    name: Annotated[
        str,
        Meta(min_length=1, max_length=200, extra_json_schema=STORABLE, examples=["Case 24-1187"]),
    ]
    orders: Annotated[tuple[HeldOrder, ...], Meta(max_length=100)] = ()


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
    holds: Annotated[int, Meta(examples=[2])]
    """How many holds of it last."""


class WaitedErasure(Struct, frozen=True, kw_only=True):
    """A buyer who had asked to be erased, and what came of it."""

    cbid: BuyerId
    outcome: Annotated[Literal["erased", "kept", "on_hold", "requested"], Meta(examples=["erased"])]


class ReleasedHolds(Struct, frozen=True, kw_only=True):
    """The holds that ended, and what was to be erased and had waited for that."""

    hold_ids: Annotated[list[str], Meta(examples=[[HOLD_ID]])]
    erased: list[str]
    """Records and checkout sessions of the caller's own reach."""
    requested: list[WaitedErasure]


class HoldsQuery(
    Listing[Annotated[str, cursor("that page's last hold", HOLD_ID)]], frozen=True, kw_only=True
):
    status: Annotated[Literal["active", "released"] | None, Meta(examples=["active"])] = None
    """Only those."""
    matter_id: _GivenMatter | None = None
    """Only of this matter."""
    order_id: _GivenOrder | None = None
    """Only those that last on this order: on a part, its buyer or its account."""


MattersQuery = Listing[Annotated[str, cursor("that page's last matter", MATTER_ID)]]


def _released(ended: Mapping[str, Any]) -> str:
    said = [f"Ended: {', '.join(ended['hold_ids'])}."]
    if ended["erased"]:
        said.append(f"Erased, as was asked before: {', '.join(ended['erased'])}.")
    gone = [one["cbid"] for one in ended["requested"] if one["outcome"] in {"erased", "kept"}]
    return "\n".join([*said, *(f"Erased, as the buyer had asked: the buyer {c}." for c in gone)])


HOLDS: Final = Acts("Staff: holds", Privacy, scope=Scope.HOLDS_MANAGE, console=True)


@HOLDS.act(
    "POST /v1/holds",
    "Place a legal hold",
    refusals=(UnknownSubject,),
    commands=(
        command(
            name="holds place",
            arguments=("subject",),
            takes=("reason",),
            says="{subject} is on hold until `countersign holds release {hold_id}`.",
            shows=("hold_id",),
        ),
    ),
)
def place_hold(
    connection: Connection, privacy: Privacy, reach: Reach, wanted: HoldRequest
) -> HoldView:
    """Prevent the erasure of an order, a buyer or an account.

    On a record, the hold keeps what the whole order needs: acknowledgment, clearances, reports of
    fulfilment, and the identity check that it rests on. On a buyer, it also keeps the orders that
    name the buyer.
    """
    if wanted.matter_id is not None:
        find_matter(connection, wanted.matter_id, reach)
    hold = place(
        connection, privacy, reach, wanted.subject, wanted.reason, matter_id=wanted.matter_id
    )
    return view(HoldView, hold, hold_id=hold.id)


@HOLDS.act(
    "GET /v1/holds",
    "List the legal holds, oldest first",
    commands=(command(name="holds list", shows=("hold_id", "released_at", "subject", "reason")),),
)
def list_holds(connection: Connection, who: Principal, query: HoldsQuery) -> Page[HoldView]:
    """The legal holds, oldest first."""
    on = None
    if query.order_id is not None:
        on = [query.order_id]
        for one in order_sql.read(connection, who, keys_of_id(query.order_id)):
            on += [*one.members, one.order.first.account_id, one.cbid or ""]
    found = find_holds(
        connection,
        who.reach,
        matter_id=query.matter_id,
        active=None if query.status is None else query.status == "active",
        on=on,
        after=query.after or "",
        limit=query.limit + 1,
    )
    views = [view(HoldView, one, hold_id=one.id) for one in found]
    return page_of(views, query.limit, lambda one: one.hold_id)


@HOLDS.act(
    "POST /v1/holds/{hold_id}/release",
    "Release a legal hold",
    fresh=True,
    refusals=(UnknownSubject,),
    commands=(command(name="holds release", says=_released, shows=("hold_ids",)),),
)
async def release_hold(privacy: Privacy, reach: Reach, hold_id: str) -> ReleasedHolds:
    """End a hold, and erase what was to be erased and waited for its end. Nothing else goes."""
    hold = await privacy.access.database.write(release, privacy, hold_id, reach)
    return await _after(privacy, reach, [hold])


@HOLDS.act(
    "POST /v1/matters",
    "Open a matter, with holds on its orders",
    request_examples={
        "two orders": {
            "name": "Case 24-1187",
            "orders": [
                {"subject": ACK_ID, "reason": "the order in dispute"},
                {"subject": ACK_ID[:-1] + "5", "reason": "the order before it"},
            ],
        }
    },
    refusals=(UnknownSubject,),
)
def open_matter(
    connection: Connection, privacy: Privacy, reach: Reach, wanted: MatterRequest
) -> MatterView:
    """Open a matter, with a hold on each of the orders: on all of them, or nothing is written."""
    matter = begin_matter(connection, privacy, reach, wanted.name)
    for one in wanted.orders:
        place(connection, privacy, reach, one.subject, one.reason, matter_id=matter.id)
    return view(MatterView, matter, matter_id=matter.id, holds=len(wanted.orders))


@HOLDS.act("GET /v1/matters", "List the matters, oldest first")
def list_matters(connection: Connection, reach: Reach, query: MattersQuery) -> Page[MatterView]:
    """The matters, oldest first."""
    found = find_matters(connection, reach, query.after or "", query.limit + 1)
    views = [view(MatterView, one, matter_id=one.id, holds=holds) for one, holds in found]
    return page_of(views, query.limit, lambda one: one.matter_id)


@HOLDS.act(
    "POST /v1/matters/{matter_id}/release",
    "Release all holds of a matter",
    fresh=True,
    refusals=(UnknownSubject,),
)
async def release_matter(privacy: Privacy, reach: Reach, matter_id: str) -> ReleasedHolds:
    """Close a matter: all its holds end, and what waited for that is erased.

    A closed one has no holds.
    """
    ended = await privacy.access.database.write(close_matter, privacy, reach, matter_id)
    return await _after(privacy, reach, ended)


async def _after(privacy: Privacy, reach: Reach, ended: Sequence[Hold]) -> ReleasedHolds:
    """Erase what waited for the end of these holds."""
    asked = await privacy.access.database.scan(
        requested, privacy.access.secret, reach, [hold.subject for hold in ended]
    )
    outcomes = []
    for one in asked:
        outcome = (await carry_out_request(privacy, one.cbid, reach)).value
        outcomes.append(WaitedErasure(cbid=one.cbid, outcome=outcome))  # type: ignore[arg-type] # its values
    erased = await carry_out_waiting(privacy, reach)
    return ReleasedHolds(hold_ids=[hold.id for hold in ended], erased=[*erased], requested=outcomes)


ROUTES: Final = HOLDS.routes
