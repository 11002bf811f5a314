"""The registry as servers read it: a snapshot of all notice versions, at most 250 ms old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, time
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Connection, insert, select

from countersign.base.db.database import Database
from countersign.base.db.statements import DriverStatement, of_row
from countersign.base.db.tables import notice_events, notice_versions
from countersign.base.errors import NoticeNotFound, NoticeNotReviewed, Refusal
from countersign.base.snapshot import Snapshot
from countersign.base.values import Clock, Mode, from_ns
from countersign.core.access.clocks import REAL_TIME, AccountClock
from countersign.core.notices.model import (
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    PublishedVersion,
    version_in_force,
)
from countersign.core.notices.rule import KNOWN_CLASSES

AllVersions: TypeAlias = Mapping[str, tuple[NoticeEdition, ...]]
"""Every version of each notice, oldest first."""

_decode: Final = msgspec.json.Decoder(NoticeContent).decode
_REVISION: Final = DriverStatement("SELECT count(*) FROM notice_events")


@dataclass(frozen=True, slots=True)
class KnownNotices:
    """All notices as they were read at one time."""

    revision: int
    versions: AllVersions
    classes: frozenset[str] = KNOWN_CLASSES
    """The product classes that an order may name."""
    in_force: dict[tuple[str, Mode], NoticeEdition] = field(default_factory=dict)
    """Cached look-ups, by notice and mode."""

    def look_up(self, notice_id: str, mode: Mode, at: datetime, *, remember: bool) -> NoticeEdition:
        """The version in force; see `version_in_force`.

        Each test clock shows another time, so versions in force by a test clock are not cached.
        """
        found = version_in_force(self.versions.get(notice_id, ()), mode, at)
        if remember:
            self.in_force[notice_id, mode] = found
        return found

    def current(
        self, notice_id: str, mode: Mode, at: datetime, *, remember: bool
    ) -> NoticeEdition | None:
        """The same, or None instead of a refusal."""
        found = self.in_force.get((notice_id, mode)) if remember else None
        if found is None:
            with suppress(Refusal):
                return self.look_up(notice_id, mode, at, remember=remember)
        return found


def revision_of(connection: Connection) -> int:
    """A number that grows with every lifecycle event."""
    return int(_REVISION(connection).fetchone()[0])


def published_versions(connection: Connection) -> Sequence[PublishedVersion]:
    """Every published version with its events, oldest first."""
    events: dict[tuple[str, str], list[NoticeEvent]] = {}
    for row in connection.execute(select(notice_events).order_by(notice_events.c.id)):
        event = of_row(row, NoticeEvent, details=msgspec.json.decode(row.details))
        events.setdefault((event.notice_id, event.version), []).append(event)
    bodies = {(v.notice_id, v.version): v for v in connection.execute(select(notice_versions))}
    # A version without events was published after the events were read: it is seen next time.
    return [
        PublishedVersion(
            body=bodies[key].body,
            digest=bodies[key].digest,
            # Whatever a slow clock says, publication came first.
            events=tuple(sorted(own, key=lambda event: event.type is not LifecycleEvent.PUBLISHED)),
        )
        for key, own in events.items()
        if key in bodies
    ]


def digest_of(connection: Connection, notice_id: str, version: str) -> str | None:
    known = select(notice_versions.c.digest).filter_by(notice_id=notice_id, version=version)
    return connection.execute(known).scalar_one_or_none()


def add_version(connection: Connection, body: bytes, digest: str, published: NoticeEvent) -> None:
    """Write a version and that it was published. Its key is notice and version."""
    key = {"notice_id": published.notice_id, "version": published.version}
    connection.execute(insert(notice_versions), key | {"digest": digest, "body": body})
    add_event(connection, published)


def add_event(connection: Connection, event: NoticeEvent) -> None:
    details = msgspec.json.encode(event.details).decode()
    connection.execute(insert(notice_events), asdict(event) | {"details": details})


def effective_at(content: NoticeContent, zone: ZoneInfo) -> datetime:
    """The start of the day `effective_from` in this zone."""
    return datetime.combine(date.fromisoformat(content.effective_from), time(), zone)


def all_versions(connection: Connection, zone: ZoneInfo) -> AllVersions:
    """The notices in the database; `effective_from` is a day in this zone."""
    notices: dict[str, tuple[NoticeEdition, ...]] = {}
    for stored in published_versions(connection):
        content = _decode(stored.body)
        version = NoticeEdition(
            content=content,
            digest=stored.digest,
            effective_at=effective_at(content, zone),
            events=stored.events,
        )
        notices[content.id] = (*notices.get(content.id, ()), version)
    return notices


class Registry:
    """Notice versions by id, and the one in force."""

    def __init__(self, database: Database, clock: Clock, zone: ZoneInfo) -> None:
        self._database = database
        self._clock = clock
        self.zone = zone
        self._last = KnownNotices(-1, {})
        self._snapshot = Snapshot(self._read, clock)

    async def in_force(
        self, notice_id: str, mode: Mode, clock: AccountClock = REAL_TIME
    ) -> NoticeEdition:
        """The version that keys of this mode are served now, by the test clock of the account.

        A refusal follows only after a fresh look: acts of operators count at once.
        """
        known = await self._snapshot.get()
        found = None if clock.ahead else known.in_force.get((notice_id, mode))
        if found is not None:
            return found
        at, real = clock.at(self.now()), not clock.ahead
        try:
            return known.look_up(notice_id, mode, at, remember=real)
        except Refusal:
            known = await self._snapshot.fresh()
            return known.look_up(notice_id, mode, clock.at(self.now()), remember=real)

    async def version_for(self, notice_id: str, version: str, mode: Mode) -> NoticeEdition:
        """One version, in force or not, as keys of this mode see it: live keys only reviewed."""
        for found in await self.versions(notice_id):
            if found.content.version == version:
                if mode is Mode.LIVE and found.review is None:
                    raise NoticeNotReviewed
                return found
        raise NoticeNotFound(f"The notice {notice_id[:64]} has no version {version[:64]}.")

    async def versions(self, notice_id: str) -> Sequence[NoticeEdition]:
        """All versions of a notice, oldest first."""
        versions = (await self._snapshot.fresh()).versions.get(notice_id)
        if versions is None:
            raise NoticeNotFound
        return versions

    async def notices(self, *, fresh: bool = False) -> KnownNotices:
        """All notices, as of at most STALENESS_SECONDS ago; `fresh`: as of now."""
        return await (self._snapshot.fresh() if fresh else self._snapshot.get())

    async def notice_ids(self) -> Sequence[str]:
        """The ids of all notices, in alphabetical order."""
        return sorted((await self._snapshot.fresh()).versions)

    def now(self) -> datetime:
        """The time that decides which versions are in force."""
        return from_ns(self._clock.time_ns())

    async def _read(self) -> KnownNotices:
        revision = await self._database.read(revision_of)
        if revision == self._last.revision:
            self._last = replace(self._last, in_force={})
        else:
            found = await self._database.read(all_versions, self.zone)
            every = [v for versions in found.values() for v in versions]
            named = [v.following.classes for v in every]
            named += [frozenset(rule.product_classes) for v in every for rule in v.rules]
            self._last = KnownNotices(revision, found, KNOWN_CLASSES.union(*named))
        return self._last
