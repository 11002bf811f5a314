"""The operator's acts on logs: begin one, and change its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from countersign.access.audit import AuditAction, AuditEntry, write_audit
from countersign.errors import EvidenceRefused, InvalidArgument
from countersign.evidence.canonical import Json
from countersign.evidence.checkpoint import Checkpoint
from countersign.evidence.entry import check_origin, entry_host
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import sign_checkpoint
from countersign.evidence.tree import EMPTY_ROOT
from countersign.host import is_wildcard
from countersign.ids import FACT
from countersign.instant import from_ns, rfc3339_ms
from countersign.log import checkpoints_sql, epochs_sql
from countersign.log.fork_guard import forget_suspension
from countersign.log.journal import Journal
from countersign.log.model import AUDIT_SUBJECT, Log, LogKey, PublishedHead
from countersign.log.record import NewRecord, RecordType
from countersign.log.recover import log_in_use
from countersign.log.room import LogRoom
from countersign.mode import Mode

OVERLAP: Final = timedelta(days=7)
"""How long the old key still signs together with its successor."""
_EPOCH_DIGITS_MAX: Final = 9
_SCHEME: Final = re.compile(r"https?://")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpoch:
    """A log that has begun: its origin, and the verifier key to publish."""

    mode: Mode
    epoch: int
    origin: str
    vkey: str


async def begin_first_logs(room: LogRoom, public_url: str) -> None:
    """Begin the first log of each mode that has none; harmless otherwise.

    This fixes the origin: it is stored, and never made from the settings again.
    """
    newest = {log.mode: log for log in await room.database.read(epochs_sql.all_logs)}
    for mode in Mode:
        if mode in newest:
            await _keep_first(room, newest[mode])
        else:
            with suppress(EvidenceRefused):  # another `init` was first
                await _begin(room, mode, 1, _SCHEME.sub("", public_url), None)


async def _keep_first(room: LogRoom, log: Log) -> None:
    """Keep the checkpoint of an empty log, if none is kept.

    An `init` that was killed right after beginning the log has left it like that.
    """
    if log.size == 0 and room.heads.read(log.mode) is None:
        empty = await room.database.read(checkpoints_sql.of_size, log.id, 0)
        if empty is not None:
            room.heads.replace(log.mode, empty.note)


async def begin_epoch(
    room: LogRoom,
    mode: Mode,
    reason: str,
    host: str | None = None,
    published: PublishedHead | None = None,
) -> NewEpoch:
    """Begin a new epoch: a separate log, whose first entry cites the head of the old one.

    Args:
        room: the room of the log.
        mode: which log.
        reason: why, for the record.
        host: another host (and port, and path) for the origin; None: that of the old log.
        published: the last published checkpoint of the old log; None: the one that was kept.

    Raises:
        InvalidArgument: the host cannot be part of an origin, or the checkpoint is of another
            log.
        EvidenceRefused: another command has begun this epoch at the same time.
    """
    old = await log_in_use(room, mode)
    base = host or old.origin.rpartition(_path(mode))[0]
    kept = room.heads.published(mode)
    cited = _cited(old, kept, published) | {"reason": reason}
    # The database may be older than an epoch whose checkpoints were published already.
    epoch = max(old.epoch, 0 if kept is None else _epoch(mode, kept.checkpoint.origin)) + 1
    return await _begin(room, mode, epoch, base, cited)


async def rotate_log_key(room: LogRoom, mode: Mode, overlap: timedelta = OVERLAP) -> LogKey:
    """Give the log a new key; the old one signs as well until the overlap ends.

    Raises:
        EvidenceRefused: the key of test logs is published and never changes.
    """
    if mode is Mode.TEST:
        msg = "The key of test logs is fixed and published: it cannot be rotated."
        raise EvidenceRefused(msg)
    log = await log_in_use(room, mode)
    keys = await room.database.read(epochs_sql.keys_of, log.id)
    if not keys:
        msg = f"The keys of {log.origin} are missing. Begin a new epoch: `countersign log recover`."
        raise EvidenceRefused(msg)
    _, key = await room.keys.make(mode, log.origin, log.id)
    retires = from_ns(room.clock.time_ns()) + overlap
    rotation = room.recorder.of_deployment(
        RecordType.KEY_ROTATION,
        FACT,
        mode,
        {
            "log": log.origin,
            "new_key": key.vkey,
            "old_key": keys[-1].vkey,
            "old_key_retires_at": rfc3339_ms(retires),
        },
    )
    await room.database.write(_add_key, room, key, retires, rotation)
    await room.keys.load()
    return key


def _add_key(
    connection: Connection, room: LogRoom, key: LogKey, retires: datetime, rotation: NewRecord
) -> None:
    epochs_sql.add_key(connection, key, retires)
    # Sealed with the old key still: no process has read the new one.
    room.journal.write(connection, [rotation])
    epochs_sql.count_key_change(connection, key.log_id)
    audit = room.access.audit.entry(AuditAction.LOG_KEY_ROTATED, AUDIT_SUBJECT, new_key=key.vkey)
    write_audit(connection, audit)


async def _begin(
    room: LogRoom, mode: Mode, epoch: int, host: str, cited: Mapping[str, Json] | None
) -> NewEpoch:
    origin = _origin(mode, epoch, host)
    logs = await room.database.read(epochs_sql.all_logs)
    number = max((log.id for log in logs), default=0) + 1
    signer, key = await room.keys.make(mode, origin, number)
    now = from_ns(room.clock.time_ns())
    empty = sign_checkpoint(Checkpoint(origin, 0, EMPTY_ROOT), [signer])
    first = None
    audit = None
    if cited is not None:
        first = room.recorder.of_deployment(RecordType.EPOCH, FACT, mode, {**cited})
        audit = room.access.audit.entry(
            AuditAction.LOG_EPOCH_BEGUN, AUDIT_SUBJECT, log=origin, reason=cited["reason"]
        )
    room.sequencer.learn(number, 1, [signer])
    log = Log(
        id=number,
        mode=mode,
        epoch=epoch,
        origin=origin,
        created_at=now,
        size=0,
        root=EMPTY_ROOT,
        at=now,
        keys_revision=1,
    )
    if not await room.database.write(_write_log, room, log, key, empty, first=first, audit=audit):
        # Another command was first: its key is the one, and its head is kept already.
        await room.keys.load()
        msg = f"Epoch {epoch} of the {mode.value} log was already started by another process."
        raise EvidenceRefused(msg)
    room.heads.replace(mode, empty)
    return NewEpoch(mode=mode, epoch=epoch, origin=origin, vkey=key.vkey)


def _write_log(
    connection: Connection,
    room: LogRoom,
    log: Log,
    key: LogKey,
    note: bytes,
    *,
    first: NewRecord | None,
    audit: AuditEntry | None,
) -> bool:
    if not epochs_sql.add_log(connection, log, key, note):
        return False
    forget_suspension(connection, log.mode)
    write_audit(connection, audit)
    if first is not None:
        # It is the log's first entry, whatever else is waiting.
        room.sequencer.wait_for_turn(connection, log.mode)
        Journal(room.sequencer).write(connection, [first])
    return True


def _origin(mode: Mode, epoch: int, host: str) -> str:
    origin = f"{host}{_path(mode)}{epoch}"
    try:
        check_origin(origin)
    except EvidenceError as error:
        msg = f"{host!r} cannot be the host of a log: {error}"
        raise InvalidArgument(msg) from error
    if is_wildcard(entry_host(origin)):
        msg = (
            f"{host} is an address to listen on and cannot name a log. Give the host name "
            "by which clients reach the service: COUNTERSIGN_PUBLIC_URL, or --host for a "
            "new epoch."
        )
        raise InvalidArgument(msg)
    return origin


def _cited(
    old: Log, kept: PublishedHead | None, published: PublishedHead | None
) -> dict[str, Json]:
    """The old head as the database has it, and as it was last published."""
    if published is not None and published.checkpoint.origin != old.origin:
        msg = f"The published head belongs to another log than {old.origin}, the log that ends now."
        raise InvalidArgument(msg)
    last = published or kept
    if published is not None and kept is not None:
        last = max(published, kept, key=lambda head: _place(old.mode, head))
    return {
        "previous_log": old.origin,
        "previous_size": old.size,
        "previous_root": old.root.hex(),
        "previous_published": None if last is None else last.note.decode(),
    }


def _place(mode: Mode, head: PublishedHead) -> tuple[int, int]:
    return _epoch(mode, head.checkpoint.origin), head.checkpoint.size


def _path(mode: Mode) -> str:
    """The part of a log's origin between its host and its epoch."""
    return f"/v1/log/{mode.value}/"


def _epoch(mode: Mode, origin: str) -> int:
    """The epoch that an origin names; 0 if it is of no log of this mode."""
    host, _, last = origin.rpartition(_path(mode))
    return int(last) if host and last.isdecimal() and len(last) <= _EPOCH_DIGITS_MAX else 0
