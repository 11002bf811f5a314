"""`countersign notices`."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec

from countersign.cli.deployment import with_room
from countersign.errors import InvalidNoticeFile, NoticeNotFound
from countersign.http.body import parse_body
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
from countersign.notices.requirements import Requirements, requirements_of
from countersign.notices.room import Notices
from countersign.notices.rule import Cart
from countersign.snapshot import STALENESS_SECONDS
from countersign_evidence.cli.support import command, confirm, say, show

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_GAP_CLOSED: Final = click.option(
    "--gap-closed",
    metavar="REASON",
    help="Why nothing is missing, although the lines are those of a version with text_gaps.",
)


@click.group()
def notices() -> None:
    """Publish notices, record their review, and take them out of force."""


@notices.command("list")
@command
def list_(*, as_json: bool) -> None:
    """List every published version, and its status for test and live keys."""
    views = [view for _, view in _list()]
    lines = [
        f"{v['notice_id']}  {v['version']}  test: {v['test']}  live: {v['live']}" for v in views
    ]
    show(views, "\n".join(lines), as_json=as_json)


@notices.command("show")
@click.argument("notice_id")
@click.option("--version", help="Left out: the version published last.")
@command
def show_(notice_id: str, version: str | None, *, as_json: bool) -> None:
    """Show the text, the digest and the history of a version."""
    content, view = _find(notice_id, version)
    lines = [_as_text(content), *(f"{name}: {view[name]}" for name in ("digest", *Mode))]
    for event in view["events"]:
        details = ", ".join(f"{name} {value}" for name, value in event["details"].items() if value)
        lines.append(f"{event['at']} {event['type']} {details}".rstrip())
    show(view | {"content": msgspec.to_builtins(content)}, "\n".join(lines), as_json=as_json)


@notices.command("check")
@click.argument("file", type=_FILE)
@command
def check(file: Path, *, as_json: bool) -> None:
    """Check a notice file without publishing it."""
    content = parse_notice_file(_read(file))
    say(f"{file} is a valid notice file: {content.id} version {content.version}.")
    _show_content(content, notice_digest(published_bytes(content)), as_json=as_json)


@notices.command("diff")
@click.argument("notice_id")
@click.argument("old")
@click.argument("new")
@command
def diff(notice_id: str, old: str, new: str, *, as_json: bool) -> None:
    """Show what differs between two versions: OLD, and NEW or a notice file."""
    before, file = _find(notice_id, old)[0], Path(new)
    after = parse_notice_file(_read(file)) if file.is_file() else _find(notice_id, new)[0]
    was, is_ = _as_text(before).splitlines(), _as_text(after).splitlines()
    lines = [*difflib.unified_diff(was, is_, old, new, lineterm="", n=1)]
    show({"different": bool(lines), "diff": lines}, "\n".join(lines), as_json=as_json)


@notices.command("publish")
@click.argument("file", type=_FILE)
@_GAP_CLOSED
@command
def publish(file: Path, *, gap_closed: str | None, as_json: bool) -> None:
    """Publish the version in FILE permanently. Live keys get it after its review.

    A version without text_gaps is refused if its lines are those of a version that has some.
    """
    made = _publish(_read(file), str(file.resolve()), gap_closed)
    named = f"{made.content.id} version {made.content.version}"
    say(
        f"{named} is published."
        if made.new
        else f"{named} was already published, with the same text."
    )
    if made.content.applies_to and made.new_rule:
        say(f"Its rule {made.content.applies_to.version} is published; no one has reviewed it.")
    say(
        "Live keys never get an incomplete text: complete the text and publish a new version."
        if made.content.text_gaps
        else (
            f"Live keys get it after its review: countersign notices review {made.content.id} "
            f"--version {made.content.version} --by WHO --against URL"
        )
    )
    time.sleep(STALENESS_SECONDS)  # until every running server must have seen it
    _show_content(made.content, made.digest, as_json=as_json, new=made.new)


@notices.command("review")
@click.argument("notice_id")
@click.option("--version", required=True, help="The version that was compared.")
@click.option("--by", required=True, help="Who compared the text, word for word.")
@click.option("--against", required=True, help="URL of the official text.")
@click.option("--rule", help="The version of `applies_to` that was compared with the law, too.")
@_GAP_CLOSED
@command
def review(
    notice_id: str,
    version: str,
    by: str,
    against: str,
    rule: str | None,
    *,
    gap_closed: str | None,
    as_json: bool,
) -> None:
    """Record that a person compared a version with the official text, and its rule with the law.

    A version with text_gaps is refused: publish the complete text first; so is one without, whose
    lines are those of a version that has some. Without --rule, no rule is
    reviewed: live keys never get "not required" from an unreviewed rule.
    """
    event = with_room(Notices)(publishing.review)(
        notice_id, version, by, against, rule=rule, gap_closed=gap_closed
    )
    _warn_of_home_page(against)
    _report(event, as_json=as_json)


@notices.command("requirements")
@click.option(
    "--product-class", "classes", multiple=True, required=True, help="What is sold; repeatable."
)
@click.option("--state", required=True, help="Where it is delivered: a two-letter USPS code.")
@click.option("--zip", "zip_", help="The ZIP code there.")
@click.option("--residence", help="The state in which the buyer lives. Left out: not known.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.LIVE.value,
    show_default=True,
    help="The kind of key that would ask.",
)
@command
def requirements(
    classes: tuple[str, ...],
    state: str,
    zip_: str | None,
    residence: str | None,
    mode: str,
    *,
    as_json: bool,
) -> None:
    """Show what an order needs by the published rules, as POST /v1/requirements does."""
    ship_to = {"state": state, "zip": zip_}
    given = {"product_classes": classes, "ship_to": ship_to, "residence_state": residence}
    found = _requirements(parse_body(json.dumps(given).encode(), Cart), Mode(mode))
    lines = [f"decision: {found.decision}", f"identity: {found.identity.required}"]
    for notice in found.notices:
        named = f"{notice.notice_id} {notice.version or '(no version in force)'}"
        rule = f"rule {notice.rule.version}" if notice.rule else "no rule"
        draft = "" if notice.reviewed else ", not reviewed"
        why = ", ".join(notice.reasons)
        lines.append(f"{named}: {notice.required} ({why}; {rule}{draft})")
    lines += [f"warning: {w.type} for {w.product_class} ({w.notice_id})" for w in found.warnings]
    show(msgspec.to_builtins(found), "\n".join(lines), as_json=as_json)


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
    withdrawn = with_room(Notices)(publishing.withdraw)
    _report(withdrawn(notice_id, version, reason, enjoined=enjoined), as_json=as_json)


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
    event = with_room(Notices)(publishing.reinstate)(notice_id, version, by, against)
    _warn_of_home_page(against)
    _report(event, as_json=as_json)


@with_room(Notices)
async def _list(room: Notices) -> Sequence[tuple[NoticeContent, dict[str, Any]]]:
    """Every version, and what is known about it."""
    known, now = await room.registry.notices(fresh=True), room.registry.now()
    return [
        (version.content, _view(version, {m: status_of(version, versions, m, now) for m in Mode}))
        for _, versions in sorted(known.versions.items())
        for version in versions
    ]


@with_room(Notices)
async def _requirements(room: Notices, cart: Cart, mode: Mode) -> Requirements:
    known = await room.registry.notices(fresh=True)
    return requirements_of(known, cart, mode, room.registry.now())


def _find(notice_id: str, version: str | None) -> tuple[NoticeContent, dict[str, Any]]:
    found = [v for v in _list() if v[0].id == notice_id and version in {None, v[0].version}]
    if not found:
        what = notice_id if version is None else f"{notice_id} version {version}"
        raise NoticeNotFound(
            f"The notice {what} does not exist; `countersign notices list` shows all notices."
        )
    return found[-1]


@with_room(Notices)
async def _publish(
    room: Notices, data: bytes, source: str, gap_closed: str | None
) -> publishing.Publication:
    content, audit = parse_notice_file(data), room.log.access.audit
    return await publishing.publish(room, content, source, audit, gap_closed=gap_closed)


def _warn_of_home_page(address: str) -> None:
    parts = urlsplit(address)
    if parts.path in {"", "/"} and not parts.query and not parts.fragment:
        say(
            f"warning: {address} is the address of a home page. Give the page that has the text, "
            "so that others can compare it too."
        )


def _report(event: NoticeEvent, *, as_json: bool) -> None:
    """Say what is in force for whom after an event, once every running server has seen it."""
    notice_id = event.notice_id
    say(f"{notice_id} version {event.version} is {event.type}.")
    mine = [view for _, view in _list() if view["notice_id"] == notice_id]
    for mode in Mode:
        current = [view["version"] for view in mine if view[mode] == NoticeStatus.IN_FORCE]
        say(
            f"{mode.capitalize()} keys get {notice_id} version {current[0]}."
            if current
            else f"{mode.capitalize()} keys are refused: no version of {notice_id} is in force."
        )
    time.sleep(STALENESS_SECONDS)  # until every running server must have seen it
    show(_event(event), event.id, as_json=as_json)


def _show_content(content: NoticeContent, digest: str, *, as_json: bool, **more: bool) -> None:
    """What is known to be missing in a version, and its digest."""
    for gap in content.text_gaps:
        say(f"  incomplete: {gap}")
    view = {"notice_id": content.id, "version": content.version, "digest": digest, **more}
    show(view, digest, as_json=as_json)


def _read(file: Path) -> bytes:
    try:
        if not file.is_file() or file.stat().st_size > NOTICE_BYTES_MAX:
            raise InvalidNoticeFile(f"{file} is not a file of at most {NOTICE_BYTES_MAX} bytes.")
        return file.read_bytes()
    except OSError as error:
        raise InvalidNoticeFile(f"{file} cannot be read: {error.strerror}.") from error


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


def _view(version: NoticeEdition, statuses: Mapping[Mode, NoticeStatus]) -> dict[str, Any]:
    content = version.content
    return {
        "notice_id": content.id,
        "version": content.version,
        "title": content.title,
        "digest": version.digest,
        "lines": len(content.bullets),
        "effective_from": content.effective_from,
        **{mode.value: status.value for mode, status in statuses.items()},
        "text_gaps": list(content.text_gaps),
        "events": [_event(event) for event in version.events],
    }


def _event(event: NoticeEvent) -> dict[str, Any]:
    own = asdict(event) | {"at": rfc3339(event.at)}
    return {"event_id": own.pop("id"), **own}
