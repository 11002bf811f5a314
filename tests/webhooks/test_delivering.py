"""Deliveries: each event reaches each endpoint, signed, by the published schedule, to an end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import to_builtins
from sqlalchemy import Connection, select

from countersign.base.db.database import Database
from countersign.base.db.tables import webhook_attempts, webhook_deliveries
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.events.model import EventType
from countersign.core.events.routes import get_event
from countersign.core.privacy.erase_sql import forget_ties
from countersign.core.webhooks.deliver import CONCURRENT
from countersign.core.webhooks.model import (
    AGE_MAX,
    JITTER,
    RESPONSES_KEPT,
    SCHEDULE,
    DeliveryStatus,
    Disabled,
    Outcome,
)
from countersign.operate.housekeeping import delete_outdated
from tests.support.acts import asked
from tests.support.databases import Run
from tests.webhooks.conftest import Service
from tests.webhooks.receiver import Answer, absent, address, running_receiver
from tests.webhooks.verifying import verify

pytestmark = pytest.mark.both_engines


def test_each_event_is_delivered_once_and_verifies_in_both_ways(service: Service, run: Run) -> None:
    """The content is that of the API, under the event's id, signed with v1 and v1a."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, secret = await service.endpoint(receiver.url)
            ids = await service.happen(3)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids)
            now = service.clock.time_ns() / 1e9
            public = endpoint.secrets[0].public_key
            for received in receiver.received:
                for key in (secret.text, public):
                    assert verify([key], received.headers, received.body, now) == received.id
                shown = await asked(get_event, service.room.events, service.reach, received.id)
                told = {"timestamp": received.message["created_at"]} | to_builtins(shown)
                assert received.message == told
                assert received.headers["content-type"] == "application/json"
                assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
            log = await service.log(endpoint)
            assert [d.status for d in log] == [DeliveryStatus.SUCCEEDED] * 3
            assert [[a.http_status for a in d.attempts] for d in log] == [[204]] * 3
            await service.deliver.settle()
            assert len(receiver.received) == 3

    run(scenario())


def test_events_before_the_endpoint_was_made_are_not_sent(service: Service, run: Run) -> None:
    """A new endpoint begins with what happens next."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            await service.happen(2)
            await service.endpoint(receiver.url)
            ids = await service.happen(2)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids)

    run(scenario())


def test_an_endpoint_gets_the_types_it_wants(service: Service, run: Run) -> None:
    """Events of other types are gone past, and do not come later."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            wanted = frozenset({EventType.BUYER_VERIFIED})
            await service.endpoint(receiver.url, wanted)
            await service.happen(2)
            ids = await service.happen(1, EventType.BUYER_VERIFIED)
            await service.deliver.settle()
            assert receiver.ids == ids

    run(scenario())


