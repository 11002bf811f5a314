"""What operators and staff did or looked at, over the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from sqlalchemy import ColumnElement, Connection, select

from countersign.base.db.tables import audit_log, audit_owners
from countersign.base.http.body import in_utc
from countersign.base.http.schemas import (
    ACK_ID,
    STORABLE,
    Listing,
    Page,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.values import earliest_id, to_ms
from countersign.core.access.audit import AuditAction, entries_of, references_of
from countersign.core.access.key import Scope
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.access.room import Access
from countersign.core.gate.act import Acts

AUDIT_ID: Final = "aud_01km9wtz3tfs8v8j2c7n5k9m0d"
_Word = Annotated[str, Meta(max_length=100, extra_json_schema=STORABLE)]
_Time = Annotated[datetime, Meta(tz=True)]


class AuditQuery(
    Listing[Annotated[str, cursor("that page's last entry", AUDIT_ID)]], frozen=True, kw_only=True
):
    subject: Annotated[_Word | None, Meta(examples=[ACK_ID])] = None
    """Only about this one."""
    actor: Annotated[_Word | None, Meta(examples=["root"])] = None
    """Only by this person, key or user of the system."""
    action: Annotated[AuditAction | None, Meta(examples=[AuditAction.HOLD_PLACED])] = None
    """Only this."""
    begin: Annotated[_Time | None, Meta(examples=["2026-11-01T00:00:00Z"])] = None
    """At or after."""
    end: Annotated[_Time | None, Meta(examples=["2026-12-01T00:00:00Z"])] = None
    """Before."""


class AuditView(Struct, frozen=True, kw_only=True):
    """What was done or looked at. A buyer who was erased is not named any more."""

    audit_id: Annotated[str, Meta(examples=[AUDIT_ID])]
    at: Timestamp
    actor: Annotated[str, Meta(examples=["root"])]
    """The person (`per_…`), the key (`key_…`), or the user of the system."""
    action: Annotated[AuditAction, Meta(examples=[AuditAction.HOLD_PLACED])]
    subject: Annotated[str, Meta(examples=[ACK_ID])]
    details: Annotated[dict[str, Any], Meta(examples=[{"reason": "case 24-1187"}])]


AUDIT: Final = Acts("Staff: audit", Access, scope=Scope.AUDIT_READ, console=True)


@AUDIT.act("GET /v1/audit", "List what operators and staff did, newest first")
def list_audit(connection: Connection, reach: Reach, query: AuditQuery) -> Page[AuditView]:
    """What operators and staff did or looked at, newest first.

    For one account: what was done in its name in this mode, and what is about it as a whole. Staff
    who name no account see all.
    """
    own, wanted, found = audit_log.c, list[ColumnElement[bool]](), select(audit_log)
    # An account reads the order of its own entries, so that other entries cost it nothing.
    id_ = own.id
    if isinstance(reach, AccountReach):
        id_ = audit_owners.c.entry_id
        found = found.join(audit_owners, id_ == own.id).where(reach.rows(audit_owners))
    if query.subject is not None:
        about = [query.subject, *references_of(connection, query.subject)]
        wanted.append(own.subject.in_(about))
    if query.actor is not None:
        wanted.append(own.actor == query.actor)
    if query.action is not None:
        wanted.append(own.action == query.action.value)
    # Identifiers begin with the millisecond, so a range of times is one of ids.
    if query.begin is not None:
        wanted.append(id_ >= earliest_id("aud", to_ms(in_utc(query.begin, "$.begin"))))
    if query.end is not None:
        wanted.append(id_ < earliest_id("aud", to_ms(in_utc(query.end, "$.end"))))
    if query.after is not None:
        wanted.append(id_ < query.after)
    page = found.where(*wanted).order_by(id_.desc()).limit(query.limit + 1)
    views = [view(AuditView, one, audit_id=one.id) for one in entries_of(connection, page)]
    return page_of(views, query.limit, lambda one: one.audit_id)


ROUTES: Final = AUDIT.routes
