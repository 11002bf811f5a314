"""Serving notices and the registry."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from countersign.access.key import Scope
from countersign.errors import InvalidRequest, NoticeNotFound, NoticeNotInForce, NoticeNotReviewed
from countersign.http.paging import LIMIT_DEFAULT, Limit, Page, cursor, page_of
from countersign.http.reply import JSON, Call, Header, Reply, encode, etag_of, tagged
from countersign.http.route import Route, grouped
from countersign.http.schemas import STORABLE, Request
from countersign.instant import to_the_second
from countersign.notices import schemas
from countersign.notices.model import NoticeEdition, NoticeStatus, status_of
from countersign.notices.room import Notices

_FRESH: Final[Header] = (b"cache-control", b"private, no-cache")
_IMMUTABLE: Final[Header] = (b"cache-control", b"private, max-age=31536000, immutable")
_KEPT_MAX: Final = 1000

_rendered: dict[str, tuple[bytes, bytes]] = {}
"""Body and ETag by notice digest: a digest always has the same bytes."""


class NoticeQuery(Request, frozen=True, kw_only=True):
    """Which version of a notice to get."""

    version: (
        Annotated[
            str,
            Meta(
                description="An older version. Left out: the version in force for the key's mode.",
                examples=["2026-01-01-incomplete"],
                extra_json_schema=STORABLE,
            ),
        ]
        | None
    ) = None


class NoticesQuery(Request, frozen=True, kw_only=True):
    """Which page of the notices to list."""

    limit: Limit = LIMIT_DEFAULT
    after: Annotated[str, cursor("the id of that page's last notice", "ab1263")] | None = None


class VersionsQuery(Request, frozen=True, kw_only=True):
    """Which page of a notice's versions to list."""

    limit: Limit = LIMIT_DEFAULT
    after: Annotated[str, cursor("that page's last version", "2026-01-01-incomplete")] | None = None


async def get_notice(room: Notices, call: Call) -> Reply:
    """The notice in force for the key's mode, or the requested version."""
    query: NoticeQuery = call.query
    registry, mode = room.registry, call.principal.mode
    if query.version is None:
        clock = await room.log.access.test_clocks.of(call.principal.account_id, mode)
        notice, caching = await registry.in_force(call.parameter, mode, clock), _FRESH
    else:
        notice = await registry.version_for(call.parameter, query.version, mode)
        caching = _IMMUTABLE
    body, etag = _render(notice)
    return tagged(call, body, etag, JSON, caching)


async def list_notices(room: Notices, call: Call) -> Reply:
    """The notices of the registry, by id."""
    query: NoticesQuery = call.query
    registry, mode = room.registry, call.principal.mode
    ids = await registry.notice_ids()
    clock = await room.log.access.test_clocks.of(call.principal.account_id, mode)
    rows = []
    for notice_id in ids:
        versions = await registry.versions(notice_id)
        current = await registry.current(notice_id, mode, clock)
        words = (current or versions[-1]).content
        rows.append(
            schemas.NoticeSummary(
                notice_id=notice_id,
                title=words.title,
                jurisdiction=words.jurisdiction,
                language=words.language,
                version=current.content.version if current else None,
                versions=len(versions),
            )
        )
    left = [row for row in rows if query.after is None or row.notice_id > query.after]
    return Reply(encode(page_of(left, query.limit, lambda row: row.notice_id)))


async def list_versions(room: Notices, call: Call) -> Reply:
    """The published versions of a notice, newest first."""
    query: VersionsQuery = call.query
    registry, mode = room.registry, call.principal.mode
    versions = list(await registry.versions(call.parameter))
    clock = await room.log.access.test_clocks.of(call.principal.account_id, mode)
    now = clock.at(registry.now())
    rows = [
        _version(version, status_of(version, versions, mode, now)) for version in reversed(versions)
    ]
    if query.after is not None:
        places = [place for place, row in enumerate(rows) if row.version == query.after]
        if not places:
            msg = "`after` must be a next_cursor returned by this list."
            raise InvalidRequest(msg)
        rows = rows[places[0] + 1 :]
    return Reply(encode(page_of(rows, query.limit, lambda row: row.version)))


def _render(notice: NoticeEdition) -> tuple[bytes, bytes]:
    known = _rendered.get(notice.digest)
    if known is None:
        content = notice.content
        body = encode(
            schemas.Notice(
                notice_id=content.id,
                version=content.version,
                title=content.title,
                heading=content.heading,
                bullets=[bullet.text for bullet in content.bullets],
                attestation_text=content.attestation_text,
                source_law=content.source_law,
                source_bill=content.source_bill,
            )
        )
        known = body, etag_of(body)
        if len(_rendered) >= _KEPT_MAX:
            _rendered.clear()
        _rendered[notice.digest] = known
    return known


def _version(version: NoticeEdition, status: NoticeStatus) -> schemas.NoticeVersion:
    content, review = version.content, version.review
    return schemas.NoticeVersion(
        notice_id=content.id,
        version=content.version,
        status=status,
        digest=version.digest,
        lines=len(content.bullets),
        effective_from=content.effective_from,
        published_at=version.published_at.replace(microsecond=0),
        reviewed_at=to_the_second(review.at) if review else None,
        reviewed_against=review.details.get("against") if review else None,
        source_url=content.source_url,
        editorial=list(content.editorial),
        text_gaps=list(content.text_gaps),
    )


ROUTES: Final = grouped(
    "Notices",
    Notices,
    Route(
        address="GET /v1/notices",
        handler=list_notices,
        operation="listNotices",
        summary="List the notices",
        scope=Scope.NOTICES_READ,
        query=NoticesQuery,
        response=Page[schemas.NoticeSummary],
        response_examples={"one notice": schemas.NOTICES},
    ),
    Route(
        address="GET /v1/notices/{notice_id}",
        handler=get_notice,
        operation="getNotice",
        summary="Get the notice to show",
        scope=Scope.NOTICES_READ,
        query=NoticeQuery,
        response=schemas.Notice,
        refusals=(NoticeNotFound, NoticeNotReviewed, NoticeNotInForce),
        response_examples={"AB 1263": schemas.NOTICE},
        request_headers={"If-None-Match": "The `ETag` of your copy."},
        response_headers={"ETag": "Strong: the same text has the same tag."},
        links={
            "acknowledgeNotice": {"notice_id": "/notice_id"},
            "listNoticeVersions": {"notice_id": "/notice_id"},
        },
    ),
    Route(
        address="GET /v1/notices/{notice_id}/versions",
        handler=list_versions,
        operation="listNoticeVersions",
        summary="List the versions of a notice, newest first",
        scope=Scope.NOTICES_READ,
        query=VersionsQuery,
        response=Page[schemas.NoticeVersion],
        refusals=(NoticeNotFound,),
        response_examples={"one version": schemas.VERSIONS},
    ),
)
