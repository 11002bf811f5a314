"""Acknowledging, and reading acknowledgments back."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from countersign.access.key import Scope
from countersign.acknowledgments import acknowledge as acknowledging
from countersign.acknowledgments import schemas
from countersign.acknowledgments.find import find_many, find_one
from countersign.acknowledgments.model import AcknowledgmentView, Search, Submission
from countersign.acknowledgments.origin import (
    Origin,
    forwarding_elements,
    normalised_ip,
    readable_part,
    resolve_origin,
)
from countersign.acknowledgments.room import Acknowledgments
from countersign.errors import (
    EmptyInitials,
    EvidenceDamaged,
    InitialsCountMismatch,
    InvalidRequest,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
)
from countersign.http.body import parse_body
from countersign.http.examples import ACK_ID, CBID, SESSION
from countersign.http.paging import LIMIT_DEFAULT, Limit, Page, cursor
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped
from countersign.http.schemas import Evidence, Opaque, Request, Timestamp
from countersign.ids import ACKNOWLEDGMENT
from countersign.instant import to_the_second
from countersign.log.record import Sealed
from countersign.mode import Mode


class AcknowledgmentsQuery(Request, frozen=True, kw_only=True):
    """Which acknowledgments to list."""

    session_id: Annotated[
        Opaque | None,
        Meta(description="Only items with this checkout session.", examples=[SESSION]),
    ] = None
    cbid: Annotated[
        Opaque | None, Meta(description="Only items with this buyer identifier.", examples=[CBID])
    ] = None
    notice_id: Annotated[
        Opaque | None, Meta(description="Only acknowledgments of this notice.", examples=["ab1263"])
    ] = None
    accepted_after: Annotated[
        Timestamp | None, Meta(description="Only acknowledgments accepted at or after this time.")
    ] = None
    accepted_before: Annotated[
        Timestamp | None, Meta(description="Only acknowledgments accepted before this time.")
    ] = None
    limit: Limit = LIMIT_DEFAULT
    after: (
        Annotated[str, cursor("the id of that page's last acknowledgment", ACK_ID, ACKNOWLEDGMENT)]
        | None
    ) = None


async def acknowledge(room: Acknowledgments, call: Call) -> Reply:
    """Store the initials of a buyer for every line of the notice in force."""
    who = call.principal
    clock = await room.notices.log.access.test_clocks.of(who.account_id, who.mode)
    notice = await room.notices.registry.in_force(call.parameter, who.mode, clock)
    body = parse_body(call.body, schemas.AcknowledgmentRequest)
    submission = Submission(
        initials_per_line=body.initials_per_line,
        session_id=body.session_id,
        cbid=body.cbid,
        notice_version=body.notice_version,
        origin=_origin(room, call, body),
    )
    receipt = await acknowledging.acknowledge(
        room, who, notice, submission, clock=clock, entry=call.entry
    )
    return Reply(receipt.body)


async def get_acknowledgment(room: Acknowledgments, call: Call) -> Reply:
    """One acknowledgment of this account."""
    return Reply(encode(_view(await find_one(room, call.principal, call.parameter))))


async def list_acknowledgments(room: Acknowledgments, call: Call) -> Reply:
    """The account's acknowledgments, newest first."""
    query: AcknowledgmentsQuery = call.query
    search = Search(**msgspec.structs.asdict(query))
    if search.notice_id not in {None, *await room.notices.registry.notice_ids()}:
        # Nothing can be found, and looking for it would walk through all that the account has.
        return Reply(encode(Page(data=[], next_cursor=None)))
    found, cursor = await find_many(room, call.principal, search)
    return Reply(encode(Page(data=[_view(item) for item in found], next_cursor=cursor)))


