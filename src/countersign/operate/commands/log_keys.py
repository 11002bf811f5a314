"""`countersign log`: the keys of the log, and the persons who approve changing them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import click

from countersign.base.cli import A_MODE, room_command
from countersign.base.errors import InvalidArgument
from countersign.base.files import write_key_file
from countersign.base.values import Mode, rfc3339
from countersign.core.log import approvals_sql, rotation
from countersign.core.log.keys import SEED_BYTES
from countersign.core.log.operate import log_in_use
from countersign.core.log.room import LogRoom
from countersign.core.log.routes import key_history
from countersign_evidence.approval import private_key, read_private_key, sign_proposal
from countersign_evidence.cli.files import read_file
from countersign_evidence.cli.support import Duration, asking, command, confirm, say, show
from countersign_evidence.errors import EvidenceError, refused_as
from countersign_evidence.note import Signer, parse_note

_FILE: Final = click.Path(path_type=Path)


@click.group()
def log() -> None:
    """The transparency logs: status, checks, keys, and recovery."""


@log.command("keys")
@click.option("--mode", type=A_MODE, default=Mode.LIVE.value, show_default=True)
@room_command(LogRoom)
async def keys(room: LogRoom, mode: str) -> None:
    """Print the signed history of the keys: which key counts for which sizes of the log."""
    note = (await key_history(room, await log_in_use(room, Mode(mode)))).decode()
    show({"history": note}, note.rstrip("\n"))


@log.command("rotate-key")
@click.option("--overlap", type=Duration(), default="7d", show_default=True)
@asking("Give the live log a new signing key?")
@room_command(LogRoom)
async def rotate_key(room: LogRoom, *, overlap: timedelta) -> None:
    """Give the live log a new key, or propose it if others have to approve.

    Until the overlap ends, the old key signs as well. COUNTERSIGN_LOG_KEYS says where the new key
    is kept.
    """
    _show(await rotation.rotate_log_key(room, overlap))


@log.command("approvers")
@room_command(LogRoom)
async def approvers(room: LogRoom) -> None:
    """Show who approves changes of the live log's keys, and the open proposal."""
    roster = await room.database.read(approvals_sql.roster)
    found = await room.database.read(rotation.open_proposal, room)
    vkeys = [approver.vkey for approver in roster.approvers]
    lines = [f"{roster.threshold} of {len(vkeys)} approve a change", *vkeys]
    if found is not None:
        lines += ["", f"open, approved by {len(found.signed)}:", found.text.decode().rstrip("\n")]
    view = {
        "threshold": roster.threshold,
        "approvers": vkeys,
        "proposal": None if found is None else _view(found),
    }
    show(view, "\n".join(lines))


@log.command("set-approvers")
@click.option("--threshold", type=click.IntRange(0, 100), required=True)
@click.argument("vkeys", nargs=-1, metavar="[VKEY]…")
@asking("Change who approves changes of the live log's keys?")
@room_command(LogRoom)
async def set_approvers(room: LogRoom, threshold: int, vkeys: tuple[str, ...]) -> None:
    """Say who approves changes of the live log's keys from now on, and how many it takes.

    VKEY is the verifier key of a person, as `log approver-key` prints it. If changes need approvals
    now, this change needs them too, from the current approvers.
    """
    _show(await rotation.set_approvers(room, threshold, vkeys))


@log.command("approve")
@click.argument("signed", type=_FILE)
@room_command(LogRoom)
async def approve(room: LogRoom, signed: Path) -> None:
    """Take the approval in a file that `log sign-approval` wrote; the last one does the change."""
    _show(await rotation.approve(room, read_file(signed)))


@log.command("approver-key")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="The owner of the key, such as alice@example.com.")
@command
def approver_key(file: Path, name: str) -> None:
    """Make a person's key for approvals, in a new file; prints the verifier key to register.

    Run it on the person's own machine: it needs no deployment. Anyone who has the file can approve.
    """
    if file.exists():
        raise InvalidArgument(f"{file} exists.")
    seed = secrets.token_bytes(SEED_BYTES)
    try:
        text, vkey = private_key(name, seed), Signer.from_seed(name, seed).verifier.vkey
    except EvidenceError as error:
        raise InvalidArgument(f"{name!r} is {error}.") from error
    write_key_file(file, f"{text}\n")
    show({"vkey": vkey}, vkey)


@log.command("sign-approval")
@click.argument("proposal", type=_FILE)
@click.option("--key", type=_FILE, required=True, help="File that `log approver-key` wrote.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def sign_approval(proposal: Path, key: Path) -> None:
    """Approve a proposal: shows it, asks, and prints the signed note to hand back.

    Run it on the person's own machine: it needs no deployment.
    """
    given = read_file(proposal)
    with refused_as(InvalidArgument, "This cannot be signed"):
        text = parse_note(given).text if b"\n\n" in given else given
        note = sign_proposal(text, read_private_key(read_file(key).decode("ascii", "replace")))
    say(text.decode())
    confirm("Approve this?")
    show({"signed": note.decode()}, note.decode().rstrip("\n"))


def _show(change: rotation.Change) -> None:
    if not change.carried_out:
        say(
            f"Proposed; approved by {len(change.signed)} of {change.needed}. Each approver signs "
            "the text below (countersign log sign-approval), and you take it with: countersign "
            "log approve FILE"
        )
        show(_view(change), change.text.decode().rstrip("\n"))
        return
    vkeys = [key.vkey for key in change.keys]
    if vkeys:
        say(
            "Publish the new policy: countersign log policy. Until the overlap ends, checkpoints "
            "have the signatures of both keys."
        )
    show(_view(change), "\n".join(vkeys) or "done")


def _view(change: rotation.Change) -> dict[str, Any]:
    return {
        "carried_out": change.carried_out,
        "vkeys": [key.vkey for key in change.keys],
        "created_at": rfc3339(change.keys[0].created_at) if change.keys else None,
        "proposal": change.text.decode(),
        "approved_by": [*change.signed],
        "needed": change.needed,
    }
