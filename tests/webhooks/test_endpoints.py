"""Endpoints: limits, rotation, disabling, resending and recovering."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import Connection, func, select, update

from countersign.base.db.database import Database
from countersign.base.db.tables import (
    accounts,
    webhook_attempts,
    webhook_deliveries,
    webhook_endpoints,
    webhook_secrets,
)
from countersign.base.errors import (
    InvalidApiKey,
    InvalidRequest,
    NotFound,
    TooManyWebhookEndpoints,
    WebhookEndpointDisabled,
)
from countersign.base.http.body import parse_body
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.events.model import EventType
from countersign.core.gate.act import Writing
from countersign.core.gate.route import encode
from countersign.core.webhooks import deliveries, endpoints
from countersign.core.webhooks.deliver import CONCURRENT, send_example
from countersign.core.webhooks.deliveries import delete_old
from countersign.core.webhooks.model import (
    AGE_MAX,
    ENDPOINTS_MAX,
    LOG_KEPT,
    SECRETS_MAX,
    DeliveryStatus,
    Endpoint,
    Outcome,
    SharedSecret,
)
from countersign.core.webhooks.schemas import (
    SecretRotation,
    WebhookEndpointChange,
    WebhookEndpointRequest,
)
from tests.support.acts import done
from tests.support.databases import Run, on_postgres
from tests.unit.support import HandClock
from tests.webhooks.conftest import Service, assemble
from tests.webhooks.receiver import Answer, Received, absent, address, running_receiver, until
from tests.webhooks.verifying import WebhookVerificationFailed, verify

NOWHERE = "http://127.0.0.1:9/hook"


def verifies(secret: SharedSecret, received: Received, now: float) -> bool:
    try:
        verify([secret.text], received.headers, received.body, now)
    except WebhookVerificationFailed:
        return False
    return True


async def rotate(service: Service, endpoint: Endpoint, overlap: timedelta) -> SharedSecret:
    """Give the endpoint a new secret, and return it."""
    wanted = SecretRotation(overlap_seconds=int(overlap.total_seconds()))
    write = Writing(service.database)
    made = await endpoints.rotate_webhook_secret(service.room, wanted, endpoint, None, write)
    return SharedSecret.from_text(made.secret)


def test_during_a_rotation_old_and_new_secret_sign_and_then_only_the_new_one(
    service: Service, run: Run
) -> None:
    """A receiver can change its secret at any moment of the overlap without losing a message."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, old = await service.endpoint(receiver.url)
            new = await rotate(service, endpoint, timedelta(hours=24))
            for hours, old_signs in ((1, True), (24, False)):
                service.clock.advance(hours * 3600)
                await service.happen()
                await service.deliver.settle()
                now = service.clock.time_ns() / 1e9
                assert verifies(new, receiver.received[-1], now)
                assert verifies(old, receiver.received[-1], now) is old_signs

    run(scenario())


