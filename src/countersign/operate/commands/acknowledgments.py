"""`countersign acknowledgments`: export acknowledgments."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from countersign.base.cli import A_FILE, A_MODE, csv_lines, room_command
from countersign.base.errors import InvalidArgument, UnknownSubject
from countersign.base.values import ACKNOWLEDGMENT, Mode, is_id, parse_rfc3339, rfc3339, rfc3339_ms
from countersign.core.access.account import all_accounts, find_account
from countersign.core.access.audit import AuditAction
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import find_many, find_order_owner
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.routes import get_acknowledgment
from countersign.core.acknowledgments.schemas import Acknowledgment, AcknowledgmentsQuery
from countersign.core.gate.commands import operator
from countersign_evidence.cli.files import written
from countersign_evidence.cli.support import (
    field_lines,
    is_given,
    json_text,
    printable,
    say,
    show,
    show_all,
)

SEALING_SECONDS = 5.0
COLUMNS: Final = (
    *("ack_id", "livemode", "accepted_at", "notice_id", "notice_version"),
    *("notice_version_source", "notice_digest", "initials_per_line", "session_id", "cbid"),
    *("ip", "ip_source", "peer_ip", "user_agent", "user_agent_source", "capture"),
    *("evidence_status", "evidence_log", "evidence_index", "erased_at", "unreadable"),
    "order_reference",
)


@click.group()
def acknowledgments() -> None:
    """Find, show and export acknowledgments, and write their certificates."""


@acknowledgments.command("export")
@click.option("--account", required=True, help="Id or name.")
@click.option("--mode", type=A_MODE, default=Mode.LIVE.value, show_default=True)
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
@click.option("--output", type=A_FILE, help="The file to write. Left out: standard output.")
@room_command(Acknowledgments)
async def export(
    room: Acknowledgments,
    account: str,
    mode: str,
    *,
    after: str | None,
    before: str | None,
    format_: str,
    output: Path | None,
) -> None:
    """Export an account's acknowledgments with their personal fields, newest first."""
    times = (_time("--after", after), _time("--before", before))
    jsonl = format_ == "jsonl" or (is_given("as_json") and output is None)
    printed = Terminal() if sys.stdout.isatty() else sys.stdout.buffer
    access, number = room.log.access, 0
    with nullcontext(printed) if output is None else written(output) as target:
        owner = await find_account(access, account)
        begin, end = (None if time is None else rfc3339(time) for time in times)
        await access.audit.note(
            AuditAction.ACKNOWLEDGMENTS_EXPORTED, owner.id, mode=mode, after=begin, before=end
        )
        if not jsonl:
            target.write(csv_lines([COLUMNS]).encode())
        async for row in _rows(room, owner.id, Mode(mode), *times):
            line = json_text(row) + "\n" if jsonl else csv_lines([[*row.values()]])
            target.write(line.encode())
            number += 1
            if number % 5000 == 0:
                say(f"{number} …")
    if output is not None and is_given("as_json"):
        show({"exported": number, "output": str(output)}, "")
    say(f"{number} acknowledgments exported.")
    if not number:
        other = Mode.TEST if Mode(mode) is Mode.LIVE else Mode.LIVE
        say(f"This was the {mode} mode. For {other.value} mode: --mode {other.value}")


class Terminal:
    """Standard output on a terminal: control characters are made visible."""

    def write(self, data: bytes) -> None:
        click.echo(printable(data.decode(), keep="\r\n"), nl=False)


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise InvalidArgument(f"{option} must be a time such as 2026-11-20T21:31:00Z.") from None


async def _rows(
    room: Acknowledgments, account_id: str, mode: Mode, begin: datetime | None, end: datetime | None
) -> AsyncIterator[dict[str, Any]]:
    """Each acknowledgment in this range of times, newest first, as a row with the COLUMNS."""
    who, after, more = operator(account_id, mode), None, True
    while more:
        search = AcknowledgmentsQuery(
            accepted_after=begin, accepted_before=end, after=after, limit=500
        )
        page, after = await find_many(room, who, search)
        for found in page:
            yield _row(found)
        more = after is not None


