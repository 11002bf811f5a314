"""What operators and staff did or looked at, over the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from sqlalchemy import ColumnElement, Connection, and_, or_, select

from countersign.access.audit import AuditAction, AuditEntry, entries_of
from countersign.access.key import Principal, Scope
from countersign.access.references import references_of
from countersign.access.room import Access
from countersign.console.reach import staff_route
from countersign.db.tables import (
    api_keys,
    audit_log,
    buyer_references,
    buyers,
    records,
    webhook_endpoints,
)
from countersign.http.body import in_utc
from countersign.http.examples import ACK_ID
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import STORABLE, Timestamp, view
from countersign.ids import earliest_id
from countersign.instant import to_ms

AUDIT_ID: Final = "aud_01km9wtz3tfs8v8j2c7n5k9m0d"
_Word = Annotated[str, Meta(max_length=100, extra_json_schema=STORABLE)]
_Time = Annotated[datetime, Meta(tz=True)]


class AuditQuery(
    Listing[Annotated[str, cursor("that page's last entry", AUDIT_ID)]], frozen=True, kw_only=True
):
    subject: Annotated[
        _Word | None, Meta(description="Only about this one.", examples=[ACK_ID])
    ] = None
    actor: Annotated[
        _Word | None,
        Meta(description="Only by this person, key or user of the system.", examples=["root"]),
    ] = None
    action: Annotated[
        AuditAction | None, Meta(description="Only this.", examples=[AuditAction.HOLD_PLACED])
    ] = None
    begin: Annotated[
        _Time | None, Meta(description="At or after.", examples=["2026-11-01T00:00:00Z"])
    ] = None
    end: Annotated[_Time | None, Meta(description="Before.", examples=["2026-12-01T00:00:00Z"])] = (
        None
    )


class AuditView(Struct, frozen=True, kw_only=True):
    """What was done or looked at. A buyer who was erased is not named any more."""

    audit_id: Annotated[str, Meta(examples=[AUDIT_ID])]
    at: Timestamp
    actor: Annotated[
        str,
        Meta(
            description="The person (`per_…`), the key (`key_…`), or the user of the system.",
            examples=["root"],
        ),
    ]
    action: Annotated[AuditAction, Meta(examples=[AuditAction.HOLD_PLACED])]
    subject: Annotated[str, Meta(examples=[ACK_ID])]
    details: Annotated[dict[str, Any], Meta(examples=[{"reason": "case 24-1187"}])]


async def list_audit(room: Access, call: Call) -> Reply:
    """What operators and staff did or looked at, newest first.

    For one account: what is about it, its people, and its records, buyers, keys and endpoints.
    """
    query: AuditQuery = call.query
    found = await room.database.scan(_find, call.principal, query)
    views = [view(AuditView, one, audit_id=one.id) for one in found]
    return Reply(encode(page_of(views, query.limit, lambda one: one.audit_id)))


def _find(connection: Connection, who: Principal, query: AuditQuery) -> list[AuditEntry]:
    own, wanted = audit_log.c, list[ColumnElement[bool]]()
    if query.subject is not None:
        about = [query.subject, *references_of(connection, query.subject)]
        wanted.append(own.subject.in_(about))
    if query.actor is not None:
        wanted.append(own.actor == query.actor)
    if query.action is not None:
        wanted.append(own.action == query.action.value)
    # Identifiers begin with the millisecond, so a range of times is one of ids.
    if query.begin is not None:
        wanted.append(own.id >= earliest_id("aud", to_ms(in_utc(query.begin, "$.begin"))))
    if query.end is not None:
        wanted.append(own.id < earliest_id("aud", to_ms(in_utc(query.end, "$.end"))))
    if query.after is not None:
        wanted.append(own.id < query.after)
    if who.account_id:
        wanted.append(_of_account(who))
    found = select(audit_log).where(*wanted).order_by(own.id.desc()).limit(query.limit + 1)
    return entries_of(connection, found)


def _of_account(who: Principal) -> ColumnElement[bool]:
    """That an entry is about an account, or what it has in this mode."""
    subject, mode = audit_log.c.subject, who.mode
    has: list[ColumnElement[bool]] = [
        select(table.c.id)
        .where(table.c.id == subject, table.c.account_id == who.account_id, table.c.mode == mode)
        .exists()
        for table in (records, api_keys, webhook_endpoints)
    ]
    named = (
        select(buyers.c.cbid)
        .join(buyer_references, buyer_references.c.cbid == buyers.c.cbid)
        .where(
            buyer_references.c.reference == subject,
            buyers.c.account_id == who.account_id,
            buyers.c.mode == mode,
        )
    )
    people = and_(
        audit_log.c.action.startswith("person_"),
        audit_log.c.details.contains(f'"place":"{who.account_id}"', autoescape=True),
    )
    return or_(subject == who.account_id, named.exists(), people, *has)


ROUTES: Final = grouped(
    "Staff: audit",
    Access,
    staff_route(
        address="GET /v1/audit",
        handler=list_audit,
        operation="listAudit",
        summary="List what operators and staff did, newest first",
        scope=Scope.AUDIT_READ,
        query=AuditQuery,
        response=Page[AuditView],
    ),
)
