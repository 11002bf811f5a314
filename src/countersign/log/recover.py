"""Continue the same epoch after a loss: the operator names the last published checkpoint.

The decision becomes a record of the log, with the checkpoint that was kept until then.
"""

from __future__ import annotations

from sqlalchemy import Connection

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.errors import EvidenceRefused
from countersign.evidence.checkpoint import Checkpoint
from countersign.ids import FACT
from countersign.log import checkpoints_sql, epochs_sql, fork_guard
from countersign.log.model import AUDIT_SUBJECT, Log, PublishedHead
from countersign.log.record import NewRecord, RecordType
from countersign.log.room import LogRoom
from countersign.mode import Mode


async def log_in_use(room: LogRoom, mode: Mode) -> Log:
    """The newest log of a mode.

    Raises:
        EvidenceRefused: there is none.
    """
    found = [log for log in await room.database.read(epochs_sql.all_logs) if log.mode is mode]
    if not found:
        msg = f"The {mode.value} log does not exist: run `countersign init`."
        raise EvidenceRefused(msg)
    return found[-1]


async def accept_head(
    room: LogRoom, mode: Mode, published: PublishedHead, reason: str, *, overrule: bool = False
) -> None:
    """Take this checkpoint, which the operator has from elsewhere, as the last published one.

    The decision is recorded, with the checkpoint kept until then.

    Args:
        room: the room of the log.
        mode: which log.
        published: the checkpoint.
        reason: why, for the record.
        overrule: although a later or another checkpoint is kept as the last published one.

    Raises:
        EvidenceRefused: the database does not contain it, or another one is kept, so that
            continuing from it would fork the log.
        HeadUnavailable: it cannot be kept.
    """
    log = await log_in_use(room, mode)
    checkpoint = published.checkpoint
    held = await room.database.read(checkpoints_sql.of_size, log.id, checkpoint.size)
    if log.origin != checkpoint.origin or held is None or held.root != checkpoint.root:
        msg = (
            f"The database does not contain the checkpoint of size {checkpoint.size} of "
            f"{checkpoint.origin}: continuing from its present state would fork the log. "
            "Recover the missing entries, or begin a new epoch."
        )
        raise EvidenceRefused(msg)
    kept = room.heads.published(mode)
    objection = None if kept is None else await _objection(room, log, kept.checkpoint, checkpoint)
    if objection is not None and not overrule:
        msg = (
            f"{objection} Continuing from the checkpoint of size {checkpoint.size} would fork "
            "the log, and anyone who has the other checkpoint can prove it. Recover the "
            "missing entries, or begin a new epoch. Use --overrule-kept-head only if this "
            "deployment never published the kept checkpoint."
        )
        raise EvidenceRefused(msg)
    decision = _decision(
        room, log, published.note, kept, reason=reason, overruled=objection is not None
    )
    await _continue(room, decision, published.note, _audit(room, mode, reason, overruled=overrule))


async def adopt_database_head(room: LogRoom, mode: Mode, reason: str) -> Checkpoint:
    """Take the database's own head as the last published one, where none is kept.

    Raises:
        EvidenceRefused: one is kept, or the database is known to have been restored, or has
            no checkpoint.
        HeadUnavailable: what is kept cannot be read, or the head cannot be kept.
    """
    log = await log_in_use(room, mode)
    kept = room.heads.read(mode)
    newest = await room.database.read(checkpoints_sql.latest, log.id)
    restored = (await room.database.read(fork_guard.guard, mode, kept)).restored
    if kept is not None or restored or newest is None:
        msg = (
            "--database-head works only if no published checkpoint is kept and the database "
            "was not restored from a backup, since checkpoints may have been published "
            "after the backup. Give the last published checkpoint with --published-head, or "
            "begin a new epoch."
        )
        raise EvidenceRefused(msg)
    decision = _decision(room, log, newest.note, None, reason=reason, overruled=False)
    await _continue(room, decision, newest.note, _audit(room, mode, reason, adopted=newest.size))
    return Checkpoint(log.origin, newest.size, newest.root)


def _decision(
    room: LogRoom,
    log: Log,
    note: bytes,
    kept: PublishedHead | None,
    *,
    reason: str,
    overruled: bool,
) -> NewRecord:
    return room.recorder.of_deployment(
        RecordType.RECOVERY,
        FACT,
        log.mode,
        {
            "log": log.origin,
            "published": note.decode(),
            "kept": None if kept is None else kept.note.decode(),
            "overruled": overruled,
            "reason": reason,
        },
    )


def _audit(room: LogRoom, mode: Mode, reason: str, **more: object) -> AuditEntry:
    return room.access.audit.entry(
        AuditAction.LOG_RECOVERED, AUDIT_SUBJECT, mode=mode.value, reason=reason, **more
    )


async def _continue(room: LogRoom, decision: NewRecord, note: bytes, audit: AuditEntry) -> None:
    # Recorded first: if the file cannot be replaced then, sealing stays suspended.
    await room.database.write(_resume, room, decision, audit)
    room.heads.replace(decision.mode, note)


def _resume(connection: Connection, room: LogRoom, decision: NewRecord, audit: AuditEntry) -> None:
    fork_guard.forget_suspension(connection, decision.mode)
    room.journal.write(connection, [decision])
    write_audit(connection, audit)


async def _objection(room: LogRoom, log: Log, kept: Checkpoint, given: Checkpoint) -> str | None:
    """Why the kept last published checkpoint contradicts a given one of this log."""
    logs = await room.database.read(epochs_sql.all_logs)
    if kept.origin in {other.origin for other in logs if other.mode is log.mode} - {log.origin}:
        return None  # the operator began a new epoch after that one
    same = kept.origin == log.origin
    if same and (kept.size < given.size or (kept.size, kept.root) == (given.size, given.root)):
        return None
    return (
        f"The kept last published checkpoint has the size {kept.size} and belongs to {kept.origin}."
    )
