"""Publish notices, record their review, take them out of force: the operator's acts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from countersign.access.audit import AuditAction, write_audit
from countersign.errors import (
    CountersignError,
    InvalidArgument,
    InvalidNoticeFile,
    NoticeFileChanged,
    NoticeIncomplete,
    NoticeVersionConflict,
    Refusal,
    UnknownNotice,
)
from countersign.events.sql import write_notice_events
from countersign.evidence.canonical import Json
from countersign.ids import FACT, timed_id
from countersign.instant import from_ns
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.notices import sql
from countersign.notices.model import (
    LIFTS,
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    notice_digest,
    open_injunctions,
    published_bytes,
    version_in_force,
)
from countersign.notices.notice_file import (
    NOTICE_BYTES_MAX,
    parse_notice_file,
    shipped_notice_files,
)
from countersign.notices.registry import all_versions
from countersign.notices.room import Notices

_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\.[^\s]+\Z")
_SOURCE: Final = "file"
_SHIPPED: Final = "shipped:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What publishing did. `new` is False if exactly this was published before."""

    content: NoticeContent
    digest: str
    new: bool


async def publish(room: Notices, file: bytes, source: str) -> Publication:
    """Publish the version in a notice file; publishing the same words again is harmless.

    Every account gets an event of it, in both modes.

    Args:
        room: of notices.
        file: the content of the file.
        source: where the file is, so that a later change to it can be noticed.

    Raises:
        InvalidNoticeFile: with every mistake in it.
        NoticeVersionConflict: this version is published with other words.
    """
    return await room.database.write(_publish, room, parse_notice_file(file), source)


def _publish(
    connection: Connection, room: Notices, content: NoticeContent, source: str
) -> Publication | CountersignError:
    body = published_bytes(content)
    digest = notice_digest(body)
    known = sql.digest_of(connection, content.id, content.version)
    if known is None:
        event = _event(
            room, content.id, content.version, LifecycleEvent.PUBLISHED, {_SOURCE: source}
        )
        sql.add_version(connection, body, digest, event)
        _record(connection, room, event, digest)
        write_notice_events(connection, content.id, content.version, [*Mode], event.at)
    elif known != digest:
        return NoticeVersionConflict(
            f"{content.id} version {content.version} is already published with a different text. "
            "A published version cannot change: give the new text a new version."
        )
    return Publication(content=content, digest=digest, new=known is None)


async def publish_shipped(room: Notices) -> list[Publication]:
    """Publish the notice files of this release.

    Raises:
        NoticeVersionConflict: one was changed.
    """
    files = shipped_notice_files()
    return [await publish(room, data, _SHIPPED + name) for name, data in files.items()]


