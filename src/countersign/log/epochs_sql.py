"""The logs in the database: one for each mode and epoch, their heads, keys and queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, insert, select, update

from countersign.db.tables import checkpoints, log_heads, log_keys, log_pending, logs
from countersign.log.model import Log, LogKey, Queue
from countersign.mode import Mode

_LOGS: Final = (
    select(logs, log_heads.c.size, log_heads.c.root, log_heads.c.at, log_heads.c.keys_revision)
    .join(log_heads, log_heads.c.log_id == logs.c.id)
    .order_by(logs.c.mode, logs.c.epoch)
)


def all_logs(connection: Connection) -> Sequence[Log]:
    """Every log, the newest epoch of a mode last."""
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
        for row in connection.execute(_LOGS)
    ]


def add_log(connection: Connection, log: Log, key: LogKey, note: bytes) -> bool:
    """Write a new, empty log with its key and its signed checkpoint; False if it exists."""
    same = select(logs.c.id).where(logs.c.mode == log.mode, logs.c.epoch == log.epoch)
    if connection.execute(same).first() is not None:
        return False
    id_ = connection.execute(select(func.coalesce(func.max(logs.c.id), 0))).scalar_one() + 1
    connection.execute(
        insert(logs),
        {
            "id": id_,
            "mode": log.mode,
            "epoch": log.epoch,
            "origin": log.origin,
            "created_at": log.created_at,
        },
    )
    head = {"log_id": id_, "size": 0, "root": log.root, "at": log.at}
    connection.execute(insert(log_heads), head | {"keys_revision": 1})
    connection.execute(insert(checkpoints), head | {"note": note})
    connection.execute(insert(log_keys), asdict(key) | {"log_id": id_})
    return True


def keys_of(connection: Connection, log_id: int) -> Sequence[LogKey]:
    """The keys of a log, oldest first."""
    rows = connection.execute(
        select(log_keys)
        .where(log_keys.c.log_id == log_id)
        .order_by(log_keys.c.created_at, log_keys.c.vkey)
    )
    return [LogKey(**row) for row in rows.mappings()]


def add_key(connection: Connection, key: LogKey, retires: datetime) -> None:
    """Add a key to a log; its other keys retire at `retires` at the latest."""
    connection.execute(
        update(log_keys)
        .where(
            log_keys.c.log_id == key.log_id,
            log_keys.c.retires_at.is_(None) | (log_keys.c.retires_at > retires),
        )
        .values(retires_at=retires)
    )
    connection.execute(insert(log_keys), asdict(key))


def count_key_change(connection: Connection, log_id: int) -> None:
    """Let every process read the keys of this log again before it signs."""
    connection.execute(
        update(log_heads)
        .where(log_heads.c.log_id == log_id)
        .values(keys_revision=log_heads.c.keys_revision + 1)
    )


def queues(connection: Connection) -> Sequence[Queue]:
    """The number of records that wait to be sealed, for each mode in which there are any."""
    rows = connection.execute(
        select(log_pending.c.mode, func.count(), func.min(log_pending.c.record_id)).group_by(
            log_pending.c.mode
        )
    )
    return [Queue(mode=Mode(row[0]), waiting=row[1], oldest=row[2]) for row in rows]
