"""Serving notices and the registry."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from countersign.base.errors import (
    InvalidRequest,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
)
from countersign.base.http.schemas import STORABLE, Listing, Page, Request, cursor, page_of
from countersign.core.access.key import Principal, Scope
from countersign.core.gate.act import Acts
from countersign.core.gate.route import JSON, Call, Header, Reply, Route, encode, etag_of, tagged
from countersign.core.notices import requirements, schemas
from countersign.core.notices.model import NoticeEdition, status_of
from countersign.core.notices.room import Notices
from countersign.core.notices.rule import Cart

_FRESH: Final[Header] = (b"cache-control", b"private, no-cache")
_IMMUTABLE: Final[Header] = (b"cache-control", b"private, max-age=31536000, immutable")
_KEPT_MAX: Final = 1000

_rendered: dict[str, tuple[bytes, bytes]] = {}
"""Body and ETag by notice digest: a digest always has the same bytes."""


class NoticeQuery(Request, frozen=True, kw_only=True):
    version: (
        Annotated[str, Meta(examples=["2026-01-01-incomplete"], extra_json_schema=STORABLE)] | None
    ) = None
    """An older version. Left out: the version in force for the key's mode."""


NoticesQuery = Listing[Annotated[str, cursor("the id of that page's last notice", "ab1263")]]
VersionsQuery = Listing[Annotated[str, cursor("that page's last version", "2026-01-01-incomplete")]]


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
    body, etag = _rendered.get(notice.digest) or _render(notice)
    return tagged(call, body, etag, JSON, caching)


NOTICES: Final = Acts("Notices", Notices, scope=Scope.NOTICES_READ)


@NOTICES.act(
    "GET /v1/notices",
    "List the notices",
    response_examples={"one notice": schemas.NOTICES},
)
async def list_notices(
    room: Notices, who: Principal, query: NoticesQuery
) -> Page[schemas.NoticeSummary]:
    """The notices of the registry, by id."""
    registry, mode = room.registry, who.mode
    known = await registry.notices(fresh=True)
    clock = await room.access.test_clocks.of(who.account_id, mode)
    at, real = clock.at(registry.now()), not clock.ahead
    rows = [
        schemas.summary_of(versions, known.current(id_, mode, at, remember=real))
        for id_, versions in sorted(known.versions.items())
        if query.after is None or id_ > query.after
    ]
    return page_of(rows, query.limit, lambda row: row.notice_id)


@NOTICES.act(
    "GET /v1/notices/{notice_id}/versions",
    "List the versions of a notice, newest first",
    refusals=(NoticeNotFound,),
    response_examples={"one version": schemas.VERSIONS},
)
async def list_notice_versions(
    room: Notices, who: Principal, notice_id: str, query: VersionsQuery
) -> Page[schemas.NoticeVersion]:
    """The published versions of a notice, newest first."""
    registry, mode = room.registry, who.mode
    known = versions = await registry.versions(notice_id)
    clock = await room.access.test_clocks.of(who.account_id, mode)
    now = clock.at(registry.now())
    if query.after is not None:
        earlier = [place for place, v in enumerate(versions) if v.content.version == query.after]
        if not earlier:
            raise InvalidRequest("`after` must be a next_cursor returned by this list.")
        versions = versions[: earlier[0]]
    rows = [schemas.version_of(v, status_of(v, known, mode, now)) for v in reversed(versions)]
    return page_of(rows, query.limit, lambda row: row.version)


@NOTICES.act(
    "POST /v1/requirements",
    "Find out what an order needs",
    decide_again=lambda _: True,
    request_examples={"an order": requirements.CART, "shortest": requirements.CART_MIN},
    response_examples={
        "required": requirements.REQUIRED,
        "residence not known": requirements.NOT_KNOWN,
    },
)
async def get_requirements(room: Notices, who: Principal, cart: Cart) -> requirements.Requirements:
    """What an order needs, by the rules of the notices: ask before you show the checkout.

    Nothing is stored. A repeated request is decided again, also with the same `Idempotency-Key`.
    """
    registry, mode = room.registry, who.mode
    known = await registry.notices()
    clock = await room.access.test_clocks.of(who.account_id, mode)
    at, real = clock.at(registry.now()), not clock.ahead
    return requirements.requirements_of(known, cart, mode, at, remember=real)


def _render(notice: NoticeEdition) -> tuple[bytes, bytes]:
    body = encode(schemas.notice_of(notice.content))
    if len(_rendered) >= _KEPT_MAX:
        _rendered.clear()
    known = _rendered[notice.digest] = body, etag_of(body)
    return known


ROUTES: Final = (
    NOTICES.routes[0],
    Route(
        address="GET /v1/notices/{notice_id}",
        handler=get_notice,
        room=Notices,
        tag="Notices",
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
    *NOTICES.routes[1:],
)
