"""Workers write to the embedded database in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec

import pytest
from sqlalchemy import Connection

from countersign.base.db import turn
from countersign.base.db.database import Database
from countersign.base.db.engine import database_url
from countersign.base.db.turn import SharedTurn, SharedTurns
from tests.storage.busy import other_writer

P = ParamSpec("P")
WAKE_UPS = 20


def on_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class RecordedTurn(SharedTurn):
    """Records who ends a turn, and whether the other waits then."""

    ends: list[tuple[int, bool]]

    def end(self) -> None:
        self.ends.append((self._own, self._others(turn._WAITS)))
        super().end()


@on_a_loop
async def test_a_worker_that_waits_writes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer that has finished lets the other go first.

    A worker whose thread the machine suspends does not wait: then the other may write again.
    """
    # Long enough that the wake-up comes before the next look.
    monkeypatch.setattr(turn, "RETRY_SECONDS", 0.5)
    monkeypatch.setattr(turn, "_HAND_OVER_SECONDS", 0.5)
    monkeypatch.setattr(turn, "SharedTurn", RecordedTurn)
    ends: list[tuple[int, bool]] = []
    monkeypatch.setattr(RecordedTurn, "ends", ends, raising=False)
    turns = SharedTurns(2)
    url = database_url(None, tmp_path)

    async with Database(url, turns.of(0)) as one, Database(url, turns.of(1)) as other:

        async def busy(database: Database) -> None:
            while sum(waits for _, waits in ends) < WAKE_UPS:
                await database.write(_answer)

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            # More than one call at a time each, so that one always waits.
            for _ in range(2):
                group.create_task(busy(one))
                group.create_task(busy(other))
    woken = [(worker, after) for (worker, waits), (after, _) in pairwise(ends) if waits]
    assert all(worker != after for worker, after in woken)


@on_a_loop
async def test_a_worker_that_died_in_its_turn_delays_no_one(tmp_path: Path) -> None:
    """It stays noted as the writer until the parent notices its death."""
    turns = SharedTurns(2)
    turns.of(0).begin()
    async with asyncio.timeout(30), Database(database_url(None, tmp_path), turns.of(1)) as database:
        assert await database.write(_answer) == 42
        turns.forget(0)
        assert not turns.of(1).is_anothers()


@on_a_loop
async def test_a_command_that_writes_is_waited_for(tmp_path: Path) -> None:
    """It is no worker, and wakes no one."""
    url = database_url(None, tmp_path)
    async with asyncio.timeout(30), Database(url, SharedTurns(2).of(0)) as database:
        assert await database.write(_answer) == 42
        with other_writer(url):
            waiting = asyncio.ensure_future(database.write(_answer))
            await asyncio.sleep(0.02)
            assert not waiting.done()
        assert await waiting == 42


@on_a_loop
async def test_waiting_processes_are_woken_round_robin() -> None:
    """So that no one waits forever."""
    turns = SharedTurns(3)
    workers = [turns.of(number) for number in range(3)]
    loop = asyncio.get_running_loop()
    went: list[SharedTurn] = []
    for worker in workers:
        worker.start(loop)

    async def ends(worker: SharedTurn) -> None:
        worker.end()
        await asyncio.sleep(0.002)

    workers[1].begin()
    for waiting in (workers[0], workers[2]):
        waiting.wait(loop, lambda waiting=waiting: went.append(waiting))  # type: ignore[misc]
    await ends(workers[1])
    workers[2].begin()
    await ends(workers[2])
    assert went == [workers[2], workers[0]]


def _answer(_connection: Connection) -> int:
    return 42
