"""Check the logs against the database: every entry, tile and checkpoint, and every record.

It trusts no result of sealing: it computes leaves from the records' own bytes, and the roots of all
checkpoints from those leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final, NamedTuple

from sqlalchemy import Connection

from countersign.base.db.engine import is_damage
from countersign.base.db.schema import put_value, value_of
from countersign.base.db.tables import ended_records
from countersign.base.errors import HeadUnavailable, InternalError, StorageUnavailable
from countersign.base.values import Mode, from_ms, to_ms
from countersign.core.log import logs_sql, tree_sql
from countersign.core.log.audit_chain import check_audit
from countersign.core.log.check_records import check_records
from countersign.core.log.fork_guard import guard
from countersign.core.log.model import Log, StoredCheckpoint
from countersign.core.log.record import among
from countersign.core.log.room import LogRoom
from countersign_evidence.entry import leaves_of
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Verifier, checkpoint_of, open_note, parse_checkpoint
from countersign_evidence.tiles import GrowingTree

_PAGE: Final = 500
_CHECKED: Final = "log_checked"
"""In `deployment`."""


class Progress(NamedTuple):
    """How many entries of a log were checked."""

    log: Log
    checked: int


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Something that is wrong. `log` is an origin, or the mode if there is no log."""

    log: str
    index: int | None
    message: str
    is_remark: bool = False
    """It is odd, and can be honest."""


class LastCheck(NamedTuple):
    """The newest complete check of all logs, and the newest one without a finding."""

    at: datetime
    findings: int
    clean_at: datetime | None


def last_check(connection: Connection) -> LastCheck | None:
    """The newest check; None: there was none."""
    found = value_of(connection, _CHECKED)
    if found is None:
        return None
    try:
        at, findings, clean = (int(number) for number in found.split())
    except ValueError:
        return None  # somebody wrote it: the next check writes another
    return LastCheck(from_ms(at), findings, from_ms(clean) if clean else None)


def note_check(connection: Connection, at: datetime, findings: int) -> None:
    """Keep the result of a complete check for `last_check`."""
    before = last_check(connection)
    clean = at if not findings else before and before.clean_at
    value = f"{to_ms(at)} {findings} {to_ms(clean) if clean else 0}".encode()
    put_value(connection, _CHECKED, value)


async def check_logs(room: LogRoom) -> AsyncIterator[Progress | LogFinding]:
    """Go through every log: findings as they come up, and progress at intervals."""
    at = "the database"
    try:
        async for step in _everything(room):
            at = step.log if isinstance(step, LogFinding) else step.log.origin
            yield step
    except (InternalError, StorageUnavailable) as error:
        if isinstance(error, StorageUnavailable) and not is_damage(error):
            raise
        yield LogFinding(
            at,
            None,
            "the database is damaged and cannot be read any further (see `database_error` "
            "in the service's own log). The rest was not checked",
        )


async def _everything(room: LogRoom) -> AsyncIterator[Progress | LogFinding]:
    newest: dict[Mode, str] = {}
    for log in await room.database.read(logs_sql.all_logs):
        newest[log.mode] = log.origin
        async for step in _check(room, log):
            yield step
    for mode in Mode:
        if mode not in newest:
            newest[mode] = mode.value
            yield LogFinding(mode.value, None, "the log is missing")
    async for about, message in check_records(room):
        yield LogFinding(newest[about or Mode.LIVE], None, message)
    async for message, is_remark in check_audit(room):
        yield LogFinding(newest[Mode.LIVE], None, message, is_remark)
    for mode in Mode:
        finding = await _head(room, mode, newest[mode])
        if finding is not None:
            yield finding


async def _check(room: LogRoom, log: Log) -> AsyncIterator[Progress | LogFinding]:
    tree, verifiers = GrowingTree(), list[Verifier]()
    async for finding in _keys(room, log, verifiers):
        yield finding
    async for checkpoint in _checkpoints(room, log):
        async for step in _grow(room, log, tree, checkpoint.size):
            yield step
        if tree.size != checkpoint.size:
            return  # an entry is missing, which is a finding already
        wrong = _wrong_checkpoint(log, verifiers, checkpoint, tree.root())
        if wrong is not None:
            yield _finding(log, f"the checkpoint of size {checkpoint.size} {wrong}")
    async for step in _grow(room, log, tree, log.size):
        yield step
    if (tree.size, tree.root()) != (log.size, log.root):
        yield _finding(log, "the head does not match the root of the entries")
    for what in await room.database.scan(tree_sql.surplus, log.id):
        yield _finding(log, f"{what} is beyond the entries of the log")