async def review(room: Notices, notice_id: str, version: str, by: str, against: str) -> NoticeEvent:
    """Record that someone compared the text with the official one.

    Args:
        room: of notices.
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
    return await room.database.write(_review, room, notice_id, version, details)


def _review(
    connection: Connection, room: Notices, notice_id: str, version: str, details: dict[str, str]
) -> NoticeEvent:
    reviewed = _complete(_find(connection, room, notice_id, version))
    return _append(connection, room, reviewed, LifecycleEvent.REVIEWED, details)


async def withdraw(
    room: Notices, notice_id: str, version: str, reason: str, *, enjoined: bool = False
) -> NoticeEvent:
    """Take a version out of force; `enjoined` also stops the whole notice for live keys.

    An injunction is about what the law asks, so no earlier version returns for live keys until
    an operator reinstates one.

    Raises:
        UnknownNotice: there is no such version.
    """
    kind = LifecycleEvent.ENJOINED if enjoined else LifecycleEvent.WITHDRAWN

    def act(connection: Connection) -> NoticeEvent:
        removed = _find(connection, room, notice_id, version)
        return _append(connection, room, removed, kind, {"reason": reason})

    return await room.database.write(act)


async def reinstate(
    room: Notices, notice_id: str, version: str, by: str, against: str
) -> NoticeEvent:
    """Lift the injunctions against a notice and bring it back for live keys with this version.

    It is a review of the version, too: the arguments are those of `review`.

    Raises:
        UnknownNotice: there is no such version.
        NoticeIncomplete: the version says what its text lacks.
        InvalidArgument: `by` or `against` is not valid, nothing is enjoined, or another version
            or none would be in force then.
    """
    details = _compared(by, against)
    return await room.database.write(_reinstate, room, notice_id, version, details)


def _reinstate(
    connection: Connection, room: Notices, notice_id: str, version: str, details: dict[str, str]
) -> NoticeEvent:
    wanted = _complete(_find(connection, room, notice_id, version))
    versions = all_versions(connection, room.zone)[notice_id]
    open_ = {e.id for e in (*open_injunctions(versions), *open_injunctions((wanted,)))}
    if not open_:
        msg = f"{notice_id} version {version} is not stopped by an injunction."
        raise InvalidArgument(msg)
    details = details | {LIFTS: " ".join(sorted(open_))}
    event = _event(room, notice_id, version, LifecycleEvent.REINSTATED, details)
    after = [
        replace(v, events=(*v.events, event)) if v.content == wanted.content else v
        for v in versions
    ]
    try:
        now = from_ns(room.clock.time_ns())
        current = version_in_force(after, Mode.LIVE, now).content.version
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
    return _append(connection, room, wanted, LifecycleEvent.REINSTATED, details)


async def refuse_changed(room: Notices) -> None:
    """Refuse to go on where the file of a published version, here or shipped, has other words now.

    A file that is gone is passed over, and one that holds another version: it is no longer the file
    of a published version.

    Raises:
        NoticeFileChanged: with every such file.
    """
    published = await room.database.read(sql.versions)
    sources = [version.events[0].details.get(_SOURCE, "") for version in published]
    files = {_SHIPPED + name: data for name, data in shipped_notice_files().items()}
    files |= {s: _read_if_there(s) for s in sources if s and not s.startswith(_SHIPPED)}
    digests = {(v.events[0].notice_id, v.events[0].version): v.digest for v in published}
    changed = [line for place, data in files.items() if (line := _change(place, data, digests))]
    if changed:
        advice = "Restore the file, or publish the new text as a new version."
        raise NoticeFileChanged("\n".join([*changed, advice]))


def _change(place: str, data: bytes, digests: Mapping[tuple[str, str], str]) -> str | None:
    """What is wrong with a file whose version is published with this digest."""
    try:
        content = parse_notice_file(data)
    except InvalidNoticeFile:
        return f"{place} is no longer a valid notice file." if data else None
    published = digests.get((content.id, content.version))
    if published in {None, notice_digest(published_bytes(content))}:
        return None
    return (
        f"{place} no longer contains the text published as {content.id} version {content.version}."
    )


def _read_if_there(place: str) -> bytes:
    """The file's bytes; none where it is gone, for what it said is in the database."""
    try:
        file = Path(place)
        is_notice = file.is_file() and file.stat().st_size <= NOTICE_BYTES_MAX
        return file.read_bytes() if is_notice else b""
    except OSError:
        return b""


def _find(connection: Connection, room: Notices, notice_id: str, version: str) -> NoticeEdition:
    for found in all_versions(connection, room.zone).get(notice_id, ()):
        if found.content.version == version:
            return found
    msg = (
        f"The notice {notice_id!r} has no version {version!r}; "
        "`countersign notices list` shows all published versions."
    )
    raise UnknownNotice(msg)


def _complete(found: NoticeEdition) -> NoticeEdition:
    """The version, if nothing is known to be missing in its text."""
    content = found.content
    if content.text_gaps:
        gaps = "\n".join(f"  incomplete: {gap}" for gap in content.text_gaps)
        msg = (
            f"The text of {content.id} version {content.version} is incomplete, so live keys are "
            f"not served it.\n{gaps}\nComplete the text in a new file without text_gaps, and "
            "publish it as a new version: countersign notices publish FILE"
        )
        raise NoticeIncomplete(msg)
    return found


def _append(
    connection: Connection,
    room: Notices,
    version: NoticeEdition,
    kind: LifecycleEvent,
    details: dict[str, str],
) -> NoticeEvent:
    """Write an event of a version, its records and its entry in the audit log."""
    content, digest = version.content, version.digest
    event = _event(room, content.id, content.version, kind, details | {"digest": digest})
    sql.add_event(connection, event)
    _record(connection, room, event, digest)
    audit = room.log.access.audit.entry(
        AuditAction(f"notice_{kind}"), content.id, version=content.version
    )
    write_audit(connection, audit)
    return event


def _record(connection: Connection, room: Notices, event: NoticeEvent, digest: str) -> None:
    """Write the event as a record for the log of each mode."""
    members: dict[str, Json] = {
        "event": event.type.value,
        "notice_id": event.notice_id,
        "notice_version": event.version,
        "notice_digest": digest,
    }
    make = room.log.recorder.of_deployment
    records = [make(RecordType.NOTICE_EVENT, FACT, mode, members) for mode in Mode]
    room.log.journal.write(connection, records)


def _event(
    room: Notices, notice_id: str, version: str, kind: LifecycleEvent, details: dict[str, str]
) -> NoticeEvent:
    time_ns = room.clock.time_ns()
    return NoticeEvent(
        id=timed_id("nev", time_ns, room.entropy(8)),
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
