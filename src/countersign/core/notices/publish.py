"""Publish notices, record their review, take them out of force: the operator's acts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from countersign.base.errors import (
    InvalidArgument,
    InvalidNoticeFile,
    NoticeFileChanged,
    NoticeIncomplete,
    NoticeNotFound,
    NoticeVersionConflict,
    Refusal,
)
from countersign.base.values import Mode, from_ns, timed_id
from countersign.core.access.audit import Audit, AuditAction, write_audit
from countersign.core.events.sql import write_notice_events
from countersign.core.log.record import RecordType
from countersign.core.notices.model import (
    LIFTS,
    RULE,
    LifecycleEvent,
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    PublishedVersion,
    notice_digest,
    open_injunctions,
    published_bytes,
    rule_details,
    rules_in,
    version_in_force,
)
from countersign.core.notices.notice_file import (
    NOTICE_BYTES_MAX,
    parse_notice_file,
    shipped_notice_files,
)
from countersign.core.notices.registry import (
    add_event,
    add_version,
    all_versions,
    digest_of,
    published_versions,
)
from countersign.core.notices.room import Notices
from countersign.core.notices.rule import AppliesTo
from countersign_evidence.canonical import Json

GAP_CLOSED: Final = "gap_closed"
"""The detail of an event: why there is no gap although no line was added."""


def closing(reason: str | None) -> dict[str, str]:
    """The details of an event with this reason; none without one."""
    if reason is None:
        return {}
    if not reason.strip() or not reason.isprintable():
        raise InvalidArgument("Say on one line why nothing is missing (gap-closed).")
    return {GAP_CLOSED: reason.strip()}


def refuse_dropped_gap(
    content: NoticeContent, others: Iterable[NoticeContent], events: Iterable[NoticeEvent] = ()
) -> None:
    """Refuse a complete version that adds no line to an incomplete one of its notice.

    An event of the version that says why is enough. Raises NoticeIncomplete.
    """
    if content.text_gaps or any(GAP_CLOSED in event.details for event in events):
        return
    for other in others:
        if other.text_gaps and _lines(content) <= _lines(other):
            gaps = "\n".join(f"  incomplete: {gap}" for gap in other.text_gaps)
            raise NoticeIncomplete(
                f"The lines of {content.id} version {content.version} are those of version "
                f"{other.version}, which lacks text:\n{gaps}\nAdd the missing lines, in a version "
                "of its own. If nothing is missing, say why (gap-closed)."
            )


def _lines(content: NoticeContent) -> set[str]:
    """The words of each line, however they are spaced."""
    return {" ".join(bullet.text.split()).casefold() for bullet in content.bullets}


_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\.[^\s]+\Z")
_SOURCE: Final = "file"
_SHIPPED: Final = "shipped:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The result of publishing. `new` is False if exactly this was published before."""

    content: NoticeContent
    new: bool
    new_rule: bool = False
    """True if its rule was published now, with the text or for an earlier one."""


def publish(
    connection: Connection,
    room: Notices,
    content: NoticeContent,
    source: str,
    audit: Audit | None = None,
    *,
    gap_closed: str | None = None,
) -> Publication:
    """Publish a version of a notice; publishing the same words again is harmless.

    Every account gets an event of it, in both modes. `source` is the path of its file, so that a
    later change to it can be noticed. An operator's act is noted in `audit`, if it did anything.
    `gap_closed` says why the version has no gap although an earlier one with the same lines has
    one.
    """
    details = {_SOURCE: source} | closing(gap_closed)
    body = published_bytes(content)
    digest = notice_digest(body)
    known = digest_of(connection, content.id, content.version)
    if known is None:
        event = _event(room, content, LifecycleEvent.PUBLISHED, details)
        others = all_versions(connection, room.registry.zone).get(content.id, ())
        refuse_dropped_gap(content, [other.content for other in others], [event])
        add_version(connection, body, digest, event)
        _record(connection, room, event, digest)
        write_notice_events(connection, content.id, content.version, [*Mode], event.at)
    elif known != digest:
        raise NoticeVersionConflict(
            f"{content.id} version {content.version} is already published with a different "
            "text. A published version cannot change: give the new text a new version."
        )
    rule, rule_is_new = content.applies_to, _is_new_rule(connection, content)
    if rule_is_new:
        of_rule = rule_details(rule)
        add_event(connection, _event(room, content, LifecycleEvent.RULE_PUBLISHED, of_rule))
    if audit is not None and (known is None or rule_is_new):
        noted = {"version": content.version}
        noted |= {"rule": rule.version} if rule and rule_is_new else {}
        write_audit(connection, audit.entry(AuditAction.NOTICE_PUBLISHED, content.id, **noted))
    return Publication(content=content, new=known is None, new_rule=rule_is_new)


