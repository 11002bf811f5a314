"""Records are found by their blind indexes, wherever the keys are and whatever is being merged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import URL, Connection, Engine, delete, insert, select, text

from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, database_url, is_embedded, open_engine
from countersign.base.db.statements import allow_deferred, deferred_statements, run_deferred
from countersign.base.db.tables import blind_recent, blind_runs, disclosures
from countersign.core.log.blind_runs import GROUP, RUN_ROWS, do_step, found_by, merge, next_step
from tests.cli.serving import wait_until
from tests.http.backstage import another_deployment
from tests.support.databases import Run, on_sqlite
from tests.support.depth import drawn
from tests.support.service import running_server

Keys = tuple[bytes | None, bytes | None, bytes | None]
"""Of session, buyer and order."""


def key(field: str, number: int | None) -> bytes | None:
    """A blind index: it does not reveal its value, but those of two fields never collide."""
    return None if number is None else sha256(f"{field}{number}".encode()).digest()[:16]


def row(record_id: str, keys: Keys) -> dict[str, Any]:
    return {
        "record_id": record_id,
        "account_id": "acct_1",
        "mode": "test",
        "session_index": keys[0],
        "cbid_index": keys[1],
        "reference_index": keys[2],
        "payload": b"sealed",
    }


def rows(number: int, start: int = 0) -> list[dict[str, Any]]:
    """Disclosures of sessions and buyers of their own."""
    own = range(start, start + number)
    return [row(f"ack_{n:08}", (key("session", n), key("cbid", n), None)) for n in own]


def found(connection: Connection, column: str, index: bytes) -> list[str]:
    c = disclosures.c
    wanted = found_by(connection, c[column], index)
    return sorted(connection.execute(select(c.record_id).where(wanted)).scalars())


def kept(connection: Connection) -> list[tuple[bytes, str]]:
    """Every key in use, wherever it is."""
    recent = connection.execute(select(blind_recent)).all()
    waiting = [(one, r.record_id) for r in recent for one in r[1:] if one is not None]
    merged = connection.execute(select(blind_runs.c.key, blind_runs.c.record_id)).all()
    return sorted([*waiting, *map(tuple, merged)])


def stored(connection: Connection) -> list[tuple[bytes, str]]:
    """Every key of the disclosures themselves."""
    c = disclosures.c
    indexes = c.session_index, c.cbid_index, c.reference_index
    all_ = connection.execute(select(c.record_id, *indexes)).all()
    return sorted((one, r.record_id) for r in all_ for one in r[1:] if one is not None)


class Merging(RuleBasedStateMachine):
    """Disclosures come and go while their keys are merged; a dictionary is the oracle."""

    url: URL

    def __init__(self) -> None:
        super().__init__()
        self.engine: Engine = open_engine(self.url, Purpose.WRITE)
        self.there: dict[str, Keys] = {}
        self.number = 0
        with self.engine.begin() as connection:
            connection.execute(delete(disclosures))
        # Enough for a group to be merged, and some of the next.
        self.add(range(2 * GROUP + 12), backwards=False)
        self.merge_all()

    numbers = st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=12)

    @rule(numbers=numbers, backwards=st.booleans(), orders=st.booleans())
    def add(self, numbers: Sequence[int | None], *, backwards: bool, orders: bool = False) -> None:
        """Some have a session, buyer or order in common, or none; identifiers need not grow."""
        new: dict[str, Keys] = {}
        for number in numbers:
            self.number += 1
            at = 10**6 - self.number if backwards else 10**6 + self.number
            other = None if number is None else number // 2
            order = key("order", 9 - number) if orders and number is not None else None
            new[f"ack_{at}"] = key("session", number), key("cbid", other), order
        with self.engine.begin() as connection:
            connection.execute(insert(disclosures), [row(*item) for item in new.items()])
        self.there |= new

    @rule(share=st.integers(2, 40), rest=st.integers(0, 39))
    def erase(self, share: int, rest: int) -> None:
        """Any of them, also all of a run."""
        gone = [one for n, one in enumerate(sorted(self.there)) if n % share == rest]
        with self.engine.begin() as connection:
            connection.execute(delete(disclosures).where(disclosures.c.record_id.in_(gone)))
        for one in gone:
            del self.there[one]

    @rule(statements=st.integers(0, 2))
    def step_that_is_cut(self, statements: int) -> None:
        """After none, one or all of its statements."""
        with self.engine.connect() as connection:
            allow_deferred(connection)
            with connection.begin() as transaction:
                self._step(connection, statements)
                transaction.rollback()

    @rule()
    def step(self) -> None:
        """One step, as a server does it."""
        with self.engine.connect() as connection:
            allow_deferred(connection)
            with connection.begin():
                self._step(connection, 2)

    def _step(self, connection: Connection, statements: int) -> bool:
        step = next_step(connection, rows=2)
        if step is not None:
            do_step(connection, step)
            deferred = deferred_statements(connection)
            assert deferred is not None
            del deferred.statements[statements:]
            run_deferred(connection)
        return step is not None

    @rule()
    def merge_all(self) -> None:
        """Until nothing is left to do, which must happen."""
        with self.engine.connect() as connection:
            allow_deferred(connection)
            with connection.begin():
                assert not all(self._step(connection, 2) for _ in range(1_000))

    @rule()
    def restart(self) -> None:
        """Drop the state in memory."""
        self.engine.dispose()

    @invariant()
    def each_is_found_by_each_key(self) -> None:
        """And nothing else is."""
        with self.engine.connect() as connection:
            for place, (column, field) in enumerate(
                (
                    ("session_index", "session"),
                    ("cbid_index", "cbid"),
                    ("reference_index", "order"),
                )
            ):
                for number in range(10):
                    index = key(field, number)
                    assert index is not None
                    wanted = sorted(one for one, keys in self.there.items() if keys[place] == index)
                    assert found(connection, column, index) == wanted
            if connection.dialect.name == "sqlite":
                assert kept(connection) == stored(connection)

    def teardown(self) -> None:
        self.engine.dispose()


def test_records_are_found_by_each_key_at_any_moment_of_merging(url: URL) -> None:
    """Despite additions, erasures, merges or interruptions; each key is stored once."""

    class Here(Merging):
        pass

    Here.url = url
    walk = settings(max_examples=drawn(12), stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Here, settings=walk)


@on_sqlite
def test_after_a_merge_less_than_a_run_waits(database: Database, run: Run) -> None:
    """By the statements of a server, in transactions shared with its other writes."""
    own = rows(2 * RUN_ROWS + 9)

    def add(connection: Connection) -> None:
        connection.execute(insert(disclosures), own)

    run(database.write(add))
    assert run(merge(database)) == 2

    def look(connection: Connection) -> None:
        waiting = text("SELECT count(*) FROM blind_recent")
        assert connection.execute(waiting).scalar_one() == 9
        runs = text("SELECT DISTINCT run FROM blind_runs ORDER BY run")
        assert [*connection.execute(runs).scalars()] == [0, 1]
        for one in (own[0], own[RUN_ROWS], own[-1]):
            assert found(connection, "session_index", one["session_index"]) == [one["record_id"]]

    run(database.scan(look))


def test_a_server_merges_by_itself(tmp_path: Path) -> None:
    """Including records from before its start."""
    deployment = another_deployment(tmp_path / "data")
    engine = open_engine(database_url(None, deployment.data_dir), Purpose.WRITE)
    with engine.begin() as connection:
        connection.execute(insert(disclosures), rows(RUN_ROWS + 1))

    def is_merged() -> bool:
        with engine.connect() as connection:
            return len(connection.execute(select(blind_recent)).all()) == 1

    with running_server(deployment):
        wait_until(is_merged, "the server has not merged")
    with engine.connect() as connection:
        assert kept(connection) == stored(connection)
    engine.dispose()


@on_sqlite
def test_an_erased_key_leaves_no_bytes_in_the_database(own_url: URL, engine_name: str) -> None:
    """Neither while it waits nor in a run, and even if a row was the last of a page."""
    assert engine_name
    own = rows(600)
    gone = own[::3]
    engine = open_engine(own_url, Purpose.WRITE)
    with engine.begin() as connection:
        connection.execute(insert(disclosures), own)
    with engine.connect() as connection:
        allow_deferred(connection)
        for _ in range(2):
            with connection.begin():
                step = next_step(connection, rows=200)
                assert step is not None
                do_step(connection, step)
                run_deferred(connection)
    with engine.begin() as connection:
        for one in gone:
            wanted = disclosures.c.record_id == one["record_id"]
            connection.execute(delete(disclosures).where(wanted))
    engine.dispose()
    data = Path(own_url.database or "").read_bytes()
    assert not [one for one in gone if one["session_index"] in data or one["cbid_index"] in data]
    assert all(one["cbid_index"] in data for one in own if one not in gone)


_VICTIM = """
import asyncio, sys
from sqlalchemy import make_url
from countersign.base.db.database import Database
from countersign.core.log import blind_runs

async def main():
    async with Database(make_url(sys.argv[1])) as database:
        while step := await database.scan(blind_runs.next_step, 2):
            print("step", flush=True)
            await database.write(blind_runs.do_step, step)

asyncio.run(main())
"""


@pytest.mark.crash
@on_sqlite
def test_a_kill_between_steps_or_within_one_loses_no_key(own_url: URL) -> None:
    """Killed again and again until all is merged."""
    assert is_embedded(own_url)
    engine = open_engine(own_url, Purpose.WRITE)
    with engine.begin() as connection:
        connection.execute(insert(disclosures), rows(3 * GROUP))
    kills = 0
    while True:
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, own_url.render_as_string()], stdout=subprocess.PIPE
        )
        assert victim.stdout is not None
        lines = [victim.stdout.readline() for _ in range(7 + 5 * kills)]
        victim.kill()
        victim.communicate()
        with engine.connect() as connection:
            assert kept(connection) == stored(connection)
        if not lines[-1]:
            break
        kills += 1
    assert kills > 2
    with engine.connect() as connection:
        assert next_step(connection, 2) is None
        assert len(kept(connection)) == 6 * GROUP
    engine.dispose()
