"""Whatever happens to servers, heads and the database: published checkpoints form one chain.

Histories are random: servers with their own, shared, or empty heads, which start, stop, seal and
publish; backups restored below running servers; lost heads; and an operator who decides truthfully.
Each leaving checkpoint is compared with a plain list of the earlier ones.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import sql
from sqlalchemy import Connection, insert, make_url, select, text

from countersign.base.db.tables import log_entries, log_pending, logs
from countersign.base.errors import EvidenceRefused, StorageUnavailable
from countersign.base.values import Mode
from countersign.core.log import operate
from countersign.core.log.head_files import Heads, published_in
from countersign.core.log.head_store import open_heads
from countersign.core.log.model import PublishedHead
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.entry import entries_of
from countersign_evidence.note import checkpoint_of
from countersign_evidence.tree import leaf_hash
from tests.http.backstage import another_deployment
from tests.sealing.inside import opened
from tests.support.depth import drawn
from tests.support.merkle import root_hash
from tests.support.object_store import ObjectStore, running_store
from tests.support.postgres import PostgresServer
from tests.support.service import Deployment

pytestmark = [pytest.mark.postgres, pytest.mark.long]
T = TypeVar("T")
PLACES: Final = {"a": "own-a", "b": "own-b", "c": "shared", "d": "shared"}
TEST: Final = Mode.TEST
_numbers = itertools.count(1)
names = st.sampled_from(sorted(PLACES))


class Stored(NamedTuple):
    """The content of the database: the digests of each log's entries, and whether all must stop."""

    logs: dict[str, list[bytes]]
    stopped: bool


def stored(connection: Connection) -> Stored:
    found = connection.execute(
        select(logs.c.origin, log_entries.c.digest)
        .join(log_entries, log_entries.c.log_id == logs.c.id, isouter=True)
        .where(logs.c.mode == TEST)
        .order_by(logs.c.id, log_entries.c.leaf_index)
    )
    of: dict[str, list[bytes]] = {}
    for origin, digest in found:
        of.setdefault(origin, []).extend([] if digest is None else [bytes(digest)])
    named = text("SELECT count(*) FROM deployment WHERE name = 'sealing_suspended:test'")
    return Stored(of, bool(connection.execute(named).scalar_one()))


