"""`countersign notices`: commands that use a notice file, or print text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from countersign.base.cli import room_command, with_room
from countersign.base.errors import InvalidNoticeFile, NoticeNotFound
from countersign.base.http.body import parse_body
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import Mode
from countersign.core.notices.model import (
    NoticeContent,
    NoticeEdition,
    notice_digest,
    published_bytes,
)
from countersign.core.notices.notice_file import NOTICE_BYTES_MAX, parse_notice_file
from countersign.core.notices.requirements import requirements_of
from countersign.core.notices.room import Notices
from countersign.core.notices.rule import Cart
from countersign.staff.acts.notices import compared, lifecycle_of, published
from countersign_evidence.cli.support import command, say, show
from countersign_evidence.errors import files_refused_as

_FILE: Final = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)


@click.group()
def notices() -> None:
    """Publish notices, record their review, and take them out of force."""


@notices.command("show")
@click.argument("notice_id")
@click.option("--version", help="Left out: the version published last.")
@room_command(Notices)
async def show_(room: Notices, notice_id: str, version: str | None) -> None:
    """Show the text, the digest and the history of a version."""
    one, versions = await _find(room, notice_id, version)
    lifecycle = msgspec.to_builtins(lifecycle_of(one, versions, room.registry.now()))
    lines = [*_lines(one.content), *(f"{name}: {lifecycle[name]}" for name in ("digest", *Mode))]
    for event in lifecycle["events"]:
        details = ", ".join(f"{name} {value}" for name, value in event["details"].items() if value)
        lines.append(f"{event['at']} {event['type']} {details}".rstrip())
    show(lifecycle | {"content": msgspec.to_builtins(one.content)}, "\n".join(lines))


@notices.command("check")
@click.argument("file", type=_FILE)
@command
def check(file: Path) -> None:
    """Check a notice file without publishing it."""
    content = parse_notice_file(_read(file))
    say(f"{file} is a valid notice file: {content.id} version {content.version}.")
    checked = {
        "notice_id": content.id,
        "version": content.version,
        "digest": notice_digest(published_bytes(content)),
        "text_gaps": [*content.text_gaps],
    }
    _show_digest(checked)


@notices.command("diff")
@click.argument("notice_id")
@click.argument("old")
@click.argument("new")
@command
def diff(notice_id: str, old: str, new: str) -> None:
    """Show what differs between two versions: OLD, and NEW or a notice file."""
    find, file = with_room(Notices)(_find), Path(new)
    before = find(notice_id, old)[0].content
    after = parse_notice_file(_read(file)) if file.is_file() else find(notice_id, new)[0].content
    found = compared(before, after)
    lines = [
        f"{sign}{one.part}: {text}"
        for one in found.differences
        for sign, text in (("-", one.before), ("+", one.after))
        if text is not None
    ]
    show(msgspec.to_builtins(found), "\n".join(lines))


@notices.command("publish")
@click.argument("file", type=_FILE)
@click.option(
    "--gap-closed",
    metavar="REASON",
    help="Why nothing is missing, although a version with text_gaps has the same lines.",
)
@room_command(Notices)
async def publish(room: Notices, file: Path, *, gap_closed: str | None) -> None:
    """Publish the version in FILE permanently. Live keys get it after its review.

    A version without text_gaps is refused if a version with text_gaps has the same lines.
    """
    content = parse_notice_file(_read(file))
    made, checked = await room.access.database.write(
        published, room, content, str(file), gap_closed
    )
    named = f"{content.id} version {content.version}"
    say(
        f"{named} is published."
        if made.new
        else f"{named} was already published, with the same text."
    )
    if content.applies_to and made.new_rule:
        say(f"Its rule {content.applies_to.version} is published; no one has reviewed it.")
    say(
        "Live keys never get an incomplete text: complete the text and publish a new version."
        if content.text_gaps
        else f"Live keys get it after its review: countersign notices review {content.id} "
        f"--version {content.version} --by WHO --against URL"
    )
    await asyncio.sleep(STALENESS_SECONDS)  # until every running server must have seen it
    _show_digest(msgspec.to_builtins(checked))


@notices.command("requirements")
@click.option(
    "--product-class", "classes", multiple=True, required=True, help="What is sold; repeatable."
)
@click.option("--state", required=True, help="Where it is delivered: a two-letter USPS code.")
@click.option("--zip", "zip_", help="The ZIP code there.")
@click.option("--residence", help="The state where the buyer lives. Left out: not known.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.LIVE.value,
    show_default=True,
    help="The kind of key that would ask.",
)
@room_command(Notices)
async def requirements(
    room: Notices,
    classes: tuple[str, ...],
    state: str,
    zip_: str | None,
    residence: str | None,
    *,
    mode: str,
) -> None:
    """Show what an order needs by the published rules, as POST /v1/requirements does."""
    ship_to = {"state": state, "zip": zip_}
    given = {"product_classes": classes, "ship_to": ship_to, "residence_state": residence}
    cart = parse_body(json.dumps(given).encode(), Cart)
    known = await room.registry.notices(fresh=True)
    found = requirements_of(known, cart, Mode(mode), room.registry.now())
    lines = [f"decision: {found.decision}", f"identity: {found.identity.required}"]
    for notice in found.notices:
        named = f"{notice.notice_id} {notice.version or '(no version in force)'}"
        rule = f"rule {notice.rule.version}" if notice.rule else "no rule"
        draft = "" if notice.reviewed else ", not reviewed"
        why = ", ".join(notice.reasons)
        lines.append(f"{named}: {notice.required} ({why}; {rule}{draft})")
    lines += [f"warning: {w.type} for {w.product_class} ({w.notice_id})" for w in found.warnings]
    show(msgspec.to_builtins(found), "\n".join(lines))


async def _find(
    room: Notices, notice_id: str, version: str | None
) -> tuple[NoticeEdition, Sequence[NoticeEdition]]:
    """A version, or the one published last, and all versions of its notice."""
    versions = (await room.registry.notices(fresh=True)).versions.get(notice_id, ())
    found = [one for one in versions if version in {None, one.content.version}]
    if not found:
        what = notice_id if version is None else f"{notice_id} version {version}"
        raise NoticeNotFound(
            f"The notice {what} does not exist; `countersign notices list` shows all notices."
        )
    return found[-1], versions


def _show_digest(checked: Mapping[str, Any]) -> None:
    """The known gaps of a version, and its digest."""
    for gap in checked["text_gaps"]:
        say(f"  incomplete: {gap}")
    show(checked, checked["digest"])


def _read(file: Path) -> bytes:
    with files_refused_as(InvalidNoticeFile, f"{file} cannot be read"):
        if not file.is_file() or file.stat().st_size > NOTICE_BYTES_MAX:
            raise InvalidNoticeFile(f"{file} is not a file of at most {NOTICE_BYTES_MAX} bytes.")
        return file.read_bytes()


def _lines(content: NoticeContent) -> list[str]:
    """Each field in words: a list has a line for each element, and a table is JSON."""
    fields = msgspec.to_builtins(content)
    bullets = fields.pop("bullets")
    lines = [
        f"{name}: {part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}"
        for name, value in fields.items()
        for part in (value if isinstance(value, list | tuple) else [value])
    ]
    return [*lines, *(f"bullet {b['id']}: {b['text']}" for b in bullets)]
