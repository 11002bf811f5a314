"""Overload: refused calls have not begun, and accepted ones are done once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import pytest
from sqlalchemy import Connection, text

from countersign.base.db import batching
from countersign.base.db.database import Database
from countersign.base.db.statements import deferred_statements
from countersign.base.deadline import DEADLINE, TimeLeft
from countersign.base.errors import Overloaded, StorageUnavailable
from countersign.core.access.account import Account, add_account, all_accounts
from tests.storage import items
from tests.support.databases import POOLED, Run
from tests.support.engines import POSTGRES

BATCH_SECONDS = 0.02
AT_ONCE = 4
"""Calls in a batch: so, two hundred a second are done at most."""
DEADLINE_SECONDS = 3.0
CALLS = 800


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let batches be small and their work be long."""
    monkeypatch.setattr(batching, "BATCH_MAX", AT_ONCE)


def slowly(connection: Connection, account: Account) -> None:
    """Add an account, in a part of the time of a batch."""
    add_account(connection, account)
    time.sleep(BATCH_SECONDS / AT_ONCE)  # the disk


async def request(database: Database, account: Account) -> tuple[str, float]:
    """The response to a request, and its duration."""
    DEADLINE.set(TimeLeft(DEADLINE_SECONDS))
    begun = time.monotonic()
    try:
        await database.write(slowly, account)
    except Overloaded:
        return "refused", time.monotonic() - begun
    except StorageUnavailable:  # on a machine that does much else
        return "late", time.monotonic() - begun
    return "done", time.monotonic() - begun


# On the embedded database acts block the loop that the calls come from, so that fewer come.
@pytest.mark.parametrize("engine_name", [POSTGRES, POOLED], indirect=True)
@pytest.mark.usefixtures("slow")
def test_refused_calls_are_not_written_and_accepted_ones_are_written_once(
    database: Database, run: Run
) -> None:
    """Three times the capacity arrives, and no one waits for a late response."""
    accounts = [items.account() for _ in range(CALLS)]
    database.limit_waiting(DEADLINE_SECONDS)

    async def act() -> tuple[list[tuple[str, float]], list[Account]]:
        calls = []
        for account in accounts:
            calls.append(asyncio.create_task(request(database, account)))
            await asyncio.sleep(BATCH_SECONDS / AT_ONCE / 3)
        answers = await asyncio.gather(*calls)
        return answers, list(await database.scan(all_accounts))

    answers, stored = run(act())
    kinds = Counter(kind for kind, _ in answers)
    assert set(kinds) - {"late"} == {"done", "refused"}
    done = [
        account.id for account, (kind, _) in zip(accounts, answers, strict=True) if kind == "done"
    ]
    assert sorted(done) == sorted(account.id for account in stored)
    assert max(seconds for kind, seconds in answers if kind == "refused") < DEADLINE_SECONDS / 4
    assert kinds["late"] < CALLS / 20


@pytest.mark.parametrize("engine_name", [POSTGRES, POOLED], indirect=True)
@pytest.mark.usefixtures("slow")
def test_a_request_that_has_written_is_not_refused_later(database: Database, run: Run) -> None:
    """Nor are calls that no request waits for, such as sealing."""
    database.limit_waiting(60.0)
    first, second, third = items.account(), items.account(), items.account()
    began, gate = threading.Event(), threading.Event()

    def held(_: Connection) -> None:
        began.set()
        gate.wait(30)

    async def begun(seconds: float, *, has_written: bool, account: Account) -> None:
        DEADLINE.set(TimeLeft(seconds, has_written=has_written))
        await database.write(add_account, account)

    async def act() -> None:
        waiting = [asyncio.create_task(database.write(held))]
        await asyncio.to_thread(began.wait, 10)
        database._write._took = DEADLINE_SECONDS  # as if batches took this long
        waiting += [
            asyncio.create_task(database.write(add_account, items.account()))
            for _ in range(2 * AT_ONCE)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await begun(DEADLINE_SECONDS, has_written=False, account=first)
        assert refused.value.retry_after is not None
        assert refused.value.retry_after >= DEADLINE_SECONDS
        waiting.append(asyncio.create_task(begun(60.0, has_written=True, account=second)))
        DEADLINE.set(None)
        waiting.append(asyncio.create_task(database.write(add_account, third)))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*waiting)

    run(act())
    stored = {account.id for account in run(database.scan(all_accounts))}
    assert first.id not in stored
    assert {second.id, third.id} <= stored


@pytest.mark.parametrize("engine_name", [POSTGRES, POOLED], indirect=True)
@pytest.mark.timeout(60)
def test_a_batch_larger_than_the_buffers_of_a_socket_is_committed(
    database: Database, run: Run
) -> None:
    """Otherwise client and server would wait for each other, and everything would stop."""
    database.limit_waiting(10.0)
    large = "x" * 4_000_000

    def act(connection: Connection, account: Account) -> None:
        deferred = deferred_statements(connection)
        assert deferred is not None
        deferred.statements += [("SELECT length(%s::text)", (large,))] * 3
        connection.execute(text("SELECT 1"))
        add_account(connection, account)

    for _ in range(3):
        run(database.write(act, items.account()))
    assert len(run(database.scan(all_accounts))) == 3