class Walk(RuleBasedStateMachine):
    """One history."""

    postgres: PostgresServer
    folder: Path
    store: ObjectStore | None = None
    """Where the shared heads are; None: in a directory."""

    def __init__(self) -> None:
        super().__init__()
        self.place = self.folder / f"{next(_numbers)}"
        self.deployment = another_deployment(self.place / "data", self.postgres)
        self.database = str(make_url(self.deployment.settings["DATABASE_URL"]).database)
        self.loop = asyncio.Runner()
        self.running: dict[str, tuple[AsyncExitStack, Opened]] = {}
        self.backups: list[str] = []
        self.opened: dict[str, Heads] = {}
        self.published: dict[str, list[bytes]] = {}
        self.last: bytes | None = None

    # Acts of the operator and the machines.

    @rule(name=names)
    def start(self, name: str) -> None:
        if name not in self.running:
            own = {"LOG_HEAD_DIR": str(self._kept_in(name))}
            made = Deployment(
                data_dir=self.deployment.data_dir, settings=dict(self.deployment.settings) | own
            )
            stack = AsyncExitStack()
            self.running[name] = stack, self._do(stack.enter_async_context(opened(made)))

    @rule(name=names)
    def stop(self, name: str) -> None:
        if name in self.running:
            self._do(self.running.pop(name)[0].aclose())

    def accept(self, number: int) -> None:
        def queue(connection: Connection) -> None:
            ids = [f"ack_{next(_numbers):026d}" for _ in range(number)]
            rows = [{"record_id": i, "mode": "test", "digest": i.rjust(32).encode()} for i in ids]
            connection.execute(insert(log_pending), rows)

        self._write(queue)

    @rule(name=names, number=st.integers(0, 3))
    def turn(self, name: str, number: int) -> None:
        if name not in self.running:
            self.start(name)
        if number:
            self.accept(number)
        before = self._stored()
        service = self.running[name][1]
        for _ in range(2):  # what publishing has found is noted by the next turn
            self._again(service.log.seal._turn)
        after, kept = self._stored(), self._heads(name).stored(TEST)
        if before.stopped or not self._holds(before):
            # Only published data leaves; and the server that detects the loss stops all.
            if kept is not None and kept == self.last:
                assert after.stopped, service.log.sequencer.suspended
            assert not before.stopped or after == before
        with suppress(StorageUnavailable):
            log = self._do(service.log.seal.current())[TEST]
            self._leaves(self._again(lambda: service.log.seal.released(log)).note)

    @precondition(lambda self: self.published)
    @rule()
    def back_up(self) -> None:
        name = f"{self.database}_{next(_numbers)}"
        self._copy(self.database, name)
        self.backups.append(name)

    @precondition(lambda self: self.backups)
    @rule(which=st.integers(0, 3))
    def restore(self, which: int) -> None:
        with self.postgres.connect() as connection:
            gone = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(self.database))
            connection.execute(gone)
        self._copy(self.backups[which % len(self.backups)], self.database)

    @rule(name=names)
    def lose_heads(self, name: str) -> None:
        if self._holds(self._stored()):  # a second loss at the same time is the operator's to see
            self._lose(name)

    @rule(name=names)
    def adopt(self, name: str) -> None:
        if self.last is not None and self._holds(self._stored()):
            self._decide(name, lambda room: operate.adopt_database_head(room, TEST, "a test"))

    @rule(name=names)
    def give_the_last_head(self, name: str) -> None:
        if self.last is not None:
            head = PublishedHead(checkpoint_of(self.last), self.last)
            held = self._holds(self._stored())
            done = self._decide(name, lambda room: operate.accept_head(room, TEST, head, "a test"))
            assert held or not done

    @rule(name=names)
    def begin_an_epoch(self, name: str) -> None:
        kept = published_in(self._heads(name).stored(TEST))
        newest = list(self.published)[-1:]
        known = [*self._stored().logs, kept and kept.checkpoint.origin]
        if not newest or newest[0] in known:  # else a published number is used again
            self._decide(name, lambda room: operate.begin_epoch(room, TEST, "a test"))
            self.what_is_kept_is_of_the_chain()

    # Invariants.

    @invariant()
    def what_is_kept_is_of_the_chain(self) -> None:
        for name in ("a", "b", "c"):
            kept = self._heads(name).read(TEST)
            if kept is not None:
                self._leaves(kept)

    def teardown(self) -> None:
        """There is always a way out, and on it all that waits is sealed."""
        try:
            self.start("c")
            if self.last is not None and self._holds(self._stored()):
                self.give_the_last_head("c")
            elif self.last is not None:
                heads = self._heads("c")  # as the operator has it from elsewhere
                assert heads.advance(TEST, self.last, heads.stored(TEST))
                self.begin_an_epoch("c")
            self.turn("c", 0)
            self.turn("c", 0)
            left = text("SELECT count(*) FROM log_pending WHERE mode = 'test'")
            assert self._read(lambda c: c.execute(left).scalar_one()) == 0 or not self.published
        finally:
            for name in list(self.running):
                self.stop(name)
            self.loop.close()

    # How it is done.

    def _leaves(self, note: bytes) -> None:
        """A checkpoint is or may be published: it is of the one chain of its log."""
        said = checkpoint_of(note)
        chain = self.published.get(said.origin, [])
        if said.size > len(chain) or said.origin not in self.published:
            now = self._stored().logs[said.origin][: said.size]
            assert now[: len(chain)] == chain, "a fork"
            self.published[said.origin], self.last = now, note
            chain = now
        assert said.root == self._root(said.origin, chain[: said.size]), "a fork"

    def _root(self, origin: str, digests: list[bytes]) -> bytes:
        return root_hash([*map(leaf_hash, entries_of(origin, digests))])

    def _holds(self, found: Stored) -> bool:
        """Whether the database has all that was published of the newest log."""
        return all(
            found.logs.get(origin, [])[: len(chain)] == chain and origin in found.logs
            for origin, chain in list(self.published.items())[-1:]
        )

    def _decide(self, name: str, what: Callable[[Any], Coroutine[Any, Any, Any]]) -> bool:
        """The operator decides on the server of this name, and deletes all other heads."""
        if name not in self.running:
            self.start(name)
        try:
            self._again(lambda: what(self.running[name][1].log))
        except EvidenceRefused:
            return False
        for other in set(PLACES) - {name}:
            if PLACES[other] != PLACES[name]:
                self._lose(other)
        return True

    def _heads(self, name: str) -> Heads:
        place = self._kept_in(name)
        if str(place) not in self.opened:
            self.opened[str(place)] = open_heads(place)
        return self.opened[str(place)]

    def _kept_in(self, name: str) -> Path | str:
        if self.store is not None and PLACES[name] == "shared":
            return self.store.url(self.place.name)
        return self.place / PLACES[name]

    def _lose(self, name: str) -> None:
        place = self._kept_in(name)
        if self.store is not None and isinstance(place, str):
            self.store.empty(self.place.name)
        else:
            shutil.rmtree(place, ignore_errors=True)

    def _copy(self, old: str, new: str) -> None:
        with self.postgres.connect() as connection:
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(ended, [old])
            made = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(made.format(sql.Identifier(new), sql.Identifier(old)))

    def _stored(self) -> Stored:
        return self._read(stored)

    def _any(self) -> Opened:
        if not self.running:
            self.start("c")
        return next(iter(self.running.values()))[1]

    def _read(self, what: Callable[[Connection], T]) -> T:
        return self._again(lambda: self._any().database.read(what))

    def _write(self, what: Callable[[Connection], None]) -> None:
        self._again(lambda: self._any().database.write(what))

    def _again(self, what: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Retries as callers do: the database may have been unavailable."""
        for _ in range(4):
            with suppress(StorageUnavailable):
                return self._do(what())
        return self._do(what())

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(what)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("other", ["a", "b", "d"])
def test_a_restored_backup_is_sealed_on_by_no_server(
    postgres_server: PostgresServer, tmp_path: Path, other: str
) -> None:
    """Neither by one with empty heads, nor by one with the right ones, whichever comes first."""

    class Here(Walk):
        postgres = postgres_server
        folder = tmp_path

    walk = Here()
    try:
        walk.turn("c", 3)
        walk.back_up()
        walk.turn("c", 2)
        walk.stop("c")
        walk.restore(0)
        before = walk._stored().logs
        for name in (other, "c", other):
            walk.turn(name, 1)
            assert walk._stored().logs == before
        assert walk._stored().stopped
    finally:
        walk.teardown()


@pytest.mark.timeout(300)
def test_published_checkpoints_are_one_chain(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    class Here(Walk):
        postgres = postgres_server
        folder = tmp_path

    walk(Here, drawn(12))


@pytest.mark.timeout(300)
def test_published_checkpoints_are_one_chain_in_an_object_store(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shared heads are there; two servers keep theirs in a directory nevertheless."""
    with running_store() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)

        class Here(Walk):
            postgres = postgres_server
            folder = tmp_path
            store = running

        walk(Here, drawn(4))


def walk(here: type[Walk], examples: int) -> None:
    run_state_machine_as_test(
        here,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
