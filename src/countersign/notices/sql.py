"""Published notice versions and their lifecycle in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, func, insert, select

from countersign.db.tables import notice_events, notice_versions
from countersign.notices.model import LifecycleEvent, NoticeEvent, PublishedVersion

_decode_details: Final = msgspec.json.Decoder(dict[str, str]).decode


def revision(connection: Connection) -> int:
    """A number that grows with every lifecycle event."""
    return connection.execute(select(func.count()).select_from(notice_events)).scalar_one()


def versions(connection: Connection) -> Sequence[PublishedVersion]:
    """Every published version with its events, oldest first."""
    events: dict[tuple[str, str], list[NoticeEvent]] = {}
    for row in connection.execute(select(notice_events).order_by(notice_events.c.id)):
        events.setdefault((row.notice_id, row.version), []).append(_event(row))
    bodies = {
        (row.notice_id, row.version): row for row in connection.execute(select(notice_versions))
    }
    # A version without events was published after the events were read: it is seen next time.
    return [
        PublishedVersion(
            body=bodies[key].body,
            digest=bodies[key].digest,
            # Whatever a lagging clock says, publishing came first.
            events=tuple(sorted(own, key=lambda event: event.type is not LifecycleEvent.PUBLISHED)),
        )
        for key, own in events.items()
        if key in bodies
    ]


def digest_of(connection: Connection, notice_id: str, version: str) -> str | None:
    """The digest of a published version."""
    return connection.execute(
        select(notice_versions.c.digest).where(
            notice_versions.c.notice_id == notice_id, notice_versions.c.version == version
        )
    ).scalar_one_or_none()


def add_version(connection: Connection, body: bytes, digest: str, published: NoticeEvent) -> None:
    """Write a version and that it was published. Its key is notice and version."""
    connection.execute(
        insert(notice_versions),
        {
            "notice_id": published.notice_id,
            "version": published.version,
            "digest": digest,
            "body": body,
        },
    )
    add_event(connection, published)


def add_event(connection: Connection, event: NoticeEvent) -> None:
    """Append an event to the lifecycle of a version."""
    connection.execute(
        insert(notice_events),
        {
            "id": event.id,
            "notice_id": event.notice_id,
            "version": event.version,
            "type": event.type,
            "at": event.at,
            "details": msgspec.json.encode(event.details).decode(),
        },
    )


def _event(row: Row[Any]) -> NoticeEvent:
    return NoticeEvent(
        id=row.id,
        notice_id=row.notice_id,
        version=row.version,
        type=LifecycleEvent(row.type),
        at=row.at,
        details=_decode_details(row.details),
    )
