"""Erasures over the API: requests, what one would erase, carrying it out; what falls due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct
from sqlalchemy import Connection, select

from countersign.base.db.tables import erasure_requests
from countersign.base.errors import OnHold, UnknownSubject
from countersign.base.http.body import in_utc
from countersign.base.http.schemas import (
    ACK_ID,
    CBID,
    STORABLE,
    BuyerId,
    Listing,
    Page,
    Reference,
    Request,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CHECKOUT_SESSION,
    CLEARANCE,
    EARLIER_SESSION,
    FULFILMENT,
    OVERRIDE,
    VERIFICATION,
    from_ns,
)
from countersign.core.access.audit import AuditAction
from countersign.core.access.idempotency import KeyedRequest, replace_answer
from countersign.core.access.key import Scope
from countersign.core.access.reach import Reach
from countersign.core.acknowledgments.evidence_routes import FILE_RESPONSE_HEADERS, file_reply
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Call, Reply, encode, reason
from countersign.core.privacy.erase import (
    destroy_copies,
    erase_planned,
    kept_of_plan,
    plan_erasure,
    refusal,
)
from countersign.core.privacy.export import all_about, packed
from countersign.core.privacy.held import HeldRecords
from countersign.core.privacy.model import Due, ErasureReason, Plan
from countersign.core.privacy.requests import requested
from countersign.core.privacy.retention import list_due
from countersign.core.privacy.room import Privacy

E = TypeVar("E", bound="_Erasure")
_HOLD: Final = "hold_01km9wtz3tfs8v8j2c7n5k9m0d"
_Subject = Annotated[
    Reference,
    Meta(
        description="An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…).",
        examples=[CBID],
    ),
]


_InWords = Annotated[
    str,
    Meta(
        description="The same by kind, in words; empty: nothing.",
        examples=["1 acknowledgment, 2 clearances"],
    ),
]
_KINDS: Final = {
    ACKNOWLEDGMENT: "acknowledgment",
    VERIFICATION: "identity check",
    CLEARANCE: "clearance",
    FULFILMENT: "fulfilment report",
    OVERRIDE: "manual override",
    CHECKOUT_SESSION: "checkout link",
    EARLIER_SESSION: "checkout link",
}


class ErasurePreviewRequest(Request, frozen=True, kw_only=True):
    """What would be erased."""

    subject: _Subject
    with_acknowledgments: bool = False
    """Of a buyer: also the acknowledgments that name the buyer."""


class ErasureOrder(ErasurePreviewRequest, frozen=True, kw_only=True):
    """What is to be erased, and why."""

    reason: Annotated[ErasureReason, Meta(examples=[ErasureReason.REQUEST])] = ErasureReason.REQUEST


class KeptRecord(Struct, frozen=True, kw_only=True):
    """A record, or the checkout session of an order, that a legal hold keeps."""

    record_id: Annotated[str, Meta(examples=[ACK_ID])]
    """A record, or a checkout session (chk_…)."""
    hold_id: Annotated[str, Meta(examples=[_HOLD])]
    subject: Annotated[str, Meta(examples=[ACK_ID])]
    """What the hold is on."""


class _Erasure(Struct, frozen=True, kw_only=True):
    subject: Annotated[str, Meta(examples=[CBID])]
    buyer: Annotated[bool, Meta(examples=[True])]
    """Whether it is a buyer, with all its identifiers."""
    records: Annotated[list[str], Meta(examples=[[ACK_ID]])]
    """Whose personal data goes."""
    erased: _InWords
    kept: list[KeptRecord]
    """It is erased when the holds have been released."""
    still_kept: _InWords


class ErasurePreview(_Erasure, frozen=True, kw_only=True):
    """What an erasure would erase now, and what legal holds keep."""

    prevented_by: str | None
    """Why nothing of it can be erased at the moment: the hold in words."""
    retention_ends_at: Timestamp | None
    """The end of the longest retention period, if it is yet to come."""
    requested_at: Timestamp | None
    """When the buyer asked for it at /buyer; null: not."""


class ErasureDone(_Erasure, frozen=True, kw_only=True):
    """What was erased: the facts for a letter."""

    erased_at: Timestamp
    copies_remain: bool
    """Whether a file of the embedded database still has copies, until a server empties it within
    minutes. Older backups of the keys always have."""


class ErasureRequested(Struct, frozen=True, kw_only=True):
    """A buyer who asked at /buyer to be erased, and is not erased yet."""

    cbid: BuyerId
    account_id: str | None
    requested_at: Timestamp
    answer_by: Timestamp
    """The deadline, by the days that the account sets."""
    prevented_by: str | None
    """What blocks it: the hold in words; null: it waits for retention."""


class DueRecord(Struct, frozen=True, kw_only=True):
    """A record whose retention period has ended, or ends until the time that was asked for."""

    record_id: Annotated[str, Meta(examples=[ACK_ID])]
    account_id: Annotated[str, Meta(examples=["acct_01km9wtz3tfs8v8j2c7n5k9m0c"])]
    retention_ends_at: Timestamp
    hold_id: str | None
    """The hold that keeps it."""


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
        Annotated[datetime, Meta(tz=True)] | None, Meta(examples=["2026-12-31T00:00:00Z"])
    ] = None
    """What ends until this time. Left out: what has ended."""


class ExportQuery(Request, frozen=True, kw_only=True):
    """How the page of an export is written."""

    language: Annotated[Literal["en", "es"], Meta(examples=["es"])] = "en"
    """Of the page."""


ERASURES: Final = Acts("Staff: erasures", Privacy, scope=Scope.ERASURE_WRITE, console=True)


@ERASURES.act("GET /v1/erasures/requests", "List the buyers who asked to be erased")
def list_erasure_requests(
    connection: Connection, privacy: Privacy, reach: Reach, query: RequestsQuery
) -> Page[ErasureRequested]:
    """The buyers who asked at /buyer to be erased and still wait, in the order of their ids."""
    asked, after = requested(connection, privacy.access.secret, reach), query.after or ""
    waiting = [one for one in sorted(asked) if one.cbid > after]
    holds = [(one, refusal(connection, {}, one.cbid, reach)) for one in waiting]
    found = [view(ErasureRequested, one, prevented_by=on and on.message) for one, on in holds]
    return page_of(found, query.limit, lambda one: one.cbid)


@ERASURES.act(
    "POST /v1/erasures/preview",
    "See what an erasure would erase, and what is held",
    reads=True,
    scope=Scope.RETENTION_READ,
    refusals=(UnknownSubject,),
)
async def preview_erasure(
    privacy: Privacy, reach: Reach, wanted: ErasurePreviewRequest
) -> ErasurePreview:
    """What would be erased, what legal holds keep, and why. Nothing is changed."""
    plan, held, prevented = await _plan(privacy, reach, wanted), dict[str, tuple[str, str]](), None
    try:
        held |= await kept_of_plan(privacy, plan)
    except OnHold as error:
        prevented = error.message
    asked = await privacy.access.database.read(_requested_at, wanted.subject)
    return _shown(
        ErasurePreview,
        plan,
        held,
        prevented_by=prevented,
        retention_ends_at=plan.kept_until,
        requested_at=asked,
    )


@ERASURES.act(
    "POST /v1/erasures",
    "Erase personal data permanently",
    fresh=True,
    refusals=(UnknownSubject, OnHold),
)
async def erase(
    privacy: Privacy, reach: Reach, wanted: ErasureOrder, keep: KeyedRequest | None = None
) -> ErasureDone:
    """Permanently erase the personal data of an acknowledgment, a verification or a buyer.

    The record, its log entry and every proof stay valid. The erasure itself is recorded. What a
    legal hold keeps of a buyer is erased when the hold is released.
    """
    plan, now = await _plan(privacy, reach, wanted), from_ns(privacy.access.clock.time_ns())

    def done(held: HeldRecords, *, copies_remain: bool = True) -> ErasureDone:
        return _shown(ErasureDone, plan, held, erased_at=now, copies_remain=copies_remain)

    remember = None if keep is None else lambda held: keep(encode(done(held)))
    held = await erase_planned(privacy, plan, wanted.reason, remember=remember)
    answer = done(held, copies_remain=not await destroy_copies(privacy.access.database))
    if keep is not None:
        await privacy.access.database.write(replace_answer, keep(encode(answer)))
    return answer


@ERASURES.act(
    "GET /v1/buyers/{cbid}/export",
    "Get all that is stored about a buyer, as a ZIP file for the buyer",
    scope=Scope.BUYERS_REVIEW,
    media_type="application/zip",
    response_headers=FILE_RESPONSE_HEADERS,
    fresh=True,
    personal=True,
    refusals=(UnknownSubject,),
)
async def export_buyer(privacy: Privacy, call: Call, cbid: str, query: ExportQuery) -> Reply:
    """A page without scripts, `index.html`, and the same as JSON, `data.json`.

    For one account: what that account holds. The header `Countersign-Reason` is needed, also of a
    key; the audit has it.
    """
    found = await all_about(privacy, cbid, call.principal.reach)
    await privacy.access.audit.note(AuditAction.SUBJECT_EXPORTED, cbid, reason=reason(call))
    return file_reply(await packed(found, query.language), b"application/zip", f"{cbid}.zip")


@ERASURES.act("GET /v1/retention", "List what falls due", scope=Scope.RETENTION_READ)
async def list_retention(privacy: Privacy, reach: Reach, query: DueQuery) -> Page[DueRecord]:
    """What has outlived its retention, or will have: acknowledgments, then verifications.

    Of each, the oldest come first. `countersign retention run` erases what is due and not on hold.
    """
    until = None if query.until is None else in_utc(query.until, "$.until")
    rows: list[DueRecord] = []
    async for due in list_due(privacy, reach, until, query.after or ""):
        rows.append(due_view(due))
        if len(rows) > query.limit:
            break
    return page_of(rows, query.limit, lambda one: one.record_id)


def due_view(due: Due) -> DueRecord:
    return view(DueRecord, due, retention_ends_at=due.retention_ended_at, hold_id=due.hold)


async def _plan(privacy: Privacy, reach: Reach, wanted: ErasurePreviewRequest) -> Plan:
    """The planned erasure, within the caller's reach."""
    naming = wanted.with_acknowledgments
    return await plan_erasure(privacy, wanted.subject, reach, with_acknowledgments=naming)


def _shown(kind: type[E], plan: Plan, held: HeldRecords, **more: object) -> E:
    """What goes and what stays, and more; nothing goes if it is `prevented_by` a hold."""
    ids = [] if more.get("prevented_by") else [record.record_id for record in plan.records]
    going = [id_ for id_ in ids if id_ not in held]
    return view(
        kind,
        subject=plan.subject,
        buyer=plan.buyer is not None,
        records=going,
        erased=_in_words(going),
        kept=[
            KeptRecord(record_id=id_, hold_id=hold, subject=subject)
            for id_, (hold, subject) in sorted(held.items())
        ],
        still_kept=_in_words(held),
        **more,
    )


def _in_words(ids: Iterable[str]) -> str:
    """How many of each kind there are."""
    number = Counter(_KINDS.get(id_.partition("_")[0], "record") for id_ in ids)
    return ", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in sorted(number.items()))


def _requested_at(connection: Connection, cbid: str) -> datetime | None:
    own = select(erasure_requests.c.requested_at).where(erasure_requests.c.cbid == cbid)
    return connection.execute(own).scalar()


ROUTES: Final = ERASURES.routes
