"""Storage errors are named, for callers and for operators."""

import asyncio
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import URL, Connection, Engine, PoolProxiedConnection, event, make_url, text
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from countersign.base.config import load_settings
from countersign.base.db import workers, writes
from countersign.base.db.database import Database
from countersign.base.db.engine import disk_full
from countersign.base.db.workers import Outcomes, QueuedCall, Running
from countersign.base.db.writes import DONE, FAILED, SINCE, Writes
from countersign.base.errors import (
    Blocked,
    CountersignError,
    Draining,
    NoticeNotFound,
    OutcomeUnknown,
    Overloaded,
    StorageUnavailable,
)
from countersign.base.loops import Throttle
from countersign.core.access.account import add_account, all_accounts
from countersign.operate import room
from countersign.operate.bootstrap import open_deployment
from countersign.operate.reserve import RESERVE_BYTES, Reserve, lent_space
from countersign.operate.room import HeadsCheck
from countersign.operate.routes import get_readiness
from tests.http.backstage import another_deployment
from tests.storage import items
from tests.storage.busy import other_writer
from tests.support import postgres
from tests.support.databases import Run
from tests.unit.support import HandClock


class Usage(NamedTuple):
    """Free disk space."""

    free: int


class Heads:
    """Where the last published checkpoints are kept: always at hand."""

    def check(self) -> None:
        """Nothing is wrong."""


@pytest.fixture
def url(embedded_url: URL) -> URL:
    """Give an embedded database."""
    return embedded_url


def said(database: Database, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What readiness says when nothing changes for a while; None: ready."""
    with monkeypatch.context() as later:
        later.setattr(writes, "PATIENCE_SECONDS", 0.0)
        trouble = database.trouble
    return None if trouble is None else trouble.message


async def tried(database: Database) -> None:
    """A server has tried to write."""
    cells = database._writes.cells
    cells[DONE], cells[FAILED] = min(cells[DONE], 1.0), 0.0
    await database.try_writing()


def test_a_full_disk_is_named_to_callers(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readiness names it, too, until an act succeeds."""

    async def write() -> None:
        async with Database(url) as database:

            def limit(connection: object, _: object) -> None:
                connection.execute(f"PRAGMA max_page_count={pages}")  # type: ignore[attr-defined]

            pages = await database.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar())
            pages += 16
            event.listen(database._write.worker.engine, "connect", limit)
            await tried(database)
            assert said(database, monkeypatch) is None
            with pytest.raises(StorageUnavailable, match="The disk of the service is full"):
                await database.write(items.fill, 1_000_000)
            # An act was just tried: a smaller write, which would fit, proves nothing.
            await database.try_writing()
            assert said(database, monkeypatch) == "The disk of the service is full."
            pages += 1000
            database._write.worker.engine.dispose()
            await database.write(items.fill, 1_000_000)
            assert said(database, monkeypatch) is None

    run(write())


