"""Catching up: what waits is sealed in slices, and acts have their turn between them."""

from __future__ import annotations

import asyncio
from itertools import repeat, starmap
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, text

from countersign.base.db.tables import log_pending
from countersign.base.values import Mode
from countersign.core.log import sequencer
from countersign.core.log.sequencer import BATCH_MAX, BATCH_MIN, SLICE_SECONDS
from tests.http.backstage import another_deployment
from tests.sealing.acts import NOTICE
from tests.sealing.inside import acknowledge_inside, opened
from tests.support.postgres import PostgresServer
from tests.support.service import Deployment

SLICES = 10
READ = text(
    "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
    " WHERE relname = :table"
)
CHECKS = text(
    "INSERT INTO records (id, account_id, mode, type, at, digest, body) SELECT 'ver_' || n,"
    " :account, 'test', 'verification', 0, 'x', 'x' FROM generate_series(1, 1000) AS n"
)
WAIT = text(
    "INSERT INTO log_pending (record_id, mode, digest) SELECT id, mode, digest FROM records"
)
LEARN = text("ANALYZE records, log_entries, log_pending")


def queue(connection: Connection) -> None:
    """Queue records for many slices, as after a long suspension."""
    rows = [
        {"record_id": f"ack_{n:026d}", "mode": "test", "digest": n.to_bytes(32)}
        for n in range(SLICES * BATCH_MIN)
    ]
    connection.execute(insert(log_pending), rows)


def waiting(connection: Connection) -> int:
    count = select(func.count()).where(log_pending.c.mode == Mode.TEST)
    return connection.execute(count).scalar_one()


@pytest.mark.both_engines
def test_acts_are_done_between_the_slices_of_catching_up(
    own: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much waits, an acknowledgment waits for one slice; the metrics show the progress."""
    account = own.account("vendor")

    async def act() -> None:
        async with opened(own) as service:
            seal, database = service.log.seal, service.database
            await database.write(queue)
            queued = await database.read(waiting)
            monkeypatch.setattr(sequencer, "_fitting", lambda *_: BATCH_MIN)
            left: list[int] = []
            shown: list[int] = []

            async def pause() -> None:
                await acknowledge_inside(service, account, NOTICE, Mode.TEST)
                left.append(await database.read(waiting))
                shown.append(seal.gauges[Mode.TEST][1])

            monkeypatch.setattr(seal, "_pause", pause)
            await seal._seal()
            assert len(left) >= SLICES
            assert [number > 0 for number in left[: SLICES - 1]] == [True] * (SLICES - 1)
            assert shown[:SLICES] == [queued - BATCH_MIN * n for n in range(1, SLICES + 1)]
            assert await database.read(waiting) == 0
            assert seal.suspended == {}

    asyncio.run(act())


@pytest.mark.postgres
def test_a_slice_reads_what_it_seals_whatever_the_planner_has_learned(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """PostgreSQL last analysed when the queue was empty and no acknowledgment was there yet."""
    own = another_deployment(tmp_path / "data", postgres_server)
    account = own.account("vendor")

    def read_of(connection: Connection) -> list[int]:
        tables = "records", "log_pending"
        return [connection.execute(READ, {"table": table}).scalar_one() for table in tables]

    def fill(connection: Connection) -> None:
        connection.execute(CHECKS, {"account": account})
        connection.execute(WAIT)

    async def act() -> None:
        async with opened(own) as service:
            database, sequencer = service.database, service.log.sequencer

            def seal(connection: Connection) -> tuple[int, ...]:
                connection.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
                sequencer.batch = BATCH_MIN
                before = read_of(connection)
                sealed = sequencer.seal_queue(connection, Mode.TEST)
                after = read_of(connection)
                return sealed, *(now - then for now, then in zip(after, before, strict=True))

            await database.write(fill)
            await service.log.seal.settle()
            await database.write(lambda connection: connection.execute(LEARN))
            for _ in range(SLICES):
                some = repeat((service, account, NOTICE, Mode.TEST), BATCH_MIN)
                await asyncio.gather(*starmap(acknowledge_inside, some))
            queued = await database.read(waiting)
            slices = [await database.sequence(seal) for _ in range(SLICES)]
            assert [sealed for sealed, *_ in slices] == [BATCH_MIN] * SLICES
            assert max(records for _, records, _ in slices) < 2 * BATCH_MIN
            # A queue this small may be read as it stands.
            assert max(queue_read for *_, queue_read in slices) <= 2 * queued

    asyncio.run(act())


@pytest.mark.parametrize(
    ("seconds", "fit"),
    [
        (SLICE_SECONDS, 1_000),
        (SLICE_SECONDS * 4, 250),
        (SLICE_SECONDS / 1000, 2_000),
        (SLICE_SECONDS * 1000, BATCH_MIN),
    ],
)
def test_a_slice_is_as_large_as_its_time_allows(seconds: float, fit: int) -> None:
    """A slow machine takes fewer records at a time; from one slice to the next it is twice."""
    assert sequencer._fitting(1_000, seconds, SLICE_SECONDS) == fit
    assert sequencer._fitting(BATCH_MAX, seconds, SLICE_SECONDS) <= BATCH_MAX