def _origin(room: Acknowledgments, call: Call, body: schemas.AcknowledgmentRequest) -> Origin:
    ip = None
    if body.ip is not None:
        try:
            ip = normalised_ip(body.ip)
        except ValueError:
            msg = "Expected an IPv4 or IPv6 address - at `$.ip`."
            raise InvalidRequest(msg) from None
    forwarded, elements = None, []
    if ip is None:
        name = room.client_ip_header.encode()
        lines = [value.decode("latin-1") for key, value in call.raw_headers if key == name]
        if lines:
            forwarded = ", ".join(lines)
            elements = forwarding_elements(room.client_ip_header, readable_part(forwarded))
    agent = call.headers.get(b"user-agent") if body.user_agent is None else None
    return resolve_origin(
        body_ip=ip,
        body_user_agent=body.user_agent,
        forwarded=forwarded,
        forwarded_addresses=elements,
        user_agent=_header_text(agent) if agent is not None else None,
        peer=call.peer,
        trusted_proxies=room.trusted_proxies,
    )


def _header_text(value: bytes) -> str:
    """A header as text: UTF-8 where it is, else byte for byte (RFC 9110 §5.5 obs-text)."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _view(view: AcknowledgmentView) -> schemas.Acknowledgment:
    return schemas.Acknowledgment(
        ack_id=view.ack_id,
        livemode=view.mode is Mode.LIVE,
        notice_id=view.record.notice_id,
        notice_version=view.record.notice_version,
        notice_version_source=view.record.notice_version_source,
        notice_digest=view.record.notice_digest,
        initials_per_line=view.field("initials_per_line"),
        session_id=view.field("session_id"),
        cbid=view.field("cbid"),
        ip=view.field("ip", "ip"),
        ip_source=view.field("ip", "source"),
        peer_ip=view.field("ip", "peer_ip"),
        user_agent=view.field("user_agent", "user_agent"),
        user_agent_source=view.field("user_agent", "source"),
        user_agent_truncated=view.field("user_agent", "truncated"),
        capture=view.record.capture,
        accepted_at=view.accepted_at.replace(microsecond=0),
        test_clock=to_the_second(view.record.test_clock) or msgspec.UNSET,
        clearance_id=view.clearance_id,
        evidence=evidence_of(view.sealed),
        erased_at=to_the_second(view.erased_at),
    )


def evidence_of(sealed: Sealed | None) -> Evidence:
    if sealed is None:
        return Evidence(status="pending", log=None, index=None)
    return Evidence(status="sealed", log=sealed.origin, index=sealed.index)


ROUTES: Final = grouped(
    "Acknowledgments",
    Acknowledgments,
    Route(
        address="POST /v1/notices/{notice_id}/acknowledge",
        handler=acknowledge,
        operation="acknowledgeNotice",
        summary="Store a buyer's initials on every line",
        scope=Scope.ACKS_CREATE,
        request=schemas.AcknowledgmentRequest,
        response=schemas.AcknowledgmentReceipt,
        refusals=(
            NoticeNotFound,
            NoticeNotReviewed,
            NoticeNotInForce,
            NoticeVersionMismatch,
            InitialsCountMismatch,
            EmptyInitials,
        ),
        request_examples={"all fields": schemas.ACKNOWLEDGE, "shortest": schemas.ACKNOWLEDGE_MIN},
        response_examples={"stored": schemas.RECEIPT},
        links={"getAcknowledgment": {"ack_id": "/ack_id"}},
    ),
    Route(
        address="GET /v1/acknowledgments",
        handler=list_acknowledgments,
        operation="listAcknowledgments",
        summary="Find acknowledgments, newest first",
        scope=Scope.ACKS_READ,
        query=AcknowledgmentsQuery,
        response=Page[schemas.Acknowledgment],
        refusals=(EvidenceDamaged,),
        response_examples={"last page": schemas.ACKNOWLEDGMENTS},
    ),
    Route(
        address="GET /v1/acknowledgments/{ack_id}",
        handler=get_acknowledgment,
        operation="getAcknowledgment",
        summary="Get one acknowledgment",
        scope=Scope.ACKS_READ,
        response=schemas.Acknowledgment,
        refusals=(NotFound, EvidenceDamaged),
        response_examples={"stored": schemas.ACKNOWLEDGMENT},
    ),
)
