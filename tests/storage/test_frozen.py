"""A database that does not respond: callers are answered, and nothing is claimed or lost."""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import psycopg
import pytest
from sqlalchemy import URL

from countersign.base.db import engine, schema
from countersign.base.db.database import Database, EmbeddedWorker
from countersign.base.db.engine import database_url
from countersign.base.db.workers import Outcomes, Running
from countersign.base.deadline import DEADLINE, TimeLeft
from countersign.base.errors import (
    AccountExists,
    IdempotencyInProgress,
    OutcomeUnknown,
    StorageUnavailable,
)
from countersign.core.access.account import Account, add_account, all_accounts
from countersign.core.acknowledgments.make import NewAcknowledgment
from tests.storage import items
from tests.support import postgres
from tests.support.databases import Run
from tests.support.depth import some

DURABLE = {"fsync": "off", "full_page_writes": "off"}
SECONDS = 0.4
"""How long a request waits here."""
NO_STANDBY = "no_such_standby"


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.PostgresServer]:
    """Give a PostgreSQL of these tests alone, which confirms commits."""
    with postgres.running_postgres(DURABLE) as started:
        yield started


@pytest.fixture
def url(server: postgres.PostgresServer) -> URL:
    """Give a migrated database in it."""
    made = postgres_url(postgres.fresh_database(server))
    schema.upgrade(made)
    return made


def postgres_url(configured: str) -> URL:
    return database_url(configured, Path())


@contextmanager
def without_its_standby(server: postgres.PostgresServer) -> Iterator[psycopg.Connection]:
    """Every commit waits for a standby that is not there."""
    with server.connect() as operator:
        wait_for_standby(operator, NO_STANDBY)
        until_commits_wait(server, operator)
        try:
            yield operator
        finally:
            wait_for_standby(operator, "")


def wait_for_standby(operator: psycopg.Connection, name: str) -> None:
    operator.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
    operator.execute("SELECT pg_reload_conf()")
    while operator.execute("SHOW synchronous_standby_names").fetchone() != (name,):
        pass


def until_commits_wait(server: postgres.PostgresServer, operator: psycopg.Connection) -> None:
    """The checkpointer's copy of the setting decides; it is updated after the setting."""
    with server.connect() as probe:
        number = probe.info.backend_pid
        message = b"SELECT pg_logical_emit_message(true, 'probe', '')"
        waits = False
        while not waits:
            committing = threading.Thread(target=probe.execute, args=(message,))
            committing.start()
            while committing.is_alive() and not waits:
                waits = number in waiting_commits(operator)
                committing.join(0.01)
            if waits:
                operator.execute("SELECT pg_cancel_backend(%s)", (number,))
            committing.join()


def waiting_commits(operator: psycopg.Connection) -> list[int]:
    """The processes that wait for the standby to confirm a commit."""
    found = operator.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    return [pid for (pid,) in found]


def stored(url: URL) -> set[str]:
    """The data that another connection sees."""
    with schema.connected(url, engine.Purpose.READ) as connection:
        return {account.id for account in all_accounts(connection)}


async def the_waiting_commit(operator: psycopg.Connection) -> int:
    """Wait until one waits."""
    async with asyncio.timeout(20):
        while not (found := waiting_commits(operator)):  # noqa: ASYNC110 - it can only be polled
            await asyncio.sleep(0.01)
    return found[0]


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():  # noqa: ASYNC110 - it can only be polled
            await asyncio.sleep(0.01)


async def eventually(database: Database, account: Account) -> None:
    """Write as soon as possible, as a client with a key for it does."""
    async with asyncio.timeout(30):
        while True:
            try:
                await database.write(add_account, account)
            except (StorageUnavailable, OutcomeUnknown):
                await asyncio.sleep(0.02)
            except AccountExists:
                return  # an attempt whose end was unknown
            else:
                return


# --- PostgreSQL ----------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.parametrize("act", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_commit_cancelled_while_it_waits_for_its_standby_is_not_confirmed(
    server: postgres.PostgresServer, url: URL, run: Run, act: str
) -> None:
    """PostgreSQL keeps it, with only a warning, although no other server has it."""

    async def write() -> None:
        async with Database(url) as database:
            await database.write(add_account, items.account())
            with without_its_standby(server) as operator:
                writing = asyncio.ensure_future(database.write(add_account, items.account()))
                operator.execute(
                    f"SELECT {act}(%s)".encode(), (await the_waiting_commit(operator),)
                )
                with pytest.raises(OutcomeUnknown):
                    await writing
            await database.write(add_account, items.account())

    run(write())


@pytest.mark.postgres
def test_visible_data_is_covered_only_by_a_commit_of_its_standby(
    server: postgres.PostgresServer, url: URL, run: Run
) -> None:
    """A cancelled commit can be read; a later one of the same server says whether it lasts."""

    async def write() -> None:
        account = items.account()
        async with Database(url) as database:
            with without_its_standby(server) as operator:
                writing = asyncio.ensure_future(database.write(add_account, account))
                pid = await the_waiting_commit(operator)
                operator.execute("SELECT pg_cancel_backend(%s)", (pid,))
                with pytest.raises(OutcomeUnknown):
                    await writing
                assert await database.scan(all_accounts) == [account]
                covered = asyncio.ensure_future(database.covered())
                await the_waiting_commit(operator)
                assert not covered.done()
            await covered

    run(write())


