"""The logs in the database: their heads, keys, entries, tiles, checkpoints and anchors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    type_coerce,
    update,
)
from sqlalchemy.types import NullType

from countersign.db.database import Database
from countersign.db.tables import (
    anchors,
    checkpoints,
    deployment,
    deployment_records,
    log_entries,
    log_heads,
    log_keys,
    log_pending,
    log_tiles,
    logs,
    records,
)
from countersign.evidence.entry import log_entry
from countersign.evidence.tiles import HEIGHT, TileId, TileReader
from countersign.evidence.tree import consistency_path, inclusion_path, leaf_hash
from countersign.evidence.trust import Policy
from countersign.log.fork_guard import SUSPENDED, newest_log, suspended_by_operator, why_not
from countersign.log.journal import Journal
from countersign.log.model import WITNESS, Anchor, Guarded, Log, LogKey, Queue, StoredCheckpoint
from countersign.log.record import NewRecord, Sealed
from countersign.log.sequencer import Sequencer
from countersign.mode import Mode

_LOGS: Final = select(
    logs, log_heads.c.size, log_heads.c.root, log_heads.c.at, log_heads.c.keys_revision
).join(log_heads, log_heads.c.log_id == logs.c.id)

_TILE: Final = log_tiles.c
_SURPLUS_MAX: Final = 100
_RECENT_ANCHORS: Final = 10_000
_ASKED_AT_ONCE: Final = 500
"""Values in one statement; the databases have a bound for them."""


class LogRecords:
    """See `ports.LogStore`."""

    def __init__(self, database: Database, journal: Journal, sequencer: Sequencer) -> None:
        self._database = database
        self._journal = journal
        self._sequencer = sequencer

    async def logs(self) -> Sequence[Log]:
        """Every log, the newest epoch of a mode last."""
        return await self._database.read(_logs, None)

    async def keys(self, log_id: int) -> Sequence[LogKey]:
        """The keys of a log, oldest first."""
        return await self._database.read(_keys, log_id)

    async def begin(
        self, log: Log, key: LogKey, first: NewRecord | None, note: bytes | None
    ) -> bool:
        """Write a new log with its key, and its first record; False if it is there already.

        `note` is the signed checkpoint of the empty log.
        """
        return await self._database.write_batched(self._begin, (log, key, first, note))

    async def guard(self, mode: Mode, kept: bytes | None) -> Guarded:
        """Whether the newest log of a mode goes with the checkpoint that is kept outside."""
        return await self._database.read(_guard, (mode, kept))

    async def resume(self, mode: Mode, decision: NewRecord) -> None:
        """Forget why sealing was suspended by a restore, and write down who decided what."""
        await self._database.write_batched(self._resume, (mode, decision))

    async def add_key(self, key: LogKey, retires: datetime, rotation: NewRecord) -> None:
        """Add a key to a log; those before it retire at `retires` at the latest."""
        await self._database.write_batched(self._add_key, (key, retires, rotation))

    async def write(self, record: NewRecord) -> None:
        """Write a record that goes with no other change."""
        await self._database.write_batched(self._write, record)

    async def seal_queued(self, mode: Mode) -> int:
        """Seal what is queued in this mode; gives how many records got an entry."""
        return await self._database.sequence(self._seal_queue, mode)

    async def queues(self) -> Sequence[Queue]:
        """How much waits for sealing, for each mode."""
        return await self._database.read(_queues, None)

    async def sealed(self, record_ids: Sequence[str]) -> Mapping[str, tuple[int, Sealed]]:
        """Of each of these records that a log holds: the id of the log, and where it stands."""
        return await self._database.read(_sealed, tuple(record_ids))

    async def latest(self, log_id: int) -> StoredCheckpoint | None:
        """The newest checkpoint of a log; None while it is empty."""
        return await self._database.read(_latest, log_id)

    async def covering(
        self, log_id: int, index: int, kinds: frozenset[str], quorum: Policy | None
    ) -> StoredCheckpoint | None:
        """The oldest checkpoint that covers this entry, and that others vouch for.

        It has an anchor of each of these kinds, and its cosignatures meet the quorum, if one is
        given.
        """
        return await self._database.scan(_covering, (log_id, index, kinds, quorum))

    async def cosigned(
        self, log_id: int, quorum: Policy, *, recent: bool = False
    ) -> StoredCheckpoint | None:
        """The newest checkpoint of a log whose cosignatures meet the quorum.

        `recent`: look only at the newest anchors; where none of them does, there can be millions.
        """
        return await self._database.scan_batched(_cosigned, (log_id, quorum, recent))

    async def checkpoint(self, log_id: int, size: int) -> StoredCheckpoint | None:
        """The checkpoint of exactly this size."""
        return await self._database.read(_checkpoint, (log_id, size))

    async def size_before(self, log_id: int, moment: datetime) -> int:
        """The size of the last checkpoint that was made before a moment; 0 where there is none."""
        return await self._database.scan(_size_before, (log_id, moment))

    async def anchors(self, log_id: int, size: int) -> Sequence[Anchor]:
        """What others say of the checkpoint of this size."""
        return await self._database.read(_anchors, (log_id, size))

    async def add_anchor(self, anchor: Anchor) -> None:
        """Keep what someone says of a checkpoint."""
        await self._database.write(_add_anchor, anchor)

    async def tiles(self, log_id: int, wanted: Sequence[TileId]) -> Sequence[bytes]:
        """The hashes of these tiles (c2sp.org/tlog-tiles), each of the width asked for.

        A tile that is not complete up to that width is shorter.
        """
        return await self._database.scan(_tiles, (log_id, tuple(wanted)))

    async def inclusion(self, log_id: int, index: int, size: int) -> Sequence[bytes]:
        """The hashes that lead from an entry to the root of the tree of this size (RFC 6962)."""
        return await self._database.scan(_inclusion, (log_id, index, size))

    async def consistency(self, log_id: int, old: int, new: int) -> Sequence[bytes]:
        """The hashes that show the tree of size `old` to be the beginning of that of `new`."""
        return await self._database.scan(_consistency, (log_id, old, new))

    async def digests(self, log_id: int, start: int, end: int) -> Sequence[bytes]:
        """The digests of the records of the entries from `start` to before `end`."""
        return await self._database.scan(_digests, (log_id, start, end))

    async def entries(self, log_id: int, start: int, end: int) -> Sequence[tuple[str, bytes]]:
        """Record id and digest of each of these entries."""
        return await self._database.scan(_entries, (log_id, start, end))

    async def checkpoints(self, log_id: int, after: int, limit: int) -> Sequence[StoredCheckpoint]:
        """The checkpoints of a log that are larger than this size, the smallest first."""
        return await self._database.scan(_checkpoints, (log_id, after, limit))

    async def stored_tile(self, log_id: int, level: int, index: int) -> tuple[bytes, bytes] | None:
        """A complete tile as it is stored: its hashes, and the root that is stored beside them."""
        return await self._database.scan(_stored_tile, (log_id, level, index))

    async def surplus(self, log_id: int, size: int) -> Sequence[str]:
        """Entries and complete tiles that a log of this size does not have, at most 100 each."""
        return await self._database.scan(_surplus, (log_id, size))

    async def record_bodies(self, record_ids: Sequence[str]) -> Mapping[str, bytes]:
        """The exact bytes of these records, of whatever type; those that there are."""
        return await self._database.scan(_record_bodies, tuple(record_ids))

    def _begin(
        self,
        connection: Connection,
        items: Sequence[tuple[Log, LogKey, NewRecord | None, bytes | None]],
    ) -> list[bool]:
        return [self._begin_one(connection, *item) for item in items]

    def _begin_one(
        self,
        connection: Connection,
        log: Log,
        key: LogKey,
        first: NewRecord | None,
        note: bytes | None,
    ) -> bool:
        there = select(logs.c.id).where(logs.c.mode == log.mode, logs.c.epoch == log.epoch)
        if connection.execute(there).first() is not None:
            return False
        own = connection.execute(select(func.coalesce(func.max(logs.c.id), 0))).scalar_one() + 1
        connection.execute(
            insert(logs),
            {
                "id": own,
                "mode": log.mode,
                "epoch": log.epoch,
                "origin": log.origin,
                "created_at": log.created_at,
            },
        )
        connection.execute(
            insert(log_heads),
            {"log_id": own, "size": 0, "root": log.root, "at": log.at, "keys_revision": 1},
        )
        connection.execute(insert(log_keys), _key_row(key) | {"log_id": own})
        if note is not None:
            connection.execute(
                insert(checkpoints),
                {"log_id": own, "size": 0, "root": log.root, "note": note, "at": log.at},
            )
        _forget_suspension(connection, log.mode)
        if first is not None:
            # It is the log's first entry, whatever else is waiting.
            self._sequencer.wait_for_turn(connection, log.mode)
            Journal(self._sequencer).write(connection, [first])
        return True

    def _add_key(
        self, connection: Connection, items: Sequence[tuple[LogKey, datetime, NewRecord]]
    ) -> list[None]:
        for key, retires, rotation in items:
            connection.execute(
                update(log_keys)
                .where(
                    log_keys.c.log_id == key.log_id,
                    log_keys.c.retires_at.is_(None) | (log_keys.c.retires_at > retires),
                )
                .values(retires_at=retires)
            )
            connection.execute(insert(log_keys), _key_row(key))
            self._journal.write(connection, [rotation])
            connection.execute(
                update(log_heads)
                .where(log_heads.c.log_id == key.log_id)
                .values(keys_revision=log_heads.c.keys_revision + 1)
            )
        return [None] * len(items)

    def _resume(
        self, connection: Connection, items: Sequence[tuple[Mode, NewRecord]]
    ) -> list[None]:
        for mode, decision in items:
            _forget_suspension(connection, mode)
            self._journal.write(connection, [decision])
        return [None] * len(items)

    def _write(self, connection: Connection, items: Sequence[NewRecord]) -> list[None]:
        self._journal.write(connection, items)
        return [None] * len(items)

    def _seal_queue(self, connection: Connection, mode: Mode) -> int:
        (sealed,) = self._sequencer.seal_queue(connection, [mode])
        return sealed


def _key_row(key: LogKey) -> dict[str, object]:
    return {
        "log_id": key.log_id,
        "vkey": key.vkey,
        "seed": key.seed,
        "created_at": key.created_at,
        "retires_at": key.retires_at,
    }


def _guard(connection: Connection, item: tuple[Mode, bytes | None]) -> Guarded:
    mode, kept = item
    newest = newest_log(connection, mode)
    waits = suspended_by_operator(connection, mode) is not None
    return Guarded(
        log_id=None if newest is None else newest.id,
        refusal=why_not(connection, mode, kept),
        restored=waits,
    )


def _forget_suspension(connection: Connection, mode: Mode) -> None:
    connection.execute(delete(deployment).where(deployment.c.name == f"{SUSPENDED}:{mode.value}"))


def _logs(connection: Connection, _: None) -> Sequence[Log]:
    rows = connection.execute(_LOGS.order_by(logs.c.mode, logs.c.epoch))
    return [
        Log(
            id=row.id,
            mode=Mode(row.mode),
            epoch=row.epoch,
            origin=row.origin,
            created_at=row.created_at,
            size=row.size,
            root=row.root,
            at=row.at,
            keys_revision=row.keys_revision,
        )
        for row in rows
    ]


def _keys(connection: Connection, log_id: int) -> Sequence[LogKey]:
    rows = connection.execute(
        select(log_keys)
        .where(log_keys.c.log_id == log_id)
        .order_by(log_keys.c.created_at, log_keys.c.vkey)
    )
    return [LogKey(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name


def _queues(connection: Connection, _: None) -> Sequence[Queue]:
    rows = connection.execute(
        select(log_pending.c.mode, func.count(), func.min(log_pending.c.record_id)).group_by(
            log_pending.c.mode
        )
    ).all()
    return [Queue(mode=Mode(row[0]), waiting=row[1], oldest=row[2]) for row in rows]


def _sealed(
    connection: Connection, record_ids: tuple[str, ...]
) -> Mapping[str, tuple[int, Sealed]]:
    found: dict[str, tuple[int, Sealed]] = {}
    for start in range(0, len(record_ids), _ASKED_AT_ONCE):
        rows = connection.execute(
            select(log_entries.c.record_id, logs.c.id, logs.c.origin, log_entries.c.leaf_index)
            .join(log_entries, log_entries.c.log_id == logs.c.id)
            .where(log_entries.c.record_id.in_(record_ids[start : start + _ASKED_AT_ONCE]))
        )
        found |= {row[0]: (row[1], Sealed(row[2], row[3])) for row in rows}
    return found


def _stored(connection: Connection, query: Select[Any]) -> StoredCheckpoint | None:
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else StoredCheckpoint(**row._mapping)  # noqa: SLF001 - as above


def _latest(connection: Connection, log_id: int) -> StoredCheckpoint | None:
    return _stored(
        connection,
        select(checkpoints)
        .where(checkpoints.c.log_id == log_id)
        .order_by(checkpoints.c.size.desc()),
    )


def _covering(
    connection: Connection, item: tuple[int, int, frozenset[str], Policy | None]
) -> StoredCheckpoint | None:
    log_id, index, kinds, quorum = item
    query = select(checkpoints).where(checkpoints.c.log_id == log_id, checkpoints.c.size > index)
    if kinds or quorum is not None:
        anchored = (
            select(anchors.c.size)
            .where(anchors.c.log_id == log_id, anchors.c.size > index)
            .group_by(anchors.c.size)
            .having(*(_any(anchors.c.kind == kind) == 1 for kind in sorted(kinds)))
            .order_by(anchors.c.size)
            .limit(1)
        )
        if quorum is not None:
            anchored = anchored.having(_meets(quorum) == 1)
        query = query.where(checkpoints.c.size == anchored.scalar_subquery())
    return _stored(connection, query.order_by(checkpoints.c.size))


def _cosigned(
    connection: Connection, items: Sequence[tuple[int, Policy, bool]]
) -> list[StoredCheckpoint | None]:
    # Anyone may ask, and many at once: each question is answered once.
    found = {item: _newest_that_meets(connection, *item) for item in dict.fromkeys(items)}
    return [found[item] for item in items]


def _newest_that_meets(
    connection: Connection,
    log_id: int,
    quorum: Policy,
    recent: bool,  # noqa: FBT001 - an act's item
) -> StoredCheckpoint | None:
    own = anchors.c.log_id == log_id
    if recent:
        newer = select(anchors.c.size).where(own).order_by(anchors.c.size.desc())
        oldest = newer.offset(_RECENT_ANCHORS).limit(1).scalar_subquery()
        own &= anchors.c.size >= func.coalesce(oldest, -1)
    newest = (
        select(anchors.c.size)
        .where(own)
        .group_by(anchors.c.size)
        .having(_meets(quorum) == 1)
        .order_by(anchors.c.size.desc())
        .limit(1)
    )
    return _stored(
        connection,
        select(checkpoints).where(
            checkpoints.c.log_id == log_id, checkpoints.c.size == newest.scalar_subquery()
        ),
    )


def _any(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """1 if it holds for any row of the group, else 0."""
    return func.max(case((condition, 1), else_=0))


def _meets(policy: Policy) -> ColumnElement[int]:
    """1 if the cosignatures in a group of rows meet the quorum of the policy, else 0.

    The rule of `Policy.check_quorum` again, for the database: of the checkpoints over an entry
    the first may have too few cosignatures, and so may any number of those after it.
    """
    met: dict[bytes, ColumnElement[int]] = {
        witness.name: _any((anchors.c.kind == WITNESS) & (anchors.c.name == witness.key_name))
        for witness in policy.witnesses
    }
    for group in policy.groups:
        members = sum((met[member] for member in group.members), literal(0))
        met[group.name] = case((members >= group.threshold, 1), else_=0)
    return met[policy.quorum]


def _checkpoint(connection: Connection, item: tuple[int, int]) -> StoredCheckpoint | None:
    log_id, size = item
    return _stored(
        connection,
        select(checkpoints).where(checkpoints.c.log_id == log_id, checkpoints.c.size == size),
    )


def _size_before(connection: Connection, item: tuple[int, datetime]) -> int:
    log_id, moment = item
    newest = select(log_heads.c.size).where(log_heads.c.log_id == log_id)
    found, end = 0, connection.execute(newest).scalar_one() + 1
    # By halves: later checkpoints are larger, and there is an index by size only.
    start = 0
    while start < end:
        middle = (start + end) // 2
        row = connection.execute(
            select(checkpoints.c.size, checkpoints.c.at)
            .where(
                checkpoints.c.log_id == log_id,
                checkpoints.c.size >= middle,
                checkpoints.c.size < end,
            )
            .order_by(checkpoints.c.size)
            .limit(1)
        ).one_or_none()
        if row is not None and row.at < moment:
            found, start = row.size, row.size + 1
        else:
            end = middle
    return found


def _anchors(connection: Connection, item: tuple[int, int]) -> Sequence[Anchor]:
    log_id, size = item
    rows = connection.execute(
        select(anchors)
        .where(anchors.c.log_id == log_id, anchors.c.size == size)
        .order_by(anchors.c.kind, anchors.c.name)
    )
    return [Anchor(**row._mapping) for row in rows]  # noqa: SLF001 - as above


def _add_anchor(connection: Connection, anchor: Anchor) -> None:
    own = (anchors.c.log_id, anchors.c.size, anchors.c.kind, anchors.c.name)
    values = (anchor.log_id, anchor.size, anchor.kind, anchor.name)
    there = select(anchors.c.size).where(*(c == v for c, v in zip(own, values, strict=True)))
    if connection.execute(there).first() is None:
        connection.execute(
            insert(anchors),
            {c.name: v for c, v in zip(own, values, strict=True)}
            | {"body": anchor.body, "at": anchor.at},
        )


def _tiles(connection: Connection, item: tuple[int, tuple[TileId, ...]]) -> Sequence[bytes]:
    log_id, wanted = item
    return [_tile(connection, log_id, tile) for tile in wanted]


def _inclusion(connection: Connection, item: tuple[int, int, int]) -> Sequence[bytes]:
    log_id, index, size = item
    return inclusion_path(index, size, _reader(connection, log_id, size))


def _consistency(connection: Connection, item: tuple[int, int, int]) -> Sequence[bytes]:
    log_id, old, new = item
    return consistency_path(old, new, _reader(connection, log_id, new))


def _reader(connection: Connection, log_id: int, size: int) -> TileReader:
    def read(wanted: Sequence[TileId]) -> list[bytes]:
        return [_tile(connection, log_id, tile) for tile in wanted]

    return TileReader(read, size)


def _tile(connection: Connection, log_id: int, tile: TileId) -> bytes:
    full = connection.execute(
        select(log_tiles.c.hashes).where(
            log_tiles.c.log_id == log_id,
            log_tiles.c.level == tile.level,
            log_tiles.c.tile_index == tile.index,
        )
    ).scalar_one_or_none()
    if full is not None:
        return bytes(full)[: tile.width * 32]
    start = tile.index << HEIGHT
    if tile.level == 0:
        origin = connection.execute(select(logs.c.origin).where(logs.c.id == log_id)).scalar_one()
        found = _digests_between(connection, log_id, start, start + tile.width)
        return b"".join(leaf_hash(log_entry(origin, digest)) for digest in found)
    roots = connection.execute(
        select(log_tiles.c.root)
        .where(
            log_tiles.c.log_id == log_id,
            log_tiles.c.level == tile.level - 1,
            log_tiles.c.tile_index >= start,
            log_tiles.c.tile_index < start + tile.width,
        )
        .order_by(log_tiles.c.tile_index)
    ).scalars()
    return b"".join(bytes(root) for root in roots)


def _digests(connection: Connection, item: tuple[int, int, int]) -> Sequence[bytes]:
    return _digests_between(connection, *item)


def _digests_between(connection: Connection, log_id: int, start: int, end: int) -> list[bytes]:
    return [bytes(row[1]) for row in _rows_between(connection, log_id, start, end)]


def _rows_between(
    connection: Connection, log_id: int, start: int, end: int
) -> Sequence[Row[str, bytes]]:
    return connection.execute(
        select(log_entries.c.record_id, log_entries.c.digest)
        .where(
            log_entries.c.log_id == log_id,
            log_entries.c.leaf_index >= start,
            log_entries.c.leaf_index < end,
        )
        .order_by(log_entries.c.leaf_index)
    ).all()


def _entries(connection: Connection, item: tuple[int, int, int]) -> Sequence[tuple[str, bytes]]:
    return [(row[0], bytes(row[1])) for row in _rows_between(connection, *item)]


def _checkpoints(connection: Connection, item: tuple[int, int, int]) -> Sequence[StoredCheckpoint]:
    log_id, after, limit = item
    rows = connection.execute(
        select(checkpoints)
        .where(checkpoints.c.log_id == log_id, checkpoints.c.size > after)
        .order_by(checkpoints.c.size)
        .limit(limit)
    )
    return [StoredCheckpoint(**row._mapping) for row in rows]  # noqa: SLF001 - as above


def _stored_tile(connection: Connection, item: tuple[int, int, int]) -> tuple[bytes, bytes] | None:
    log_id, level, index = item
    found = connection.execute(
        select(log_tiles.c.hashes, log_tiles.c.root).where(
            log_tiles.c.log_id == log_id,
            log_tiles.c.level == level,
            log_tiles.c.tile_index == index,
        )
    ).one_or_none()
    return None if found is None else (bytes(found[0]), bytes(found[1]))


def _surplus(connection: Connection, item: tuple[int, int]) -> Sequence[str]:
    log_id, size = item
    indexes = connection.execute(
        select(log_entries.c.leaf_index)
        .where(log_entries.c.log_id == log_id)
        .where((log_entries.c.leaf_index >= size) | (log_entries.c.leaf_index < 0))
        .order_by(log_entries.c.leaf_index)
        .limit(_SURPLUS_MAX)
    ).scalars()
    found = [f"entry {index}" for index in indexes]
    levels = range(64 // HEIGHT)
    complete = case({level: size >> HEIGHT * (level + 1) for level in levels}, value=_TILE.level)
    tiles = connection.execute(
        select(_TILE.level, _TILE.tile_index)
        .where(_TILE.log_id == log_id)
        .where(_TILE.level.not_in(levels) | (_TILE.tile_index >= complete) | (_TILE.tile_index < 0))
        .order_by(_TILE.level, _TILE.tile_index)
        .limit(_SURPLUS_MAX)
    )
    return [*found, *(f"tile {index} of level {level}" for level, index in tiles)]


def _record_bodies(connection: Connection, ids: tuple[str, ...]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for table in (records, deployment_records):
        # Whatever its type is by now: bytes that became text are found out by their digest.
        body = type_coerce(table.c.body, NullType())
        rows = connection.execute(select(table.c.id, body).where(table.c.id.in_(ids)))
        found |= {r[0]: r[1].encode() if isinstance(r[1], str) else bytes(r[1]) for r in rows}
    return found