async def _keys(room: LogRoom, log: Log, verifiers: list[Verifier]) -> AsyncIterator[LogFinding]:
    """Add the keys of a log that can be read to the verifiers."""
    keys = await room.database.read(logs_sql.keys_of, log.id)
    if not keys:
        yield _finding(log, "its keys are missing: nothing can be sealed or verified")
    for key in keys:
        try:
            verifiers.append(Verifier.parse(key.vkey))
        except EvidenceError as error:
            yield _finding(log, f"the key {key.vkey} is not valid: {error}")
            continue
        why = await room.keys.why_unusable(log, key)
        if why is not None:
            yield _finding(log, f"the signing key of {key.vkey} {why}")


async def _checkpoints(room: LogRoom, log: Log) -> AsyncIterator[StoredCheckpoint]:
    after = -1
    while page := await room.database.scan(logs_sql.larger_than, log.id, after, _PAGE):
        for checkpoint in page:
            if checkpoint.size > log.size:
                return  # made during this check, or beyond the log
            yield checkpoint
        after = page[-1].size


async def _grow(
    room: LogRoom, log: Log, tree: GrowingTree, size: int
) -> AsyncIterator[Progress | LogFinding]:
    """Let the tree grow to this size by the entries, each compared with its record."""
    scan = room.database.scan
    while tree.size < size:
        rows = await scan(tree_sql.entries, log.id, tree.size, min(tree.size + _PAGE, size))
        if not rows:
            yield _finding(log, "the entry is missing", tree.size)
            return
        bodies = await scan(tree_sql.record_bodies, [record_id for record_id, _ in rows])
        missing = [record_id for record_id, _ in rows if record_id not in bodies]
        gone = await scan(among, ended_records.c.record_id, missing)
        for record_id, digest in rows:
            body = bodies.get(record_id)
            if record_id in gone:
                pass  # its evidence has ended, and the entry stays
            elif body is None:
                yield _finding(log, f"the record {record_id} is missing", tree.size)
            elif sha256(body).digest() != digest:
                changed = f"the record {record_id} is not the one that was sealed"
                yield _finding(log, changed, tree.size)
            tree.extend(leaves_of(log.origin, [digest]))
        for tile in tree.take_tiles():
            stored = await scan(tree_sql.stored_tile, log.id, tile.level, tile.index)
            name = f"tile {tile.index} of level {tile.level}"
            if stored is None or stored[0] != tile.hashes:
                yield _finding(log, f"{name} does not match its leaves")
            elif stored[1] != tile.root:
                yield _finding(log, f"the root of {name} does not match its leaves")
        yield Progress(log=log, checked=tree.size)


async def _head(room: LogRoom, mode: Mode, log: str) -> LogFinding | None:
    """Compare the last published checkpoint, kept outside, with the database."""
    try:
        note, place = room.heads.kept(mode)
    except HeadUnavailable as error:
        return LogFinding(log, None, error.message)
    if note is None:
        return None  # `log status` explains that
    log_id, wrong, _ = await room.database.read(guard, mode, note, place)
    if log_id is None:
        origin = checkpoint_of(note).origin
        wrong = f"a checkpoint of {origin} was published, but the database has no such log"
    return None if wrong is None else LogFinding(log, None, wrong)


def _finding(log: Log, message: str, index: int | None = None) -> LogFinding:
    return LogFinding(log.origin, index, message)


def _wrong_checkpoint(
    log: Log, keys: list[Verifier], stored: StoredCheckpoint, root: bytes
) -> str | None:
    if stored.root != root:
        return "does not match the root of the entries before it"
    if not keys:
        return None  # which is a finding already
    try:
        text, _ = open_note(stored.note, keys)
        checkpoint = parse_checkpoint(text)
    except EvidenceError as error:
        return f"does not verify: {error}"
    if (checkpoint.origin, checkpoint.size, checkpoint.root) != (log.origin, stored.size, root):
        return "does not match the columns that it is stored with"
    return None
