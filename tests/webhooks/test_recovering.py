"""Recovering: all that was missed, and no way to keep the database from others."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection, event

from countersign.base import loops
from countersign.base.db.database import Database
from countersign.base.db.workers import BatchAct
from countersign.base.errors import CountersignError, RateLimited, StorageUnavailable
from countersign.core.access.account import add_account
from countersign.core.events import sql as events_sql
from countersign.core.events.model import EventType
from countersign.core.events.sql import last_before, renumber_restored
from countersign.core.webhooks import deliver as deliver_webhooks
from countersign.core.webhooks import deliveries
from countersign.core.webhooks.endpoints import delete_webhook_endpoint
from countersign.core.webhooks.model import RECOVERIES_MAX, RECOVERY_WAIT, DeliveryStatus
from tests.storage import items
from tests.support.acts import done
from tests.support.databases import Run, on_sqlite
from tests.webhooks.conftest import Service, assemble
from tests.webhooks.receiver import Answer, running_receiver, until

pytestmark = pytest.mark.both_engines

NOWHERE = "http://127.0.0.1:9/hook"


def test_an_endpoint_has_one_recovery_at_a_time_and_at_most_one_a_minute(
    service: Service, run: Run
) -> None:
    """Otherwise it could be repeated again and again, each time over all events."""

    async def scenario() -> None:
        endpoint, _ = await service.endpoint(NOWHERE)
        since = service.now
        service.clock.advance(1)
        await service.happen(3)
        await service.fan_out(endpoint, 100)
        await done(deliveries.recover, service.room, endpoint, since)
        with pytest.raises(RateLimited) as refused:
            await done(deliveries.recover, service.room, endpoint, since)
        assert refused.value.retry_after == RECOVERY_WAIT.total_seconds()
        service.clock.advance(RECOVERY_WAIT.total_seconds() + 1)
        with pytest.raises(RateLimited):
            await done(
                deliveries.recover, service.room, endpoint, since
            )  # no one has processed them yet
        assert await service.fan_out(endpoint, 100) == 3
        await done(deliveries.recover, service.room, endpoint, since)
        assert await service.fan_out(endpoint, 100) == 3
        service.clock.advance(20)
        with pytest.raises(RateLimited) as refused:
            await done(deliveries.recover, service.room, endpoint, since)
        assert refused.value.retry_after == RECOVERY_WAIT.total_seconds() - 20

    run(scenario())


def test_an_account_begins_few_recoveries_however_many_endpoints_it_makes(
    service: Service, run: Run
) -> None:
    """Also where each endpoint is deleted after its recovery; its live mode is another one's."""

    async def scenario() -> None:
        since = service.now
        service.clock.advance(1)
        await service.happen(3)
        for _ in range(RECOVERIES_MAX):
            endpoint, _ = await service.endpoint(NOWHERE)
            await done(deliveries.recover, service.room, endpoint, since)
            await done(delete_webhook_endpoint, service.room, endpoint)
            service.clock.advance(1)
        endpoint, _ = await service.endpoint(NOWHERE)
        with pytest.raises(RateLimited) as refused:
            await done(deliveries.recover, service.room, endpoint, since)
        assert refused.value.retry_after == RECOVERY_WAIT.total_seconds() - RECOVERIES_MAX
        service.clock.advance(refused.value.retry_after)
        await done(deliveries.recover, service.room, endpoint, since)

    run(scenario())


def test_two_concurrent_recoveries_are_one(service: Service, run: Run) -> None:
    """Whichever server they reach: the row is locked while it is decided."""

    async def scenario() -> None:
        endpoint, _ = await service.endpoint(NOWHERE)
        since = service.now
        service.clock.advance(1)
        await service.happen(1)
        await service.fan_out(endpoint, 100)
        async with Database(service.database.url) as other:
            both = (service, assemble(other, service.account_id, service.clock))
            outcomes = await asyncio.gather(
                *(done(deliveries.recover, one.room, endpoint, since) for one in both),
                return_exceptions=True,
            )
            await both[1].room.sender.close()
        refused = [type(o) for o in outcomes if isinstance(o, CountersignError)]
        assert refused == [RateLimited]

    run(scenario())


