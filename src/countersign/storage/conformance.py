"""Conformance runs, and what was seen in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select, update

from countersign.db.database import Database
from countersign.db.tables import accounts, conformance_observations, conformance_runs
from countersign.domain.conformance import Observation, Provocation, Run

_MILLISECOND: Final = timedelta(milliseconds=1)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Observation).decode
_runs: Final = conformance_runs.c
_seen: Final = conformance_observations.c


class _Change(NamedTuple):
    """What to change of a run that has not ended; `if_armed`: only if it is armed so."""

    run_id: str
    now: datetime
    values: Mapping[str, object]
    if_armed: Provocation | None = None


class ConformanceRuns:
    """See `ports.ConformanceStore`.

    Changes of runs are made in transactions apart from vendors' acts, so that no act ever waits for
    them; observations are only ever added, which waits for nobody.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def active(self, now: datetime) -> Sequence[Run]:
        """The runs of all accounts that have not ended."""
        return await self._database.read_batched(_active, now)

    async def begin(self, run: Run) -> bool:
        """Begin a run; False: there is one under way for its account."""
        return await self._database.sequence(_begin, run)

    async def prolong(self, run_id: str, until: datetime, now: datetime) -> bool:
        """Let a run go on until then; `now` ends it. False: it had ended before."""
        return await self._database.write_batched(
            _change, _Change(run_id, now, {"active_until": until})
        )

    async def arm(self, run_id: str, provocation: Provocation | None, now: datetime) -> None:
        """Let the next request that meets it be provoked so, instead of any before."""
        await self._database.write_batched(_change, _Change(run_id, now, {"armed": provocation}))

    async def take(self, run_id: str, provocation: Provocation, now: datetime) -> bool:
        """Whether this request is the one to be provoked; only one ever is."""
        change = _Change(run_id, now, {"armed": None}, if_armed=provocation)
        return await self._database.write_batched(_change, change)

    async def observe(self, run_id: str, observation_id: str, observation: Observation) -> None:
        """Write down what was seen."""
        await self._database.write_batched(_observe, (run_id, observation_id, observation))

    async def observed(self, run_id: str, since_id: str) -> Mapping[str, Observation]:
        """What was seen, by identifiers not before this one, in their order."""
        return await self._database.scan(_observed, (run_id, since_id))


def _active(connection: Connection, items: Sequence[datetime]) -> list[Sequence[Run]]:
    found = connection.execute(
        select(conformance_runs).where(_runs.active_until > min(items)).order_by(_runs.id)
    )
    runs = [_to_run(row) for row in found]
    return [[run for run in runs if run.active_until > now] for now in items]


def _begin(connection: Connection, run: Run) -> bool:
    # Whoever begins another one at this moment waits for this lock; no act of the account does.
    connection.execute(
        select(accounts.c.id).where(accounts.c.id == run.account_id).with_for_update(key_share=True)
    )
    other = select(_runs.id).where(
        _runs.account_id == run.account_id, _runs.active_until > run.started_at
    )
    if connection.execute(other.limit(1)).first() is not None:
        return False
    connection.execute(
        insert(conformance_runs),
        {
            "id": run.id,
            "account_id": run.account_id,
            "started_at": run.started_at,
            "ends_at": run.ends_at,
            "active_until": run.active_until,
            "hold_ms": run.hold // _MILLISECOND,
            "armed": run.armed,
        },
    )
    return True


def _change(connection: Connection, items: Sequence[_Change]) -> list[bool]:
    changed = [False] * len(items)
    # In the order of the rows: two processes never wait for each other.
    for place in sorted(range(len(items)), key=lambda place: items[place].run_id):
        item = items[place]
        statement = update(conformance_runs).where(
            _runs.id == item.run_id, _runs.active_until > item.now
        )
        if item.if_armed is not None:
            statement = statement.where(_runs.armed == item.if_armed)
        changed[place] = connection.execute(statement.values(**item.values)).rowcount == 1
    return changed


def _observe(connection: Connection, items: Sequence[tuple[str, str, Observation]]) -> list[None]:
    connection.execute(
        insert(conformance_observations),
        [
            {"run_id": run_id, "id": id_, "seen": _encode(observation).decode()}
            for run_id, id_, observation in items
        ],
    )
    return [None] * len(items)


def _observed(connection: Connection, item: tuple[str, str]) -> Mapping[str, Observation]:
    run_id, since_id = item
    found = connection.execute(
        select(_seen.id, _seen.seen)
        .where(_seen.run_id == run_id, _seen.id >= since_id)
        .order_by(_seen.id)
    )
    return {row.id: _decode(row.seen) for row in found}


def delete_runs(connection: Connection, item: tuple[datetime, int]) -> int:
    """Delete at most `limit` runs that ended before a time, with what was seen in them."""
    before, limit = item
    old = select(_runs.id).where(_runs.active_until < before).order_by(_runs.id).limit(limit)
    ids = connection.execute(old).scalars().all()
    if ids:
        connection.execute(delete(conformance_observations).where(_seen.run_id.in_(ids)))
        connection.execute(delete(conformance_runs).where(_runs.id.in_(ids)))
    return len(ids)


def _to_run(row: Row[*tuple[Any, ...]]) -> Run:
    return Run(
        id=row.id,
        account_id=row.account_id,
        started_at=row.started_at,
        ends_at=row.ends_at,
        active_until=row.active_until,
        hold=timedelta(milliseconds=row.hold_ms),
        armed=None if row.armed is None else Provocation(row.armed),
    )
