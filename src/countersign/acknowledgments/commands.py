"""`countersign acknowledgments`: export acknowledgments, and write the evidence of one."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from countersign.access.account import find_account
from countersign.access.audit import AuditAction
from countersign.acknowledgments import proof, sql
from countersign.acknowledgments.export import COLUMNS, csv_lines, operator_of
from countersign.acknowledgments.export import export as exported
from countersign.acknowledgments.room import Acknowledgments
from countersign.cli.files import written
from countersign.cli.support import (
    command,
    json_text,
    printable,
    say,
    show,
    with_room,
)
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.instant import parse_rfc3339, rfc3339
from countersign.mode import Mode

_MODES = click.Choice([mode.value for mode in Mode])
_PROGRESS_EVERY = 5000
_SEALING_SECONDS = 5.0


@click.group()
def acknowledgments() -> None:
    """Export acknowledgments, and write the evidence of one."""


@acknowledgments.command("export")
@click.option("--account", required=True, help="Id or name.")
@click.option("--mode", type=_MODES, default=Mode.LIVE.value, show_default=True)
@click.option("--after", help="Accepted at or after this time, such as 2026-11-01T00:00:00Z.")
@click.option("--before", help="Accepted before this time.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="CSV that is safe in a spreadsheet, or JSON lines.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write. Left out: standard output.",
)
@command
def export(
    account: str,
    mode: str,
    *,
    after: str | None,
    before: str | None,
    format_: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Export an account's acknowledgments with their personal fields, newest first."""
    times = (_time("--after", after), _time("--before", before))
    jsonl = format_ == "jsonl" or (as_json and output is None)
    printed = Terminal() if sys.stdout.isatty() else sys.stdout.buffer
    with nullcontext(printed) if output is None else written(output) as target:
        number = _export(target, account, Mode(mode), times, jsonl=jsonl)
    if output is not None and as_json:
        show({"exported": number, "output": str(output)}, "", as_json=True)
    say(f"{number} acknowledgments exported.")
    if not number:
        other = Mode.TEST if Mode(mode) is Mode.LIVE else Mode.LIVE
        say(f"This was the {mode} mode. For {other.value} mode: --mode {other.value}")


@acknowledgments.command("bundle")
@click.argument("ack_id")
@click.option("--disclose", help="Personal fields to show, separated by commas, or `none`.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write. Left out: ACK_ID.zip.",
)
@command
def bundle(ack_id: str, *, disclose: str | None, output: Path | None, as_json: bool) -> None:
    """Write the bundle of one acknowledgment of any account: the file to give to a court."""
    data = _bundle(ack_id, disclose)
    target = output or Path(f"{ack_id}.zip")
    with written(target) as file:
        file.write(data)
    say(f"Check it with: countersign verify {target} --policy POLICY")
    say("POLICY is a file with the output of `countersign log policy`.")
    show(
        {"ack_id": ack_id, "output": str(target), "bytes": len(data)}, str(target), as_json=as_json
    )


class Terminal:
    """Standard output on a terminal: control characters are made visible."""

    def write(self, data: bytes) -> None:
        """Print whole lines of text."""
        click.echo(printable(data.decode(), keep="\r\n"), nl=False)


@with_room(Acknowledgments)
async def _export(
    room: Acknowledgments,
    target: BinaryIO | Terminal,
    account: str,
    mode: Mode,
    times: tuple[datetime | None, datetime | None],
    *,
    jsonl: bool,
) -> int:
    access = room.log.access
    owner = await find_account(access, account)
    after, before = (None if time is None else rfc3339(time) for time in times)
    await access.audit.note(
        AuditAction.ACKNOWLEDGMENTS_EXPORTED, owner.id, mode=mode.value, after=after, before=before
    )
    number = 0
    if not jsonl:
        target.write(csv_lines([COLUMNS]).encode())
    async for row in exported(room, owner, mode, *times):
        line = json_text(row) + "\n" if jsonl else csv_lines([[*row.values()]])
        target.write(line.encode())
        number += 1
        if number % _PROGRESS_EVERY == 0:
            say(f"{number} …")
    return number


@with_room(Acknowledgments)
async def _bundle(room: Acknowledgments, ack_id: str, disclose: str | None) -> bytes:
    await room.log.seal.settle()
    found = await room.database.read(sql.find_owner, ack_id)
    if found is None:
        msg = f"The acknowledgment {ack_id!r} does not exist."
        raise UnknownSubject(msg)
    account_id, mode = found
    await room.log.access.audit.note(
        AuditAction.BUNDLE_WRITTEN, ack_id, account_id=account_id, disclose=disclose
    )
    who = operator_of(account_id, mode)
    return await proof.bundle(room, who, ack_id, disclose, _SEALING_SECONDS)


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        msg = f"{option} must be a time such as 2026-11-20T21:31:00Z."
        raise InvalidArgument(msg) from None
