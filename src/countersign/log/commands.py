"""`countersign log`: the transparency logs of this deployment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from countersign.cli.support import (
    Duration,
    command,
    confirm,
    say,
    say_if_local,
    show,
    with_room,
)
from countersign.errors import InternalError, InvalidArgument
from countersign.evidence.errors import EvidenceError
from countersign.instant import rfc3339
from countersign.log.begin import NewEpoch, begin_epoch, rotate_log_key
from countersign.log.check import LogFinding, Progress, check_logs
from countersign.log.model import LogState, PublishedHead
from countersign.log.recover import accept_head, adopt_database_head
from countersign.log.room import LogRoom
from countersign.mode import Mode

_MODES = click.Choice([mode.value for mode in Mode])
_EXPLANATION = """\
Sealing of the {mode} log is suspended:

  {reason}

Nothing is refused: acknowledgments are accepted, and wait to be sealed.

How to continue:

 1. Recover the missing tail. If a newer copy of the database exists (a standby, a later backup, an
    archive of the write-ahead log), stop the servers and put that copy in place. Sealing continues
    automatically once the database contains the published checkpoint. After `countersign restore`,
    which always suspends sealing, continue with 2 or 4.
 2. If nothing was published after the state of the database, and you know the last published
    checkpoint from another source (a witness, a proof, a copy of the log, or the file
    {mode}.checkpoint in COUNTERSIGN_LOG_HEAD_DIR, if it is newer than the loss):
    countersign log recover --mode {mode} --published-head FILE
    The command accepts it only if the database contains exactly that checkpoint, and `heads` has no
    later one. If the one in `heads` belongs to another deployment, add --overrule-kept-head.
 3. If the file {mode}.checkpoint is missing but the database has lost nothing: put the file back,
    or declare the database's own head to be the last published checkpoint:
    countersign log recover --mode {mode} --adopt-database-head
 4. Begin a new epoch, a new log whose first entry cites the old head:
    countersign log recover --mode {mode} --new-epoch --reason TEXT
    With --published-head FILE it cites that checkpoint as the last published one; without it, the
    one in `heads`. Proofs of the old log stay valid with its key; publish the new policy too."""


@click.group()
def log() -> None:
    """The transparency logs: status, checks, keys, and recovery."""


@log.command("status")
@command
def status(*, as_json: bool) -> None:
    """Show the size of each log, the number of waiting records, and why sealing is suspended."""
    states = log_states()
    lines = []
    for state in states:
        doing = f"suspended: {state.suspended}" if state.suspended else "sealing"
        lines.append(
            f"{state.log.origin}  {state.log.size} entries  {state.waiting} waiting  {doing}"
        )
    show([_view(state) for state in states], "\n".join(lines), as_json=as_json)


@log.command("check")
@command
def check(*, as_json: bool) -> None:
    """Check every entry, tile and checkpoint of every log against the stored records."""
    entries, findings = _check()
    view = {
        "entries": entries,
        "findings": [{"log": f.log, "index": f.index, "message": f.message} for f in findings],
    }
    lines = [
        f"{f.log}{'' if f.index is None else f' entry {f.index}'}: {f.message}" for f in findings
    ]
    show(
        view,
        "\n".join([*lines, f"{entries} entries checked, {len(findings)} findings"]),
        as_json=as_json,
    )
    if findings:
        sys.exit(1)


@log.command("policy")
@click.option("--mode", type=_MODES, default=Mode.LIVE.value, show_default=True)
@command
def policy(mode: str, *, as_json: bool) -> None:
    """Print the policy to publish: the keys of the logs, and the required witnesses."""
    text = _policy(Mode(mode)).decode()
    show({"policy": text}, text.rstrip("\n"), as_json=as_json)


@log.command("rotate-key")
@click.option("--overlap", type=Duration(), default="7d", show_default=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def rotate_key(*, overlap: timedelta, yes: bool, as_json: bool) -> None:
    """Give the live log a new key. Until the overlap ends, the old key signs as well."""
    confirm("Give the live log a new signing key?", yes=yes)
    key = _rotate(Mode.LIVE, overlap)
    say(
        "Publish the new policy: countersign log policy. Until the overlap ends, checkpoints "
        "have both signatures."
    )
    show({"vkey": key.vkey, "created_at": rfc3339(key.created_at)}, key.vkey, as_json=as_json)


@log.command("recover")
@click.option("--mode", type=_MODES, default=Mode.LIVE.value, show_default=True)
@click.option("--new-epoch", is_flag=True, help="Begin a new log that cites the old head.")
@click.option("--host", help="Host (and port, and path) of the new origin. Left out: as before.")
@click.option("--reason", default="recovery", show_default=True, help="Why, for the record.")
@click.option(
    "--published-head",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the last published checkpoint, from another source.",
)
@click.option(
    "--overrule-kept-head",
    is_flag=True,
    help="With --published-head: ignore that `heads` has another or a later checkpoint. If that "
    "one was ever published, this forks the log.",
)
@click.option(
    "--adopt-database-head",
    is_flag=True,
    help="If no checkpoint is kept: declare that the database has lost nothing, and that its own "
    "head was published last.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def recover(
    mode: str,
    *,
    new_epoch: bool,
    host: str | None,
    reason: str,
    published_head: Path | None,
    overrule_kept_head: bool,
    adopt_database_head: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Explain why sealing is suspended, or continue sealing in one of the documented ways."""
    note = None if published_head is None else _read(published_head)
    _refuse_two(new_epoch, adopt_database_head, note is not None)
    if new_epoch:
        confirm(f"Begin a new epoch of the {mode} log? The old log ends permanently.", yes=yes)
        begun = _new_epoch(Mode(mode), reason, host, note)
        say(f"{begun.origin} has begun. Publish the new policy: countersign log policy. Its key:")
        if begun.mode is Mode.LIVE:
            say_if_local(begun.origin)
        show({"origin": begun.origin, "vkey": begun.vkey}, begun.vkey, as_json=as_json)
        return
    if note is not None:
        confirm("Is this the last checkpoint that was published?", yes=yes)
        _accept(Mode(mode), note, reason, overrule=overrule_kept_head)
        say("Accepted, and recorded in the log. Servers continue sealing within a second.")
    if adopt_database_head:
        confirm("Has the database lost nothing, and was it never restored?", yes=yes)
        size = _adopt(Mode(mode), reason).size
        say(
            f"The checkpoint of size {size} is kept as the last published one, which the log "
            "records. Sealing continues."
        )
    (state,) = [state for state in log_states() if state.log.mode is Mode(mode)]
    if state.suspended is None:
        say(f"{state.log.origin} is not suspended: nothing to recover.")
    else:
        say(_EXPLANATION.format(mode=mode, reason=state.suspended))
    show(_view(state), "suspended" if state.suspended else "sealing", as_json=as_json)


