"""`countersign notices`."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from countersign.access.audit import AuditAction
from countersign.cli.support import command, confirm, say, show, with_room
from countersign.errors import InvalidNoticeFile, UnknownNotice
from countersign.instant import rfc3339
from countersign.mode import Mode
from countersign.notices import publish as publishing
from countersign.notices.model import (
    NoticeContent,
    NoticeEdition,
    NoticeEvent,
    NoticeStatus,
    notice_digest,
    published_bytes,
    status_of,
)
from countersign.notices.notice_file import NOTICE_BYTES_MAX, parse_notice_file
from countersign.notices.room import Notices
from countersign.snapshot import STALENESS_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    version: NoticeEdition
    test: NoticeStatus
    live: NoticeStatus


@click.group()
def notices() -> None:
    """Publish notices, record their review, and take them out of force."""


@notices.command("list")
@command
def list_(*, as_json: bool) -> None:
    """List every published version, and its status for test and live keys."""
    found = _list()
    lines = [
        f"{v.version.content.id}  {v.version.content.version}  test: {v.test}  live: {v.live}"
        for v in found
    ]
    show([_view(listed) for listed in found], "\n".join(lines), as_json=as_json)


@notices.command("show")
@click.argument("notice_id")
@click.option("--version", help="Left out: the version published last.")
@command
def show_(notice_id: str, version: str | None, *, as_json: bool) -> None:
    """Show the text, the digest and the history of a version."""
    listed = _find(notice_id, version)
    show(
        _view(listed) | {"content": msgspec.to_builtins(listed.version.content)},
        _as_text(listed.version.content) + "\n" + _history(listed),
        as_json=as_json,
    )


@notices.command("check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@command
def check(file: Path, *, as_json: bool) -> None:
    """Check a notice file without publishing it."""
    content = parse_notice_file(_read(file))
    digest = notice_digest(published_bytes(content))
    say(f"{file} is a valid notice file: {content.id} version {content.version}.")
    for gap in content.text_gaps:
        say(f"  incomplete: {gap}")
    view = {"notice_id": content.id, "version": content.version, "digest": digest}
    show(view, digest, as_json=as_json)


@notices.command("diff")
@click.argument("notice_id")
@click.argument("old")
@click.argument("new")
@command
def diff(notice_id: str, old: str, new: str, *, as_json: bool) -> None:
    """Show what differs between two versions: OLD, and NEW or a notice file."""
    before = _find(notice_id, old).version.content
    after = (
        parse_notice_file(_read(Path(new)))
        if Path(new).is_file()
        else _find(notice_id, new).version.content
    )
    lines = list(
        difflib.unified_diff(
            _as_text(before).splitlines(), _as_text(after).splitlines(), old, new, lineterm="", n=1
        )
    )
    show({"different": bool(lines), "diff": lines}, "\n".join(lines), as_json=as_json)


@notices.command("publish")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@command
def publish(file: Path, *, as_json: bool) -> None:
    """Publish the version in FILE permanently. Live keys get it after its review."""
    publication = _publish(_read(file), str(file.resolve()))
    content = publication.content
    say(
        f"{content.id} version {content.version} is published."
        if publication.new
        else f"{content.id} version {content.version} was already published, with the same text."
    )
    for gap in content.text_gaps:
        say(f"  incomplete: {gap}")
    say(
        "Live keys never get an incomplete text: complete the text and publish a new version."
        if content.text_gaps
        else (
            f"Live keys get it after its review: countersign notices review {content.id} "
            f"--version {content.version} --by WHO --against URL"
        )
    )
    _until_servers_know()
    show(
        {
            "notice_id": content.id,
            "version": content.version,
            "digest": publication.digest,
            "new": publication.new,
        },
        publication.digest,
        as_json=as_json,
    )


@notices.command("review")
@click.argument("notice_id")
@click.option("--version", required=True, help="The version that was compared.")
@click.option("--by", required=True, help="Who compared the text, word for word.")
@click.option("--against", required=True, help="URL of the official text.")
@command
def review(notice_id: str, version: str, by: str, against: str, *, as_json: bool) -> None:
    """Record that a person compared a version with the official text.

    A version with text_gaps is refused: publish the complete text first.
    """
    event = _review(notice_id, version, by, against)
    say(f"{notice_id} version {version} is reviewed.")
    _report(event, as_json=as_json)


@notices.command("withdraw")
@click.argument("notice_id")
@click.option("--version", required=True, help="The version to take out of force.")
@click.option("--reason", default="", help="Why, for the record.")
@click.option(
    "--enjoined", is_flag=True, help="A court ordered it: stop the whole notice for live keys."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def withdraw(
    notice_id: str, version: str, reason: str, *, enjoined: bool, yes: bool, as_json: bool
) -> None:
    """Take a version out of force permanently; the version before it, if any, is in force again.

    With --enjoined no other version comes into force for live keys: they are refused until you run
    `countersign notices reinstate`. The command prints which version is in force afterwards.
    """
    confirm(
        f"Stop {notice_id} for live keys, all versions, until one is reinstated?"
        if enjoined
        else f"Take {notice_id} version {version} out of force permanently?",
        yes=yes,
    )
    event = _withdraw(notice_id, version, reason, enjoined=enjoined)
    say(f"{notice_id} version {version} is {event.type}.")
    _report(event, as_json=as_json)


@notices.command("reinstate")
@click.argument("notice_id")
@click.option("--version", required=True, help="The version that live keys get again.")
@click.option("--by", required=True, help="Who compared it with the official text, word for word.")
@click.option("--against", required=True, help="Address of the official text.")
@command
def reinstate(notice_id: str, version: str, by: str, against: str, *, as_json: bool) -> None:
    """End the injunction against a notice: live keys get this version again.

    The version can be the enjoined one or another one; it must be complete and not withdrawn. Other
    enjoined versions stay out of force.
    """
    event = _reinstate(notice_id, version, by, against)
    say(f"{notice_id} version {version} is reinstated.")
    _report(event, as_json=as_json)


@with_room(Notices)
async def _list(room: Notices) -> Sequence[_Listed]:
    all_versions, now = await room.registry.notices(fresh=True), room.registry.now()
    return [
        _Listed(
            version=version,
            test=status_of(version, versions, Mode.TEST, now),
            live=status_of(version, versions, Mode.LIVE, now),
        )
        for _, versions in sorted(all_versions.items())
        for version in versions
    ]


def _find(notice_id: str, version: str | None) -> _Listed:
    mine = [v for v in _list() if v.version.content.id == notice_id]
    found = [v for v in mine if version in {None, v.version.content.version}]
    if not found:
        what = notice_id if version is None else f"{notice_id} version {version}"
        raise UnknownNotice(
            f"The notice {what} does not exist; `countersign notices list` shows all notices."
        )
    return found[-1]


@with_room(Notices)
async def _publish(room: Notices, data: bytes, source: str) -> publishing.Publication:
    made = await publishing.publish(room, data, source)
    if made.new:
        await room.log.access.audit.note(
            AuditAction.NOTICE_PUBLISHED, made.content.id, version=made.content.version
        )
    return made


_review = with_room(Notices)(publishing.review)
_withdraw = with_room(Notices)(publishing.withdraw)
_reinstate = with_room(Notices)(publishing.reinstate)


def _report(event: NoticeEvent, *, as_json: bool) -> None:
    """Say what is in force for whom after an event, once every running server has seen it."""
    mine = [v for v in _list() if v.version.content.id == event.notice_id]
    for mode, statuses in (
        ("Test", {v.version.content.version: v.test for v in mine}),
        ("Live", {v.version.content.version: v.live for v in mine}),
    ):
        current = [v for v, status in statuses.items() if status is NoticeStatus.IN_FORCE]
        say(
            f"{mode} keys get {event.notice_id} version {current[0]}."
            if current
            else f"{mode} keys are refused: no version of {event.notice_id} is in force."
        )
    _until_servers_know()
    show(_event(event), event.id, as_json=as_json)


def _until_servers_know() -> None:
    """Return only when every running server must have seen it."""
    time.sleep(STALENESS_SECONDS)


def _read(file: Path) -> bytes:
    try:
        if not file.is_file() or file.stat().st_size > NOTICE_BYTES_MAX:
            msg = f"{file} is not a file of at most {NOTICE_BYTES_MAX} bytes."
            raise InvalidNoticeFile(msg)
        return file.read_bytes()
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}."
        raise InvalidNoticeFile(msg) from error


def _as_text(content: NoticeContent) -> str:
    fields = msgspec.to_builtins(content)
    bullets = fields.pop("bullets")
    # A line for each element: that is what `diff` compares.
    lines = [
        f"{name}: {part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}"
        for name, value in fields.items()
        for part in (value if isinstance(value, list | tuple) else [value])
    ]
    return "\n".join([*lines, *(f"bullet {b['id']}: {b['text']}" for b in bullets)])


def _history(listed: _Listed) -> str:
    lines = [f"digest: {listed.version.digest}", f"test: {listed.test}", f"live: {listed.live}"]
    for event in listed.version.events:
        details = ", ".join(f"{name} {value}" for name, value in event.details.items() if value)
        lines.append(f"{rfc3339(event.at)} {event.type} {details}".rstrip())
    return "\n".join(lines)


def _view(listed: _Listed) -> dict[str, Any]:
    content = listed.version.content
    return {
        "notice_id": content.id,
        "version": content.version,
        "title": content.title,
        "digest": listed.version.digest,
        "lines": len(content.bullets),
        "effective_from": content.effective_from,
        "test": listed.test.value,
        "live": listed.live.value,
        "text_gaps": list(content.text_gaps),
        "events": [_event(event) for event in listed.version.events],
    }


def _event(event: NoticeEvent) -> dict[str, Any]:
    return {
        "event_id": event.id,
        "notice_id": event.notice_id,
        "version": event.version,
        "type": event.type.value,
        "at": rfc3339(event.at),
        "details": event.details,
    }
