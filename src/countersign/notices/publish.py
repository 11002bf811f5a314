"""Publish notices, sign them off, take them out of force: the operator's side of the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from countersign.access.audit import Audit, AuditAction
from countersign.errors import (
    InvalidArgument,
    InvalidNoticeFile,
    NoticeFileChanged,
    NoticeIncomplete,
    NoticeNotFound,
    NoticeVersionConflict,
    Refusal,
    UnknownNotice,
)
from countersign.evidence.canonical import Json
from countersign.ids import FACT, timed_id
from countersign.instant import from_ns
from countersign.log.append_record import Recorder
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.notices.model import (
    LIFTS,
    LifecycleEvent,
    NoticeContent,
    NoticeEvent,
    NoticeVersion,
    notice_digest,
    open_injunctions,
    published_bytes,
    version_in_force,
)
from countersign.notices.notice_file import parse_notice_file
from countersign.notices.registry import Registry
from countersign.ports import Clock, Entropy, NoticeStore

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
        self,
        *,
        store: NoticeStore,
        registry: Registry,
        recorder: Recorder,
        audit: Audit,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._registry = registry
        self._recorder = recorder
        self._audit = audit
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
            NoticeIncomplete: the version says what its text lacks.
            InvalidArgument: `by` or `against` is empty, or `against` is no http(s) address.
        """
        details = _compared(by, against)
        reviewed = await self._complete(notice_id, version)
        return await self._append(reviewed, LifecycleEvent.REVIEWED, details)

    async def withdraw(
        self, notice_id: str, version: str, reason: str, *, enjoined: bool = False
    ) -> NoticeEvent:
        """Take a version out of force; `enjoined` also stops the whole notice for live keys.

        An injunction is about what the law asks, so no earlier version returns for live keys until
        an operator reinstates one.

        Raises:
            UnknownNotice: there is no such version.
        """
        kind = LifecycleEvent.ENJOINED if enjoined else LifecycleEvent.WITHDRAWN
        removed = await self._version(notice_id, version)
        return await self._append(removed, kind, {"reason": reason})

    async def reinstate(self, notice_id: str, version: str, by: str, against: str) -> NoticeEvent:
        """Lift the injunctions against a notice and bring it back for live keys with this version.

        It is a review of the version, too: the arguments are those of `review`.

        Raises:
            UnknownNotice: there is no such version.
            NoticeIncomplete: the version says what its text lacks.
            InvalidArgument: `by` or `against` is not valid, nothing is enjoined, or another version
                or none would be in force then.
        """
        details = _compared(by, against)
        wanted = await self._complete(notice_id, version)
        versions = await self._registry.versions(notice_id)
        open_ = {e.id for e in (*open_injunctions(versions), *open_injunctions((wanted,)))}
        if not open_:
            msg = f"{notice_id} version {version} is not stopped by an injunction."
            raise InvalidArgument(msg)
        details[LIFTS] = " ".join(sorted(open_))
        event = self._event(notice_id, version, LifecycleEvent.REINSTATED, details)
        after = [
            replace(v, events=(*v.events, event)) if v.content == wanted.content else v
            for v in versions
        ]
        try:
            current = version_in_force(after, Mode.LIVE, self._registry.now()).content.version
        except Refusal:
            current = None
        if current != version:
            then = f"version {current} would be" if current else "no version would be"
            msg = (
                f"Version {version} cannot be reinstated: after that {then} in force for live "
                "keys. The version must not be withdrawn, and it must be the latest one in "
                f"effect. `countersign notices show {notice_id} --version {version}` shows its "
                "history."
            )
            raise InvalidArgument(msg)
        return await self._append(wanted, LifecycleEvent.REINSTATED, details)

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
                    f"{place} no longer contains the text published as {content.id} version "
                    f"{content.version}."
                )
        if changed:
            advice = "Restore the file, or publish the new text as a new version."
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
                    f"{content.id} version {content.version} is already published with a "
                    "different text. A published version cannot change: give the new text a new "
                    "version."
                )
                raise NoticeVersionConflict(msg)
        return False

    async def _version(self, notice_id: str, version: str) -> NoticeVersion:
        try:
            return await self._registry.version(notice_id, version)
        except NoticeNotFound:
            msg = (
                f"The notice {notice_id!r} has no version {version!r}; "
                "`countersign notices list` shows all published versions."
            )
            raise UnknownNotice(msg) from None

    async def _complete(self, notice_id: str, version: str) -> NoticeVersion:
        """The version, if nothing is known to be missing in its text."""
        found = await self._version(notice_id, version)
        if found.content.text_gaps:
            gaps = "\n".join(f"  incomplete: {gap}" for gap in found.content.text_gaps)
            msg = (
                f"The text of {notice_id} version {version} is incomplete, so live keys are not "
                f"served it.\n{gaps}\nComplete the text in a new file without text_gaps, and "
                "publish it as a new version: countersign notices publish FILE"
            )
            raise NoticeIncomplete(msg)
        return found

    async def _append(
        self, version: NoticeVersion, kind: LifecycleEvent, details: dict[str, str]
    ) -> NoticeEvent:
        content, digest = version.content, version.digest
        event = self._event(content.id, content.version, kind, details | {"digest": digest})
        action = AuditAction(f"notice_{kind}")
        audit = self._audit.entry(action, content.id, version=content.version)
        await self._store.add_event(event, self._records(event, digest), audit)
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


def _compared(by: str, against: str) -> dict[str, str]:
    """Who compared a text with the official one, as details of an event.

    Raises:
        InvalidArgument: `by` or `against` is empty, or `against` is no http(s) address.
    """
    if not by.strip() or not by.isprintable():
        msg = "Name the reviewer of the text, on one line: --by WHO."
        raise InvalidArgument(msg)
    if not _ADDRESS.match(against):
        msg = "Give the URL of the official text: --against https://…"
        raise InvalidArgument(msg)
    return {"by": by.strip(), "against": against}
