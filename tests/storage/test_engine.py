"""How the engines are opened, what becomes of their errors, and several writers at once."""

import asyncio
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import URL, Connection, Engine, bindparam, event, func, select, text
from sqlalchemy.exc import OperationalError

from countersign.base.config import load_settings
from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import (
    SQLITE_FILE,
    Purpose,
    database_url,
    open_engine,
    sqlite_module,
    translate,
)
from countersign.base.db.tables import records, verifications
from countersign.base.errors import (
    Blocked,
    CountersignError,
    EvidenceDamaged,
    IdempotencyInProgress,
    InternalError,
    InvalidConfiguration,
    NoticeNotFound,
    NotInitialised,
    Overloaded,
    StorageUnavailable,
    UnsupportedSqlite,
)
from countersign.base.values import Mode
from countersign.core.access.account import add_account, all_accounts, read_account
from countersign.operate.bootstrap import initialise, open_deployment
from countersign_evidence.errors import EvidenceError
from tests.storage import items
from tests.storage.busy import other_writer
from tests.support.databases import Run, on_postgres, on_sqlite


def pragmas(connection: Connection, names: Sequence[str]) -> dict[str, object]:
    return {
        name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one_or_none() for name in names
    }


def is_mapped(file: Path) -> bool:
    """Whether this process maps a file; False where the system does not tell."""
    maps = Path("/proc/self/maps")
    return maps.exists() and f"{file}\n" in maps.read_text()


