"""The logs in the database: heads, keys and queues, checkpoints, and the anchors of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from countersign.base.db.statements import DriverStatement, row, rows
from countersign.base.db.tables import anchors, checkpoints, log_heads, log_keys, log_pending, logs
from countersign.base.values import Mode, from_ms, made_at_ms
from countersign.core.log.fork_guard import SUSPENDED
from countersign.core.log.model import (
    SQL,
    TIMESTAMP,
    WITNESS,
    Anchor,
    Log,
    LogKey,
    StoredCheckpoint,
)
from countersign_evidence.policy import Policy

_RECENT_ANCHORS: Final = 10_000
_LOGS: Final = (
    select(logs, log_heads.c.size, log_heads.c.root, log_heads.c.at, log_heads.c.keys_revision)
    .join(log_heads, log_heads.c.log_id == logs.c.id)
    .order_by(logs.c.mode, logs.c.epoch)
)
_OF_LOG: Final[Any] = bindparam("log_id")
# The text of an ML-DSA-44 key is longer.
_AGE: Final = log_keys.c.created_at, func.length(log_keys.c.vkey), log_keys.c.vkey
_KEYS: Final = select(log_keys).filter_by(log_id=_OF_LOG).order_by(*_AGE)
_ANCHORS: Final = select(anchors).filter_by(log_id=_OF_LOG, size=bindparam("size"))
_IN_ORDER: Final = _ANCHORS.order_by(anchors.c.kind, anchors.c.name, anchors.c.at)
_OVER: Final = checkpoints.c.log_id == _OF_LOG, checkpoints.c.size > bindparam("index")
_OLDEST: Final = select(checkpoints).where(*_OVER).order_by(checkpoints.c.size).limit(1)
_STAMPED_WITHIN: Final = timedelta(days=1)
"""A cosigned checkpoint with a time-stamp is better than one without, unless it is far later."""
_STANDING: Final = DriverStatement(SQL["standing"])
KEPT: Final = timedelta(days=1)
"""How much older than its log's newest checkpoint a checkpoint must be to be deleted."""
_AGED: Final = DriverStatement(SQL["aged"])
_NEWEST_ANCHOR: Final = DriverStatement(SQL["newest_anchor"])
_IS_ANCHORED: Final = DriverStatement(SQL["is_anchored"])


class Standing(NamedTuple):
    """The state of a mode's newest log."""

    log_id: int
    size: int
    keys_revision: int
    signed: int
    """The size of its newest checkpoint, made at `signed_at`, Unix milliseconds."""
    signed_at: int
    oldest: str | None
    """The first of the records that wait."""
    suspensions: int


def all_logs(connection: Connection) -> Sequence[Log]:
    """Every log, the newest epoch of a mode last."""
    return rows(connection, _LOGS, Log)


def newest_logs(connection: Connection) -> dict[Mode, Log]:
    """The newest log of each mode."""
    return {log.mode: log for log in all_logs(connection)}


def standing(connection: Connection) -> Sequence[Standing]:
    """A value that changes whenever a log has work; servers poll it."""
    suspended = (f"{SUSPENDED}:{mode.value}" for mode in Mode)
    return [Standing(*row) for row in _STANDING(connection, *suspended).fetchall()]


def add_log(connection: Connection, log: Log, keys: Sequence[LogKey], note: bytes) -> bool:
    """Write a new, empty log with its keys and its signed checkpoint; False if it exists."""
    same = select(logs.c.id).where(logs.c.mode == log.mode, logs.c.epoch == log.epoch)
    if connection.execute(same).first() is not None:
        return False
    id_ = connection.execute(select(func.coalesce(func.max(logs.c.id), 0))).scalar_one() + 1
    own = {"mode": log.mode, "epoch": log.epoch, "origin": log.origin}
    connection.execute(insert(logs), own | {"id": id_, "created_at": log.at})
    head = {"log_id": id_, "size": 0, "root": log.root, "at": log.at}
    connection.execute(insert(log_heads), head | {"keys_revision": 1})
    connection.execute(insert(checkpoints), head | {"note": note})
    connection.execute(insert(log_keys), [asdict(key) | {"log_id": id_} for key in keys])
    return True


def keys_of(connection: Connection, log_id: int) -> Sequence[LogKey]:
    """The keys of a log, oldest first; of those made together, the Ed25519 key first."""
    return rows(connection, _KEYS, LogKey, {"log_id": log_id})


