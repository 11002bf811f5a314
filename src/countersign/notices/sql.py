"""Published notice versions and their lifecycle in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, func, insert, select
from sqlalchemy.exc import IntegrityError

from countersign.access.audit import AuditEntry, write_audit
from countersign.db.database import Database
from countersign.db.tables import notice_events, notice_versions
from countersign.errors import CountersignError, NoticeVersionConflict, UnknownNotice
from countersign.events.sql import write_notice_events
from countersign.log.journal import Journal
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.notices.model import LifecycleEvent, NoticeEvent, PublishedVersion

_decode_details: Final = msgspec.json.Decoder(dict[str, str]).decode


class Notices:
    """See `ports.NoticeStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def revision(self) -> int:
        """A number that grows with every lifecycle event."""
        return await self._database.read(_revision, None)

    async def versions(self) -> Sequence[PublishedVersion]:
        """Every published version with its events, oldest first."""
        return await self._database.read(_versions, None)

    async def publish(
        self, body: bytes, digest: str, published: NoticeEvent, records: Sequence[NewRecord]
    ) -> None:
        """Write a version and that it was published, or raise NoticeVersionConflict.

        Every account is told of it, in both modes.
        """
        await self._database.write_batched(self._publish, (body, digest, published, records))

    async def add_event(
        self, event: NoticeEvent, records: Sequence[NewRecord], audit: AuditEntry | None = None
    ) -> None:
        """Append a lifecycle event, or raise UnknownNotice."""
        await self._database.write_batched(self._add_event, (event, records, audit))

    def _publish(
        self,
        connection: Connection,
        items: Sequence[tuple[bytes, str, NoticeEvent, Sequence[NewRecord]]],
    ) -> Sequence[CountersignError | None]:
        outcomes: list[CountersignError | None] = []
        for body, digest, published, records in items:
            try:
                with connection.begin_nested():
                    _insert_version(connection, body, digest, published)
            except IntegrityError:
                outcomes.append(
                    NoticeVersionConflict(
                        f"{published.notice_id} version {published.version} is published already."
                    )
                )
            else:
                self._journal.write(connection, records)
                version, at = published.version, published.at
                write_notice_events(connection, published.notice_id, version, [*Mode], at)
                outcomes.append(None)
        return outcomes

    def _add_event(
        self,
        connection: Connection,
        items: Sequence[tuple[NoticeEvent, Sequence[NewRecord], AuditEntry | None]],
    ) -> Sequence[CountersignError | None]:
        outcomes: list[CountersignError | None] = []
        for event, records, audit in items:
            outcomes.append(_insert_event(connection, event))
            if outcomes[-1] is None:
                self._journal.write(connection, records)
                write_audit(connection, audit)
        return outcomes


def _revision(connection: Connection, _: None) -> int:
    return connection.execute(select(func.count()).select_from(notice_events)).scalar_one()


def _versions(connection: Connection, _: None) -> Sequence[PublishedVersion]:
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


def _insert_version(
    connection: Connection, body: bytes, digest: str, published: NoticeEvent
) -> None:
    connection.execute(
        insert(notice_versions),
        {
            "notice_id": published.notice_id,
            "version": published.version,
            "digest": digest,
            "body": body,
        },
    )
    connection.execute(insert(notice_events), _event_row(published))


def _insert_event(connection: Connection, event: NoticeEvent) -> CountersignError | None:
    known = connection.execute(
        select(notice_versions.c.version).where(
            notice_versions.c.notice_id == event.notice_id,
            notice_versions.c.version == event.version,
        )
    ).one_or_none()
    if known is None or event.type is LifecycleEvent.PUBLISHED:
        return UnknownNotice(f"{event.notice_id} has no version {event.version}.")
    connection.execute(insert(notice_events), _event_row(event))
    return None


def _event_row(event: NoticeEvent) -> dict[str, object]:
    return {
        "id": event.id,
        "notice_id": event.notice_id,
        "version": event.version,
        "type": event.type,
        "at": event.at,
        "details": msgspec.json.encode(event.details).decode(),
    }


def _event(row: Row[Any]) -> NoticeEvent:
    return NoticeEvent(
        id=row.id,
        notice_id=row.notice_id,
        version=row.version,
        type=LifecycleEvent(row.type),
        at=row.at,
        details=_decode_details(row.details),
    )
