"""The registry as servers read it: a snapshot of all notice versions, at most 250 ms old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Connection

from countersign.access.test_clock import REAL_TIME, AccountClock
from countersign.clock import Clock
from countersign.db.database import Database
from countersign.errors import NoticeNotFound, NoticeNotReviewed, Refusal
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.notices import sql
from countersign.notices.model import (
    NoticeContent,
    NoticeEdition,
    version_in_force,
)
from countersign.snapshot import Snapshot

AllVersions: TypeAlias = Mapping[str, tuple[NoticeEdition, ...]]
"""Every version of each notice, oldest first."""

_decode: Final = msgspec.json.Decoder(NoticeContent).decode


@dataclass(frozen=True, slots=True)
class _Read:
    revision: int
    notices: AllVersions
    in_force: dict[tuple[str, Mode], NoticeEdition] = field(default_factory=dict)


def effective_at(content: NoticeContent, zone: ZoneInfo) -> datetime:
    """The start of the day `effective_from` in this zone."""
    return datetime.combine(date.fromisoformat(content.effective_from), time(), zone)


def all_versions(connection: Connection, zone: ZoneInfo) -> AllVersions:
    """The notices in the database; `effective_from` is a day in this zone."""
    notices: dict[str, tuple[NoticeEdition, ...]] = {}
    for stored in sql.versions(connection):
        content = _decode(stored.body)
        version = NoticeEdition(
            content=content,
            body=stored.body,
            digest=stored.digest,
            effective_at=effective_at(content, zone),
            events=stored.events,
        )
        notices[content.id] = (*notices.get(content.id, ()), version)
    return notices


class Registry:
    """Notice versions by id, and which one is in force."""

    def __init__(self, database: Database, clock: Clock, zone: ZoneInfo) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._last = _Read(-1, {})
        self._snapshot = Snapshot(self._read, clock)

    async def in_force(
        self, notice_id: str, mode: Mode, clock: AccountClock = REAL_TIME
    ) -> NoticeEdition:
        """The version that keys of this mode are served now.

        A refusal is given only after a fresh look: what an operator just published, reviewed or
        completed counts at once.

        Args:
            notice_id: the notice.
            mode: that of the key.
            clock: the test clock of the account.

        Raises:
            NoticeNotFound, NoticeNotReviewed, NoticeNotInForce: see `version_in_force`.
        """
        known = await self._snapshot.get()
        # Each test clock shows another time: what is in force by it is not remembered.
        found = None if clock.ahead else known.in_force.get((notice_id, mode))
        if found is not None:
            return found
        try:
            return self._look_up(known, notice_id, mode, clock)
        except Refusal:
            return self._look_up(await self._snapshot.fresh(), notice_id, mode, clock)

    def _look_up(
        self, known: _Read, notice_id: str, mode: Mode, clock: AccountClock
    ) -> NoticeEdition:
        versions = known.notices.get(notice_id, ())
        found = version_in_force(versions, mode, clock.at(self.now()))
        if not clock.ahead:
            known.in_force[notice_id, mode] = found
        return found

    async def version(self, notice_id: str, version: str) -> NoticeEdition:
        """One version, whether in force or not.

        Raises:
            NoticeNotFound: there is no such notice, or no such version of it.
        """
        found = next(
            (v for v in await self.versions(notice_id) if v.content.version == version), None
        )
        if found is None:
            msg = f"The notice {notice_id[:64]} has no version {version[:64]}: not found."
            raise NoticeNotFound(msg)
        return found

    async def version_for(self, notice_id: str, version: str, mode: Mode) -> NoticeEdition:
        """One version as keys of this mode may see it: live keys only reviewed ones.

        Raises:
            NoticeNotFound: there is no such notice, or no such version of it.
            NoticeNotReviewed: no one has reviewed it (live only).
        """
        found = await self.version(notice_id, version)
        if mode is Mode.LIVE and found.review is None:
            raise NoticeNotReviewed
        return found

    async def versions(self, notice_id: str) -> Sequence[NoticeEdition]:
        """All versions of a notice, oldest first.

        Raises:
            NoticeNotFound: there is no such notice.
        """
        versions = (await self._snapshot.fresh()).notices.get(notice_id)
        if versions is None:
            raise NoticeNotFound
        return versions

    async def notices(self, *, fresh: bool = False) -> AllVersions:
        """All notices, as of at most STALENESS_SECONDS ago; `fresh`: as of now."""
        return (await (self._snapshot.fresh() if fresh else self._snapshot.get())).notices

    async def notice_ids(self) -> Sequence[str]:
        """The ids of all notices, in alphabetical order."""
        return sorted((await self._snapshot.fresh()).notices)

    async def current(
        self, notice_id: str, mode: Mode, clock: AccountClock = REAL_TIME
    ) -> NoticeEdition | None:
        """The version in force, or None where a refusal would be given."""
        try:
            return await self.in_force(notice_id, mode, clock)
        except Refusal:
            return None

    def now(self) -> datetime:
        """The time at which versions are in force or not."""
        return from_ns(self._clock.time_ns())

    async def _read(self) -> _Read:
        revision = await self._database.read(sql.revision)
        notices = self._last.notices
        if revision != self._last.revision:
            notices = await self._database.read(all_versions, self._zone)
        self._last = _Read(revision, notices)
        return self._last
