"""Messages while sealing is suspended: true, and only once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import structlog
from structlog.typing import EventDict

from countersign.base.errors import WrongKeyEncryptionKey
from countersign.base.values import Mode
from countersign.core.log import logs_sql
from countersign.core.log.head_files import HeadFiles
from countersign.core.log.operate import begin_epoch
from countersign.core.vault.vault import Vault
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.note import checkpoint_of
from tests.sealing.acts import NOTICE
from tests.sealing.inside import ShiftedClock, acknowledge_inside, opened
from tests.support.service import Deployment


def said_while(
    deployment: Deployment,
    act: Callable[[Opened, ShiftedClock], Awaitable[None]],
    mode: str = "test",
) -> list[EventDict]:
    """The errors that the service logs about sealing in a mode meanwhile."""

    async def done() -> None:
        clock = ShiftedClock()
        async with opened(deployment, clock) as service:
            await act(service, clock)

    with structlog.testing.capture_logs() as said:
        asyncio.run(done())
    return [line for line in said if line["log_level"] == "error" and line["mode"] == mode]


async def acknowledge(service: Opened, account: str) -> None:
    await acknowledge_inside(service, account, NOTICE, Mode.TEST)


def test_a_slow_clock_is_reported_once(embedded: Deployment) -> None:
    """Not for every acknowledgment, nor four times a second, although it moves meanwhile."""
    account = embedded.account("vendor")

    async def act(service: Opened, clock: ShiftedClock) -> None:
        await acknowledge(service, account)
        for behind in (60, 58, 40):
            clock.seconds = -behind
            await acknowledge(service, account)
            await service.log.seal.settle()

    assert [line["event"] for line in said_while(embedded, act)] == ["sealing_suspended"]


def test_a_clock_that_was_fast_is_distinct_from_a_slow_one(embedded: Deployment) -> None:
    """The message names the time, and a new epoch as the way out; that way goes on at once."""
    account = embedded.account("vendor")

    async def act(service: Opened, clock: ShiftedClock) -> None:
        clock.seconds = 400 * 86_400
        await acknowledge(service, account)
        clock.seconds = 0
        await acknowledge(service, account)
        said = service.log.seal.suspended[Mode.TEST]
        head = (await service.log.seal.current(refresh=True))[Mode.TEST]
        assert head.at.strftime("%Y-%m-%dT%H:%M:%S") in said
        assert "log recover --new-epoch" in said
        await begin_epoch(service.log, Mode.TEST, "the clock was fast")
        await service.log.seal.settle()
        assert service.log.seal.suspended == {}
        assert await service.database.read(logs_sql.queues) == {}

    said_while(embedded, act)


def test_a_suspended_mode_is_sealed_again_while_the_other_is_busy(embedded: Deployment) -> None:
    """Each look falls just after a checkpoint of the other, and no call comes in this one."""
    account = embedded.account("vendor")

    async def act(service: Opened, clock: ShiftedClock) -> None:
        await acknowledge(service, account)
        await service.log.seal.settle()
        clock.seconds = -86_400  # before it was initialised, too
        await service.log.seal._seal()
        assert set(service.log.seal.suspended) == set(Mode)
        clock.seconds = 2
        await acknowledge(service, account)
        await acknowledge(service, account)
        await service.log.seal._seal()
        assert service.log.seal.suspended == {}

    said_while(embedded, act)


def test_records_sealed_by_acts_are_published_at_the_next_check(
    embedded: Deployment,
) -> None:
    """Also while a log is so busy that each look falls just after its newest checkpoint."""
    account = embedded.account("vendor")

    async def act(service: Opened, clock: ShiftedClock) -> None:
        await service.log.seal._seal()
        for clock.seconds in (2, 4):
            await acknowledge(service, account)
            log = (await service.log.seal.current(refresh=True))[Mode.TEST]
            await acknowledge(service, account)
            await service.log.seal._seal()
            kept = HeadFiles(embedded.data_dir / "heads").stored(Mode.TEST)
            assert kept is not None
            assert checkpoint_of(kept).size >= log.size > 0

    assert said_while(embedded, act) == []


def test_unwritable_heads_are_reported_once(embedded: Deployment) -> None:
    """However often somebody asks for evidence meanwhile; and again after it had gone well."""
    account = embedded.account("vendor")
    lock = embedded.data_dir / "heads" / ".lock"

    async def act(service: Opened, _: ShiftedClock) -> None:
        for _round in range(2):
            await acknowledge(service, account)
            await service.log.seal.settle()
            await service.log.seal.publish()
            lock.unlink()
            lock.mkdir()
            for _ask in range(3):
                await acknowledge(service, account)
                await service.log.seal.settle()
                await service.log.seal.publish()
            lock.rmdir()
            await service.log.seal.publish()

    said = said_while(embedded, act)
    assert [line["event"] for line in said] == ["head_unavailable"] * 2


def test_changed_keys_that_cannot_be_read_are_an_alarm(
    embedded: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a successful change is no alarm."""

    async def refuse(*_: object, **__: object) -> bytes:
        raise WrongKeyEncryptionKey

    async def act(service: Opened, _: ShiftedClock) -> None:
        embedded.run("log", "rotate-key", "--yes")
        with monkeypatch.context() as broken:
            broken.setattr(Vault, "open", refuse)
            for _turn in range(2):
                with pytest.raises(WrongKeyEncryptionKey):
                    await service.log.seal.settle()
            assert "cannot be read" in service.log.seal.suspended[Mode.LIVE]
        await service.log.seal.settle()
        assert service.log.seal.suspended == {}

    assert [line["event"] for line in said_while(embedded, act, "live")] == ["sealing_suspended"]
