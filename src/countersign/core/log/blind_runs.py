"""Blind indexes: records are found by keyed hashes of buyers, sessions or orders.

Keys are random. On the embedded database an index of them would dirty a page for each key, and more
pages as the table grows. So the keys of new disclosures wait in `blind_recent`, in the order of
records, and the server moves a thousand at a time to `blind_runs`, in the order of keys: a run. A
look-up queries the waiting keys and every run, and 64 runs become one, a 64th of all keys at a
time. Each step is one transaction that moves keys: at any moment a key is in exactly one place.

PostgreSQL has its indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from sqlalchemy import Column, ColumnElement, Connection, String, and_, bindparam, text

from countersign.base.db.database import Database
from countersign.base.db.statements import DriverStatement, deferred_statements
from countersign.base.db.tables import disclosures
from countersign.base.loops import forever
from countersign.core.log.model import SQL

PERIOD_SECONDS: Final = 5.0
RUN_ROWS: Final = 1024
"""Records whose keys go to a new run."""
GROUP: Final = 64
"""Runs 64 n to 64 n + 63 are merged into the first of them, once there is a later one."""
_SLICES: Final = 64

_FOUND: Final = text(SQL["runs_found"].format(runs=SQL["runs"]))
_LAST: Final = DriverStatement(SQL["runs_last"])
_FIRST_KEYS: Final = DriverStatement(SQL["runs_first_keys"].format(runs=SQL["runs"]))
_MOVE: Final = DriverStatement(SQL["runs_move"])
_MOVED: Final = DriverStatement(SQL["runs_moved"])
_OTHERS: Final = ", ".join("?" * (GROUP - 1))
_MERGE: Final = DriverStatement(SQL["runs_merge"].format(others=_OTHERS))
_MERGED: Final = DriverStatement(SQL["runs_merged"].format(others=_OTHERS))
_AFTER_ALL: Final = b"\xff" * 64


Step: TypeAlias = Sequence[tuple[DriverStatement, tuple[object, ...]]]
"""Statements with their values, of one transaction."""


def found_by(connection: Connection, column: Column[Any], *indexes: bytes) -> ColumnElement[bool]:
    """The condition that disclosures have one of these blind indexes in `column`."""
    own = column.in_(indexes)
    if connection.dialect.name != "sqlite":
        return own
    found = _FOUND.bindparams(bindparam("keys", indexes, unique=True, expanding=True))
    return and_(disclosures.c.record_id.in_(found.columns(record_id=String)), own)


def next_step(connection: Connection, rows: int = RUN_ROWS) -> Step | None:
    """The next step; None: nothing to do. `rows` is of how many records a new run has keys."""
    waiting = _LAST(connection, rows - 1).fetchone()
    if waiting is not None:
        return new_run(waiting[1], waiting[0])
    runs = _FIRST_KEYS(connection).fetchall()
    for run, _ in runs:
        group = run - run % GROUP
        if run != group and runs[-1][0] >= group + GROUP:
            first_key = min(key for one, key in runs if group < one < group + GROUP)
            # The keys of the group's other runs before this end go to its first one.
            others = (*range(group + 1, group + GROUP), _end_of_slice(first_key))
            return (_MERGE, (group, *others)), (_MERGED, others)
    return None


def new_run(run: int, last: str) -> Step:
    """The keys of the oldest records that wait, up to the last one, become a run."""
    return (_MOVE, (run, last, last, last)), (_MOVED, (last,))


def _end_of_slice(key: bytes) -> bytes:
    """Keys are practically random, so a slice by the first bits has a 64th of them."""
    wide = 256 // _SLICES
    end = (key[0] // wide + 1) * wide
    return bytes([end]) if end < 256 else _AFTER_ALL


def do_step(connection: Connection, step: Step) -> None:
    """Leave it to the commit, which does not block the event loop."""
    deferred = deferred_statements(connection)
    for statement, values in step:
        statement.defer(connection, deferred, *values)


async def merge(database: Database, rows: int = RUN_ROWS) -> int:
    """Do every pending step; returns their number."""
    done = 0
    while (step := await database.scan(next_step, rows)) is not None:
        await database.write(do_step, step)
        done += 1
    return done


async def keep_merged(database: Database) -> None:
    """Merge now and then, until cancelled: on the embedded database."""
    await forever("merging", partial(merge, database), PERIOD_SECONDS)