def test_rotating_again_and_again_keeps_the_number_of_signatures_bounded(
    service: Service, run: Run
) -> None:
    """A header is read by others: it must not grow without end."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            for _ in range(SECRETS_MAX + 3):
                service.clock.advance(1)
                endpoint = await service.again(endpoint)
                await rotate(service, endpoint, timedelta(days=7))
            await service.happen()
            await service.deliver.settle()
            signatures = receiver.received[0].headers["webhook-signature"].split(" ")
            assert len(signatures) == 2 * SECRETS_MAX

    run(scenario())


@pytest.mark.parametrize("overlap", [timedelta(days=8), timedelta(seconds=-1)])
def test_an_overlap_is_at_most_a_week(overlap: timedelta) -> None:
    """A secret that was rotated away must go some day."""
    body = encode({"overlap_seconds": int(overlap.total_seconds())})
    with pytest.raises(InvalidRequest):
        parse_body(body, SecretRotation)


def test_an_account_has_a_bounded_number_of_endpoints_in_each_mode(
    service: Service, run: Run
) -> None:
    """The one too many is refused, also of several at once; a deleted one makes room."""

    async def scenario() -> None:
        made = await asyncio.gather(
            *(service.endpoint(f"{NOWHERE}/{n}") for n in range(ENDPOINTS_MAX + 3)),
            return_exceptions=True,
        )
        refused = [outcome for outcome in made if isinstance(outcome, BaseException)]
        assert [type(error) for error in refused] == [TooManyWebhookEndpoints] * 3
        (first, _), *_ = (one for one in made if not isinstance(one, BaseException))
        await done(endpoints.delete_webhook_endpoint, service.room, first)
        await service.endpoint(NOWHERE)
        with pytest.raises(NotFound):
            await done(endpoints.delete_webhook_endpoint, service.room, first)
        wanted = WebhookEndpointRequest(url=NOWHERE)
        await service.endpoint_of(AccountReach(service.account_id, Mode.LIVE), wanted)

    run(scenario())


def test_a_closed_account_gets_no_endpoint(service: Service, run: Run) -> None:
    """A server may not have noticed yet that its keys are revoked: it answers as afterwards."""

    def close(connection: Connection) -> None:
        connection.execute(update(accounts).values(closed_at=service.now))

    async def scenario() -> None:
        await service.database.write(close)
        with pytest.raises(InvalidApiKey) as refused:
            await service.endpoint(NOWHERE)
        assert refused.value.message == InvalidApiKey().message

    run(scenario())


def test_disabling_stops_waiting_deliveries_and_recovering_sends_missed_events(
    service: Service, run: Run
) -> None:
    """Enabled again it gets what happens next; since a time, what happened meanwhile too."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            delivered = await service.happen(2)
            await service.deliver.settle()
            since = service.now
            receiver.answers(Answer(status=500))
            failing = await service.happen(2)
            await service.deliver.settle()
            await done(
                endpoints.change_webhook_endpoint,
                service.room,
                WebhookEndpointChange(disabled=True),
                endpoint,
            )
            missed = await service.happen(2)
            with pytest.raises(WebhookEndpointDisabled):
                await done(deliveries.recover, service.room, endpoint, since)
            await done(
                endpoints.change_webhook_endpoint,
                service.room,
                WebhookEndpointChange(disabled=False),
                endpoint,
            )
            after = await service.happen(1)
            receiver.received.clear()
            receiver.answers(Answer())
            service.clock.advance(3600)
            await service.deliver.settle()
            assert receiver.ids == after
            receiver.received.clear()
            await done(deliveries.recover, service.room, endpoint, since)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(failing + missed)
            assert not set(receiver.ids) & set(delivered)

    run(scenario())


@pytest.mark.parametrize("ago", [timedelta(seconds=-5), LOG_KEPT + timedelta(seconds=1)])
def test_recovering_goes_back_as_far_as_deliveries_are_kept(
    ago: timedelta, service: Service, run: Run
) -> None:
    """For older ones it is unknown whether they were delivered."""

    async def scenario() -> None:
        endpoint, _ = await service.endpoint(NOWHERE)
        with pytest.raises(InvalidRequest):
            await done(deliveries.recover, service.room, endpoint, service.now - ago)

    run(scenario())


def test_resending_delivers_again_under_the_same_id(service: Service, run: Run) -> None:
    """Whatever the earlier result, and also an event that was never meant for this endpoint."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            (before,) = await service.happen()
            endpoint, _ = await service.endpoint(receiver.url)
            (event_id,) = await service.happen()
            await service.deliver.settle()
            await done(deliveries.resend, service.room, endpoint, event_id)
            await done(deliveries.resend, service.room, endpoint, before)
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted([event_id, event_id, before])
            found = {d.event.id: d for d in await service.log(endpoint)}
            assert sorted(len(d.attempts) for d in found.values()) == [1, 2]
            with pytest.raises(NotFound):
                await done(
                    deliveries.resend, service.room, endpoint, "evt_01km9x4vab7wqrr1p6q1s2t3v5"
                )

    run(scenario())


def test_resending_while_an_attempt_is_under_way_still_sends_once_more(
    service: Service, run: Run
) -> None:
    """The earlier attempt's result is stored, and ends nothing."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            (event_id,) = await service.happen()
            receiver.answers(Answer(wait_seconds=0.3), Answer())
            settling = asyncio.ensure_future(service.deliver.settle())
            await until(lambda: bool(receiver.received))
            await done(deliveries.resend, service.room, endpoint, event_id)
            await settling
            await service.deliver.settle()
            assert receiver.ids == [event_id] * 2
            (delivery,) = await service.log(endpoint)
            assert delivery.status is DeliveryStatus.SUCCEEDED
            assert [attempt.http_status for attempt in delivery.attempts] == [204, 204]

    run(scenario())


