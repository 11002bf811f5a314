"""Storage of runs, on each engine: one at a time for an account, and not forever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import URL, Connection, text

from countersign.base.db.database import Database
from countersign.base.errors import StorageUnavailable
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import from_ns, timed_id
from countersign.core.access.account import Account, add_account
from countersign.core.access.secrets import DeploymentSecret
from countersign_conformance.kit import delete_old_runs
from countersign_conformance.model import KEPT, OBSERVATION, RUN, Observation, Run
from countersign_conformance.store import RunStore
from countersign_conformance.watch import WatchVendors
from tests.storage import items
from tests.support.databases import Run as RunLoop
from tests.support.pgbouncer import PgBouncer
from tests.unit.support import CountedEntropy, HandClock


@pytest.fixture
def url(own_url: URL, engine_name: str, request: pytest.FixtureRequest) -> URL:
    """The URL of a database that no other test uses: a store adds its tables to it."""
    if engine_name != "pooled":
        return own_url
    pooler: PgBouncer = request.getfixturevalue("pgbouncer")
    return pooler.url(own_url)


def new_run(account_id: str, clock: HandClock) -> Run:
    now = from_ns(clock.time_ns())
    return Run(
        id=timed_id(RUN, clock.time_ns(), items.some_bytes()[:8]),
        account_id=account_id,
        started_at=now,
        ends_at=now + timedelta(minutes=10),
        active_until=now + timedelta(minutes=1),
        hold=timedelta(seconds=30),
    )


def empty_store(database: Database, run: RunLoop) -> RunStore:
    """Give a store without runs: the fixtures of storage know nothing of its tables."""
    store = RunStore(database)
    run(store.delete(datetime(9999, 1, 1, tzinfo=UTC), 1000))
    return store


def two_accounts(database: Database, run: RunLoop) -> tuple[Account, Account]:
    owner, other = items.account(), items.account()
    for account in (owner, other):
        run(database.write(add_account, account))
    return owner, other


def numbers(connection: Connection, _: None) -> tuple[int, int]:
    runs, seen = (
        connection.execute(text(f"SELECT count(*) FROM conformance_{table}")).scalar_one()  # noqa: S608 - our names
        for table in ("runs", "observations")
    )
    return runs, seen


def test_an_account_has_one_run_at_a_time(database: Database, run: RunLoop) -> None:
    """Another account has its own; when one has ended, the next can begin."""
    store, clock = empty_store(database, run), HandClock()
    owner, other = two_accounts(database, run)
    first = new_run(owner.id, clock)
    assert run(store.begin(first))
    assert not run(store.begin(new_run(owner.id, clock)))
    assert run(store.begin(new_run(other.id, clock)))
    now = first.started_at
    assert {one.account_id for one in run(store.active(now))} == {owner.id, other.id}
    assert run(store.prolong(first.id, now, now))
    assert not run(store.prolong(first.id, now + timedelta(hours=1), now))
    assert run(store.begin(new_run(owner.id, clock)))


def test_a_run_and_its_observations_are_deleted_after_a_week(
    database: Database,
    run: RunLoop,
) -> None:
    """The whole run, and nothing of a younger one."""
    store, clock, account = empty_store(database, run), HandClock(), items.account()
    run(database.write(add_account, account))
    for _ in range(7):
        old = new_run(account.id, clock)
        assert run(store.begin(old))
        for number in range(3):
            id_ = timed_id(OBSERVATION, clock.time_ns() + number, items.some_bytes()[:8])
            one = Observation(operation="getNotice", at=old.started_at, status=200)
            run(store.observe(old.id, id_, one))
        clock.advance(3600)
    run(delete_old_runs(store, clock))
    assert run(database.scan(numbers, None)) == (7, 21)
    # The youngest run, last heard an hour ago but a minute, is kept for an hour more.
    clock.advance(KEPT.total_seconds() - 2 * 3600 + 61)
    run(delete_old_runs(store, clock))
    assert run(database.scan(numbers, None)) == (1, 3)


def test_runs_that_cannot_be_read_are_those_known_before(
    database: Database, run: RunLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests themselves report the trouble; when it has ended, new runs are seen."""
    store, clock = empty_store(database, run), HandClock()
    owner, other = two_accounts(database, run)
    first = new_run(owner.id, clock)
    assert run(store.begin(first))
    watch = WatchVendors(store, DeploymentSecret(bytes(32)), clock, CountedEntropy())
    assert run(watch.run_of(owner.id)) == first
    assert run(store.begin(new_run(other.id, clock)))

    async def fail(_: datetime) -> list[Run]:
        raise StorageUnavailable

    with monkeypatch.context() as trouble:
        trouble.setattr(store, "active", fail)
        clock.advance(STALENESS_SECONDS)
        assert run(watch.run_of(owner.id)) == first
        assert run(watch.run_of(other.id)) is None
    clock.advance(STALENESS_SECONDS)
    assert run(watch.run_of(other.id))