def _is_new_rule(connection: Connection, content: NoticeContent) -> bool:
    """Whether this version has a rule, and did not have it yet.

    Raises NoticeVersionConflict if a version of the notice has another rule of that name.
    """
    if content.applies_to is None:
        return False
    published = [v.events for v in published_versions(connection)]
    of_notice = [events for events in published if events[0].notice_id == content.id]
    for rule in (rule for events in of_notice for rule in rules_in(events)):
        if _differs(rule, content.applies_to):
            raise NoticeVersionConflict(
                f"Another rule is already published as version {rule.version} of `applies_to` of "
                f"{content.id}. A published rule cannot change: give the new one a new version."
            )
    own = next(e for e in of_notice if e[0].version == content.version)
    return content.applies_to not in rules_in(own)


def _differs(rule: AppliesTo, other: AppliesTo | None) -> bool:
    return other is not None and rule.version == other.version and rule != other


def publish_shipped(connection: Connection, room: Notices) -> list[Publication]:
    """Publish the notice files of this release."""
    return [
        publish(connection, room, parse_notice_file(data), _SHIPPED + name)
        for name, data in shipped_notice_files().items()
    ]


def review(
    connection: Connection,
    room: Notices,
    notice_id: str,
    version: str,
    *,
    by: str,
    against: str,
    rule: str | None = None,
    gap_closed: str | None = None,
    reinstates: bool = False,
) -> NoticeEvent:
    """Record that someone compared a version's text with the official one.

    `by` says who did, `against` is the address of the official text; `rule` is the version of the
    rule that was compared with the law, too; `gap_closed` as in `publish`. If it `reinstates`, it
    lifts the injunctions against the notice, and brings it back for live keys with this version.
    """
    details = _compared(by, against) | ({} if rule is None else {RULE: rule}) | closing(gap_closed)
    kind = LifecycleEvent.REINSTATED if reinstates else LifecycleEvent.REVIEWED
    return _happen(connection, room, notice_id, version, kind, details)


def withdraw(
    connection: Connection,
    room: Notices,
    notice_id: str,
    version: str,
    *,
    reason: str,
    enjoined: bool = False,
) -> NoticeEvent:
    """Take a version out of force; `enjoined` also stops the whole notice for live keys.

    An injunction is about what the law asks, so no earlier version returns for live keys until an
    operator reinstates one.
    """
    kind = LifecycleEvent.ENJOINED if enjoined else LifecycleEvent.WITHDRAWN
    return _happen(connection, room, notice_id, version, kind, {"reason": reason})


def _happen(  # noqa: PLR0917 - of every act
    connection: Connection,
    room: Notices,
    notice_id: str,
    version: str,
    kind: LifecycleEvent,
    details: dict[str, str],
) -> NoticeEvent:
    """Write an event of a version, its records and its entry in the audit log."""
    found, versions = _find(connection, room, notice_id, version)
    noted = dict(details)
    if kind in {LifecycleEvent.REVIEWED, LifecycleEvent.REINSTATED}:
        _refuse_incomplete(found.content)
        # A reviewer, who may be another person than the publisher, has to say so too.
        event = _event(room, found.content, kind, noted)
        reviews = [e for e in found.events if e.type is LifecycleEvent.REVIEWED]
        before = [v.content for v in versions if v.events[0].at < found.events[0].at]
        refuse_dropped_gap(found.content, before, [event, *reviews])
    if RULE in noted and noted[RULE] not in {rule.version for rule in found.rules}:
        raise InvalidArgument(
            f"{notice_id} version {version} has no rule {noted[RULE]!r}: see its rules."
        )
    if kind is LifecycleEvent.REINSTATED:
        open_ = {e.id for e in (*open_injunctions(versions), *open_injunctions((found,)))}
        noted[LIFTS] = " ".join(sorted(open_))
    event = _event(room, found.content, kind, noted | {"digest": found.digest})
    if kind is LifecycleEvent.REINSTATED:
        _refuse_vain(found, versions, event)
    add_event(connection, event)
    _record(connection, room, event, found.digest)
    action = AuditAction(f"notice_{kind}")
    write_audit(connection, room.access.audit.entry(action, notice_id, version=version))
    return event