def test_a_failing_receiver_is_tried_by_the_schedule_and_then_no_more(
    service: Service, run: Run
) -> None:
    """Ten attempts, each after its wait and not before, with one id and a new timestamp each."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=500))
            endpoint, _ = await service.endpoint(receiver.url)
            (event_id,) = await service.happen()
            await service.deliver.settle()
            for step, wait in enumerate(SCHEDULE[1:], 1):
                assert len(receiver.received) == step
                service.clock.advance(wait.total_seconds() - 1)
                await service.deliver.settle()
                assert len(receiver.received) == step, "not before its time"
                service.clock.advance(wait.total_seconds() * JITTER + 2)
                await service.deliver.settle()
            assert len(receiver.received) == len(SCHEDULE)
            service.clock.advance(30 * 86400)
            await service.deliver.settle()
            assert receiver.ids == [event_id] * len(SCHEDULE)
            stamps = [received.headers["webhook-timestamp"] for received in receiver.received]
            assert len(set(stamps)) == len(SCHEDULE)
            (delivery,) = await service.log(endpoint)
            assert delivery.status is DeliveryStatus.FAILED
            assert delivery.next_attempt_at is None
            assert len(delivery.attempts) == len(SCHEDULE)

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "outcome", "status"),
    [
        (Answer(status=500), Outcome.REFUSED, 500),
        (Answer(status=301, headers=(("Location", "/elsewhere"),)), Outcome.REFUSED, 301),
        (Answer(status=307, headers=(("Location", "/elsewhere"),)), Outcome.REFUSED, 307),
        (Answer(status=400, body=b"x" * 100_000), Outcome.REFUSED, 400),
        (Answer(wait_seconds=30), Outcome.TIMED_OUT, None),
        (Answer(status=200, endless=True), Outcome.TIMED_OUT, None),
        (Answer(status=200, body=b"0123456789", cut=20), Outcome.UNREACHABLE, None),
        (Answer(status=200, body=b"0123456789", cut=50), Outcome.UNREACHABLE, None),
        (Answer(status=200, headers=(("Bad header", "x"),)), Outcome.UNREACHABLE, None),
        (Answer(status=200, headers=(("X", "x" * 100_000),)), Outcome.UNREACHABLE, None),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Answer) else None,
)
def test_whatever_goes_wrong_is_one_failed_attempt_and_then_it_succeeds(
    answer: Answer, outcome: Outcome, status: int | None, service: Service, run: Run
) -> None:
    """Nothing hangs, nothing is followed, nothing is lost: five seconds later it arrives."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(answer, Answer())
            endpoint, _ = await service.endpoint(receiver.url)
            (event_id,) = await service.happen()
            if outcome is Outcome.TIMED_OUT:
                service.hurried.add(receiver.port)
            await service.deliver.settle()
            service.hurried.clear()
            (delivery,) = await service.log(endpoint)
            (attempt,) = delivery.attempts
            assert (attempt.outcome, attempt.http_status) == (outcome, status)
            assert delivery.status is DeliveryStatus.PENDING
            service.clock.advance(7)
            await service.deliver.settle()
            assert receiver.ids == [event_id] * 2
            assert {received.target for received in receiver.received} == {"/hook"}
            (delivery,) = await service.log(endpoint)
            assert delivery.status is DeliveryStatus.SUCCEEDED

    run(scenario())


def test_a_large_answer_is_not_read_to_its_end(service: Service, run: Run) -> None:
    """A receiver that says 200 and then sends without end is believed, and hung up on."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=200, body=b"x" * 200_000, endless=True))
            endpoint, _ = await service.endpoint(receiver.url)
            await service.happen()
            await service.deliver.settle()
            (delivery,) = await service.log(endpoint)
            assert delivery.status is DeliveryStatus.SUCCEEDED

    run(scenario())


def test_a_refusal_is_kept_sealed_for_a_week(
    service: Service, database: Database, run: Run
) -> None:
    """Its beginning, in the deliveries of the endpoint alone."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=500, body=b"No customer \xff" + b"x" * 2000))
            endpoint, _ = await service.endpoint(receiver.url)
            await service.happen()
            await service.deliver.settle()
            [delivery] = await service.log(endpoint)
            assert delivery.response == "No customer \ufffd" + "x" * 1011
            [sealed] = await database.scan(responses)
            assert sealed is not None
            assert b"customer" not in sealed
            for seconds, is_there in ((0, True), (2, False)):
                service.clock.advance(seconds or RESPONSES_KEPT.total_seconds() - 1)
                await delete_outdated(database, service.now)
                [delivery] = await service.log(endpoint)
                assert (delivery.response is not None) is is_there

    run(scenario())


def test_a_refusal_goes_when_the_receiver_accepts(
    service: Service, database: Database, run: Run
) -> None:
    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            for status, body in ((500, b"No customer Ann"), (200, b"")):
                receiver.answers(Answer(status=status, body=body))
                if status == 500:
                    await service.happen()
                await service.deliver.settle()
                service.clock.advance(3600)
            [delivery] = await service.log(endpoint)
            assert delivery.status is DeliveryStatus.SUCCEEDED
            assert await database.scan(responses) == [None]

    run(scenario())


