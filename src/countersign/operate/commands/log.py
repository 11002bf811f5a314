"""`countersign log`: the transparency logs of this deployment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import click

from countersign.base.cli import A_MODE, room_command, say_if_local, with_room
from countersign.base.db.engine import is_damage
from countersign.base.errors import (
    DatabasePermissionDenied,
    InternalError,
    InvalidArgument,
    StorageUnavailable,
)
from countersign.base.values import Mode, from_ns, rfc3339
from countersign.core.log import operate
from countersign.core.log.anchor import LastAnchor
from countersign.core.log.check import LogFinding, check_logs, note_check
from countersign.core.log.model import WITNESS, LogState, PublishedHead
from countersign.core.log.room import LogRoom
from countersign.operate.commands.log_keys import log
from countersign_evidence.cli.files import read_file
from countersign_evidence.cli.support import confirm, say, show
from countersign_evidence.errors import refused_as

ALONE = (
    "only this deployment's own clock shows when its evidence existed, and anyone who has the "
    "log's key could write the log again. `countersign init --time-stamps sigstore,digicert` has "
    "public authorities asked; a running server names the alternatives under "
    "/docs/logs#independent-time."
)
"""The consequence of having no third party."""
_EXPLANATION = (resources.files(__package__) / "recover.txt").read_text("utf-8").rstrip()


@log.command("status")
@room_command(LogRoom)
async def status(room: LogRoom) -> None:
    """Show the size of each log, the number of waiting records, and why sealing is suspended.

    For the live log also the last success of each witness and each time-stamp authority, and how
    many entries it covers.
    """
    states = await _states(room)
    lines = [
        f"{state.log.origin}  {state.log.size} entries  {state.waiting} waiting  "
        f"{'suspended' if state.suspended else 'sealing'}"
        for state in states
    ]
    why = [state.suspended for state in states if state.suspended]
    lines += [f"suspended: {reason}" for reason in dict.fromkeys(why)]
    last = await room.anchor.last()
    lines += anchor_lines(last) or [f"Neither a witness nor a time-stamp authority: {ALONE}"]
    anchors = [one._asdict() | {"at": one.at and rfc3339(one.at)} for one in last]
    view = [
        _view(state) | {"anchors": anchors if state.log.mode is Mode.LIVE else []}
        for state in states
    ]
    show(view, "\n".join(lines))


def anchor_lines(last: Sequence[LastAnchor]) -> list[str]:
    """The last success of each witness and authority, for people."""
    return [
        f"{'witness' if one.kind == WITNESS else 'time-stamps of'} {one.name}: "
        + ("never" if one.at is None else f"{one.size} entries at {rfc3339(one.at)}")
        for one in last
    ]


@log.command("check")
@room_command(LogRoom)
async def check(room: LogRoom) -> None:
    """Check every entry, tile and checkpoint of every log against the stored records.

    So are the events of notices, the descriptions of parties, holds and the audit. A remark is odd
    and can be honest; exit status 1: there are findings.
    """
    findings: list[LogFinding] = []
    remarks: list[LogFinding] = []
    checked: dict[int, int] = {}
    async for step in check_logs(room):
        if isinstance(step, LogFinding):
            (remarks if step.is_remark else findings).append(step)
            continue
        if step.checked // 10_000 > checked.get(step.log.id, 0) // 10_000:
            say(f"{step.log.origin}: {step.checked} of {step.log.size}")
        checked[step.log.id] = step.checked
    now = from_ns(room.clock.time_ns())
    try:
        await room.database.write(note_check, now, len(findings))
    except (DatabasePermissionDenied, StorageUnavailable) as error:
        say(f"warning: `countersign doctor` will not know of this check: {error.message}")
    entries = sum(checked.values())
    lines = [
        f"{'remark: ' if f.is_remark else ''}{f.log}"
        f"{'' if f.index is None else f' entry {f.index}'}: {f.message}"
        for f in [*remarks, *findings]
    ]
    found = {"findings": findings, "remarks": remarks}
    show(
        {"entries": entries} | {name: [*map(asdict, some)] for name, some in found.items()},
        "\n".join([*lines, f"{entries} entries checked, {len(findings)} findings"]),
    )
    if findings:
        sys.exit(1)


@log.command("policy")
@click.option("--mode", type=A_MODE, default=Mode.LIVE.value, show_default=True)
@room_command(LogRoom)
async def policy(room: LogRoom, mode: str) -> None:
    """Print the policy to publish: the keys of the logs, and the required witnesses."""
    text = (await room.policy.text(Mode(mode))).decode()
    show({"policy": text}, text.rstrip("\n"))


@log.command("recover")
@click.option("--mode", type=A_MODE, default=Mode.LIVE.value, show_default=True)
@click.option("--new-epoch", is_flag=True, help="Begin a new log that cites the old head.")
@click.option("--host", help="Host (and port, and path) of the new origin. Left out: as before.")
@click.option("--reason", default="recovery", show_default=True, help="Why, for the record.")
@click.option(
    "--published-head",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the last published checkpoint, from another source.",
)
@click.option(
    "--adopt-database-head",
    is_flag=True,
    help="If no checkpoint is kept: declare that the database has lost nothing, and that its own "
    "head is the last published one.",
)
@click.option(
    "--move-heads",
    is_flag=True,
    help="Use COUNTERSIGN_LOG_HEAD_DIR although the servers keep `heads` elsewhere: the other "
    "directory is lost, or is replaced by this one.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@room_command(LogRoom)
async def recover(
    room: LogRoom,
    mode: str,
    *,
    new_epoch: bool,
    host: str | None,
    reason: str,
    published_head: Path | None,
    adopt_database_head: bool,
    move_heads: bool,
) -> None:
    """Explain why sealing is suspended, or continue sealing in one of the documented ways."""
    if adopt_database_head and (new_epoch or published_head):
        raise InvalidArgument(
            "--adopt-database-head cannot be used together with --new-epoch or --published-head."
        )
    if (new_epoch or published_head or adopt_database_head) and not move_heads:
        await operate.refuse_elsewhere(room)
    log_mode, published = Mode(mode), None
    if published_head is not None:
        published = await _published(room, log_mode, read_file(published_head))
    if new_epoch:
        confirm(f"Begin a new epoch of the {mode} log? The old log ends permanently.")
        key = await operate.begin_epoch(room, log_mode, reason, host, published)
        say(f"{key.name} has begun. Publish the new policy: countersign log policy. Its key:")
        if log_mode is Mode.LIVE:
            say_if_local(key.name)
        show({"origin": key.name, "vkey": key.vkey}, key.vkey)
        return
    if published is not None:
        confirm("Is this the last checkpoint that was published?")
        await operate.accept_head(room, log_mode, published, reason)
        say("Accepted, and recorded in the log. Servers continue sealing within a second.")
    if adopt_database_head:
        confirm("Has the database lost nothing, and was it never restored?")
        size = (await operate.adopt_database_head(room, log_mode, reason)).size
        say(
            f"The checkpoint of size {size} is now kept as the last published one; the log "
            f"records this. Sealing continues."
        )
    (state,) = [state for state in await _states(room) if state.log.mode is log_mode]
    if state.suspended is None:
        say(f"{state.log.origin} is not suspended: nothing to recover.")
    else:
        say(_EXPLANATION.format(mode=mode, reason=state.suspended))
    show(_view(state), "suspended" if state.suspended else "sealing")


async def _states(room: LogRoom) -> Sequence[LogState]:
    """The state of the newest log of each mode, after sealing pending records if possible."""
    room.sequencer.quiet = True  # the output says it
    try:
        await room.seal.settle()
    except (InternalError, StorageUnavailable) as error:
        if isinstance(error, StorageUnavailable) and not is_damage(error):
            raise  # else the database is damaged, as the states say
    return await room.seal.states()


log_states = with_room(LogRoom)(_states)


async def _published(room: LogRoom, mode: Mode, note: bytes) -> PublishedHead:
    with refused_as(InvalidArgument, "This is not a checkpoint of this deployment"):
        checked = (await room.policy.without_quorum(mode)).check_signature(note)
    return PublishedHead(checked.checkpoint, note)


def _view(state: LogState) -> dict[str, Any]:
    return {
        "mode": state.log.mode.value,
        "epoch": state.log.epoch,
        "log": state.log.origin,
        "size": state.log.size,
        "waiting": state.waiting,
        "oldest_at": None if state.oldest_at is None else rfc3339(state.oldest_at),
        "suspended": state.suspended,
    }