@with_room(LogRoom)
async def log_states(room: LogRoom) -> Sequence[LogState]:
    """The state of the newest log of each mode, after sealing what waits, if that is possible."""
    with suppress(InternalError):  # the database is damaged, as the states say
        await room.seal.settle()
    return await room.seal.states()


@with_room(LogRoom)
async def _check(room: LogRoom) -> tuple[int, list[LogFinding]]:
    findings: list[LogFinding] = []
    checked: dict[int, int] = {}
    async for step in check_logs(room):
        if isinstance(step, Progress):
            if step.checked // 10_000 > checked.get(step.log.id, 0) // 10_000:
                say(f"{step.log.origin}: {step.checked} of {step.log.size}")
            checked[step.log.id] = step.checked
        else:
            findings.append(step)
    return sum(checked.values()), findings


@with_room(LogRoom)
async def _policy(room: LogRoom, mode: Mode) -> bytes:
    return await room.policy.text(mode)


@with_room(LogRoom)
async def _new_epoch(
    room: LogRoom, mode: Mode, reason: str, host: str | None, note: bytes | None
) -> NewEpoch:
    published = None if note is None else await _published(room, mode, note)
    return await begin_epoch(room, mode, reason, host, published)


def _refuse_two(new_epoch: bool, adopt: bool, published: bool) -> None:  # noqa: FBT001 - options
    if adopt and (new_epoch or published):
        msg = "--adopt-database-head cannot be used together with --new-epoch or --published-head."
        raise InvalidArgument(msg)


@with_room(LogRoom)
async def _accept(room: LogRoom, mode: Mode, note: bytes, reason: str, *, overrule: bool) -> None:
    published = await _published(room, mode, note)
    await accept_head(room, mode, published, reason, overrule=overrule)


_rotate = with_room(LogRoom)(rotate_log_key)
_adopt = with_room(LogRoom)(adopt_database_head)


async def _published(room: LogRoom, mode: Mode, note: bytes) -> PublishedHead:
    try:
        checked = (await room.policy.without_quorum(mode)).check_signature(note)
    except EvidenceError as error:
        msg = f"This is not a checkpoint of this deployment: {error}."
        raise InvalidArgument(msg) from error
    return PublishedHead(checked.checkpoint, note)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror}."
        raise InvalidArgument(msg) from error


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