def test_an_erasure_of_an_account_destroys_its_refusals(
    service: Service, database: Database, run: Run
) -> None:
    """A receiver may have named any buyer in them; those of other accounts stay."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=400, body=b"Ann Smith"))
            await service.endpoint(receiver.url)
            await service.happen()
            await service.deliver.settle()
            secret, other = DeploymentSecret(b"s" * 32), AccountReach("acct_other", Mode.LIVE)
            for reach, left in ((other, 1), (service.reach, 0)):
                await database.write(forget_ties, secret, ["cbid_of_ann"], [], reach)
                assert sum(one is not None for one in await database.scan(responses)) == left

    run(scenario())


def responses(connection: Connection) -> list[bytes | None]:
    return list(connection.execute(select(webhook_deliveries.c.response)).scalars())


def test_410_disables_the_endpoint_and_stops_waiting_deliveries(service: Service, run: Run) -> None:
    """A receiver that returns 410 gets nothing until somebody enables it."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=410))
            endpoint, _ = await service.endpoint(receiver.url)
            await service.happen(100)
            await service.deliver.settle()
            disabled = await service.again(endpoint)
            assert disabled.disabled_reason is Disabled.GONE
            asked = len(receiver.received)
            assert asked <= CONCURRENT, "those that were on their way"
            await service.happen(5)
            service.clock.advance(86400)
            await service.deliver.settle()
            assert len(receiver.received) == asked
            assert await service.log(endpoint, DeliveryStatus.PENDING) == []

    run(scenario())


def test_retry_after_makes_the_wait_longer_and_never_shorter(service: Service, run: Run) -> None:
    """429 with Retry-After: 120 is followed; nothing at all is sent meanwhile."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=429, headers=(("Retry-After", "120"),)), Answer())
            await service.endpoint(receiver.url)
            await service.happen(1)
            await service.deliver.settle()
            await service.happen(10)
            service.clock.advance(118)
            await service.deliver.settle()
            assert len(receiver.received) == 1
            service.clock.advance(3)
            await service.deliver.settle()
            assert len(receiver.received) == 12

    run(scenario())


def test_a_failing_receiver_does_not_use_up_the_attempts_of_waiting_deliveries(
    service: Service, run: Run
) -> None:
    """While it is down one message is tried now and then; when it is up all arrive at once."""

    async def scenario() -> None:
        down = absent()
        endpoint, _ = await service.endpoint(address(down))
        ids = await service.happen(90)
        for _ in range(20):
            await service.deliver.settle()
            service.clock.advance(30)
        attempts = [len(d.attempts) for d in await service.log(endpoint)]
        assert max(attempts) <= 4
        assert sum(attempts) <= CONCURRENT + 20
        async with running_receiver(bound=down) as receiver:
            service.clock.advance(61)
            await service.deliver.settle()
            service.clock.advance(SCHEDULE[3].total_seconds() * 2)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids)

    run(scenario())


def test_a_process_that_dies_between_send_and_record_leaves_it_to_the_next(
    service: Service, run: Run
) -> None:
    """Claimed and never finished: due again when the lease is over, and counted all the same."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            ids = await service.happen(3)
            await service.fan_out(endpoint, 100)
            for _ in range(3):
                lease = service.now + timedelta(seconds=20)
                assert len(await service.claim(endpoint, lease, 10)) == 3
                assert await service.claim(endpoint, lease, 10) == []
                service.clock.advance(21)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids)
            assert await service.database.scan(_numbers) == [4, 4, 4]

    run(scenario())


def _numbers(connection: Connection) -> list[int]:
    return list(connection.execute(select(webhook_attempts.c.number)).scalars())


def test_repeated_deaths_come_to_an_end(service: Service, run: Run) -> None:
    """A message that kills its sender is tried as often as the schedule says, and no more."""

    async def scenario() -> None:
        endpoint, _ = await service.endpoint("http://127.0.0.1:9/hook")
        await service.happen()
        await service.fan_out(endpoint, 100)
        claims = 0
        for _ in range(20):
            lease = service.now + timedelta(seconds=20)
            claims += len(await service.claim(endpoint, lease, 10))
            service.clock.advance(21)
        assert claims == len(SCHEDULE)
        (delivery,) = await service.log(endpoint)
        assert delivery.status is DeliveryStatus.FAILED

    run(scenario())


def test_no_delivery_is_retried_beyond_the_schedule() -> None:
    """The limit of age ends only deliveries that the schedule could not."""
    longest = sum((wait * (1 + JITTER) for wait in SCHEDULE), timedelta(0))
    assert longest < AGE_MAX
