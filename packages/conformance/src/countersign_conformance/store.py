"""The tables of conformance runs and observations, which the first run makes in the database.

Runs change in transactions apart from vendors' acts, so that no act waits for a run. Observations
are only inserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from countersign.base.db.database import Database
from countersign.base.db.tables import Instant, accounts
from countersign_conformance.model import Observation, Provocation, Run

_metadata: Final = MetaData()
_runs_table: Final = Table(
    "conformance_runs",
    _metadata,
    Column("id", String(40), primary_key=True),
    Column("account_id", String(40), nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ends_at", Instant, nullable=False),
    Column("active_until", Instant, nullable=False),
    Column("hold_ms", Integer, nullable=False),
    Column("armed", String(30)),
    Index("ix_conformance_runs_active_until", "active_until"),
    Index("ix_conformance_runs_account_id_active_until", "account_id", "active_until"),
)
_observations_table: Final = Table(
    "conformance_observations",
    _metadata,
    Column("run_id", ForeignKey(_runs_table.c.id), primary_key=True),
    Column("id", String(40), primary_key=True),
    Column("seen", Text, nullable=False),
)
_RIGHTS: Final = {
    _runs_table.name: "SELECT, UPDATE, DELETE",
    _observations_table.name: "SELECT, INSERT, DELETE",
}
"""Privileges of servers that do not own the tables."""
_SERVING_ROLES: Final = text(
    "SELECT DISTINCT grantee FROM information_schema.role_table_grants"
    " WHERE table_schema = current_schema() AND table_name = 'idempotency_keys'"
    " AND privilege_type = 'INSERT' AND grantee <> current_user"
)
_MAKING_LOCK: Final = 0x636F6E666F726D
"""Of PostgreSQL, for the process that makes the tables: "conform" in ASCII."""

_MILLISECOND: Final = timedelta(milliseconds=1)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Observation).decode
_runs: Final = _runs_table.c
_seen: Final = _observations_table.c


class _Change(NamedTuple):
    """A change of a run that has not ended; `if_armed`: only if it is armed with that."""

    run_id: str
    now: datetime
    values: Mapping[str, object]
    if_armed: Provocation | None = None


class RunStore:
    """Runs and observations in the database of the service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def active(self, now: datetime) -> Sequence[Run]:
        """The runs of all accounts that have not ended."""
        return await self._database.read_batched(_active, now)

    async def begin(self, run: Run) -> bool:
        """Begin a run, and make the tables before the first one. False: the account has a run.

        Raises:
            DatabasePermissionDenied: the role of this process does not own the tables.
        """
        await self._database.sequence(_make_tables, None)
        return await self._database.sequence(_begin, run)

    async def prolong(self, run_id: str, until: datetime, now: datetime) -> bool:
        """Let a run continue until then; `now` ends it. False: it had ended before."""
        return await self._database.write_batched(
            _change, _Change(run_id, now, {"active_until": until})
        )

    async def arm(self, run_id: str, provocation: Provocation | None, now: datetime) -> None:
        """Provoke the next request of the matching operation; replaces an earlier provocation."""
        await self._database.write_batched(_change, _Change(run_id, now, {"armed": provocation}))

    async def take(self, run_id: str, provocation: Provocation, now: datetime) -> bool:
        """Whether this request is the one to be provoked; only one ever is."""
        change = _Change(run_id, now, {"armed": None}, if_armed=provocation)
        return await self._database.write_batched(_change, change)

    async def observe(self, run_id: str, observation_id: str, observation: Observation) -> None:
        """Store an observation."""
        await self._database.write_batched(_observe, (run_id, observation_id, observation))

    async def observed(self, run_id: str, since_id: str) -> Mapping[str, Observation]:
        """Observations by id, in order, from this id on."""
        return await self._database.scan(_observed, (run_id, since_id))

    async def delete(self, ended_before: datetime, limit: int) -> int:
        """Delete at most `limit` runs that ended before then; returns how many."""
        return await self._database.write(_delete, (ended_before, limit))


def _exist(connection: Connection) -> bool:
    # The table with the foreign key is made last.
    return inspect(connection).has_table(_observations_table.name)


def _make_tables(connection: Connection, _: None) -> None:
    on_postgresql = connection.dialect.name == "postgresql"
    if on_postgresql:
        connection.execute(select(func.pg_advisory_xact_lock(_MAKING_LOCK)))
    _metadata.create_all(connection)
    if on_postgresql:
        _grant(connection)


def _grant(connection: Connection) -> None:
    """Give the roles of servers their rights: `database grants` knows nothing of these tables."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    for role in connection.execute(_SERVING_ROLES).scalars().all():
        for table, rights in _RIGHTS.items():
            connection.execute(text(f"GRANT {rights} ON {table} TO {quote(role)}"))


def _active(connection: Connection, items: Sequence[datetime]) -> list[Sequence[Run]]:
    if not _exist(connection):
        return [[] for _ in items]
    found = connection.execute(
        select(_runs_table).where(_runs.active_until > min(items)).order_by(_runs.id)
    )
    runs = [_to_run(row) for row in found]
    return [[run for run in runs if run.active_until > now] for now in items]


def _begin(connection: Connection, run: Run) -> bool:
    # Another run of the account would wait for this lock; no act of the account does.
    connection.execute(
        select(accounts.c.id).where(accounts.c.id == run.account_id).with_for_update(key_share=True)
    )
    other = select(_runs.id).where(
        _runs.account_id == run.account_id, _runs.active_until > run.started_at
    )
    if connection.execute(other.limit(1)).first() is not None:
        return False
    connection.execute(
        insert(_runs_table),
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
    # In the order of the rows, so that no deadlock is possible.
    for place in sorted(range(len(items)), key=lambda place: items[place].run_id):
        item = items[place]
        statement = update(_runs_table).where(
            _runs.id == item.run_id, _runs.active_until > item.now
        )
        if item.if_armed is not None:
            statement = statement.where(_runs.armed == item.if_armed)
        changed[place] = connection.execute(statement.values(**item.values)).rowcount == 1
    return changed


def _observe(connection: Connection, items: Sequence[tuple[str, str, Observation]]) -> list[None]:
    connection.execute(
        insert(_observations_table),
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


def _delete(connection: Connection, item: tuple[datetime, int]) -> int:
    if not _exist(connection):
        return 0
    before, limit = item
    old = select(_runs.id).where(_runs.active_until < before).order_by(_runs.id).limit(limit)
    ids = connection.execute(old).scalars().all()
    if ids:
        connection.execute(delete(_observations_table).where(_seen.run_id.in_(ids)))
        connection.execute(delete(_runs_table).where(_runs.id.in_(ids)))
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
