"""`countersign operator`, and who an account is: `countersign accounts describe` and more."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from countersign.base.cli import A_FILE, room_command
from countersign.base.errors import InvalidArgument
from countersign.base.generics import F
from countersign.base.values import Mode
from countersign.core.access.account import find_account
from countersign.core.log.room import LogRoom
from countersign.core.parties import (
    DEPLOYMENT,
    STATEMENT_LENGTH_MAX,
    Described,
    Particulars,
    PartyType,
    describe,
    described,
    state_capture_process,
)
from countersign_evidence.cli.support import field_lines, say, show

_STATED: Final = {
    "legal_name": "Its legal name.",
    "address": "Its postal address, on one line.",
    "licence": "A licence that identifies it, such as a federal firearms licence number.",
    "contact": "Where questions about evidence go.",
}


def _stating(work: F) -> F:
    """Add the options that describe a party."""
    for name, help_ in reversed(_STATED.items()):
        work = click.option(f"--{name.replace('_', '-')}", help=f'{help_} "" removes it.')(work)
    return work


@click.group("operator")
def operator() -> None:
    """The operator of this service, as the log records it."""


@operator.command("describe")
@_stating
@room_command(LogRoom)
async def describe_operator_command(room: LogRoom, /, **stated: str | None) -> None:
    """Record who operates this service; omitted options stay as they are.

    At least one option is needed. Each description is a new record, also of the same words.
    Records that are written from now on bind it. It is not secret: it is shown with the evidence.
    """
    found = await room.database.write(describe, room, None, Particulars(**stated))
    say("The operator is recorded in the log of each mode.")
    _show(found)


@operator.command("show")
@room_command(LogRoom)
async def show_operator(room: LogRoom) -> None:
    """Show who operates this service, as last recorded."""
    found = await room.database.read(described, DEPLOYMENT, PartyType.OPERATOR)
    if found is None:
        say("Nothing is recorded yet: countersign operator describe --legal-name NAME")
    _show(found or Described(asdict(Particulars()), 0, {}, {}))


@click.command("describe")
@click.argument("account")
@_stating
@room_command(LogRoom)
async def describe_account_command(room: LogRoom, /, account: str, **stated: str | None) -> None:
    """Record who an account is; omitted options stay as they are.

    At least one option is needed. Each description is a new record, also of the same words.
    Records of the account that are written from now on bind it. It is not secret: it is shown with
    the evidence.
    """
    owner = await find_account(room.access, account)
    found = await room.database.write(describe, room, owner, Particulars(**stated))
    say(f"Account {owner.name} is recorded in the log of each mode.")
    _show(found)


@click.command("show")
@click.argument("account")
@room_command(LogRoom)
async def show_account(room: LogRoom, account: str) -> None:
    """Show who an account is, and how it captures, as last recorded."""
    owner = await find_account(room.access, account)
    party = await room.database.read(described, owner.id, PartyType.ACCOUNT)
    process = await room.database.read(described, owner.id, PartyType.CAPTURE_PROCESS)
    view = {
        "account_id": owner.id,
        "name": owner.name,
        "described": None if party is None else _view(party),
        "capture_process": None if process is None else _view(process),
    }
    show(view, field_lines(view))


@click.command("capture-process")
@click.argument("account")
@click.option(
    "--statement",
    "file",
    required=True,
    type=A_FILE,
    help="A text file: how the account shows the notice and takes the initials.",
)
@room_command(LogRoom)
async def capture_process_command(room: LogRoom, account: str, *, file: Path) -> None:
    """Record an account's statement of how it captures initials; each is a new version.

    Acknowledgments that its server sends from now on bind this statement.
    """
    owner = await find_account(room.access, account)
    found = await room.database.write(state_capture_process, room, owner, _read(file))
    say(f"Version {found.number} of the statement is recorded in the log of each mode.")
    _show(found)


def _read(file: Path) -> str:
    try:
        if file.stat().st_size <= 4 * STATEMENT_LENGTH_MAX:
            return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidArgument(f"{file} cannot be read: {why}.") from None
    raise InvalidArgument(f"{file} is longer than {STATEMENT_LENGTH_MAX:,} characters.")


def _show(found: Described) -> None:
    view = _view(found)
    show(view, field_lines(view))


def _view(found: Described) -> dict[str, Any]:
    return {
        **found.members,
        "records": {mode.value: found.records[mode] for mode in Mode if mode in found.records},
        "sha256": {mode.value: found.digests[mode] for mode in Mode if mode in found.digests},
    }