@pytest.mark.postgres
def test_callers_are_answered_while_commits_wait_and_one_session_waits_for_all_of_them(
    server: postgres.PostgresServer, url: URL, run: Run
) -> None:
    """Calls not begun are refused; otherwise sessions would pile up on the database server."""

    async def write() -> None:
        async with Database(url) as database:
            database.limit_waiting(SECONDS)
            with without_its_standby(server) as operator:
                with pytest.raises(OutcomeUnknown):
                    await database.write(add_account, items.account())
                said = Counter[str]()
                # On a busy machine the question takes too long now and then: that is said, too.
                while said["The database waits for its standby."] < 5:
                    with pytest.raises(StorageUnavailable) as refusal:
                        await database.write(add_account, items.account())
                    said[str(refusal.value)] += 1
                    await asyncio.sleep(0)
                assert len(waiting_commits(operator)) == 1
                assert await database.scan(all_accounts) == []
            account = items.account()
            await eventually(database, account)
            assert account in await database.scan(all_accounts)
            assert database.trouble is None

    run(write())


@pytest.mark.postgres
def test_a_stopped_database_keeps_no_caller_waiting(
    server: postgres.PostgresServer, url: URL, run: Run
) -> None:
    """A call that was not begun is not done later; calls after the recovery are done at once."""

    async def ask() -> None:
        owner, refused = items.account(), items.account()
        async with Database(url) as database:
            database.limit_waiting(SECONDS)
            await database.write(add_account, owner)
            assert await database.read(all_accounts) == [owner]
            server.send(signal.SIGSTOP)
            try:
                calls = [
                    database.write(add_account, refused),
                    database.read(all_accounts),
                    database.scan(all_accounts),
                    database.sequence(all_accounts),
                ]
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
            finally:
                server.send(signal.SIGCONT)
            assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 4
            later = items.account()
            await eventually(database, later)
            found = await asyncio.to_thread(stored, url)
            assert found == {owner.id, later.id}

    run(ask())


