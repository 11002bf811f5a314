"""Erasures over the API: requests, what one would erase, carrying it out; what falls due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct
from sqlalchemy import Connection, select

from countersign.access.idempotency import replace_answer
from countersign.access.key import Scope
from countersign.console.reach import staff_route
from countersign.db.tables import erasure_requests
from countersign.errors import OnHold, UnknownSubject
from countersign.http import schemas
from countersign.http.body import in_utc, parse_body
from countersign.http.examples import ACK_ID, CBID, BuyerId
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import STORABLE, Reference, Request, Timestamp
from countersign.instant import from_ns, to_the_second
from countersign.privacy.erase import destroy_copies, erase_planned, kept_of_plan, plan_erasure
from countersign.privacy.held import HeldRecords
from countersign.privacy.model import ErasureReason, Plan
from countersign.privacy.requests import requested
from countersign.privacy.retention import list_due
from countersign.privacy.room import Privacy

_HOLD: Final = "hold_01km9wtz3tfs8v8j2c7n5k9m0d"
_Subject = Annotated[
    Reference,
    Meta(
        description="An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…).",
        examples=[CBID],
    ),
]


class ErasurePreviewRequest(Request, frozen=True, kw_only=True):
    """What would be erased."""

    subject: _Subject
    with_acknowledgments: Annotated[
        bool, Meta(description="Of a buyer: also the acknowledgments that name the buyer.")
    ] = False


class ErasureOrder(ErasurePreviewRequest, frozen=True, kw_only=True):
    """What is to be erased, and why."""

    reason: Annotated[ErasureReason, Meta(examples=[ErasureReason.REQUEST])] = ErasureReason.REQUEST


class KeptRecord(Struct, frozen=True, kw_only=True):
    """A record, or the checkout session of an order, that a legal hold keeps."""

    record_id: Annotated[
        str, Meta(description="A record, or a checkout session (chk_…).", examples=[ACK_ID])
    ]
    hold_id: Annotated[str, Meta(examples=[_HOLD])]
    subject: Annotated[str, Meta(description="What the hold is on.", examples=[ACK_ID])]


class ErasurePreview(Struct, frozen=True, kw_only=True):
    """What an erasure would erase now, and what legal holds keep."""

    subject: Annotated[str, Meta(examples=[CBID])]
    buyer: Annotated[
        bool, Meta(description="Whether it is a buyer, with all its identifiers.", examples=[True])
    ]
    records: Annotated[
        list[str], Meta(description="Whose personal data would go.", examples=[[ACK_ID]])
    ]
    kept: list[KeptRecord]
    prevented_by: Annotated[
        str | None,
        Meta(description="Why nothing of it can be erased at the moment: the hold in words."),
    ]
    retention_ends_at: Annotated[
        Timestamp | None,
        Meta(description="The end of the longest retention period, if it is yet to come."),
    ]
    requested_at: Annotated[
        Timestamp | None, Meta(description="When the buyer asked for it at /buyer; null: not.")
    ]


class ErasureDone(Struct, frozen=True, kw_only=True):
    """What was erased: the facts for a letter."""

    subject: Annotated[str, Meta(examples=[CBID])]
    buyer: bool
    erased_at: Timestamp
    records: Annotated[
        list[str], Meta(description="Whose personal data went.", examples=[[ACK_ID]])
    ]
    kept: Annotated[
        list[KeptRecord], Meta(description="It is erased when the holds have been released.")
    ]
    copies_remain: Annotated[
        bool,
        Meta(
            description="Whether a file of the embedded database still has copies, until a server "
            "empties it within minutes. Older backups of the keys always have."
        ),
    ]


class ErasureRequested(Struct, frozen=True, kw_only=True):
    """A buyer who asked at /buyer to be erased, and is not erased yet."""

    cbid: BuyerId
    account_id: str | None
    requested_at: Timestamp


class DueRecord(Struct, frozen=True, kw_only=True):
    """A record whose retention period has ended, or ends until the time that was asked for."""

    record_id: Annotated[str, Meta(examples=[ACK_ID])]
    account_id: Annotated[str, Meta(examples=["acct_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    retention_ends_at: Timestamp
    hold_id: Annotated[str | None, Meta(description="The hold that keeps it.")]


RequestsQuery = Listing[Annotated[str, cursor("that page's last buyer", CBID)]]


class DueQuery(
    Listing[
        Annotated[
            str,
            Meta(
                description="The `next_cursor` of the previous page: that page's last record.",
                examples=[ACK_ID],
                max_length=40,
                extra_json_schema=STORABLE,
            ),
        ]
    ],
    frozen=True,
    kw_only=True,
):
    until: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(
            description="What ends until this time. Left out: what has ended.",
            examples=["2026-12-31T00:00:00Z"],
        ),
    ] = None


async def list_requests(room: Privacy, call: Call) -> Reply:
    """The buyers who asked at /buyer to be erased and still wait, in the order of their ids."""
    query: RequestsQuery = call.query
    access, after = room.access, query.after or ""
    asked = await access.database.scan(requested, access.secret, call.principal.reach)
    found = [schemas.view(ErasureRequested, one) for one in sorted(asked) if one.cbid > after]
    return Reply(encode(page_of(found[: query.limit + 1], query.limit, lambda one: one.cbid)))


async def preview(room: Privacy, call: Call) -> Reply:
    """What would be erased, what legal holds keep, and why. Nothing is changed."""
    body = parse_body(call.body, ErasurePreviewRequest)
    plan = await _plan(room, call, body)
    kept: list[KeptRecord] = []
    prevented = None
    try:
        kept = _kept(await kept_of_plan(room, plan))
    except OnHold as error:
        prevented = error.message
    held = {one.record_id for one in kept}
    asked = await room.access.database.read(_requested_at, body.subject)
    going = [r.record_id for r in plan.records if r.record_id not in held and not prevented]
    view = ErasurePreview(
        subject=body.subject,
        buyer=plan.buyer is not None,
        records=going,
        kept=kept,
        prevented_by=prevented,
        retention_ends_at=to_the_second(plan.kept_until),
        requested_at=to_the_second(asked),
    )
    return Reply(encode(view))


async def erase(room: Privacy, call: Call) -> Reply:
    """Permanently erase the personal data of an acknowledgment, a verification or a buyer.

    The record, its log entry and every proof stay valid. The erasure itself is recorded. What a
    legal hold keeps of a buyer is erased when the hold is released.
    """
    body = parse_body(call.body, ErasureOrder)
    plan, now = await _plan(room, call, body), from_ns(room.access.clock.time_ns())

    def view(kept: HeldRecords, *, copies_remain: bool) -> bytes:
        done = ErasureDone(
            subject=body.subject,
            buyer=plan.buyer is not None,
            erased_at=now.replace(microsecond=0),
            records=[r.record_id for r in plan.records if r.record_id not in kept],
            kept=_kept(kept),
            copies_remain=copies_remain,
        )
        return encode(done)

    remember = call.remembering(partial(view, copies_remain=True))
    kept = await erase_planned(room, plan, body.reason, remember=remember)
    destroyed = await destroy_copies(room.access.database)
    answer = view(kept, copies_remain=not destroyed)
    if call.entry is not None:
        await room.access.database.write(replace_answer, call.entry(answer))
    return Reply(answer)


async def list_retention(room: Privacy, call: Call) -> Reply:
    """What has outlived its retention, or will have: acknowledgments, then verifications.

    Of each, the oldest come first. `countersign retention run` erases what is due and not on hold.
    """
    query: DueQuery = call.query
    until = None if query.until is None else in_utc(query.until, "$.until")
    rows: list[DueRecord] = []
    async for due in list_due(room, call.principal.reach, until, query.after or ""):
        ends = due.retention_ended_at
        rows.append(schemas.view(DueRecord, due, retention_ends_at=ends, hold_id=due.hold))
        if len(rows) > query.limit:
            break
    return Reply(encode(page_of(rows, query.limit, lambda one: one.record_id)))


async def _plan(room: Privacy, call: Call, body: ErasurePreviewRequest) -> Plan:
    """What is meant, if it is within the caller's reach."""
    naming, reach = body.with_acknowledgments, call.principal.reach
    return await plan_erasure(room, body.subject, reach, with_acknowledgments=naming)


