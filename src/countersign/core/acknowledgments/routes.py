"""Acknowledging, and reading acknowledgments back."""

from __future__ import annotations

from typing import Final

from msgspec.structs import asdict

from countersign.base.errors import (
    EmptyInitials,
    EvidenceDamaged,
    InitialsCountMismatch,
    InvalidRequest,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
    OrderReferenceMismatch,
)
from countersign.base.http.body import parse_body
from countersign.base.http.schemas import Page, view
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import refuse_test_buyer
from countersign.core.acknowledgments import acknowledge as acknowledging
from countersign.core.acknowledgments import schemas
from countersign.core.acknowledgments.find import find_many, find_one
from countersign.core.acknowledgments.model import (
    Origin,
    Submission,
    forwarding_elements,
    forwarding_header,
    header_text,
    normalised_ip,
    readable_part,
    resolve_origin,
)
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Call, Reply, Route


async def acknowledge(room: Acknowledgments, call: Call) -> Reply:
    """Store the initials of a buyer for every line of the notice in force."""
    who = call.principal
    clock = await room.notices.log.access.test_clocks.of(who.account_id, who.mode)
    notice = await room.notices.registry.in_force(call.parameter, who.mode, clock)
    body = parse_body(call.body, schemas.AcknowledgmentRequest)
    refuse_test_buyer(who.mode, body.cbid)
    given = asdict(body)
    # Both are in the origin, with where they come from.
    del given["ip"], given["user_agent"]
    submission = Submission(**given, origin=_origin(room, call, body))
    new = await acknowledging.acknowledge(
        room, who, notice, submission, clock=clock, entry=call.entry
    )
    return Reply(new.answer)


READS: Final = Acts("Acknowledgments", Acknowledgments, scope=Scope.ACKS_READ, personal=True)


@READS.act(
    "GET /v1/acknowledgments",
    "Find acknowledgments, newest first",
    refusals=(EvidenceDamaged,),
)
async def list_acknowledgments(
    room: Acknowledgments, who: Principal, search: schemas.AcknowledgmentsQuery
) -> Page[schemas.Acknowledgment]:
    """The account's acknowledgments, newest first."""
    if search.notice_id not in {None, *await room.notices.registry.notice_ids()}:
        # The result is empty, and the query would scan all records of the account.
        return Page(data=[], next_cursor=None)
    found, cursor = await find_many(room, who, search)
    return Page(data=[view(schemas.Acknowledgment, one) for one in found], next_cursor=cursor)


@READS.act(
    "GET /v1/acknowledgments/{ack_id}",
    "Get one acknowledgment",
    refusals=(NotFound, EvidenceDamaged),
)
async def get_acknowledgment(
    room: Acknowledgments, who: Principal, ack_id: str
) -> schemas.Acknowledgment:
    """One acknowledgment of this account."""
    return view(schemas.Acknowledgment, await find_one(room, who, ack_id))


def _origin(room: Acknowledgments, call: Call, body: schemas.AcknowledgmentRequest) -> Origin:
    ip = None
    if body.ip is not None:
        try:
            ip = normalised_ip(body.ip)
        except ValueError:
            raise InvalidRequest("Expected an IPv4 or IPv6 address - at `$.ip`.") from None
    elements = list[str]()
    if ip is None and room.client_ip_header.encode() in call.headers:
        forwarded = forwarding_header(call.raw_headers, room.client_ip_header)
        if forwarded is not None:
            elements = forwarding_elements(room.client_ip_header, readable_part(forwarded))
    agent = call.headers.get(b"user-agent") if body.user_agent is None else None
    return resolve_origin(
        body_ip=ip,
        body_user_agent=body.user_agent,
        forwarded_addresses=elements,
        user_agent=header_text(agent) if agent is not None else None,
        peer=call.peer,
        trusted_proxies=room.trusted_proxies,
    )


ROUTES: Final = (
    Route(
        address="POST /v1/notices/{notice_id}/acknowledge",
        handler=acknowledge,
        room=Acknowledgments,
        tag="Acknowledgments",
        operation="acknowledgeNotice",
        summary="Store a buyer's initials on every line",
        scope=Scope.ACKS_CREATE,
        request=schemas.AcknowledgmentRequest,
        slot_decides=True,
        response=schemas.AcknowledgmentReceipt,
        refusals=(
            NoticeNotFound,
            NoticeNotReviewed,
            NoticeNotInForce,
            NoticeVersionMismatch,
            InitialsCountMismatch,
            EmptyInitials,
            OrderReferenceMismatch,
        ),
        links={"getAcknowledgment": {"ack_id": "/ack_id"}},
    ),
    *READS.routes,
)