@pytest.mark.postgres
def test_a_new_leader_is_used_although_the_old_one_still_accepts_connections(
    server: postgres.PostgresServer, url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, not dead: its kernel answers for it, and no connection ever breaks."""
    monkeypatch.setitem(engine._POSTGRESQL_ARGUMENTS, "connect_timeout", 2)

    async def ask() -> None:
        before, after = items.account(), items.account()
        with postgres.running_postgres(DURABLE, standby_of=server) as standby:
            hosts = f"{server.socket_directory},{standby.socket_directory}"
            query = f"host={hosts}&port=5432,5432&target_session_attrs=read-write"
            several = postgres_url(f"postgresql://postgres@/{url.database}?{query}")
            with server.connect() as operator:
                wait_for_standby(operator, "*")
            async with Database(several) as database:
                database.limit_waiting(SECONDS)
                await database.write(add_account, before)
                assert await database.scan(all_accounts) == [before]
                server.send(signal.SIGSTOP)
                try:
                    with standby.connect() as operator:
                        wait_for_standby(operator, "")
                        operator.execute("SELECT pg_promote()")
                    await eventually(database, after)
                    async with asyncio.timeout(30):
                        found: object = None
                        while found != [before, after]:
                            with suppress(StorageUnavailable):
                                found = await database.scan(all_accounts)
                finally:
                    server.send(signal.SIGCONT)
            with server.connect() as operator:
                wait_for_standby(operator, "")

    run(ask())


@pytest.mark.postgres
def test_a_server_in_recovery_is_out_of_reach_and_no_error_of_ours(
    server: postgres.PostgresServer, url: URL, run: Run
) -> None:
    """PostgreSQL's error for the write has no state that blames the statement."""

    async def ask() -> None:
        with postgres.running_postgres(DURABLE, standby_of=server) as standby:
            query = f"host={standby.socket_directory}&port=5432"
            own = postgres_url(f"postgresql://postgres@/{url.database}?{query}")
            async with Database(own) as database:
                for write in (database.covered(), database.write(add_account, items.account())):
                    with pytest.raises(StorageUnavailable):
                        await write

    run(ask())


# --- the embedded database -----------------------------------------------------------------------


class Disk:
    """A disk that confirms nothing while it is frozen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._thawed = threading.Event()
        self._thawed.set()
        self.frozen_in = threading.Event()
        commit = EmbeddedWorker.__call__

        def waiting(worker: EmbeddedWorker, running: Running) -> Outcomes:
            if not self._thawed.is_set():
                self.frozen_in.set()
                self._thawed.wait(30)
            return commit(worker, running)

        monkeypatch.setattr(EmbeddedWorker, "__call__", waiting)

    def thaw(self) -> None:
        self._thawed.set()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self._thawed.clear()
        self.frozen_in.clear()
        try:
            yield
        finally:
            self.thaw()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Give the disk of the embedded database."""
    return Disk(monkeypatch)


def test_callers_are_answered_while_the_disk_is_frozen(
    embedded_url: URL, run: Run, disk: Disk
) -> None:
    """Data committed when the disk recovers is there once; refused data is not."""

    async def write() -> None:
        frozen, queued, refused, later = (items.account() for _ in range(4))
        async with Database(embedded_url) as database:
            database.limit_waiting(SECONDS)
            with disk.frozen():
                first = asyncio.ensure_future(database.write(add_account, frozen))
                await asyncio.to_thread(disk.frozen_in.wait)
                second = asyncio.ensure_future(database.write(add_account, queued))
                outcomes = await asyncio.gather(first, second, return_exceptions=True)
                assert [type(outcome) for outcome in outcomes] == [
                    OutcomeUnknown, StorageUnavailable
                ]  # fmt: skip
                with pytest.raises(StorageUnavailable):  # at once: nothing is queued behind it
                    await database.write(add_account, refused)
                assert database.batches()["write"][2] == 0
                assert await database.scan(all_accounts) == []
            await eventually(database, later)
            assert await database.scan(all_accounts) == [frozen, later]

    run(write())


def test_a_request_has_one_deadline_in_total(embedded_url: URL, run: Run, disk: Disk) -> None:
    """Each call reduces the time left for the next one."""

    async def request(database: Database) -> float:
        DEADLINE.set(TimeLeft(SECONDS))
        loop = asyncio.get_running_loop()
        began = loop.time()
        with disk.frozen():
            thaw = loop.call_later(SECONDS / 2, disk.thaw)
            await database.write(add_account, items.account())
            thaw.cancel()
        with disk.frozen(), pytest.raises(OutcomeUnknown):
            await database.write(add_account, items.account())
        return loop.time() - began

    async def ask() -> None:
        async with Database(embedded_url) as database:
            database.limit_waiting(SECONDS)
            # Far less than two whole waits and a half of one.
            assert await request(database) < 10 * SECONDS

    run(ask())


class Oracle:
    """Callers in trouble, and the claim of each response."""

    def __init__(self, database: Database, owner: Account, random: Random) -> None:
        self._database = database
        self._owner = owner
        self._random = random
        self.confirmed: set[str] = set()
        self.possible: set[str] = set()
        self.refused: set[str] = set()
        self.slots: list[bytes] = []

    async def with_key(self) -> None:
        """Repeat it until the answer is known."""
        entry = items.idempotency_entry(self._owner)
        self.slots.append(entry.slot)
        async with asyncio.timeout(30):
            found = None
            while found is None:
                await self._send(items.acknowledgment(self._owner, keep=entry))
                await asyncio.sleep(self._random.random() * SECONDS / 10)
                with suppress(StorageUnavailable):  # this machine has much to do
                    found = await items.kept(self._database, entry.slot)

    async def without_key(self) -> None:
        """Never repeat it; some hang up."""
        await self._send(items.acknowledgment(self._owner), self._random.choice([30, SECONDS / 8]))

    async def _send(self, new: NewAcknowledgment, seconds: float = 30) -> None:
        try:
            async with asyncio.timeout(seconds):
                await items.add(self._database, new)
        except (OutcomeUnknown, TimeoutError):
            self.possible.add(new.id)
        except (StorageUnavailable, IdempotencyInProgress):
            self.refused.add(new.id)
        else:
            self.confirmed.add(new.id)

    async def judge(self) -> None:
        """Compare with the stored data."""
        found = [found.ack_id for found in await items.found(self._database, self._owner)]
        assert len(found) == len(set(found))
        assert self.confirmed <= set(found) <= self.confirmed | self.possible
        for slot in self.slots:
            assert await items.kept(self._database, slot) is not None


@pytest.mark.parametrize("seed", some(range(20)))
def test_after_any_troubles_all_confirmed_data_is_there_once(
    embedded_url: URL, run: Run, disk: Disk, seed: int
) -> None:
    """Refused data is not there, and each key has had exactly one effect."""
    random = Random(seed)

    async def trouble() -> None:
        for _ in range(3):
            await asyncio.sleep(random.random() * SECONDS / 4)
            with disk.frozen():
                await asyncio.sleep(random.random() * SECONDS)

    async def ask() -> None:
        owner = items.account()
        async with Database(embedded_url) as database:
            await database.write(add_account, owner)
            database.limit_waiting(SECONDS / 4)
            oracle = Oracle(database, owner, random)
            async with asyncio.TaskGroup() as group:
                group.create_task(trouble())
                for _ in range(12):
                    await asyncio.sleep(random.random() * SECONDS / 8)
                    group.create_task(random.choice([oracle.with_key, oracle.without_key])())
            await eventually(database, items.account())
            database.limit_waiting(30)
            await oracle.judge()

    run(ask())
