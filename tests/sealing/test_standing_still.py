"""An idle log costs one look, and any change is seen at the next look."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Connection, func, insert, select, update

from countersign.base.db.tables import deployment, log_heads, log_pending
from countersign.base.values import Mode
from countersign.operate.bootstrap import Deployment as Opened
from tests.sealing.inside import opened
from tests.support.service import Deployment
from tests.unit.support import HandClock

pytestmark = pytest.mark.both_engines
IDLE_SECONDS = 5.0


def queue(connection: Connection) -> None:
    row = {"record_id": f"ack_{1:026d}", "mode": "test", "digest": bytes(32)}
    connection.execute(insert(log_pending), row)


def change_keys(connection: Connection) -> None:
    connection.execute(update(log_heads).values(keys_revision=log_heads.c.keys_revision + 1))


def suspend(connection: Connection) -> None:
    row = {"name": "sealing_suspended:live", "value": b"a restore"}
    connection.execute(insert(deployment), row)


def turns(service: Opened) -> int:
    """The number of transactions of sealing; a look needs none."""
    batches = service.database.batches()
    return batches.get("seal", batches["write"])[0]


async def stand_still(service: Opened, monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """Look until nothing is left to do; time stands still from then on."""
    clock = HandClock()
    monkeypatch.setattr(service.log.seal, "_clock", clock)
    await service.log.seal._seal()
    await service.log.seal._seal()
    return clock


def test_an_idle_log_is_only_looked_at(own: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now and then a turn is a full one nevertheless: it detects a clock that was set back."""

    async def act() -> None:
        async with opened(own) as service:
            clock = await stand_still(service, monkeypatch)
            before = turns(service)
            for _ in range(3):
                await service.log.seal._seal()
            assert turns(service) == before
            clock.advance(IDLE_SECONDS)
            await service.log.seal._seal()
            assert turns(service) > before

    asyncio.run(act())


def test_an_idle_log_is_looked_at_each_second(
    own: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or as soon as somebody waits for an entry."""

    async def act() -> None:
        async with opened(own) as service:
            seal, clock = service.log.seal, await stand_still(service, monkeypatch)

            async def looks() -> int:
                before = service.database.batches()["read"][0]
                await seal._unless_idle()
                return service.database.batches()["read"][0] - before

            await seal._seal()
            assert await looks() == 0
            clock.advance(1)
            assert await looks() == 1
            assert await looks() == 0
            seal._wanted = True
            assert await looks() == 1
            seal._wanted = False
            clock.advance(1)
            await service.database.write(queue)
            assert await looks() > 0
            assert await looks() > 0  # until nothing is found

    asyncio.run(act())


@pytest.mark.parametrize("change", [queue, change_keys, suspend])
def test_new_work_of_an_idle_log_is_noticed_at_the_next_check(
    own: Deployment, monkeypatch: pytest.MonkeyPatch, change: object
) -> None:
    """Also what another process has done."""

    async def act() -> None:
        async with opened(own) as service, opened(own) as other:
            await stand_still(service, monkeypatch)
            before = turns(service)
            await other.database.write(change)  # type: ignore[arg-type]
            await service.log.seal._seal()
            assert turns(service) > before
            waiting = select(func.count()).where(log_pending.c.mode == Mode.TEST)
            assert await service.database.read(lambda c: c.execute(waiting).scalar_one()) == 0

    asyncio.run(act())
