"""Health, documentation and the other addresses that need no key."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.base.errors import (
    Blocked,
    CountersignError,
    Draining,
    NotFound,
    StorageUnavailable,
)
from countersign.base.values import from_ns, rfc3339
from countersign.core.gate.act import Acts
from countersign.core.gate.route import Call, Reply, Route
from countersign.operate.room import Operations


class Health(Struct, frozen=True, kw_only=True):
    """The process responds."""

    status: Annotated[str, Meta(examples=["ok"])]


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether the process can do its work: the state of each dependency, by name."""

    status: Annotated[str, Meta(examples=["ready"])]
    checks: Annotated[dict[str, str], Meta(examples=[{"database": "ok", "sealing": "ok"}])]


def _refuse_unless_serving(room: Operations) -> None:
    """Raise Draining, or the database's current trouble."""
    if room.draining.is_set():
        raise Draining
    if (trouble := room.database.trouble) is not None:
        raise trouble


OPERATIONS: Final = Acts("Operations", Operations)


@OPERATIONS.act("GET /healthz", "Check that the process responds")
async def get_health() -> Health:
    """The process responds. This does not check what the process depends on."""
    return Health(status="ok")


@OPERATIONS.act(
    "GET /readyz",
    "Check that the process can do its work",
    refusals=(Blocked, StorageUnavailable, Draining),
)
async def get_readiness(room: Operations) -> Readiness:
    """Whether the process can do its work: it reads, within two seconds, and writes succeed."""
    _refuse_unless_serving(room)
    try:
        async with asyncio.timeout(2.0):
            keeps_heads = await room.keeps_heads()
            await room.notices.registry.notice_ids()
    except (CountersignError, TimeoutError) as error:
        raise error if isinstance(error, StorageUnavailable) else StorageUnavailable from None
    _refuse_unless_serving(room)  # again: writes may have become overdue during the reads
    # Whatever keeps sealing waiting, acknowledgments are accepted: that is reported, and is no
    # reason to take the server out of service.
    sealing = "suspended" if room.notices.log.seal.suspended else "ok"
    if not keeps_heads:
        sealing = "head_unavailable"  # also the reason for which sealing may be suspended
    return Readiness(status="ready", checks={"database": "ok", "sealing": sealing})


async def security_txt(room: Operations, _call: Call) -> Reply:
    """The contact for reports of a weakness (RFC 9116)."""
    settings = room.settings
    if settings.security_contact is None:
        raise NotFound
    today = from_ns(room.clock.time_ns()).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = (
        f"Contact: {settings.security_contact}",
        f"Expires: {rfc3339(today + timedelta(days=180))}",
        f"Canonical: {settings.public_url}/.well-known/security.txt",
        "",
    )
    return Reply("\n".join(lines).encode(), ((b"content-type", b"text/plain; charset=utf-8"),))


ROUTES: Final = (
    *OPERATIONS.routes,
    Route(address="GET /.well-known/security.txt", handler=security_txt, room=Operations),
)
