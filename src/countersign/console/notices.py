"""Notices over the API: check one, publish it, record its review, take it out of force."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, to_builtins

from countersign.access.key import Scope
from countersign.access.reach import DeploymentReach
from countersign.console.reach import staff_route
from countersign.errors import (
    InvalidNoticeFile,
    NoticeIncomplete,
    NoticeNotFound,
    NoticeVersionConflict,
)
from countersign.http.body import parse_body
from countersign.http.paging import Listing, Page, cursor, page_of
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import grouped
from countersign.http.schemas import STORABLE, Request, Timestamp, view
from countersign.mode import Mode
from countersign.notices import publish as publishing
from countersign.notices.model import (
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeStatus,
    notice_digest,
    published_bytes,
    status_of,
)
from countersign.notices.notice_file import content_of
from countersign.notices.registry import KnownNotices
from countersign.notices.room import Notices
from countersign.notices.schemas import CONTENT

_VERSION: Final = "2026-01-01"
_DIGEST: Final = "50d3619b84e1985e1f8106aa8c35ac59" * 2
_LAW: Final = (
    "https://leginfo.legislature.ca.gov/faces/billTextClient.xhtml?bill_id=202520260AB1263"
)
_Text = Annotated[str, Meta(min_length=1, max_length=2000, extra_json_schema=STORABLE)]
_Version = Annotated[_Text, Meta(examples=[_VERSION])]
_NoticeId = Annotated[str, Meta(examples=["ab1263"])]
_Digest = Annotated[str, Meta(description="Hex SHA-256 of the bytes.", examples=[_DIGEST])]
_GapClosed = Annotated[
    _Text | None,
    Meta(description="Why nothing is missing, where a version with these lines has gaps."),
]


class NoticeDraft(Request, frozen=True, kw_only=True):
    """A version of a notice, with the members of a notice file."""

    notice: Annotated[NoticeContent, Meta(examples=[to_builtins(CONTENT)])]
    gap_closed: _GapClosed = None


class NoticeReinstatement(Request, frozen=True, kw_only=True):
    """The version that live keys get again, and the comparison with the official text."""

    version: _Version
    by: Annotated[_Text, Meta(description="Who compared it.", examples=["Ada Moreno, counsel"])]
    against: Annotated[_Text, Meta(description="URL of the official text.", examples=[_LAW])]


class NoticeReview(NoticeReinstatement, frozen=True, kw_only=True):
    """A comparison with the official text, word for word."""

    rule: Annotated[
        _Text | None,
        Meta(description="The version of `applies_to` that was compared with the law, too."),
    ] = None
    gap_closed: _GapClosed = None


class NoticeWithdrawal(Request, frozen=True, kw_only=True):
    """The version to take out of force, and why."""

    version: _Version
    reason: Annotated[_Text, Meta(examples=["replaced by the corrected text"])]
    enjoined: Annotated[
        bool, Meta(description="A court ordered it: the whole notice stops for live keys.")
    ] = False


class NoticeDifference(Struct, frozen=True, kw_only=True):
    """A part of two versions that is not the same."""

    part: Annotated[str, Meta(description="A field, or a line.", examples=["bullet A"])]
    before: Annotated[str | None, Meta(description="null: it was not there.")]
    after: Annotated[str | None, Meta(description="null: it is gone.")]


class LifecycleStep(Struct, frozen=True, kw_only=True):
    """What happened to a published version."""

    event_id: Annotated[str, Meta(examples=["nev_01km9wtz3tfs8v8j2c7n5k9m0d"])]
    type: Annotated[LifecycleEvent, Meta(examples=[LifecycleEvent.REVIEWED])]
    at: Timestamp
    details: Annotated[dict[str, str], Meta(examples=[{"by": "Ada Moreno, counsel"}])]


class NoticeLifecycle(Struct, frozen=True, kw_only=True):
    """A published version: where it stands for keys of each mode, and its history."""

    notice_id: _NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]
    title: Annotated[str, Meta(examples=["Notice to the purchaser"])]
    digest: _Digest
    lines: Annotated[int, Meta(examples=[4])]
    effective_from: Annotated[str, Meta(examples=[_VERSION])]
    test: Annotated[NoticeStatus, Meta(examples=[NoticeStatus.IN_FORCE])]
    live: Annotated[NoticeStatus, Meta(examples=[NoticeStatus.IN_FORCE])]
    text_gaps: list[str]
    rules: Annotated[
        list[str], Meta(description="The versions of its `applies_to`.", examples=[["1"]])
    ]
    events: list[LifecycleStep]


class CheckedNotice(Struct, frozen=True, kw_only=True):
    """A notice that can be published, or the version that was published."""

    notice_id: _NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]
    digest: _Digest
    text_gaps: list[str]
    new: Annotated[bool, Meta(description="Whether no such version was published before.")]
    compared_with: Annotated[
        str | None,
        Meta(description="The version in force for live keys, or else the newest; null: none."),
    ]
    differences: list[NoticeDifference]


class ComparedNotices(Struct, frozen=True, kw_only=True):
    """What differs between two versions of a notice."""

    notice_id: _NoticeId
    old: Annotated[str, Meta(examples=["2026-01-01-incomplete"])]
    new: Annotated[str, Meta(examples=[_VERSION])]
    differences: list[NoticeDifference]


class NoticeOutcome(LifecycleStep, frozen=True, kw_only=True):
    """What was recorded of a version. The lifecycle shows what keys get from now on."""

    notice_id: _NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]


class LifecycleQuery(
    Listing[Annotated[str, cursor("that page's last version", f"ab1263 {_VERSION}")]],
    frozen=True,
    kw_only=True,
):
    notice_id: Annotated[
        Annotated[str, Meta(max_length=64, extra_json_schema=STORABLE)] | None,
        Meta(description="Only of this notice.", examples=["ab1263"]),
    ] = None


class CompareQuery(Request, frozen=True, kw_only=True):
    old: Annotated[_Version | None, Meta(description="Left out: the oldest version.")] = None
    new: Annotated[_Version | None, Meta(description="Left out: the newest version.")] = None


async def list_lifecycles(room: Notices, call: Call) -> Reply:
    """Every published version with its status and its history, by notice, oldest first."""
    query: LifecycleQuery = call.query
    known, now = await room.registry.notices(fresh=True), room.registry.now()
    rows = [
        _lifecycle(one, {mode: status_of(one, versions, mode, now) for mode in Mode})
        for notice_id, versions in sorted(known.versions.items())
        if query.notice_id in {None, notice_id}
        for one in versions
    ]
    places = [_place(row) for row in rows]
    after = places.index(query.after) + 1 if query.after in places else 0
    return Reply(encode(page_of(rows[after:], query.limit, _place)))


async def compare(room: Notices, call: Call) -> Reply:
    """What differs between two versions of a notice, part by part."""
    query: CompareQuery = call.query
    versions = await room.registry.versions(call.parameter)
    known = {one.content.version: one.content for one in versions}
    old, new = query.old or next(iter(known)), query.new or [*known][-1]
    if not {old, new} <= known.keys():
        raise NoticeNotFound("The notice has no such version.")
    found = differences(known[old], known[new])
    view = ComparedNotices(notice_id=call.parameter, old=old, new=new, differences=found)
    return Reply(encode(view))


async def check(room: Notices, call: Call) -> Reply:
    """Check a notice without publishing it: mistakes, gaps, what differs from before."""
    content = content_of(to_builtins(parse_body(call.body, NoticeDraft).notice))
    known = await room.registry.notices(fresh=True)
    versions = known.versions.get(content.id, ())
    new = all(one.content.version != content.version for one in versions)
    return Reply(encode(_checked(room, known, content, new=new)))


async def publish(room: Notices, call: Call) -> Reply:
    """Publish a notice permanently. Live keys get the version after its review."""
    body, known = parse_body(call.body, NoticeDraft), await room.registry.notices(fresh=True)
    content = content_of(to_builtins(body.notice))

    gap_closed, audit = body.gap_closed, room.log.access.audit
    return await call.kept(
        lambda made: _checked(room, known, made.content, new=made.new),
        lambda e: publishing.publish(room, content, "", audit, gap_closed=gap_closed, entry=e),
    )


async def review(room: Notices, call: Call) -> Reply:
    """Record that a person compared a version with the official text, and its rule with the law."""
    body = parse_body(call.body, NoticeReview)
    act = partial(publishing.review, by=body.by, against=body.against, rule=body.rule)
    return await _record(room, call, partial(act, gap_closed=body.gap_closed), body.version)


async def withdraw(room: Notices, call: Call) -> Reply:
    """Take a version out of force permanently; the version before it, if any, is in force again.

    With `enjoined` no other version comes into force for live keys until one is reinstated.
    """
    body = parse_body(call.body, NoticeWithdrawal)
    act = partial(publishing.withdraw, reason=body.reason, enjoined=body.enjoined)
    return await _record(room, call, act, body.version)


async def reinstate(room: Notices, call: Call) -> Reply:
    """End the injunction against a notice: live keys get this version again."""
    body = parse_body(call.body, NoticeReinstatement)
    act = partial(publishing.reinstate, by=body.by, against=body.against)
    return await _record(room, call, act, body.version)


async def _record(room: Notices, call: Call, act: Any, version: str) -> Reply:  # noqa: ANN401 - of `publish`
    return await call.kept(
        lambda event: view(NoticeOutcome, event, event_id=event.id),
        lambda entry: act(room, call.parameter, version, entry=entry),
    )


def differences(before: NoticeContent, after: NoticeContent) -> list[NoticeDifference]:
    """The parts that are not the same, in the order of the later version."""
    was, is_ = _parts(before), _parts(after)
    return [
        NoticeDifference(part=part, before=was.get(part), after=is_.get(part))
        for part in {**is_, **was}
        if was.get(part) != is_.get(part)
    ]


def _parts(content: NoticeContent) -> dict[str, str]:
    """Each field and each line, as text."""
    fields: dict[str, Any] = to_builtins(content)
    bullets = {f"bullet {one['id']}": one["text"] for one in fields.pop("bullets")}
    rest = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in fields.items()
    }
    return bullets | rest


def _checked(
    room: Notices, known: KnownNotices, content: NoticeContent, *, new: bool
) -> CheckedNotice:
    others = [
        one for one in known.versions.get(content.id, ()) if one.content.version != content.version
    ]
    current = known.current(content.id, Mode.LIVE, room.registry.now(), remember=False)
    before = current if current in others else others[-1] if others else None
    return CheckedNotice(
        notice_id=content.id,
        version=content.version,
        digest=notice_digest(published_bytes(content)),
        text_gaps=[*content.text_gaps],
        new=new,
        compared_with=None if before is None else before.content.version,
        differences=differences(before.content, content) if before else [],
    )


def _lifecycle(one: NoticeEdition, status: Mapping[Mode, NoticeStatus]) -> NoticeLifecycle:
    content = one.content
    return view(
        NoticeLifecycle,
        content,
        one,
        notice_id=content.id,
        lines=len(content.bullets),
        test=status[Mode.TEST],
        live=status[Mode.LIVE],
        rules=[rule.version for rule in one.rules],
        events=[view(LifecycleStep, event, event_id=event.id) for event in one.events],
    )


def _place(row: NoticeLifecycle) -> str:
    return f"{row.notice_id} {row.version}"


_route: Final = partial(staff_route, scope=Scope.NOTICES_MANAGE)
_act: Final = partial(_route, reach=DeploymentReach, fresh=True)

ROUTES: Final = grouped(
    "Staff: notices",
    Notices,
    _route(
        address="GET /v1/notices/lifecycle",
        handler=list_lifecycles,
        operation="listNoticeLifecycles",
        summary="List every published version with its history",
        scope=Scope.NOTICES_READ,
        query=LifecycleQuery,
        response=Page[NoticeLifecycle],
    ),
    _route(
        address="GET /v1/notices/{notice_id}/compare",
        handler=compare,
        operation="compareNotices",
        summary="Compare two versions of a notice",
        scope=Scope.NOTICES_READ,
        query=CompareQuery,
        response=ComparedNotices,
        refusals=(NoticeNotFound,),
    ),
    _route(
        address="POST /v1/notices/check",
        handler=check,
        operation="checkNotice",
        summary="Check a notice without publishing it",
        request=NoticeDraft,
        response=CheckedNotice,
        refusals=(InvalidNoticeFile,),
    ),
    _act(
        address="POST /v1/notices/publish",
        handler=publish,
        operation="publishNotice",
        summary="Publish a notice permanently",
        request=NoticeDraft,
        response=CheckedNotice,
        refusals=(InvalidNoticeFile, NoticeIncomplete, NoticeVersionConflict),
    ),
    _act(
        address="POST /v1/notices/{notice_id}/review",
        handler=review,
        operation="reviewNotice",
        summary="Record the review of a version",
        request=NoticeReview,
        response=NoticeOutcome,
        refusals=(NoticeNotFound, NoticeIncomplete),
    ),
    _act(
        address="POST /v1/notices/{notice_id}/withdraw",
        handler=withdraw,
        operation="withdrawNotice",
        summary="Take a version out of force",
        request=NoticeWithdrawal,
        response=NoticeOutcome,
        refusals=(NoticeNotFound,),
    ),
    _act(
        address="POST /v1/notices/{notice_id}/reinstate",
        handler=reinstate,
        operation="reinstateNotice",
        summary="End the injunction against a notice",
        request=NoticeReinstatement,
        response=NoticeOutcome,
        refusals=(NoticeNotFound, NoticeIncomplete),
    ),
)
