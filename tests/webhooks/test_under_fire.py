"""Deliveries under fire: many bad receivers among good ones, with real connections."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from countersign.base.values import Mode
from countersign.core.access.account import add_account
from countersign.core.access.reach import AccountReach
from countersign.core.webhooks.model import (
    SCHEDULE,
    DeliveryStatus,
    Disabled,
    Outcome,
)
from countersign.core.webhooks.schemas import WebhookEndpointRequest
from tests.storage import items
from tests.support.databases import Run
from tests.unit.support import HandClock
from tests.webhooks.conftest import Service, assemble
from tests.webhooks.receiver import Answer, Received, absent, address, running_receiver, until

BAD = {
    "refusing": Answer(status=500),
    "redirecting": Answer(status=302, headers=(("Location", "http://169.254.169.254/"),)),
    "overloaded": Answer(status=503, headers=(("Retry-After", "3"),)),
    "slow": Answer(wait_seconds=30),
    "hanging in its body": Answer(status=200, endless=True),
    "talking nonsense": Answer(status=200, headers=(("Bad header", "x"),)),
    "hanging up": Answer(status=200, body=b"0123456789", cut=20),
}
HANGING = {"slow", "hanging in its body"}


def test_a_hanging_receiver_delays_only_itself(service: Service, run: Run) -> None:
    """Another endpoint of the same account gets everything while the first one answers nothing."""

    async def scenario() -> None:
        patient = assemble(
            service.database, service.account_id, service.clock, timeout_seconds=100.0
        )
        async with running_receiver() as hanging, running_receiver() as good:
            await service.endpoint(hanging.url)
            await service.endpoint(good.url)
            ids = await service.happen(50)
            hanging.answers(Answer(wait_seconds=3600))
            settling = asyncio.ensure_future(patient.deliver.settle())
            await until(lambda: len(good.received) == len(ids))
            assert sorted(good.ids) == sorted(ids)
            assert hanging.received, "it was asked, and has not answered yet"
            assert not settling.done()
            settling.cancel()
        await patient.room.sender.close()

    run(scenario())


def test_every_kind_of_bad_receiver_gets_everything_once_it_has_recovered(
    service: Service, run: Run
) -> None:
    """All at once, with a good one, a deleted one and one that is down among them."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            receivers = {name: await stack.enter_async_context(running_receiver()) for name in BAD}
            good = await stack.enter_async_context(running_receiver())
            gone = await stack.enter_async_context(running_receiver())
            down = absent()
            endpoints = {
                name: (await service.endpoint(receiver.url))[0]
                for name, receiver in receivers.items()
            }
            left = (await service.endpoint(gone.url))[0]
            gone.answers(Answer(status=410))
            await service.endpoint(good.url)
            unheard = (await service.endpoint(address(down)))[0]
            for name, receiver in receivers.items():
                receiver.answers(BAD[name])
            service.hurried.update(receivers[name].port for name in HANGING)
            ids = await service.happen(5)
            await service.deliver.settle()
            assert sorted(good.ids) == sorted(ids)
            assert (await service.again(left)).disabled_reason is Disabled.GONE
            for receiver in receivers.values():
                assert receiver.connections, "each was asked"
                receiver.answers(Answer())
            service.hurried.clear()
            restarted = await stack.enter_async_context(running_receiver(bound=down))
            for _ in range(4):
                service.clock.advance(SCHEDULE[2].total_seconds() * 1.3)
                await service.deliver.settle()
            for name, receiver in receivers.items():
                assert set(receiver.ids) == set(ids), name
                log = await service.log(endpoints[name])
                assert {d.status for d in log} == {DeliveryStatus.SUCCEEDED}, name
            assert sorted(restarted.ids) == sorted(ids)
            tried = [a.outcome for d in await service.log(unheard) for a in d.attempts]
            assert Outcome.UNREACHABLE in tried
            assert len(good.received) == len(ids), "and nobody else was asked again for that"

    run(scenario())


def test_a_sporadically_failing_receiver_gets_each_event_a_bounded_number_of_times(
    service: Service, run: Run
) -> None:
    """Every second answer is a 500: at least once each, and a success is never repeated."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            answered: list[int] = []
            succeeded: list[str] = []

            def now_and_then(received: Received) -> Answer:
                answered.append(1)
                if len(answered) % 2:
                    return Answer(status=500)
                succeeded.append(received.id)
                return Answer()

            receiver.answer = now_and_then
            endpoint, _ = await service.endpoint(receiver.url)
            ids = await service.happen(40)
            for wait in SCHEDULE[:8]:
                service.clock.advance(wait.total_seconds() * 1.3)
                await service.deliver.settle()
            assert sorted(succeeded) == sorted(ids)
            assert await service.log(endpoint, DeliveryStatus.PENDING) == []
            service.clock.advance(86400)
            asked = len(receiver.received)
            await service.deliver.settle()
            assert len(receiver.received) == asked

    run(scenario())


def test_endpoints_of_another_account_and_mode_get_nothing(
    service: Service, run: Run, clock: HandClock
) -> None:
    """An event goes to the endpoints of its own account and mode, and to no others."""

    async def scenario() -> None:
        other = items.account()
        await service.database.write(add_account, other)
        stranger = assemble(service.database, other.id, clock)
        async with running_receiver() as own, running_receiver() as foreign:
            await service.endpoint(own.url)
            await stranger.endpoint(foreign.url)
            live = WebhookEndpointRequest(url=foreign.url)
            await service.endpoint_of(AccountReach(service.account_id, Mode.LIVE), live)
            ids = await service.happen(3)
            await service.deliver.settle()
            await stranger.deliver.settle()
            assert sorted(own.ids) == sorted(ids)
            assert foreign.connections == 0
        await stranger.room.sender.close()

    run(scenario())