def _kept(held: Mapping[str, tuple[str, str]]) -> list[KeptRecord]:
    return [
        KeptRecord(record_id=id_, hold_id=hold, subject=subject)
        for id_, (hold, subject) in sorted(held.items())
    ]


def _requested_at(connection: Connection, cbid: str) -> datetime | None:
    own = select(erasure_requests.c.requested_at).where(erasure_requests.c.cbid == cbid)
    return connection.execute(own).scalar()


_route: Final = partial(staff_route, scope=Scope.ERASURE_WRITE)

ROUTES: Final = grouped(
    "Staff: erasures",
    Privacy,
    _route(
        address="GET /v1/erasures/requests",
        handler=list_requests,
        operation="listErasureRequests",
        summary="List the buyers who asked to be erased",
        query=RequestsQuery,
        response=Page[ErasureRequested],
    ),
    _route(
        address="POST /v1/erasures/preview",
        handler=preview,
        operation="previewErasure",
        summary="See what an erasure would erase, and what is held",
        scope=Scope.RETENTION_READ,
        request=ErasurePreviewRequest,
        response=ErasurePreview,
        refusals=(UnknownSubject,),
    ),
    _route(
        address="POST /v1/erasures",
        handler=erase,
        operation="erase",
        summary="Erase personal data permanently",
        fresh=True,
        request=ErasureOrder,
        response=ErasureDone,
        refusals=(UnknownSubject, OnHold),
    ),
    _route(
        address="GET /v1/retention",
        handler=list_retention,
        operation="listRetention",
        summary="List what falls due",
        scope=Scope.RETENTION_READ,
        query=DueQuery,
        response=Page[DueRecord],
    ),
)
