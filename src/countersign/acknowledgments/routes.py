"""Acknowledging, and reading acknowledgments back."""

from __future__ import annotations

from datetime import datetime

import msgspec

from countersign.acknowledgments import acknowledge as acknowledging
from countersign.acknowledgments.find import find_many, find_one
from countersign.acknowledgments.model import (
    OPAQUE_LENGTH_MAX,
    AcknowledgmentView,
    Search,
    Submission,
)
from countersign.acknowledgments.origin import (
    Origin,
    forwarding_elements,
    normalised_ip,
    readable_part,
    resolve_origin,
)
from countersign.bootstrap import Deployment
from countersign.errors import InvalidRequest
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.paging import read_limit
from countersign.http.reply import Call, Reply, encode
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.instant import parse_rfc3339, to_the_second
from countersign.log.record import Sealed
from countersign.mode import Mode


async def acknowledge(deployment: Deployment, call: Call) -> Reply:
    """Store the initials of a buyer for every line of the notice in force."""
    who, room = call.principal, deployment.acknowledgments
    clock = await deployment.access.test_clocks.of(who.account_id, who.mode)
    notice = await deployment.notices.registry.in_force(call.parameter, who.mode, clock)
    body = parse_body(call.body, schemas.AcknowledgmentRequest)
    submission = Submission(
        initials_per_line=body.initials_per_line,
        session_id=body.session_id,
        cbid=body.cbid,
        notice_version=body.notice_version,
        origin=_origin(deployment, call, body),
    )
    receipt = await acknowledging.acknowledge(
        room, who, notice, submission, clock=clock, entry=call.entry
    )
    return Reply(receipt.body)


async def get_acknowledgment(deployment: Deployment, call: Call) -> Reply:
    """One acknowledgment of this account."""
    found = await find_one(deployment.acknowledgments, call.principal, call.parameter)
    return Reply(encode(_view(found)))


async def list_acknowledgments(deployment: Deployment, call: Call) -> Reply:
    """The account's acknowledgments, newest first."""
    query = call.query
    after = query.get("after")
    if after is not None and not is_id(ACKNOWLEDGMENT, after):
        msg = "The query parameter after must be a next_cursor returned by this list."
        raise InvalidRequest(msg)
    for name in ("session_id", "cbid", "notice_id"):
        if len(query.get(name, "")) > OPAQUE_LENGTH_MAX:
            msg = f"The query parameter {name} can have at most {OPAQUE_LENGTH_MAX} characters."
            raise InvalidRequest(msg)
    search = Search(
        session_id=query.get("session_id"),
        cbid=query.get("cbid"),
        notice_id=query.get("notice_id"),
        accepted_after=_time(call, "accepted_after"),
        accepted_before=_time(call, "accepted_before"),
        after=after,
        limit=read_limit(call),
    )
    if search.notice_id not in {None, *await deployment.notices.registry.notice_ids()}:
        # Nothing can be found, and looking for it would walk through all that the account has.
        return Reply(encode(schemas.Page(data=[], next_cursor=None)))
    found, cursor = await find_many(deployment.acknowledgments, call.principal, search)
    return Reply(encode(schemas.Page(data=[_view(item) for item in found], next_cursor=cursor)))


def _origin(deployment: Deployment, call: Call, body: schemas.AcknowledgmentRequest) -> Origin:
    settings = deployment.settings
    ip = None
    if body.ip is not None:
        try:
            ip = normalised_ip(body.ip)
        except ValueError:
            msg = "Expected an IPv4 or IPv6 address - at `$.ip`."
            raise InvalidRequest(msg) from None
    forwarded, elements = None, []
    if ip is None:
        name = settings.client_ip_header.encode()
        lines = [value.decode("latin-1") for key, value in call.raw_headers if key == name]
        if lines:
            forwarded = ", ".join(lines)
            elements = forwarding_elements(settings.client_ip_header, readable_part(forwarded))
    agent = call.headers.get(b"user-agent") if body.user_agent is None else None
    return resolve_origin(
        body_ip=ip,
        body_user_agent=body.user_agent,
        forwarded=forwarded,
        forwarded_addresses=elements,
        user_agent=_header_text(agent) if agent is not None else None,
        peer=call.peer,
        trusted_proxies=settings.trusted_proxies,
    )


def _header_text(value: bytes) -> str:
    """A header as text: UTF-8 where it is, else byte for byte (RFC 9110 §5.5 obs-text)."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _time(call: Call, name: str) -> datetime | None:
    text = call.query.get(name)
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        msg = f"The query parameter {name} must be a time such as 2026-11-20T21:31:00Z."
        raise InvalidRequest(msg) from None


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


def evidence_of(sealed: Sealed | None) -> schemas.Evidence:
    if sealed is None:
        return schemas.Evidence(status="pending", log=None, index=None)
    return schemas.Evidence(status="sealed", log=sealed.origin, index=sealed.index)
