"""Serving notices and the registry."""

from __future__ import annotations

from typing import Final

from countersign.bootstrap import Deployment
from countersign.errors import InvalidRequest
from countersign.http import schemas
from countersign.http.paging import page_of, read_limit
from countersign.http.reply import JSON, Call, Header, Reply, encode, etag_of, tagged
from countersign.instant import to_the_second
from countersign.notices.model import NoticeStatus, NoticeVersion, status_of

_FRESH: Final[Header] = (b"cache-control", b"private, no-cache")
_IMMUTABLE: Final[Header] = (b"cache-control", b"private, max-age=31536000, immutable")
_KEPT_MAX: Final = 1000

_rendered: dict[str, tuple[bytes, bytes]] = {}
"""Body and ETag by notice digest: a digest always has the same bytes."""


async def get_notice(deployment: Deployment, call: Call) -> Reply:
    """The notice in force for the key's mode, or the requested version."""
    version = call.query.get("version") if call.query_string else None
    registry, mode = deployment.notices.registry, call.principal.mode
    if version is None:
        clock = await deployment.access.test_clocks.of(call.principal.account_id, mode)
        notice, caching = await registry.in_force(call.parameter, mode, clock), _FRESH
    else:
        notice, caching = await registry.version_for(call.parameter, version, mode), _IMMUTABLE
    body, etag = _render(notice)
    return tagged(call, body, etag, JSON, caching)


async def list_notices(deployment: Deployment, call: Call) -> Reply:
    """The notices of the registry, by id."""
    registry, mode = deployment.notices.registry, call.principal.mode
    ids = await registry.notice_ids()
    clock = await deployment.access.test_clocks.of(call.principal.account_id, mode)
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
    limit, after = read_limit(call), call.query.get("after")
    left = [row for row in rows if after is None or row.notice_id > after]
    return Reply(encode(page_of(left, limit, lambda row: row.notice_id)))


async def list_versions(deployment: Deployment, call: Call) -> Reply:
    """The published versions of a notice, newest first."""
    limit, after = read_limit(call), call.query.get("after")
    registry, mode = deployment.notices.registry, call.principal.mode
    versions = list(await registry.versions(call.parameter))
    clock = await deployment.access.test_clocks.of(call.principal.account_id, mode)
    now = clock.at(registry.now())
    rows = [
        _version(version, status_of(version, versions, mode, now)) for version in reversed(versions)
    ]
    if after is not None:
        places = [place for place, row in enumerate(rows) if row.version == after]
        if not places:
            msg = "The query parameter after must be a next_cursor returned by this list."
            raise InvalidRequest(msg)
        rows = rows[places[0] + 1 :]
    return Reply(encode(page_of(rows, limit, lambda row: row.version)))


def _render(notice: NoticeVersion) -> tuple[bytes, bytes]:
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


def _version(version: NoticeVersion, status: NoticeStatus) -> schemas.NoticeVersion:
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