def test_while_one_vendor_recovers_another_gets_its_events(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processing many events pauses in between, and only the recovering vendor waits for it."""
    monkeypatch.setattr(deliver_webhooks, "FAN_OUT", 5)
    monkeypatch.setattr(deliver_webhooks, "CATCH_UP_SECONDS", 3600)

    async def scenario() -> None:
        other = items.account()
        await service.database.write(add_account, other)
        neighbour = assemble(service.database, other.id, service.clock)
        async with running_receiver() as good:
            since = service.now
            service.clock.advance(1)
            unwanted = frozenset({EventType.NOTICE_PUBLISHED})
            hostile = [(await service.endpoint(NOWHERE, unwanted))[0] for _ in range(4)]
            await service.happen(50)
            for endpoint in hostile:
                await service.fan_out(endpoint, 100)
                await done(deliveries.recover, service.room, endpoint, since)
            await neighbour.endpoint(good.url)
            (event_id,) = await neighbour.happen()
            delivering = asyncio.create_task(service.deliver.run())
            await until(lambda: good.ids == [event_id])
            for endpoint in hostile:
                assert await service.fan_out(endpoint, 100) == 45
            monkeypatch.setattr(deliver_webhooks, "_STOP_SECONDS_MAX", 0.0)
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)
        await neighbour.room.sender.close()

    run(scenario())


@on_sqlite
def test_the_events_since_a_time_are_found_by_an_index(service: Service, run: Run) -> None:
    """Not by walking over all that happened since, on the event loop."""
    plans: list[str] = []

    def explain(connection: Connection, _: None) -> None:
        statements: list[tuple[str, object]] = []
        event.listen(
            connection, "before_cursor_execute", lambda *a: statements.append((a[2], a[3]))
        )
        last_before(connection, service.reach, service.now)
        ((text, parameters),) = statements
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", parameters)  # type: ignore[arg-type]
        plans.extend(row[-1] for row in plan)

    run(service.database.scan(explain, None))
    assert "ix_events_account_id_mode_at (account_id=? AND mode=? AND at<?)" in plans[0]


@on_sqlite
def test_an_unreachable_database_postpones_and_ends_no_running_delivery(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others' results are stored, and the log says postponed."""
    logged = structlog.testing.CapturingLogger()
    for module in (deliver_webhooks, loops):
        monkeypatch.setattr(module, "_log", logged)
    write_batched, results = service.database.write_batched, count()

    async def lose_first(act: BatchAct[Any, Any], item: object) -> object:
        """The database is away when the first result is written."""
        if next(results) == 0:
            raise StorageUnavailable
        return await write_batched(act, item)

    async def scenario() -> None:
        monkeypatch.setattr(service.database, "write_batched", lose_first)
        async with running_receiver() as receiver:
            receiver.answer = lambda _: Answer(wait_seconds=0.05 * len(receiver.received))
            endpoint, _ = await service.endpoint(receiver.url)
            ids = await service.happen(6)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids), "nothing was ended on its way"
            succeeded = await service.log(endpoint, DeliveryStatus.SUCCEEDED)
            assert len(succeeded) == 5, "all but the one whose result was lost"
            said = [call.args[0] for call in logged.calls]
            assert "webhook_endpoint_deferred" in said
            assert "webhook_failed" not in said

    run(scenario())


@on_sqlite
def test_an_unreachable_database_at_the_start_does_not_end_deliveries(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin when it is there; nothing else would start them in this process."""
    asked = count()

    def late(connection: Connection) -> bool:
        if next(asked) == 0:
            raise StorageUnavailable
        return renumber_restored(connection)

    monkeypatch.setattr(events_sql, "renumber_restored", late)

    async def scenario() -> None:
        async with running_receiver() as receiver:
            await service.endpoint(receiver.url)
            ids = await service.happen(1)
            delivering = asyncio.create_task(service.deliver.run())
            await until(lambda: receiver.ids == ids)
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    run(scenario())