def test_nothing_is_accepted_while_the_disk_is_full(
    url: URL, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reserve is deleted for the last writes, and made again when there is space."""
    free, kept = [10 * RESERVE_BYTES], tmp_path / "reserve"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free[0]))

    async def write() -> None:
        async with Database(url) as database:
            reserve = Reserve(database, tmp_path)
            await reserve.look()
            assert kept.stat().st_size == RESERVE_BYTES
            await database.write(add_account, items.account())
            free[0] = 1000
            await reserve.look()
            assert not kept.exists()
            # Sealing succeeds for longer; acts are refused all the time.
            await database.sequence(all_accounts)
            assert database.trouble is not None
            assert database.trouble.message == "The disk of the service is full."
            for _ in range(2):
                with pytest.raises(StorageUnavailable, match="The disk of the service is full"):
                    await database.write(add_account, items.account())
                assert len(await database.read(all_accounts)) == 1
                free[0] = 2 * RESERVE_BYTES  # not enough yet
                await reserve.look()
            await database.sequence(add_account, items.account())
            free[0] = 10 * RESERVE_BYTES
            await reserve.look()
            await database.write(add_account, items.account())
            assert database.trouble is None
            # An act that did not fit says so before the disk does.
            database._writes.fail(disk_full(), time.monotonic())
            await reserve.look()
            assert not kept.exists()
            await reserve.look()
            assert kept.exists()

    with lent_space(tmp_path):
        run(write())
        assert kept.exists()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("reserve")]


def test_an_ending_worker_leaves_the_reserve_to_the_others(tmp_path: Path) -> None:
    """They would take its absence for a full disk. A killed process's half-made one is deleted."""
    left = tmp_path / "reserve.4711"
    left.touch()
    done = subprocess.run(
        [sys.executable, "-c", SERVER_WITH_A_WORKER, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n"
    assert not list(tmp_path.iterdir())


SERVER_WITH_A_WORKER = """
import os, sys
from pathlib import Path
from countersign.operate import room
from countersign.operate.reserve import lent_space
place = Path(sys.argv[1])
with lent_space(place):
    (place / "reserve").touch()
    worker = os.fork()
    if worker:
        os.waitpid(worker, 0)
        print([file.name for file in place.iterdir()] == ["reserve"])
"""


def test_undetected_damage_is_found(url: URL, run: Run) -> None:
    """After a stop without warning the server looks; from then on nothing is accepted or sealed."""
    path = Path(url.database or "")

    async def prepare() -> None:
        async with Database(url) as database:
            for _ in range(50):
                await database.write(add_account, items.account())
            await database.look_for_damage()
            assert database.damage is None

    async def ask() -> None:
        async with Database(url) as database:
            with capture_logs() as lines:
                await database.look_for_damage()
            (line,) = (line for line in lines if line["event"] == "database_damaged")
            assert "restore" in line["what_to_do"]
            for act in (database.write, database.sequence):
                with pytest.raises(StorageUnavailable, match="damaged"):
                    await act(lambda _: None)  # which meets no damage itself

    run(prepare())
    whole = path.read_bytes()
    path.write_bytes(whole[:-4096] + b"\xff" * 4096)
    run(ask())


def test_a_damaged_database_is_not_ready(url: URL, run: Run) -> None:
    """It is named as damaged, with what to do, until the server is started again."""
    path = Path(url.database or "")

    async def prepare() -> None:
        async with Database(url) as database:
            for _ in range(50):
                await database.write(add_account, items.account())
            assert database.trouble is None

    async def ask() -> None:
        async with Database(url) as database:
            with capture_logs() as lines, pytest.raises(CountersignError) as refused:
                await database.scan(all_accounts)
            assert "damaged" in refused.value.message
            (line,) = (line for line in lines if line["event"] == "database_damaged")
            assert "restore" in line["what_to_do"]
            assert "damaged" in str(database.trouble)

    run(prepare())
    whole = path.read_bytes()
    # All but the first page, which identifies the file.
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    run(ask())


@pytest.mark.parametrize("neighbours", [0, 1], ids=["alone", "with a refused neighbour"])
def test_a_commit_that_the_disk_does_not_confirm_is_an_unknown_outcome(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch, neighbours: int
) -> None:
    """Also of a call that gets a transaction of its own, since another one spoilt the batch."""

    def refuse(_: Connection) -> None:
        raise NoticeNotFound

    async def write() -> None:
        async with Database(url) as database:
            dialect = database._write.worker.engine.dialect
            commit = dialect.do_commit

            def unconfirmed(connection: PoolProxiedConnection) -> None:
                commit(connection)
                error = dialect.loaded_dbapi.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"  # type: ignore[attr-defined]
                raise error

            monkeypatch.setattr(dialect, "do_commit", unconfirmed)
            stored = items.account()
            calls = [database.write(add_account, stored)]
            calls += [database.write(refuse) for _ in range(neighbours)]
            outcome, *refused = await asyncio.gather(*calls, return_exceptions=True)
            assert isinstance(outcome, OutcomeUnknown)
            assert [type(one) for one in refused] == [NoticeNotFound] * neighbours
            assert await database.scan(all_accounts) == [stored]

    run(write())


def test_a_lock_of_another_program_is_found_without_callers(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server tries by itself; it is ready again as soon as it can write."""

    async def ask() -> None:
        async with Database(url) as database:
            await tried(database)
            with other_writer(url):
                trying = asyncio.create_task(tried(database))
                while not database._writes.cells[FAILED]:  # noqa: ASYNC110 - it can only be polled
                    await asyncio.sleep(0.001)
                assert database.trouble is None  # it may be one of our own commands
                assert said(database, monkeypatch) == Blocked().message
            await trying
            assert said(database, monkeypatch) is None

    run(ask())


def test_a_caller_who_gets_no_lock_learns_whether_others_do(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another process of the server writes, there is too much to do."""
    monkeypatch.setattr("countersign.base.db.database.BUSY_TIMEOUT_SECONDS", 0.05)
    shared = Writes()

    async def write() -> None:
        async with Database(url, writes=shared) as database:
            with other_writer(url):
                with pytest.raises(Blocked):
                    await database.write(add_account, items.account())
                shared.cells[DONE] = time.monotonic()
                with pytest.raises(Overloaded):
                    await database.write(add_account, items.account())

    run(write())


def test_who_has_just_written_is_not_asked_to_write(url: URL, run: Run) -> None:
    async def write() -> None:
        async with Database(url) as database:
            await database.write(add_account, items.account())
            before = database.batches()["write"]
            await database.try_writing()
            assert database.batches()["write"] == before
            await tried(database)
            assert database.batches()["write"] != before

    run(write())


def test_a_hanging_place_for_heads_holds_one_thread(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often readiness is asked, others find a thread; later the place is checked again."""
    monkeypatch.setattr(room, "_PATIENCE_SECONDS", 0.05)
    hung, looks = threading.Event(), list[int]()

    class Hung(Heads):
        def check(self) -> None:
            looks.append(1)
            hung.wait(30)

    async def ask() -> None:
        clock = HandClock()
        check = HeadsCheck(Hung(), clock)  # type: ignore[arg-type]
        for _ in range(5):
            clock.advance(2)
            assert not await check()
        assert len(looks) == 1
        hung.set()
        while not await check():
            clock.advance(2)
        assert len(looks) <= 2

    run(ask())


@pytest.mark.parametrize("begins", ["overdue writes", "draining"])
def test_readiness_knows_of_trouble_that_begins_while_it_reads(
    begins: str, run: Run, tmp_path: Path
) -> None:
    """It reads for up to two seconds: an answer about the time before them would be out of date."""

    async def ask() -> None:
        async with open_deployment(
            load_settings(another_deployment(tmp_path / "data").environment)
        ) as made:
            operations = made.operations
            assert (await get_readiness(operations)).status == "ready"

            async def keeps_heads() -> bool:
                if begins == "draining":
                    operations.draining.set()
                else:
                    operations.database._writes.cells[SINCE] = 1.0
                    operations.database._writes.cells[DONE] = 1.0
                return True

            slow = replace(operations, keeps_heads=keeps_heads)  # type: ignore[arg-type]
            with pytest.raises(Draining if begins == "draining" else StorageUnavailable):
                await get_readiness(slow)

    run(ask())


def test_looking_for_damage_leaves_nothing_open(url: URL, run: Run) -> None:
    """Its connections are closed at once."""
    ended: list[Engine] = []
    note = ended.append  # as it is listened with

    async def look() -> None:
        async with Database(url) as database:
            await database.look_for_damage()
            assert len(ended) == 1

    event.listen(Engine, "engine_disposed", note)
    try:
        run(look())
    finally:
        event.remove(Engine, "engine_disposed", note)


@pytest.mark.parametrize("neighbours", [0, 1], ids=["alone", "with a refused neighbour"])
def test_a_committed_call_is_not_repeated(url: URL, run: Run, neighbours: int) -> None:
    """Whatever goes wrong when the commit is noted: it lasts, and its callers get its outcome."""
    done = []

    def act(connection: Connection) -> None:
        add_account(connection, items.account())
        done.append(connection)

    def refuse(_: Connection) -> None:
        raise NoticeNotFound

    def fail() -> None:
        raise NoticeNotFound  # also an error that would have each of the calls repeated alone

    async def write() -> None:
        async with Database(url) as database:
            database.on_end(fail, lambda: None)
            calls = [database.write(act)] + [database.write(refuse) for _ in range(neighbours)]
            with capture_logs() as lines:
                outcome, *_ = await asyncio.gather(*calls, return_exceptions=True)
            assert outcome is None
            assert {line["event"] for line in lines} == {"unexpected_error"}
            assert len(await database.scan(all_accounts)) == 1

    run(write())
    assert len(done) == 1 + neighbours  # once more apart from the neighbour: that was rolled back


def test_errors_of_the_database_fill_no_log(url: URL, run: Run) -> None:
    """One line a second for each kind: the disk may be full."""

    def fail(connection: Connection) -> None:
        connection.execute(text("SELEKT 1"))

    async def write() -> None:
        async with Database(url) as database:
            with capture_logs() as lines:
                calls = [database.write(fail) for _ in range(40)]
                await asyncio.gather(*calls, return_exceptions=True)
            assert len([line for line in lines if line["event"] == "database_error"]) <= 2

    run(write())


def test_an_error_of_the_database_names_its_lane_and_host(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a failover one has to know the host, and the waiting lane."""
    monkeypatch.setattr(workers, "_throttle", Throttle(time.monotonic))

    def fail(connection: Connection) -> None:
        connection.execute(text("SELEKT 1"))

    async def write() -> None:
        async with Database(url) as database:
            with capture_logs() as lines:
                await asyncio.gather(database.scan(fail), return_exceptions=True)
            (line,) = [line for line in lines if line["event"] == "database_error"]
            assert line["lane"] == "scan"
            host = url.query.get("host")
            assert line["host"] == (None if host is None else f"{host}:{url.query['port']}")

    run(write())


@pytest.mark.postgres
def test_a_write_on_an_idle_connection_is_repeated_on_another(
    postgres_server: postgres.PostgresServer,
    postgres_template: URL,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pool tested it a moment ago, and the server can be demoted since then."""
    url = make_url(postgres.fresh_database(postgres_server, template=postgres_template.database))
    do, fails = workers.WritingWorker._do, list[bool]()

    def failing(
        self: workers.WritingWorker,
        connection: Connection,
        running: Running,
        calls: Sequence[QueuedCall],
    ) -> Outcomes:
        if fails:
            fails.pop()
            raise OperationalError("INSERT", None, psycopg.errors.AdminShutdown())
        return do(self, connection, running, calls)

    async def ask() -> None:
        async with Database(url) as database:
            before, after = items.account(), items.account()
            await database.write(add_account, before)
            fails.append(True)
            await database.write(add_account, after)
            assert await database.scan(all_accounts) == [before, after]

    monkeypatch.setattr(workers, "_UNTESTED_SECONDS", -1)
    monkeypatch.setattr(workers.WritingWorker, "_do", failing)
    run(ask())
    assert fails == []