def _row(found: Acknowledgment) -> dict[str, Any]:
    values = msgspec.structs.asdict(found) | {
        "accepted_at": rfc3339_ms(found.accepted_at),
        "erased_at": None if found.erased_at is None else rfc3339_ms(found.erased_at),
        "evidence_status": found.evidence.status,
        "evidence_log": found.evidence.log,
        "evidence_index": found.evidence.index,
        "unreadable": found.unreadable is True,
    }
    return {name: values[name] for name in COLUMNS}


def say_how_to_check(target: Path, mode: Mode) -> None:
    """How to check a file of evidence that was written."""
    of_mode = "" if mode is Mode.LIVE else f" --mode {mode.value}"
    say(f"Check it with: countersign verify {target} --policy POLICY")
    say(f"POLICY is a file with the output of `countersign log policy{of_mode}`.")


async def reader_of(room: Acknowledgments, order_id: str) -> Principal:
    """The operator, reading what the account of this record could read; what waits is sealed first.

    Raises UnknownSubject if there is no such acknowledgment or clearance.
    """
    await room.log.seal.settle()
    found = await room.log.database.read(find_order_owner, order_id)
    if found is None:
        raise UnknownSubject(f"The acknowledgment or clearance {order_id!r} does not exist.")
    return operator(*found)


_ALL = "acknowledgments"
"""The subject of audit entries that name no account."""


@click.command("list")
@click.option("--order-reference", help="The vendor's reference of the order.")
@click.option("--session", help="The vendor's checkout session.")
@click.option("--account", help="Id or name. Left out: all accounts.")
@click.option("--mode", type=A_MODE, help="Left out: both.")
@room_command(Acknowledgments)
async def list_command(
    room: Acknowledgments,
    order_reference: str | None,
    session: str | None,
    account: str | None,
    mode: str | None,
) -> None:
    """Find the acknowledgments of an order, newest first: of each account at most 100."""
    if order_reference is None and session is None:
        raise InvalidArgument("Give --order-reference or --session.")
    for option, text in (("--order-reference", order_reference), ("--session", session)):
        # Output that is not UTF-8 contains surrogates.
        if text is not None and (not text or any("\ud800" <= c <= "\udfff" for c in text)):
            raise InvalidArgument(f"{option} must be UTF-8 text that is not empty.")
    search = AcknowledgmentsQuery(order_reference=order_reference, session_id=session, limit=100)
    access = room.log.access
    if account is None:
        subject, owners = _ALL, await access.database.read(all_accounts)
    else:
        owners = [await find_account(access, account)]
        subject = owners[0].id
    await access.audit.note(AuditAction.ACKNOWLEDGMENTS_LISTED, subject, mode=mode)
    found = [
        {
            "ack_id": one.ack_id,
            "account": owner.name,
            "mode": of_mode.value,
            "accepted_at": rfc3339(one.accepted_at),
            "order_reference": one.order_reference,
            "session_id": one.session_id,
            "clearance_id": one.clearance_id,
        }
        for owner in owners
        for of_mode in ([Mode(mode)] if mode else Mode)
        for one in (await find_many(room, operator(owner.id, of_mode), search))[0]
    ]
    lines = ["  ".join(value or "-" for value in one.values()) for one in found]
    show_all(found, lines, "No acknowledgment was found.")


@click.command("show")
@click.argument("ack_id")
@room_command(Acknowledgments)
async def show_command(room: Acknowledgments, ack_id: str) -> None:
    """Show an acknowledgment of any account, with its personal fields."""
    is_one = is_id(ACKNOWLEDGMENT, ack_id)  # a clearance has an owner, too
    found = await room.log.database.read(find_order_owner, ack_id) if is_one else None
    if found is None:
        raise UnknownSubject(f"The acknowledgment {ack_id!r} does not exist.")
    who = operator(*found)
    await room.log.access.audit.note(
        AuditAction.ACKNOWLEDGMENT_SHOWN, ack_id, who.reach, account_id=who.account_id
    )
    shown = await get_acknowledgment(room, who, ack_id)
    view = {"account_id": who.account_id, **msgspec.to_builtins(shown)}
    show(view, field_lines(view))
