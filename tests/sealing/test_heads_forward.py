"""No start and no command replaces a published head by a smaller one, or by one of its size.

Histories are random: servers that share one place start, stop, seal and publish; `init` runs by
hand and at starts; databases, keys, heads and notes of backups are lost; backups are restored, and
an operator recovers in every way, truthfully or not. A plain list holds epochs and sizes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import sqlite3
from collections.abc import Coroutine
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from psycopg import sql
from sqlalchemy import Connection, insert, make_url

from countersign.base.config import load_settings
from countersign.base.db.tables import log_pending
from countersign.base.errors import CountersignError, DeploymentIncomplete, NotInitialised
from countersign.base.values import Mode
from countersign.core.log import operate
from countersign.core.log.head_store import open_heads
from countersign.core.log.model import PublishedHead
from countersign.core.log.room import LogRoom
from countersign.operate.bootstrap import Deployment as Opened
from countersign.operate.bootstrap import initialise
from countersign_evidence.note import checkpoint_of
from tests.sealing.inside import opened
from tests.support import postgres
from tests.support.depth import drawn
from tests.support.object_store import ObjectStore, running_store
from tests.support.service import Deployment

pytestmark = [pytest.mark.long, pytest.mark.first_try]

T = TypeVar("T")
TEST: Final = Mode.TEST
KEYS: Final = ("secret.key", "key-encryption.key")
NOTE: Final = "last-backup.json"
_numbers = itertools.count(1)
servers, any_head = st.integers(0, 1), st.integers(0, 9)


class Walk(RuleBasedStateMachine):
    """One history, of the log for tests."""

    folder: Path
    store: ObjectStore | None = None
    """Where the heads are; None: in a directory, apart from the data."""
    postgres: postgres.PostgresServer | None = None

    def __init__(self) -> None:
        super().__init__()
        self.number = next(_numbers)
        place = self.folder / f"{self.number}"
        self.data, self.copies = place / "data", place / "copies"
        self.copies.mkdir(parents=True)
        kept = place / "heads" if self.store is None else self.store.url(f"walk{self.number}")
        own = {"LOG_HEAD_DIR": str(kept)}
        if self.postgres is not None:
            own["DATABASE_URL"] = postgres.fresh_database(self.postgres)
        self.deployment = Deployment(data_dir=self.data, settings=own)
        self.heads = open_heads(kept)
        self.loop = asyncio.Runner()
        self.running: dict[int, tuple[AsyncExitStack, Opened]] = {}
        self.backups: list[str] = []
        self.has_database = self.has_heads = False
        self.seen: list[bytes] = []
        self.told: list[tuple[int, int]] = []

    @initialize()
    def begin(self) -> None:
        self.init(by_hand=True)
        self.turn(0, 2)
        self.the_head_only_goes_forward()
        self.back_up()
        self.turn(0, 2)

    # Servers.

    @rule(server=servers)
    def start(self, server: int) -> None:
        if server not in self.running:
            stack = AsyncExitStack()
            made = self._try(stack.enter_async_context(opened(self.deployment)))
            if made is not None:
                self.running[server] = stack, made

    @rule()
    def stop(self) -> None:
        for stack, _ in self.running.values():
            self.loop.run(stack.aclose())
        self.running.clear()

    @rule(server=servers, number=st.integers(0, 3))
    def turn(self, server: int, number: int) -> None:
        self.start(server)
        if server not in self.running:
            return

        def queue(connection: Connection) -> None:
            ids = [f"ack_{next(_numbers):026d}" for _ in range(number)]
            rows = [{"record_id": i, "mode": "test", "digest": i.rjust(32).encode()} for i in ids]
            if rows:
                connection.execute(insert(log_pending), rows)

        service = self.running[server][1]
        self._try(service.database.write(queue))
        for _ in range(2):  # what publishing has found is noted by the next turn
            self._try(service.log.seal._turn())

    # Acts of the operator.

    @rule(by_hand=st.booleans())
    def init(self, *, by_hand: bool) -> None:
        """It founds only where nothing is left, and only by hand."""
        left = self.has_heads or any((self.data / name).exists() for name in (*KEYS, NOTE))
        before = self._files()
        made = initialise(load_settings(self.deployment.environment), founds=by_hand)
        if self.has_database:
            self._try(made)  # keys may be missing, or of another deployment
        elif left or not by_hand:
            with pytest.raises(DeploymentIncomplete if left else NotInitialised) as caught:
                self.loop.run(made)
            assert not left or "looks like a lost disk" in caught.value.message
            assert self._files() == before
        else:
            self.loop.run(made)
            self.has_database = self.has_heads = True

    @rule(which=any_head)
    def accept(self, which: int) -> None:
        if self.seen:
            note = self.seen[which % len(self.seen)]
            head = PublishedHead(checkpoint_of(note), note)
            self._decide(lambda room: operate.accept_head(room, TEST, head, "a test"))

    @rule()
    def adopt(self) -> None:
        self._decide(lambda room: operate.adopt_database_head(room, TEST, "a test"))

    @rule()
    def begin_an_epoch(self) -> None:
        self._decide(lambda room: operate.begin_epoch(room, TEST, "a test"))

    @rule()
    def back_up(self) -> None:
        if self.has_database:
            name = f"{self.number}_{len(self.backups)}"
            self.stop()
            self.data.mkdir(exist_ok=True)
            self._copy(self._database, name)
            self.backups.append(name)
            for key in KEYS:
                if (self.data / key).exists():
                    shutil.copy(self.data / key, self.copies / key)
            (self.data / NOTE).write_text(json.dumps({"at": 0.0, "directory": str(self.copies)}))

    @rule(which=any_head)
    def restore(self, which: int) -> None:
        if self.backups:
            self.lose("database")
            self._copy(self.backups[which % len(self.backups)], self._database)
            self.has_database = True

    # Losses.

    @rule(what=st.sampled_from(("database", "data directory", "heads", NOTE, *KEYS)))
    def lose(self, what: str) -> None:
        self.stop()
        if what == "heads":
            self._lose_heads()
        elif what in {NOTE, *KEYS}:
            (self.data / what).unlink(missing_ok=True)
        else:
            self._drop()
            self.has_database = False
        if what == "data directory":
            shutil.rmtree(self.data, ignore_errors=True)

    @rule(which=any_head)
    def mend(self, which: int) -> None:
        """What is lost comes back, except for the heads."""
        self.data.mkdir(exist_ok=True)
        if not self.has_database:
            self.restore(which)
        for name in KEYS:
            if (self.copies / name).exists():
                shutil.copy(self.copies / name, self.data / name)

    @invariant()
    def the_head_only_goes_forward(self) -> None:
        note = self.heads.read(TEST)
        self.has_heads = note is not None or self.heads.read(Mode.LIVE) is not None
        if note is None or (self.told and note == self.seen[-1]):
            assert note is not None or self.told == []
            return
        said = checkpoint_of(note)
        place = int(said.origin.rpartition("/")[2]), said.size
        assert all(place > earlier for earlier in self.told)
        self.told.append(place)
        self.seen.append(note)

    def teardown(self) -> None:
        self.stop()
        self._drop()
        self.loop.close()

    # How it is done.

    def _decide(self, act: Any) -> None:  # noqa: ANN401 - any of the acts
        """On a server that runs, or in a command of its own."""

        async def decide() -> None:
            async with opened(self.deployment) as service:
                room: LogRoom = service.log
                await act(room)

        self._try(decide())

    def _try(self, what: Coroutine[Any, Any, T]) -> T | None:
        try:
            return self.loop.run(what)
        except CountersignError:
            return None  # a refusal, of which the head must know nothing

    def _files(self) -> dict[str, bytes]:
        found = [path for path in self.data.rglob("*") if path.is_file()]
        kept = {mode.value: self.heads.stored(mode) or b"" for mode in Mode}
        return kept | {str(path): path.read_bytes() for path in found}

    @property
    def _database(self) -> str:
        if self.postgres is None:
            return "countersign.db"
        return str(make_url(self.deployment.settings["DATABASE_URL"]).database)

    def _copy(self, old: str, new: str) -> None:
        if self.postgres is None:
            self.data.mkdir(exist_ok=True)
            with (
                closing(sqlite3.connect(self._file(old))) as source,
                closing(sqlite3.connect(self._file(new))) as copy,
            ):
                source.backup(copy)
            return
        with self.postgres.connect() as connection:
            names = sql.Identifier(new), sql.Identifier(old)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0]))
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))

    def _lose_heads(self) -> None:
        """Of these nothing is known then; what is published later is told anew."""
        if self.store is None:
            shutil.rmtree(Path(self.deployment.settings["LOG_HEAD_DIR"]), ignore_errors=True)
        else:
            self.store.empty(f"walk{self.number}")
        self.has_heads, self.told = False, []

    def _drop(self) -> None:
        if self.postgres is None:
            for path in self.data.glob("countersign.db*"):
                path.unlink()
            return
        with self.postgres.connect() as connection:
            name = sql.Identifier(self._database)
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(name))

    def _file(self, name: str) -> Path:
        return (self.data if name == self._database else self.copies) / name


def walk(here: type[Walk], examples: int) -> None:
    run_state_machine_as_test(
        here,
        settings=settings(
            max_examples=drawn(examples),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )


@pytest.mark.timeout(300)
def test_the_published_head_only_goes_forward(tmp_path: Path) -> None:
    """On SQLite, in a directory apart from the data."""

    class Here(Walk):
        folder = tmp_path

    walk(Here, 30)


@pytest.mark.postgres
@pytest.mark.timeout(300)
@pytest.mark.parametrize("in_store", [False, True])
def test_the_published_head_only_goes_forward_on_postgresql(
    postgres_server: postgres.PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    in_store: bool,
) -> None:
    """In a directory that servers share, or in an object store."""
    with running_store() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)

        class Here(Walk):
            folder = tmp_path
            store = running if in_store else None
            postgres = postgres_server

        walk(Here, 6)
