"""The operator's acts on logs: begin one, and continue one after a loss.

After a loss the operator names the last published checkpoint. The decision becomes a record of the
log, with the checkpoint that was kept until then.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection

from countersign.base.errors import DeploymentIncomplete, EvidenceRefused, InvalidArgument
from countersign.base.host import is_wildcard
from countersign.base.values import Mode, from_ns
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.log import fork_guard, logs_sql
from countersign.core.log.head_files import epoch_of, log_path, published_in, refuse_backwards
from countersign.core.log.journal import Journal
from countersign.core.log.model import AUDIT_SUBJECT, Log, PublishedHead
from countersign.core.log.record import RecordType
from countersign.core.log.room import LogRoom
from countersign_evidence.canonical import Json
from countersign_evidence.entry import check_origin, entry_host
from countersign_evidence.errors import refused_as
from countersign_evidence.note import Checkpoint, Verifier, sign_checkpoint
from countersign_evidence.tree import EMPTY_ROOT

_SCHEME: Final = re.compile(r"https?://")


async def begin_first_logs(room: LogRoom, public_url: str) -> None:
    """Begin the first log of each mode that has none; harmless otherwise.

    This fixes the origin: it is stored, and never made from the settings again.
    """
    newest = await room.database.read(logs_sql.newest_logs)
    for mode in Mode:
        if mode not in newest:
            with suppress(EvidenceRefused):  # another `init` was first
                await _begin(room, mode, 1, _SCHEME.sub("", public_url))


async def begin_epoch(
    room: LogRoom,
    mode: Mode,
    reason: str,
    host: str | None = None,
    published: PublishedHead | None = None,
) -> Verifier:
    """Begin a new epoch: a separate log, whose first entry cites the head of the old one; its key.

    `host` replaces the host (with port and path) of the old log's origin;
    `published` is the last published checkpoint of the old log, if it is not the stored one.
    """
    old = await log_in_use(room, mode)
    base = host or old.origin.rpartition(log_path(mode))[0]
    over = room.heads.stored(mode)
    kept = published_in(over)
    cited = _cited(old, kept, published) | {"reason": reason}
    # The database may be older than an epoch whose checkpoints were published already.
    epoch = max(old.epoch, 0 if kept is None else epoch_of(mode, kept.checkpoint.origin)) + 1
    return await _begin(room, mode, epoch, base, (cited, over))


async def _begin(
    room: LogRoom,
    mode: Mode,
    epoch: int,
    host: str,
    after: tuple[Mapping[str, Json] | None, bytes | None] = (None, None),
) -> Verifier:
    """Begin a log; `after`: what its first entry cites, and what it replaces in `heads`."""
    await asyncio.to_thread(room.heads.check)
    cited, over = after
    origin = _origin(mode, epoch, host)
    logs = await room.database.read(logs_sql.all_logs)
    number = max((log.id for log in logs), default=0) + 1
    made = await room.keys.make(mode, origin, number)
    signers, keys = [signer for signer, _ in made], [key for _, key in made]
    time_ns = room.clock.time_ns()
    now, checkpoint = from_ns(time_ns), Checkpoint(origin, 0, EMPTY_ROOT)
    empty = await asyncio.to_thread(sign_checkpoint, checkpoint, signers, time_ns // 10**9)
    room.sequencer.learn(number, 1, signers)
    log = Log(
        id=number,
        mode=mode,
        epoch=epoch,
        origin=origin,
        size=0,
        root=EMPTY_ROOT,
        at=now,
        keys_revision=1,
    )

    def write(connection: Connection) -> bool:
        room.sequencer.wait_for_turn(connection, mode)
        room.sequencer.sign_last(connection, mode)
        if not logs_sql.add_log(connection, log, keys, empty):
            return False
        if cited is None:  # the first server that seals stores the place of the heads
            if room.heads.read(mode) is not None:
                raise DeploymentIncomplete(
                    f"A checkpoint of the {mode.value} log was published, and the database has no "
                    "such log: restore a backup, or correct COUNTERSIGN_LOG_HEAD_DIR."
                )
            return True
        fork_guard.resume(connection, mode, room.heads)
        said = {"log": origin, "reason": cited["reason"]}
        begun = AuditAction.LOG_EPOCH_BEGUN
        write_audit(connection, room.access.audit.entry(begun, AUDIT_SUBJECT, **said))
        # It becomes the log's first entry, before the queue.
        first = room.recorder.of_deployment(RecordType.EPOCH, mode, {**cited})
        Journal(room.sequencer).write(connection, [first])
        return True

    if not await room.database.write(write):
        # Another command was first: its key counts, and its head is stored already.
        await room.keys.load()
        raise EvidenceRefused(
            f"Epoch {epoch} of the {mode.value} log was already started by another process."
        )
    # If a server has published meanwhile, its head, which agrees with the new log, stays.
    room.heads.advance(mode, empty, over)
    room.heads.forget_accepted(mode)
    return signers[0].verifier


def _origin(mode: Mode, epoch: int, host: str) -> str:
    origin = f"{host}{log_path(mode)}{epoch}"
    with refused_as(InvalidArgument, f"{host!r} cannot be the host of a log"):
        check_origin(origin)
    if is_wildcard(entry_host(origin)):
        raise InvalidArgument(
            f"{host} is an address to listen on and cannot name a log. Give the host name "
            "by which clients reach the service: COUNTERSIGN_PUBLIC_URL, or --host for a "
            "new epoch."
        )
    return origin


def _cited(
    old: Log, kept: PublishedHead | None, published: PublishedHead | None
) -> dict[str, Json]:
    """The old head as the database has it, and as it was last published."""
    if published is not None and published.checkpoint.origin != old.origin:
        raise InvalidArgument(
            f"The published head belongs to another log than {old.origin}, the log that ends now."
        )
    heads = [head for head in (published, kept) if head is not None]
    last = max(heads, key=lambda head: _place(old.mode, head.checkpoint), default=None)
    return {
        "previous_log": old.origin,
        "previous_size": old.size,
        "previous_root": old.root.hex(),
        "previous_published": None if last is None else last.note.decode(),
    }


def _place(mode: Mode, head: Checkpoint) -> tuple[int, int]:
    return epoch_of(mode, head.origin), head.size


async def log_in_use(room: LogRoom, mode: Mode) -> Log:
    """The newest log of a mode; EvidenceRefused if there is none."""
    log = (await room.database.read(logs_sql.newest_logs)).get(mode)
    if log is None:
        raise EvidenceRefused(f"The {mode.value} log does not exist: run `countersign init`.")
    return log


async def refuse_elsewhere(room: LogRoom) -> None:
    """Refuse to decide by these heads if the deployment keeps its own in another place.

    EvidenceRefused: they do not show the last published checkpoint.
    """
    reason = await room.database.read(fork_guard.kept_elsewhere, room.heads.place())
    if reason is not None:
        raise EvidenceRefused(
            f"{reason} In a shell that lacks the servers' variables: "
            "`set -a; . /etc/countersign/heads.env; set +a`. Only if that place is lost, or is "
            "replaced by this one: --move-heads."
        )


async def accept_head(room: LogRoom, mode: Mode, published: PublishedHead, reason: str) -> None:
    """Store this checkpoint, which the operator got elsewhere, as the last published one.

    The decision is recorded, with its reason and the checkpoint kept until then. EvidenceRefused:
    that one is later, different, or of no log of this database.
    """
    log = await log_in_use(room, mode)
    checkpoint = published.checkpoint
    is_same = log.origin == checkpoint.origin
    if not is_same or not await room.database.scan(fork_guard.holds, log.id, checkpoint):
        raise EvidenceRefused(
            f"The database does not contain the checkpoint of size {checkpoint.size} of "
            f"{checkpoint.origin}: continuing from its present state would fork the log. "
            "Recover the missing entries, or begin a new epoch."
        )
    over = room.heads.stored(mode)
    kept = published_in(over)
    refuse_backwards(mode, checkpoint, kept)
    logs = {log.origin for log in await room.database.read(logs_sql.all_logs) if log.mode is mode}
    if kept is not None and kept.checkpoint.origin not in logs:
        raise EvidenceRefused(
            f"The kept last published checkpoint is of {kept.checkpoint.origin}, no log of this "
            "database: correct COUNTERSIGN_LOG_HEAD_DIR, or begin a new epoch."
        )
    await _continue(room, log, published.note, over, reason)


async def adopt_database_head(room: LogRoom, mode: Mode, reason: str) -> Checkpoint:
    """Store the database's own head as the last published one, if none is stored."""
    log = await log_in_use(room, mode)
    kept = room.heads.stored(mode)
    newest = await room.database.read(logs_sql.latest, log.id)
    suspended = await room.database.read(fork_guard.why_suspended, mode)
    if kept is not None or suspended or newest is None:
        raise EvidenceRefused(
            "--adopt-database-head works only if no published checkpoint is kept and the database "
            "was not restored from a backup, since checkpoints may have been published "
            "after the backup. Give the last published checkpoint with --published-head, or "
            "begin a new epoch."
        )
    await _continue(room, log, newest.note, None, reason, adopted=newest.size)
    return Checkpoint(log.origin, newest.size, newest.root)


async def _continue(
    room: LogRoom, log: Log, note: bytes, over: bytes | None, reason: str, **audited: int
) -> None:
    """Record the operator's decision, and store this checkpoint as the last published one."""
    kept = published_in(over)
    decision = room.recorder.of_deployment(
        RecordType.RECOVERY,
        log.mode,
        {
            "log": log.origin,
            "published": note.decode(),
            "kept": None if kept is None else kept.note.decode(),
            "overruled": False,  # of the format: older releases could
            "reason": reason,
        },
    )
    audit = room.access.audit.entry(
        AuditAction.LOG_RECOVERED, AUDIT_SUBJECT, mode=log.mode.value, reason=reason, **audited
    )

    def resume(connection: Connection) -> None:
        fork_guard.resume(connection, log.mode, room.heads)
        room.journal.write(connection, [decision])
        write_audit(connection, audit)

    # Recorded first: if the file cannot be replaced then, sealing stays suspended.
    await room.database.write(resume)
    if not room.heads.advance(log.mode, note, over):
        raise EvidenceRefused("Another checkpoint was published meanwhile: decide again.")
    room.heads.forget_accepted(log.mode)
