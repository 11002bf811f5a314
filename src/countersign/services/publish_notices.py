"""Publish notices, sign them off, take them out of force: the operator's side of the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from countersign.domain.instant import from_ns
from countersign.domain.mode import Mode
from countersign.domain.notice import (
    LifecycleEvent,
    NoticeContent,
    NoticeEvent,
    notice_digest,
    published_bytes,
)
from countersign.domain.notice_file import parse_notice_file
from countersign.domain.record import NewRecord, RecordType
from countersign.errors import (
    InvalidArgument,
    InvalidNoticeFile,
    NoticeFileChanged,
    NoticeVersionConflict,
    UnknownNotice,
)
from countersign.evidence.canonical import Json
from countersign.ids import FACT, timed_id
from countersign.ports import Clock, Entropy, NoticeStore
from countersign.services.records import Recorder

_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\.[^\s]+\Z")
SOURCE_DETAIL: Final = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What publishing did. `new` is False if exactly this was published before."""

    content: NoticeContent
    digest: str
    new: bool


class PublishNotices:
    """The operator's acts on notices."""

    def __init__(
        self, store: NoticeStore, recorder: Recorder, clock: Clock, entropy: Entropy
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._entropy = entropy

    async def publish(self, file: bytes, source: str) -> Publication:
        """Publish the version in a notice file; publishing the same words again is harmless.

        Args:
            file: the content of the file.
            source: where the file is, so that a later change to it can be noticed.

        Raises:
            InvalidNoticeFile: with every mistake in it.
            NoticeVersionConflict: this version is published with other words.
        """
        content = parse_notice_file(file)
        body = published_bytes(content)
        digest = notice_digest(body)
        if await self._is_published(content, digest):
            return Publication(content=content, digest=digest, new=False)
        event = self._event(
            content.id, content.version, LifecycleEvent.PUBLISHED, {SOURCE_DETAIL: source}
        )
        try:
            await self._store.publish(body, digest, event, self._records(event, digest))
        except NoticeVersionConflict:
            # Another command published this version in the meantime: perhaps the same words.
            if not await self._is_published(content, digest):
                raise
            return Publication(content=content, digest=digest, new=False)
        return Publication(content=content, digest=digest, new=True)

    async def review(self, notice_id: str, version: str, by: str, against: str) -> NoticeEvent:
        """Sign off that someone compared the text with the official one.

        Args:
            notice_id: the notice.
            version: the version that was compared.
            by: who compared it.
            against: the address of the official text.

        Raises:
            UnknownNotice: there is no such version.
            InvalidArgument: `by` or `against` is empty, or `against` is no http(s) address.
        """
        if not by.strip() or not by.isprintable():
            msg = "Say who reviewed the text, on one line: --by WHO."
            raise InvalidArgument(msg)
        if not _ADDRESS.match(against):
            msg = "Give the address of the official text: --against https://…"
            raise InvalidArgument(msg)
        return await self._append(
            notice_id, version, LifecycleEvent.REVIEWED, {"by": by.strip(), "against": against}
        )

    async def withdraw(
        self, notice_id: str, version: str, reason: str, *, enjoined: bool = False
    ) -> NoticeEvent:
        """Take a version out of force for good; `enjoined` says that a court ordered it.

        Raises:
            UnknownNotice: there is no such version.
        """
        kind = LifecycleEvent.ENJOINED if enjoined else LifecycleEvent.WITHDRAWN
        return await self._append(notice_id, version, kind, {"reason": reason})

    async def sources(self) -> Sequence[str]:
        """Where the files of the published versions were."""
        found = [v.events[0].details.get(SOURCE_DETAIL, "") for v in await self._store.versions()]
        return [source for source in found if source]

    async def refuse_changed(self, files: Mapping[str, bytes]) -> None:
        """Refuse notice files that claim a published version with other words.

        Args:
            files: content by place; nothing for a file that is gone. One that holds another
                version is passed over: it is no longer the file of a published version.

        Raises:
            NoticeFileChanged: with every such file.
        """
        digests = {
            (v.events[0].notice_id, v.events[0].version): v.digest
            for v in await self._store.versions()
        }
        changed = []
        for place, data in files.items():
            try:
                content = parse_notice_file(data)
            except InvalidNoticeFile:
                if data:
                    changed.append(f"{place} is no longer a valid notice file.")
                continue
            published = digests.get((content.id, content.version))
            if published is not None and notice_digest(published_bytes(content)) != published:
                changed.append(
                    f"{place} no longer holds the words published as {content.id} version "
                    f"{content.version}."
                )
        if changed:
            advice = "Restore the file, or give the new words a new version and publish that."
            raise NoticeFileChanged("\n".join([*changed, advice]))

    async def _is_published(self, content: NoticeContent, digest: str) -> bool:
        """Whether this version is published with these words.

        Raises:
            NoticeVersionConflict: it is published with other words.
        """
        for stored in await self._store.versions():
            first = stored.events[0]
            if (first.notice_id, first.version) == (content.id, content.version):
                if stored.digest == digest:
                    return True
                msg = (
                    f"{content.id} version {content.version} is published with other words, and "
                    "what is published never changes. Give the new words a new version."
                )
                raise NoticeVersionConflict(msg)
        return False

    async def _append(
        self, notice_id: str, version: str, kind: LifecycleEvent, details: dict[str, str]
    ) -> NoticeEvent:
        digest = next(
            (
                v.digest
                for v in await self._store.versions()
                if (v.events[0].notice_id, v.events[0].version) == (notice_id, version)
            ),
            None,
        )
        if digest is None:
            msg = (
                f"There is no version {version!r} of a notice {notice_id!r}; "
                "`countersign notices list` shows what is published."
            )
            raise UnknownNotice(msg)
        event = self._event(notice_id, version, kind, details | {"digest": digest})
        await self._store.add_event(event, self._records(event, digest))
        return event

    def _records(self, event: NoticeEvent, digest: str) -> Sequence[NewRecord]:
        """The event as a record for the log of each mode."""
        members: dict[str, Json] = {
            "event": event.type.value,
            "notice_id": event.notice_id,
            "notice_version": event.version,
            "notice_digest": digest,
        }
        return [
            self._recorder.of_deployment(RecordType.NOTICE_EVENT, FACT, mode, members)
            for mode in Mode
        ]

    def _event(
        self, notice_id: str, version: str, kind: LifecycleEvent, details: dict[str, str]
    ) -> NoticeEvent:
        time_ns = self._clock.time_ns()
        return NoticeEvent(
            id=timed_id("nev", time_ns, self._entropy(8)),
            notice_id=notice_id,
            version=version,
            type=kind,
            at=from_ns(time_ns),
            details=details,
        )
