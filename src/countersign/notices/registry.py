"""The registry as servers read it: a snapshot of all notice versions, at most 250 ms old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from countersign.errors import NoticeNotFound, NoticeNotReviewed, Refusal
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.notices.model import (
    NoticeContent,
    NoticeVersion,
    PublishedVersion,
    version_in_force,
)
from countersign.notices.notice_file import effective_at
from countersign.ports import Clock, NoticeStore
from countersign.snapshot import Snapshot

Notices: TypeAlias = Mapping[str, tuple[NoticeVersion, ...]]
"""Every version of each notice, oldest first."""

_decode: Final = msgspec.json.Decoder(NoticeContent).decode


@dataclass(frozen=True, slots=True)
class _Known:
    revision: int
    notices: dict[str, tuple[NoticeVersion, ...]]
    in_force: dict[tuple[str, Mode], NoticeVersion] = field(default_factory=dict)


class Registry:
    """Notice versions by id, and which one is in force."""

    def __init__(self, store: NoticeStore, clock: Clock, zone: ZoneInfo) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._known = _Known(-1, {})
        self._snapshot = Snapshot(self._read, clock)

    async def in_force(
        self, notice_id: str, mode: Mode, by: datetime | None = None
    ) -> NoticeVersion:
        """The version that keys of this mode are served now.

        A refusal is given only after a fresh look: what an operator just published, reviewed or
        completed counts at once.

        Args:
            notice_id: the notice.
            mode: that of the key.
            by: what the test clock of the account shows; None: real time counts.

        Raises:
            NoticeNotFound, NoticeNotReviewed, NoticeNotInForce: see `version_in_force`.
        """
        known = await self._snapshot.get()
        found = known.in_force.get((notice_id, mode)) if by is None else None
        if found is not None:
            return found
        try:
            return self._look_up(known, notice_id, mode, by)
        except Refusal:
            return self._look_up(await self._snapshot.fresh(), notice_id, mode, by)

    def _look_up(
        self, known: _Known, notice_id: str, mode: Mode, by: datetime | None
    ) -> NoticeVersion:
        versions = known.notices.get(notice_id, ())
        found = version_in_force(versions, mode, by or from_ns(self._clock.time_ns()))
        if by is None:  # each test clock shows another time
            known.in_force[notice_id, mode] = found
        return found

    async def version(self, notice_id: str, version: str) -> NoticeVersion:
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

    async def version_for(self, notice_id: str, version: str, mode: Mode) -> NoticeVersion:
        """One version as keys of this mode may see it: live keys only reviewed ones.

        Raises:
            NoticeNotFound: there is no such notice, or no such version of it.
            NoticeNotReviewed: no one has reviewed it (live only).
        """
        found = await self.version(notice_id, version)
        if mode is Mode.LIVE and found.review is None:
            raise NoticeNotReviewed
        return found

    async def versions(self, notice_id: str) -> Sequence[NoticeVersion]:
        """All versions of a notice, oldest first.

        Raises:
            NoticeNotFound: there is no such notice.
        """
        versions = (await self._snapshot.fresh()).notices.get(notice_id)
        if versions is None:
            raise NoticeNotFound
        return versions

    async def notices(self, *, fresh: bool = False) -> Notices:
        """All notices, as of at most STALENESS_SECONDS ago; `fresh`: as of now."""
        return (await (self._snapshot.fresh() if fresh else self._snapshot.get())).notices

    async def notice_ids(self) -> Sequence[str]:
        """The ids of all notices, in alphabetical order."""
        return sorted((await self._snapshot.fresh()).notices)

    async def current(
        self, notice_id: str, mode: Mode, by: datetime | None = None
    ) -> NoticeVersion | None:
        """The version in force, or None where a refusal would be given."""
        try:
            return await self.in_force(notice_id, mode, by)
        except Refusal:
            return None

    def now(self) -> datetime:
        """The time by which versions are judged."""
        return from_ns(self._clock.time_ns())

    async def _read(self) -> _Known:
        revision = await self._store.revision()
        notices = self._known.notices
        if revision != self._known.revision:
            stored = await self._store.versions()
            notices = {}
            for version in (self._restore(item) for item in stored):
                id_ = version.content.id
                notices[id_] = (*notices.get(id_, ()), version)
        self._known = _Known(revision, notices)
        return self._known

    def _restore(self, stored: PublishedVersion) -> NoticeVersion:
        content = _decode(stored.body)
        return NoticeVersion(
            content=content,
            body=stored.body,
            digest=stored.digest,
            effective_at=effective_at(content, self._zone),
            events=stored.events,
        )