def _refuse_vain(
    wanted: NoticeEdition, versions: Sequence[NoticeEdition], event: NoticeEvent
) -> None:
    """Refuse a reinstatement that lifts nothing, or after which another version is in force."""
    notice_id, version = event.notice_id, event.version
    if not event.details[LIFTS]:
        raise InvalidArgument(f"{notice_id} version {version} is not stopped by an injunction.")
    after = [replace(v, events=(*v.events, event)) if v is wanted else v for v in versions]
    current = None
    with suppress(Refusal):
        current = version_in_force(after, Mode.LIVE, event.at).content.version
    if current != version:
        then = f"version {current} would be" if current else "no version would be"
        raise InvalidArgument(
            f"Version {version} cannot be reinstated: after that {then} in force for live "
            "keys. The version must not be withdrawn, and it must be the latest one in "
            "effect: see its history."
        )


async def refuse_changed(room: Notices) -> None:
    """Refuse to continue if the file of a published version, here or shipped, has changed.

    A missing file is skipped, and so is one with another version: it is no longer the file of a
    published version.
    """
    published = await room.log.access.database.read(published_versions)
    sources = {version.events[0].details.get(_SOURCE, "") for version in published}
    files = {_SHIPPED + name: data for name, data in shipped_notice_files().items()}
    files |= {s: _read_if_there(s) for s in sources if s and not s.startswith(_SHIPPED)}
    versions = {(v.events[0].notice_id, v.events[0].version): v for v in published}
    changed = [line for place, data in files.items() if (line := _change(place, data, versions))]
    if changed:
        advice = "Restore the file, or publish the new text as a new version."
        raise NoticeFileChanged("\n".join([*changed, advice]))


def _change(
    place: str, data: bytes, versions: Mapping[tuple[str, str], PublishedVersion]
) -> str | None:
    """The error in a file whose version is published."""
    try:
        content = parse_notice_file(data)
    except InvalidNoticeFile:
        return f"{place} is no longer a valid notice file." if data else None
    named = f"{content.id} version {content.version}"
    published = versions.get((content.id, content.version))
    if published is None:
        return None
    if published.digest != notice_digest(published_bytes(content)):
        return f"{place} no longer contains the text published as {named}."
    if any(_differs(rule, content.applies_to) for rule in rules_in(published.events)):
        return f"{place} has another `applies_to` than {named}, with the same version."
    return None


def _read_if_there(place: str) -> bytes:
    """The file's bytes; empty if it is gone: its content is in the database."""
    try:
        file = Path(place)
        is_notice = file.is_file() and file.stat().st_size <= NOTICE_BYTES_MAX
        return file.read_bytes() if is_notice else b""
    except OSError:
        return b""


def _find(
    connection: Connection, room: Notices, notice_id: str, version: str
) -> tuple[NoticeEdition, Sequence[NoticeEdition]]:
    """The version, and all versions of its notice."""
    versions = all_versions(connection, room.registry.zone).get(notice_id, ())
    for found in versions:
        if found.content.version == version:
            return found, versions
    raise NoticeNotFound(f"The notice {notice_id!r} has no version {version!r}: see the list.")


def _refuse_incomplete(content: NoticeContent) -> None:
    if content.text_gaps:
        gaps = "\n".join(f"  incomplete: {gap}" for gap in content.text_gaps)
        raise NoticeIncomplete(
            f"The text of {content.id} version {content.version} is incomplete, so live keys are "
            f"not served it.\n{gaps}\nComplete the text in a new file without text_gaps, and "
            "publish it as a new version."
        )


def _record(connection: Connection, room: Notices, event: NoticeEvent, digest: str) -> None:
    """Write the event as a record for the log of each mode."""
    members: dict[str, Json] = {
        "event": event.type.value,
        "notice_id": event.notice_id,
        "notice_version": event.version,
        "notice_digest": digest,
    }
    make = room.log.recorder.of_deployment
    records = [make(RecordType.NOTICE_EVENT, mode, members) for mode in Mode]
    room.log.journal.write(connection, records)


def _event(
    room: Notices, content: NoticeContent, kind: LifecycleEvent, details: dict[str, str]
) -> NoticeEvent:
    access = room.log.access
    time_ns = access.clock.time_ns()
    return NoticeEvent(
        id=timed_id("nev", time_ns, access.entropy(8)),
        notice_id=content.id,
        version=content.version,
        type=kind,
        at=from_ns(time_ns),
        details=details,
    )


def _compared(by: str, against: str) -> dict[str, str]:
    """The reviewer of a text, as details of an event."""
    if not by.strip() or not by.isprintable():
        raise InvalidArgument("Name the reviewer of the text, on one line.")
    if not _ADDRESS.match(against):
        raise InvalidArgument("Give the URL of the official text.")
    return {"by": by.strip(), "against": against}