@pytest.mark.one_engine
def test_a_look_sees_what_was_written_since_the_look_before(tmp_path: Path) -> None:
    """Also where no file of a write-ahead log was there at the first look."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)

    def looked() -> list[str]:
        with schema.connected(url, Purpose.LOOK) as connection:
            return [row.name for row in all_accounts(connection)]

    assert not (tmp_path / f"{SQLITE_FILE}-wal").exists()
    assert looked() == []
    account = items.account()
    with schema.connected(url, Purpose.WRITE) as connection:
        with connection.begin():
            add_account(connection, account)
        assert (tmp_path / f"{SQLITE_FILE}-wal").exists()
        assert looked() == [account.name]
    assert looked() == [account.name]


# --- opening -------------------------------------------------------------------------------------


@on_sqlite
def test_the_connections_of_a_deployment_are_durable_and_strict(
    engine_name: str, run: Run, tmp_path: Path
) -> None:
    settings = load_settings({"COUNTERSIGN_DATA_DIR": str(tmp_path)})
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "recursive_triggers": 1,
    }

    async def look() -> None:
        await initialise(settings)
        async with open_deployment(settings) as deployment:
            database = deployment.database
            for ask in (database.write, database.read, database.scan):
                assert await ask(pragmas, list(wanted)) == wanted
            assert await database.read(pragmas, ["query_only"]) == {"query_only": 1}
            assert await database.scan(pragmas, ["query_only"]) == {"query_only": 1}

    run(look())


@on_sqlite
def test_a_server_keeps_64_mb_of_a_database_in_memory(
    engine_name: str, run: Run, tmp_path: Path
) -> None:
    """All its connections together; the file is not mapped, which would count pages again."""
    settings = load_settings({"COUNTERSIGN_DATA_DIR": str(tmp_path)})

    async def look() -> None:
        await initialise(settings)
        async with open_deployment(settings) as deployment:
            database = deployment.database
            asks = (database.write, database.read, database.scan)
            found = [await ask(pragmas, ["cache_size", "mmap_size"]) for ask in asks]
            assert sum(-int(str(one["cache_size"])) for one in found) <= 65536  # in KiB
            assert {one["mmap_size"] for one in found} <= {0, None}
            assert not is_mapped(tmp_path / SQLITE_FILE)

    run(look())


@pytest.mark.parametrize("others", [None, "too old"])
def test_a_too_old_sqlite_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, others: str | None
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    # None in sys.modules: the import fails, as if the package were not installed.
    for name in ("pysqlite3", "sqlcipher3"):
        monkeypatch.setitem(sys.modules, name, sqlite3 if others else None)
    with pytest.raises(UnsupportedSqlite) as refusal:
        schema.upgrade(database_url(None, tmp_path))
    for word in ("3.51.3", "pysqlite3", "sqlcipher3", "COUNTERSIGN_DATABASE_URL"):
        assert word in refusal.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_sqlite_that_is_new_enough_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    assert sqlite_module() is sqlite3


def test_the_sqlite_in_use_is_new_enough() -> None:
    assert sqlite_module().sqlite_version_info >= (3, 51, 3)


def test_the_module_of_machines_without_a_wheel_of_pysqlite3_works_on_the_same_files(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    """Without a key `sqlcipher3` writes plain SQLite files, and it names the errors alike."""
    monkeypatch.setattr("countersign.base.db.engine.BUSY_TIMEOUT_SECONDS", 0.05)
    settings = load_settings({"COUNTERSIGN_DATA_DIR": str(tmp_path)})
    run(initialise(settings))
    for name in ("sqlite3", "pysqlite3"):
        monkeypatch.setitem(sys.modules, name, None)
    assert sqlite_module().__name__ == "sqlcipher3"

    engine = open_engine(database_url(None, tmp_path), Purpose.WRITE)
    with engine.begin() as connection:
        add_account(connection, items.account())
    with other_writer(engine.url), pytest.raises(OperationalError) as busy, engine.begin():
        pass
    assert isinstance(translate(busy.value), Overloaded)
    engine.dispose()
    assert (tmp_path / "countersign.db").read_bytes().startswith(b"SQLite format 3\0")


@pytest.mark.parametrize(
    "url",
    ["mysql://db/name", "sqlite:///elsewhere.db", "not a url", "", "postgresql://db:port/name"],
)
def test_only_postgresql_can_be_configured_as_a_url(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="COUNTERSIGN_DATABASE_URL"):
        database_url(url, tmp_path)


def test_every_host_of_a_url_keeps_its_own_port(tmp_path: Path) -> None:
    """High availability by the driver: the hosts are tried in their order."""
    query = "target_session_attrs=read-write"
    url = database_url(f"postgresql://me:pw@db1:5433,db2,[::1]:5434/name?{query}", tmp_path)
    assert (url.username, url.password, url.database) == ("me", "pw", "name")
    assert url.query["host"] == ("db1:5433", "db2", "[::1]:5434")
    assert url.query["target_session_attrs"] == "read-write"


# --- errors --------------------------------------------------------------------------------------


def test_errors_become_refusals_that_tell_what_to_do(database: Database, run: Run) -> None:
    def refuse(connection: Connection, number: int) -> CountersignError:
        raise NoticeNotFound

    def misspelt(connection: Connection, number: int) -> int:
        connection.execute(text("SELEKT 1"))
        return number

    for ask in (database.write, database.read, database.scan):
        with pytest.raises(NoticeNotFound):
            run(ask(refuse, 1))
        with pytest.raises(InternalError) as refusal:
            run(ask(misspelt, 1))
        # The driver's message may quote a row.
        assert "SELEKT" not in refusal.value.message
        assert run(ask(lambda _, number: number, 7)) == 7


def test_an_unreadable_row_fails_only_the_call_that_reads_it(database: Database, run: Run) -> None:
    """Others in the same batch, perhaps of other accounts, get their answers."""

    def good(_: Connection, number: int) -> int:
        return number

    def damaged(_: Connection, error: Exception) -> int:
        raise error

    async def together(ask: Callable[..., Awaitable[int]], error: Exception) -> list[object]:
        calls = ask(good, 1), ask(damaged, error), ask(good, 2)
        return list(await asyncio.gather(*calls, return_exceptions=True))

    for ask in (database.write, database.read, database.scan):
        for error, refusal in (
            (msgspec.ValidationError("a row"), InternalError),
            (EvidenceError("an entry"), EvidenceDamaged),
        ):
            one, other, two = run(together(ask, error))
            assert (one, type(other), two) == (1, refusal, 2)


@on_sqlite
def test_a_read_cannot_write(database: Database, run: Run) -> None:
    def write(connection: Connection, _: None) -> None:
        connection.execute(text("DELETE FROM zip_attempts"))

    owner = items.account()
    run(database.write(add_account, owner))
    for ask in (database.read, database.scan):
        with pytest.raises(CountersignError):
            run(ask(write, None))


@on_sqlite
def test_a_full_disk_is_unavailable_storage_and_nothing_half_written(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))

    def fill(connection: Connection, _: None) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count=1")
        connection.execute(
            records.insert(),
            {
                "id": "ack_1",
                "account_id": owner.id,
                "mode": Mode.TEST,
                "type": "acknowledgment",
                "at": items.NOON,
                "digest": b"",
                "body": b"x" * 1_000_000,
            },
        )

    with pytest.raises(StorageUnavailable) as refusal:
        run(database.write(fill, None))
    assert refusal.value.retry_after >= 1
    assert run(items.found(database, owner)) == []
    run(items.add(database, items.acknowledgment(owner)))


@on_sqlite
def test_a_missing_directory_is_unavailable_storage(
    engine_name: str, run: Run, tmp_path: Path
) -> None:
    url = database_url(None, tmp_path / "missing")
    assert_unavailable(url, run)
    with pytest.raises(NotInitialised, match="countersign init"):
        schema.check(url)


@on_sqlite
def test_a_connection_that_cannot_be_set_up_is_not_kept(
    engine_name: str, run: Run, tmp_path: Path
) -> None:
    """With a damaged database, each request would leave one behind."""
    (tmp_path / SQLITE_FILE).write_bytes(b"no database" * 1000)

    async def ask() -> None:
        async with Database(database_url(None, tmp_path)) as database:
            for _ in range(3):
                with pytest.raises(StorageUnavailable, match="damaged"):
                    await database.read(read_account, "x")
            workers = [batcher.worker for batcher in database._batchers.values()]
            assert not any(worker.cut._open for worker in workers)

    run(ask())


@on_postgres
def test_a_server_out_of_reach_is_unavailable_storage(
    engine_name: str, run: Run, tmp_path: Path
) -> None:
    url = database_url(f"postgresql:///name?host={tmp_path}", tmp_path)
    assert_unavailable(url, run)
    with pytest.raises(StorageUnavailable, match="cannot be used"):
        schema.check(url)


def assert_unavailable(url: URL, run: Run) -> None:
    async def ask() -> None:
        async with Database(url) as database:
            with pytest.raises(StorageUnavailable):
                await database.write(add_account, items.account())
            with pytest.raises(StorageUnavailable):
                await database.read(read_account, "x")
            with pytest.raises(StorageUnavailable):
                await database.scan(all_accounts)

    run(ask())


@on_postgres
def test_a_connection_that_breaks_is_unavailable_storage_and_then_replaced(
    database: Database, run: Run
) -> None:
    def break_off(connection: Connection, _: None) -> None:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    owner = items.account()
    for ask in (database.write, database.read, database.scan):
        with pytest.raises(StorageUnavailable):
            run(ask(break_off, None))
    run(database.write(add_account, owner))
    assert run(database.read(read_account, owner.id)) == owner
    assert run(database.scan(all_accounts)) == [owner]


@on_postgres
def test_a_connection_that_broke_while_it_was_idle_fails_no_act(
    url: URL, database: Database, run: Run
) -> None:
    """An act whose transaction had not reached its commit is repeated on a new connection."""

    def break_others(connection: Connection) -> None:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    run(database.write(add_account, items.account()))
    engine = open_engine(url, Purpose.READ)
    with engine.connect() as connection:
        break_others(connection)
    engine.dispose()
    owner = items.account()
    run(database.write(add_account, owner))
    assert run(database.read(read_account, owner.id)) == owner


# --- durability ----------------------------------------------------------------------------------


def test_a_write_returns_only_after_the_commit_that_holds_it(url: URL, run: Run) -> None:
    owner = items.account()
    engine = open_engine(url, Purpose.READ)

    def slow_disk(_: Connection) -> None:
        time.sleep(0.05)

    async def write() -> None:
        async with Database(url) as database:
            event.listen(database._write.worker.engine, "commit", slow_disk)
            await database.write(add_account, owner)
            for n in range(3):
                entry = items.idempotency_entry(owner)
                acts = [
                    items.add(database, items.acknowledgment(owner, keep=entry)),
                    items.add(database, items.acknowledgment(owner)),
                    items.verify(database, items.verification(owner, f"cbid_test_{n}")),
                ]
                for number, act in enumerate(asyncio.as_completed(acts), 1):
                    await act
                    # Another connection sees committed data only.
                    assert committed(engine) >= 3 * n + number

    run(write())
    engine.dispose()


def committed(engine: Engine) -> int:
    """Count acknowledgments and verifications."""
    with engine.connect() as connection:
        return sum(
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (records, verifications)
        )


# --- several writers -----------------------------------------------------------------------------


@on_sqlite
def test_a_writer_waits_for_another_process_without_stopping_the_rest(
    database: Database, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If SQLite itself waited for the lock, on the loop, this test would hang.
    monkeypatch.setattr("countersign.base.db.engine.BUSY_TIMEOUT_SECONDS", 3600.0)

    async def both() -> None:
        account = items.account()
        with other_writer(database.url):
            waiting = asyncio.ensure_future(database.write(add_account, account))
            for _ in range(3):
                await asyncio.sleep(0.01)
                assert await database.scan(all_accounts) == []
                assert await items.buyer_of(database, account.id, Mode.TEST, "cbid_test_1") is None
            assert not waiting.done()
        await waiting
        assert await database.scan(all_accounts) == [account]

    run(both())


@on_sqlite
def test_a_writer_gives_up_when_another_process_does_not_stop_writing(
    url: URL, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countersign.base.db.database.BUSY_TIMEOUT_SECONDS", 0.05)

    async def write() -> None:
        async with Database(url) as database:
            with other_writer(url), pytest.raises(Blocked):
                await database.write(add_account, items.account())
            await database.write(add_account, items.account())

    run(write())


def test_two_servers_write_at_once_and_all_of_it_is_there(url: URL, run: Run) -> None:
    owner = items.account()
    made = [[items.acknowledgment(owner) for _ in range(40)] for _ in range(2)]

    async def write() -> None:
        async with Database(url) as one, Database(url) as two:
            await one.write(add_account, owner)
            await asyncio.gather(
                *(items.add(one, new) for new in made[0]),
                *(items.add(two, new) for new in made[1]),
            )
            for database in (one, two):
                found = await items.found(database, owner)
                ids = [new.id for new in made[0] + made[1]]
                assert sorted(f.ack_id for f in found) == sorted(ids)

    run(write())


def test_two_servers_that_verify_one_buyer_agree_on_it(url: URL, run: Run) -> None:
    owner = items.account()

    async def write() -> None:
        async with Database(url) as one, Database(url) as two:
            await one.write(add_account, owner)
            for n in range(10):
                results = await asyncio.gather(
                    *(
                        items.verify(
                            database,
                            items.verification(
                                owner, f"cbid_test_{n}", at=items.NOON + m * items.SECOND
                            ),
                        )
                        for database in (one, two)
                        for m in range(3)
                    )
                )
                assert len({buyer.verified_at for buyer in results}) == 1
                found = await items.buyer_of(one, owner.id, Mode.TEST, f"cbid_test_{n}")
                assert found == (results[0], None)

    run(write())


@on_postgres
def test_the_loser_of_a_deadlock_is_retried(url: URL, run: Run) -> None:
    """Two servers that lock the same rows in another order: neither caller notices."""
    both_hold_one, begun = threading.Barrier(2, timeout=20), Counter[int]()
    lock = select(func.pg_advisory_xact_lock(bindparam("key")))

    def cross(connection: Connection, first: int, second: int) -> int:
        begun[first] += 1
        connection.execute(lock, {"key": first})
        if begun[first] == 1:
            both_hold_one.wait()
        connection.execute(lock, {"key": second})
        return first

    async def write() -> None:
        async with Database(url) as one, Database(url) as two:
            first, second = await asyncio.gather(one.write(cross, 1, 2), two.write(cross, 2, 1))
        assert (first, second) == (1, 2)
        assert sorted(begun.values()) == [1, 2]

    run(write())


def test_one_idempotency_key_at_two_servers_has_one_effect(url: URL, run: Run) -> None:
    owner = items.account()

    async def write() -> None:
        async with Database(url) as one, Database(url) as two:
            await one.write(add_account, owner)
            for n in range(1, 11):
                entry = items.idempotency_entry(owner)
                outcomes = await asyncio.gather(
                    *(
                        items.add(database, items.acknowledgment(owner, keep=entry))
                        for database in (one, two)
                    ),
                    return_exceptions=True,
                )
                assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                    IdempotencyInProgress.__name__,
                    "NoneType",
                ]
                found = await items.found(one, owner)
                assert len(found) == n

    run(write())


def test_waiting_calls_finish_before_the_database_closes(url: URL, run: Run) -> None:
    accounts = [items.account() for _ in range(5)]

    async def write() -> None:
        async with Database(url) as database:
            waiting = [asyncio.ensure_future(database.write(add_account, a)) for a in accounts]
            await asyncio.sleep(0)
        assert await asyncio.gather(*waiting) == [None] * 5
        with pytest.raises(Overloaded):
            await database.write(add_account, items.account())
        async with Database(url) as again:
            assert await again.scan(all_accounts) == accounts

    run(write())