def add_keys(connection: Connection, keys: Sequence[LogKey], retires: datetime) -> None:
    """Add keys to a log; its other keys retire at `retires` at the latest."""
    others = update(log_keys).filter_by(log_id=keys[0].log_id)
    others = others.where(log_keys.c.retires_at.is_(None) | (log_keys.c.retires_at > retires))
    connection.execute(others.values(retires_at=retires))
    connection.execute(insert(log_keys), [*map(asdict, keys)])


def count_key_change(connection: Connection, log_id: int) -> None:
    """Let every process read the keys of this log again before it signs."""
    head = update(log_heads).filter_by(log_id=log_id)
    connection.execute(head.values(keys_revision=log_heads.c.keys_revision + 1))


def queues(connection: Connection) -> Mapping[Mode, tuple[int, datetime]]:
    """For each mode with records waiting to be sealed: their number, and the time of the oldest."""
    mode, oldest = log_pending.c.mode, func.min(log_pending.c.record_id)
    rows = connection.execute(select(mode, func.count(), oldest).group_by(mode))
    return {Mode(row[0]): (row[1], from_ms(made_at_ms(row[2]))) for row in rows}


def latest(connection: Connection, log_id: int) -> StoredCheckpoint | None:
    return _first(connection, _of(log_id).order_by(checkpoints.c.size.desc()))


def of_size(connection: Connection, log_id: int, size: int) -> StoredCheckpoint | None:
    return _first(connection, _of(log_id, checkpoints.c.size == size))


def larger_than(
    connection: Connection, log_id: int, size: int, limit: int
) -> Sequence[StoredCheckpoint]:
    """The checkpoints of a log that are larger than this size, the smallest first."""
    larger = _of(log_id, checkpoints.c.size > size).order_by(checkpoints.c.size).limit(limit)
    return rows(connection, larger, StoredCheckpoint)


def outdated(
    connection: Connection, log_id: int, after: int, limit: int
) -> tuple[Sequence[int], int] | None:
    """Sizes of a log's deletable checkpoints larger than `after`.

    At most `limit` are examined; the second value is the size of the last one. None: none is left
    to examine. The table's trigger enforces the same rule.
    """
    newest = latest(connection, log_id)
    end = 0 if newest is None else size_before(connection, log_id, newest.at - KEPT)
    found = _AGED(connection, log_id, after, end, limit).fetchall()
    return ([size for size, stays in found if not stays], found[-1][0]) if found else None


def forget(connection: Connection, log_id: int, sizes: Sequence[int]) -> None:
    """Delete these checkpoints; the database refuses to delete one that must stay."""
    some = checkpoints.c.size.in_(sizes)
    connection.execute(delete(checkpoints).where(checkpoints.c.log_id == log_id, some))


def size_before(connection: Connection, log_id: int, moment: datetime) -> int:
    """The size of the last checkpoint made before a moment; 0 if there is none."""
    newest = select(log_heads.c.size).where(log_heads.c.log_id == log_id)
    found, end = 0, connection.execute(newest).scalar_one() + 1
    # Binary search: later checkpoints are larger, and the only index is by size.
    start = 0
    while start < end:
        middle = (start + end) // 2
        between = _of(log_id, checkpoints.c.size >= middle, checkpoints.c.size < end)
        row = _first(connection, between.order_by(checkpoints.c.size))
        if row is not None and row.at < moment:
            found, start = row.size, row.size + 1
        else:
            end = middle
    return found


def covering(
    connection: Connection, log_id: int, index: int, quorum: Policy | None
) -> tuple[StoredCheckpoint | None, bool]:
    """The best checkpoint over this entry, and whether its cosignatures meet the quorum.

    The oldest that meets it, or, without a quorum, that has a witness; else the oldest with any
    anchor, a witness's before a time-stamp; else the oldest. None: none covers the entry yet.
    """
    values = {"log_id": log_id, "index": index}
    oldest = row(connection, _OLDEST, StoredCheckpoint, values)
    if oldest is None or not _IS_ANCHORED(connection, log_id, index).fetchone()[0]:
        return oldest, False

    def with_anchors(quorum: Policy | None, *kinds: str) -> StoredCheckpoint | None:
        return row(connection, _anchored(quorum, *kinds), StoredCheckpoint, values)

    first = with_anchors(quorum, WITNESS)
    if first is None:
        stamped = with_anchors(None, WITNESS) or with_anchors(None, TIMESTAMP)
        return stamped or oldest, False
    both = with_anchors(quorum, WITNESS, TIMESTAMP)
    return both if both and both.at - first.at <= _STAMPED_WITHIN else first, True


