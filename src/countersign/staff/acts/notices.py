"""Notices over the API: check one, publish it, record its review, take it out of force."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, to_builtins
from msgspec.structs import asdict
from sqlalchemy import Connection

from countersign.base.errors import (
    InvalidNoticeFile,
    NoticeIncomplete,
    NoticeNotFound,
    NoticeVersionConflict,
    SecondPersonRequired,
)
from countersign.base.http.schemas import (
    STORABLE,
    Listing,
    NoticeId,
    Page,
    Request,
    Timestamp,
    cursor,
    page_of,
    view,
)
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction, find_audit
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import DeploymentReach
from countersign.core.gate.act import Acts
from countersign.core.notices import publish as publishing
from countersign.core.notices.model import (
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    NoticeStatus,
    notice_digest,
    published_bytes,
    status_of,
)
from countersign.core.notices.notice_file import content_of
from countersign.core.notices.registry import KnownNotices, all_versions
from countersign.core.notices.room import Notices
from countersign.core.notices.schemas import CONTENT
from countersign.staff.acts.reach import command
from countersign_evidence.cli.support import say

_VERSION: Final = "2026-01-01"
_DIGEST: Final = "50d3619b84e1985e1f8106aa8c35ac59" * 2
_LAW: Final = (
    "https://leginfo.legislature.ca.gov/faces/billTextClient.xhtml?bill_id=202520260AB1263"
)
_Text = Annotated[str, Meta(min_length=1, max_length=2000, extra_json_schema=STORABLE)]
_Version = Annotated[_Text, Meta(examples=[_VERSION])]
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
    by: Annotated[_Text, Meta(examples=["Ada Moreno, counsel"])]
    """Who compared it."""
    against: Annotated[_Text, Meta(examples=[_LAW])]
    """URL of the official text."""


class NoticeReview(NoticeReinstatement, frozen=True, kw_only=True):
    """A comparison with the official text, word for word."""

    rule: _Text | None = None
    """The version of `applies_to` that was compared with the law, too."""
    gap_closed: _GapClosed = None


class NoticeWithdrawal(Request, frozen=True, kw_only=True):
    """The version to take out of force, and why."""

    version: _Version
    reason: Annotated[_Text, Meta(examples=["replaced by the corrected text"])]
    enjoined: bool = False
    """A court ordered it: the whole notice stops for live keys."""


class NoticeDifference(Struct, frozen=True, kw_only=True):
    """A part of two versions that is not the same."""

    part: Annotated[str, Meta(examples=["bullet A"])]
    """A field, or a line."""
    before: str | None
    """null: it was not there."""
    after: str | None
    """null: it is gone."""


class LifecycleStep(Struct, frozen=True, kw_only=True):
    """What happened to a published version."""

    event_id: Annotated[str, Meta(examples=["nev_01km9wtz3tfs8v8j2c7n5k9m0d"])]
    type: Annotated[LifecycleEvent, Meta(examples=[LifecycleEvent.REVIEWED])]
    at: Timestamp
    details: Annotated[dict[str, str], Meta(examples=[{"by": "Ada Moreno, counsel"}])]


class NoticeLifecycle(Struct, frozen=True, kw_only=True):
    """A published version: where it stands for keys of each mode, and its history."""

    notice_id: NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]
    title: Annotated[str, Meta(examples=["Notice to the purchaser"])]
    digest: _Digest
    lines: Annotated[int, Meta(examples=[4])]
    effective_from: Annotated[str, Meta(examples=[_VERSION])]
    test: Annotated[NoticeStatus, Meta(examples=[NoticeStatus.IN_FORCE])]
    live: Annotated[NoticeStatus, Meta(examples=[NoticeStatus.IN_FORCE])]
    text_gaps: list[str]
    rules: Annotated[list[str], Meta(examples=[["1"]])]
    """The versions of its `applies_to`."""
    events: list[LifecycleStep]


class CheckedNotice(Struct, frozen=True, kw_only=True):
    """A notice that can be published, or the version that was published."""

    notice_id: NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]
    digest: _Digest
    text_gaps: list[str]
    new: bool
    """Whether no such version was published before."""
    compared_with: str | None
    """The version in force for live keys, or else the newest; null: none."""
    differences: list[NoticeDifference]


class ComparedNotices(Struct, frozen=True, kw_only=True):
    """What differs between two versions of a notice."""

    notice_id: NoticeId
    old: Annotated[str, Meta(examples=["2026-01-01-incomplete"])]
    new: Annotated[str, Meta(examples=[_VERSION])]
    differences: list[NoticeDifference]


class NoticeOutcome(LifecycleStep, frozen=True, kw_only=True):
    """What was recorded of a version. The lifecycle shows what keys get from now on."""

    notice_id: NoticeId
    version: Annotated[str, Meta(examples=[_VERSION])]


class LifecycleQuery(
    Listing[Annotated[str, cursor("that page's last version", f"ab1263 {_VERSION}")]],
    frozen=True,
    kw_only=True,
):
    notice_id: Annotated[
        Annotated[str, Meta(max_length=64, extra_json_schema=STORABLE)] | None,
        Meta(examples=["ab1263"]),
    ] = None
    """Only of this notice."""


class CompareQuery(Request, frozen=True, kw_only=True):
    old: _Version | None = None
    """Left out: the oldest version."""
    new: _Version | None = None
    """Left out: the newest version."""


async def _say_what_is_in_force(notices: Notices, done: Mapping[str, Any]) -> None:
    """Say which version keys get after an act, once every running server has seen it."""
    notice_id, url = done["notice_id"], urlsplit(done["details"].get("against", ""))
    say(f"{notice_id} version {done['version']} is {done['type']}.")
    if url.netloc and url.path in {"", "/"} and not url.query and not url.fragment:
        say(
            f"warning: {url.geturl()} is the address of a home page. Give the page that has the "
            "text, so that others can compare it too."
        )
    known, now = await notices.registry.notices(fresh=True), notices.registry.now()
    for mode in Mode:
        current = known.current(notice_id, mode, now, remember=False)
        say(
            f"{mode.capitalize()} keys get {notice_id} version {current.content.version}."
            if current
            else f"{mode.capitalize()} keys are refused: no version of {notice_id} is in force."
        )
    await asyncio.sleep(STALENESS_SECONDS)


LOOKS: Final = Acts("Staff: notices", Notices, scope=Scope.NOTICES_READ, console=True)
ACTS: Final = Acts(
    "Staff: notices",
    Notices,
    scope=Scope.NOTICES_MANAGE,
    reach=DeploymentReach,
    fresh=True,
    console=True,
)
_command: Final = partial(command, warns=_say_what_is_in_force, shows=("event_id",))


@LOOKS.act(
    "GET /v1/notices/lifecycle",
    "List every published version with its history",
    commands=(
        command(name="notices list", whole=True, shows=("notice_id", "version", "test", "live")),
    ),
)
async def list_notice_lifecycles(notices: Notices, query: LifecycleQuery) -> Page[NoticeLifecycle]:
    """Every published version with its status and its history, by notice, oldest first."""
    known, now = await notices.registry.notices(fresh=True), notices.registry.now()
    rows = [
        lifecycle_of(one, versions, now)
        for notice_id, versions in sorted(known.versions.items())
        if query.notice_id in {None, notice_id}
        for one in versions
    ]
    places = [_place(row) for row in rows]
    after = places.index(query.after) + 1 if query.after in places else 0
    return page_of(rows[after:], query.limit, _place)


@LOOKS.act(
    "GET /v1/notices/{notice_id}/compare",
    "Compare two versions of a notice",
    refusals=(NoticeNotFound,),
)
async def compare_notices(notices: Notices, notice_id: str, query: CompareQuery) -> ComparedNotices:
    """What differs between two versions of a notice, part by part."""
    versions = await notices.registry.versions(notice_id)
    known = {one.content.version: one.content for one in versions}
    old, new = query.old or next(iter(known)), query.new or [*known][-1]
    if not {old, new} <= known.keys():
        raise NoticeNotFound("The notice has no such version.")
    return compared(known[old], known[new])


@LOOKS.act(
    "POST /v1/notices/check",
    "Check a notice without publishing it",
    reads=True,
    scope=Scope.NOTICES_MANAGE,
    refusals=(InvalidNoticeFile,),
)
async def check_notice(notices: Notices, wanted: NoticeDraft) -> CheckedNotice:
    """Check a notice without publishing it: mistakes, gaps, what differs from before."""
    content = content_of(to_builtins(wanted.notice))
    return _checked(notices, await notices.registry.notices(fresh=True), content)


@ACTS.act(
    "POST /v1/notices/publish",
    "Publish a notice permanently",
    refusals=(InvalidNoticeFile, NoticeIncomplete, NoticeVersionConflict),
)
def publish_notice(connection: Connection, notices: Notices, wanted: NoticeDraft) -> CheckedNotice:
    """Publish a notice permanently. Live keys get the version after its review."""
    content = content_of(to_builtins(wanted.notice))
    return published(connection, notices, content, "", wanted.gap_closed)[1]


@ACTS.act(
    "POST /v1/notices/{notice_id}/review",
    "Record the review of a version",
    refusals=(NoticeNotFound, NoticeIncomplete, SecondPersonRequired),
    commands=(_command(name="notices review"),),
)
def review_notice(
    connection: Connection, notices: Notices, who: Principal, notice_id: str, wanted: NoticeReview
) -> NoticeOutcome:
    """Record that a person compared a version with the official text, and its rule with the law.

    Not by the person who published it, unless the operator's setting allows that: `by` says so.
    """
    given = _as_reviewer(connection, notices, who, notice_id, wanted)
    return _outcome(publishing.review(connection, notices, notice_id, **given))


@ACTS.act(
    "POST /v1/notices/{notice_id}/withdraw",
    "Take a version out of force",
    refusals=(NoticeNotFound,),
    commands=(
        _command(
            name="notices withdraw",
            sends={"reason": "not stated"},
            asks="Take {notice_id} version {version} out of force permanently? With --enjoined, "
            "live keys get no version of it until one is reinstated.",
        ),
    ),
)
def withdraw_notice(
    connection: Connection, notices: Notices, notice_id: str, wanted: NoticeWithdrawal
) -> NoticeOutcome:
    """Take a version out of force permanently; the version before it, if any, is in force again.

    With `enjoined` no other version comes into force for live keys until one is reinstated.
    """
    return _outcome(publishing.withdraw(connection, notices, notice_id, **asdict(wanted)))


@ACTS.act(
    "POST /v1/notices/{notice_id}/reinstate",
    "End the injunction against a notice",
    refusals=(NoticeNotFound, NoticeIncomplete, SecondPersonRequired),
    commands=(_command(name="notices reinstate"),),
)
def reinstate_notice(
    connection: Connection,
    notices: Notices,
    who: Principal,
    notice_id: str,
    wanted: NoticeReinstatement,
) -> NoticeOutcome:
    """End the injunction against a notice: live keys get this version again.

    It counts as a review, and is refused to the same person.
    """
    given = _as_reviewer(connection, notices, who, notice_id, wanted)
    return _outcome(publishing.review(connection, notices, notice_id, **given, reinstates=True))


def _as_reviewer(
    connection: Connection,
    notices: Notices,
    who: Principal,
    notice_id: str,
    wanted: NoticeReinstatement,
) -> dict[str, Any]:
    """The members of a review by this person; raises SecondPersonRequired for the publisher."""
    given, acts = asdict(wanted), find_audit(connection, notice_id)
    published = [one for one in acts if one.action is AuditAction.NOTICE_PUBLISHED]
    by = {one.actor for one in published if one.details["version"] == wanted.version}
    if who.person is not None and who.person.id in by:
        if notices.reviewers > 1:
            raise SecondPersonRequired("You published this version: another person reviews it.")
        given["by"] += " (alone: also published it)"
    return given


def published(
    connection: Connection,
    notices: Notices,
    content: NoticeContent,
    source: str,
    gap_closed: str | None,
) -> tuple[publishing.Publication, CheckedNotice]:
    """Publish a version, and compare it with the previous one; see `publish`."""
    known = KnownNotices(0, all_versions(connection, notices.registry.zone))
    made = publishing.publish(
        connection, notices, content, source, notices.access.audit, gap_closed=gap_closed
    )
    return made, _checked(notices, known, content)


def compared(before: NoticeContent, after: NoticeContent) -> ComparedNotices:
    """The differences between two versions, in the order of the later one."""
    was, is_ = _parts(before), _parts(after)
    found = [
        NoticeDifference(part=part, before=was.get(part), after=is_.get(part))
        for part in {**is_, **was}
        if was.get(part) != is_.get(part)
    ]
    return ComparedNotices(
        notice_id=after.id, old=before.version, new=after.version, differences=found
    )


def _parts(content: NoticeContent) -> dict[str, str]:
    """Each field and each line, as text."""
    fields: dict[str, Any] = to_builtins(content)
    bullets = {f"bullet {one['id']}": one["text"] for one in fields.pop("bullets")}
    rest = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in fields.items()
    }
    return bullets | rest


def _checked(room: Notices, known: KnownNotices, content: NoticeContent) -> CheckedNotice:
    versions = known.versions.get(content.id, ())
    others = [one for one in versions if one.content.version != content.version]
    current = known.current(content.id, Mode.LIVE, room.registry.now(), remember=False)
    before = current if current in others else others[-1] if others else None
    return view(
        CheckedNotice,
        content,
        notice_id=content.id,
        digest=notice_digest(published_bytes(content)),
        new=len(others) == len(versions),
        compared_with=None if before is None else before.content.version,
        differences=compared(before.content, content).differences if before else [],
    )


def _outcome(event: NoticeEvent) -> NoticeOutcome:
    return view(NoticeOutcome, event, event_id=event.id)


def lifecycle_of(
    one: NoticeEdition, versions: Sequence[NoticeEdition], now: datetime
) -> NoticeLifecycle:
    """The state of a notice's version at this time, and its history."""
    content = one.content
    return view(
        NoticeLifecycle,
        content,
        one,
        notice_id=content.id,
        lines=len(content.bullets),
        test=status_of(one, versions, Mode.TEST, now),
        live=status_of(one, versions, Mode.LIVE, now),
        rules=[rule.version for rule in one.rules],
        events=[view(LifecycleStep, event, event_id=event.id) for event in one.events],
    )


def _place(row: NoticeLifecycle) -> str:
    return f"{row.notice_id} {row.version}"


ROUTES: Final = (*LOOKS.routes, *ACTS.routes)