def test_an_example_is_sent_at_once_and_leaves_nothing_behind(service: Service, run: Run) -> None:
    """Signed like the real ones, with its own name; the response has the result."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(status=418))
            endpoint, secret = await service.endpoint(receiver.url)
            attempt = await send_example(service.room, endpoint, EventType.NOTICE_PUBLISHED)
            assert (attempt.outcome, attempt.http_status) == (Outcome.REFUSED, 418)
            (received,) = receiver.received
            assert verifies(secret, received, service.clock.time_ns() / 1e9)
            assert received.message["type"] == "notice.published"
            assert await service.log(endpoint) == []
            assert await service.everything() == []

    run(scenario())


@pytest.mark.parametrize(
    "address", ["http://example.com/", "https://user@example.com/", "nonsense"]
)
def test_an_address_that_will_not_do_is_refused_with_its_field(
    address: str, database: Database, service: Service, run: Run, clock: HandClock
) -> None:
    """A server that does not allow private addresses takes plain https alone."""
    public = assemble(database, service.account_id, clock, private=False)
    with pytest.raises(InvalidRequest, match=r"\$\.url"):
        run(public.endpoint(address))


def test_formerly_allowed_private_addresses_get_no_more_messages(
    database: Database, service: Service, run: Run, clock: HandClock
) -> None:
    """Turning the setting off counts for the endpoints that are there already."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            await service.happen()
            public = assemble(database, service.account_id, clock, private=False)
            await public.deliver.settle()
            assert receiver.connections == 0
            (delivery,) = await service.log(endpoint)
            assert delivery.attempts[0].outcome is Outcome.ADDRESS_REFUSED

    run(scenario())


def test_tables_stay_bounded(service: Service, database: Database, run: Run) -> None:
    """Finished deliveries go after a month, unfinished ones end, deleted endpoints vanish."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            down, _ = await service.endpoint(NOWHERE)
            await service.happen(3)
            await service.deliver.settle()
            assert {d.status for d in await service.log(down)} == {DeliveryStatus.PENDING}
            service.clock.advance(AGE_MAX.total_seconds() + 1)
            await tidy(service, database)
            assert {d.status for d in await service.log(down)} == {DeliveryStatus.FAILED}
            assert len(await service.log(endpoint)) == 3
            await done(endpoints.delete_webhook_endpoint, service.room, down)
            service.clock.advance(LOG_KEPT.total_seconds() + 1)
            for _ in range(2):
                await tidy(service, database)
            assert await service.log(endpoint) == []
            assert await database.scan(_rows, None) == {
                "webhook_endpoints": 1, "webhook_secrets": 1,
                "webhook_deliveries": 0, "webhook_attempts": 0,
            }  # fmt: skip

    run(scenario())


def _rows(connection: Connection, _: None) -> dict[str, int]:
    tables = (webhook_endpoints, webhook_secrets, webhook_deliveries, webhook_attempts)
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in tables
    }


async def tidy(service: Service, database: Database) -> None:
    """Delete what a running server would have deleted by now."""
    await database.write(delete_old, service.now, 100)


def test_events_beyond_the_limit_wait_as_events(
    service: Service, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver that is down for days fills no table; when it is back, all of it arrives."""
    monkeypatch.setattr(deliveries, "PENDING_MAX", 50)

    async def scenario() -> None:
        down = absent()
        endpoint, _ = await service.endpoint(address(down))
        ids = await service.happen(200)
        for _ in range(4):
            await service.fan_out(endpoint, 30)
        assert len(await service.log(endpoint)) == 60
        async with running_receiver(bound=down) as receiver:
            await service.deliver.settle()
            assert sorted(receiver.ids) == sorted(ids)

    run(scenario())


@on_postgres
def test_several_servers_share_the_work_and_deliver_nothing_twice(
    service: Service, database: Database, run: Run
) -> None:
    """Three at once on one database: each event arrives once, and more than one has worked."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            endpoint, _ = await service.endpoint(receiver.url)
            ids = await service.happen(90)
            ids += await service.happen(90)
            ids += await service.happen(90)
            async with Database(database.url) as second, Database(database.url) as third:
                others = [
                    assemble(opened, service.account_id, service.clock)
                    for opened in (second, third)
                ]
                await asyncio.gather(
                    service.deliver.settle(), *(other.deliver.settle() for other in others)
                )
                await service.deliver.settle()
                for other in others:
                    await other.room.sender.close()
            assert len(receiver.ids) == len(ids)
            assert sorted(receiver.ids) == sorted(ids)
            assert receiver.connections > CONCURRENT, "connections of more than one process"
            assert await service.log(endpoint, DeliveryStatus.PENDING) == []

    run(scenario())
