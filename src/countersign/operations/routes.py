"""Health, documentation and the other addresses that need no key."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.errors import CountersignError, Draining, NotFound, StorageUnavailable
from countersign.http.reply import Call, Header, Reply, encode
from countersign.http.route import Route, grouped
from countersign.instant import from_ns, rfc3339
from countersign.operations.room import Operations

_READY_DEADLINE_SECONDS: Final = 2.0
_SECURITY_TXT_LIFETIME: Final = timedelta(days=180)
_TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")


class Health(Struct, frozen=True, kw_only=True):
    """The process responds."""

    status: Annotated[str, Meta(examples=["ok"])]


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether the process can do its work: the state of each dependency, by name."""

    status: Annotated[str, Meta(examples=["ready"])]
    checks: Annotated[dict[str, str], Meta(examples=[{"database": "ok", "sealing": "ok"}])]


async def health(_room: Operations, _call: Call) -> Reply:
    """The process responds. This does not check what the process depends on."""
    return Reply(encode(Health(status="ok")))


async def readiness(room: Operations, _call: Call) -> Reply:
    """Whether the process can do its work: read and write, within two seconds, and for longer."""
    if room.draining.is_set():
        raise Draining
    try:
        async with asyncio.timeout(_READY_DEADLINE_SECONDS):
            # Writing first: where reading fails, too, it must not be known only from before.
            keeps_heads = await room.check_writing()
            await room.notices.registry.notice_ids()
    except StorageUnavailable:
        raise
    except (CountersignError, TimeoutError):
        raise StorageUnavailable from None
    # Whatever keeps sealing waiting, acknowledgments are accepted: that is reported, and is no
    # reason to take the server out of service.
    sealing = "suspended" if room.notices.log.seal.suspended else "ok"
    if not keeps_heads:
        sealing = "head_unavailable"  # also the reason for which sealing may be suspended
    checks = {"database": "ok", "sealing": sealing}
    return Reply(encode(Readiness(status="ready", checks=checks)))


async def security_txt(room: Operations, _call: Call) -> Reply:
    """The contact for reports of a weakness (RFC 9116)."""
    settings = room.settings
    if settings.security_contact is None:
        raise NotFound
    today = from_ns(room.clock.time_ns()).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = (
        f"Contact: {settings.security_contact}",
        f"Expires: {rfc3339(today + _SECURITY_TXT_LIFETIME)}",
        f"Canonical: {settings.public_url}/.well-known/security.txt",
        "",
    )
    return Reply("\n".join(lines).encode(), (_TEXT,))


ROUTES: Final = grouped(
    "Operations",
    Operations,
    Route(
        address="GET /healthz",
        handler=health,
        operation="getHealth",
        summary="Check that the process responds",
        response=Health,
    ),
    Route(
        address="GET /readyz",
        handler=readiness,
        operation="getReadiness",
        summary="Check that the process can do its work",
        response=Readiness,
        refusals=(StorageUnavailable, Draining),
    ),
    Route(address="GET /.well-known/security.txt", handler=security_txt),
)