@lru_cache(maxsize=16)
def _anchored(quorum: Policy | None, *kinds: str) -> Select[Any]:
    """The oldest checkpoint over an entry that meets the quorum, with an anchor of each kind."""
    own = anchors.c.log_id == _OF_LOG, anchors.c.size > bindparam("index")
    found = select(anchors.c.size).where(*own).group_by(anchors.c.size)
    found = found.having(*(_any(anchors.c.kind == kind) == 1 for kind in kinds))
    if quorum is not None:
        found = found.having(_meets(quorum) == 1)
    size = found.order_by(anchors.c.size).limit(1).scalar_subquery()
    return _OLDEST.where(checkpoints.c.size == size)


def cosigned(
    connection: Connection, items: Sequence[tuple[int, Policy, bool]]
) -> list[StoredCheckpoint | None]:
    """An act for `scan_batched`: the newest checkpoint of a log that meets a quorum.

    Items are the id of the log, the policy, and whether to look only at the newest anchors, since
    there can be millions that do not meet the quorum. Anyone may ask, even many at once: equal
    items are queried once.
    """
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
    return _first(connection, _of(log_id, checkpoints.c.size == newest.scalar_subquery()))


def _any(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """1 if it holds for any row of the group, else 0."""
    return func.max(case((condition, 1), else_=0))


def _meets(policy: Policy) -> ColumnElement[int]:
    """1 if the cosignatures in a group of rows meet the quorum of the policy, else 0.

    The rule of `Policy.check_quorum` in SQL: the oldest checkpoints over an entry may have too few
    cosignatures, and any number of later ones, too.
    """
    met: dict[str, ColumnElement[int]] = {
        witness.name: _any((anchors.c.kind == WITNESS) & (anchors.c.name == witness.key_name))
        for witness in policy.witnesses
    }
    for name, (needed, of) in policy.groups.items():
        members = sum((met[member] for member in of), literal(0))
        met[name] = case((members >= needed, 1), else_=0)
    return met[policy.quorum]


def anchors_of(connection: Connection, log_id: int, size: int) -> Sequence[Anchor]:
    """The anchors of one checkpoint, by kind and name, oldest first."""
    return rows(connection, _IN_ORDER, Anchor, {"log_id": log_id, "size": size})


def newest_anchor(
    connection: Connection, log_id: int, kind: str, name: str
) -> tuple[int, datetime] | None:
    """Size and time of the largest checkpoint of a log that this third party anchored."""
    found = _NEWEST_ANCHOR(connection, log_id, kind, name).fetchone()
    return None if found is None else (found[0], from_ms(found[1]))


def to_renew(connection: Connection, now: datetime, before: datetime) -> Anchor | None:
    """The time-stamp whose certificates expire first, before `before`, and which no other renews.

    Only if certificates with a later end are in use.
    """
    later = anchors.alias("later")
    last = select(func.max(later.c.ends_at)).scalar_subquery()
    first = (
        select(anchors)
        .outerjoin(later, later.c.renews == anchors.c.digest)
        .where(
            anchors.c.kind == TIMESTAMP,
            anchors.c.ends_at > now,
            anchors.c.ends_at < before,
            anchors.c.ends_at < last,
            later.c.renews.is_(None),
        )
        .order_by(anchors.c.ends_at)
        .limit(1)
    )
    return row(connection, first, Anchor)


def add_anchor(connection: Connection, anchor: Anchor) -> None:
    """Keep an anchor, unless another process has in the same millisecond.

    If a party responds so late that the checkpoint is deleted, its anchor is dropped.
    """
    if of_size(connection, anchor.log_id, anchor.size) is None:
        return
    same = select(anchors.c.size).filter_by(log_id=anchor.log_id, size=anchor.size)
    same = same.filter_by(kind=anchor.kind, name=anchor.name, at=anchor.at)
    if connection.execute(same).first() is None:
        connection.execute(insert(anchors), asdict(anchor))


def _of(log_id: int, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(checkpoints).where(checkpoints.c.log_id == log_id, *conditions)


def _first(connection: Connection, query: Select[Any]) -> StoredCheckpoint | None:
    return row(connection, query.limit(1), StoredCheckpoint)
