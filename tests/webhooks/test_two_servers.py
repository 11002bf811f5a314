"""Two real servers on one PostgreSQL: they share the deliveries, and one may die."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support import postgres
from tests.support.service import Deployment, Server, running_server, start_server
from tests.webhooks.happenings import happen
from tests.webhooks.receiver import Answer, Receiver, running_receiver, until

pytestmark = [pytest.mark.postgres, pytest.mark.crash, pytest.mark.long]
EVENTS = 400
# On a busy machine a receiver may take a while that is to be no failure.
SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": "true", "WEBHOOK_TIMEOUT_SECONDS": "30"}


@pytest.fixture(scope="module")
def pair(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Run two servers on a database of their own."""
    settings = SETTINGS | {"DATABASE_URL": postgres.fresh_database(postgres_server)}
    made = Deployment(data_dir=tmp_path_factory.mktemp("two") / "data", settings=settings)
    made.run("init")
    with running_server(made) as one, running_server(made) as other:
        yield one, other


async def endpoint(made: Deployment, account: str, receiver: Receiver) -> str:
    """Add an endpoint; gives its id."""
    at = ["--account", account, "--mode", "test", "--url", receiver.url]
    added = await asyncio.to_thread(made.read, "webhooks", "add", *at)
    id_: str = added["endpoint_id"]
    return id_


async def all_done(made: Deployment, id_: str) -> None:
    """Wait until nothing waits for the endpoint any more."""
    pending = ["webhooks", "deliveries", id_, "--status", "pending"]
    for _ in range(60):
        if await asyncio.to_thread(made.read, *pending) == []:
            return
        await asyncio.sleep(0.5)
    raise AssertionError("deliveries still wait")


@pytest.mark.timeout(180)
def test_two_servers_deliver_each_event_once_between_them(pair: tuple[Server, Server]) -> None:
    """Both at it at the same time, and no event arrives twice."""
    made = pair[0].deployment
    account = made.account("two servers")

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(wait_seconds=0.02))
            id_ = await endpoint(made, account, receiver)
            objects = await asyncio.to_thread(happen, made, account, EVENTS)
            await until(lambda: len(receiver.received) >= EVENTS)
            await all_done(made, id_)
            found = [received.message["data"]["cbid"] for received in receiver.received]
            assert sorted(found) == sorted(objects), "each once, none twice"
            assert set(Counter(receiver.ids).values()) == {1}
            # The port of a client identifies the connection, not the process; one process keeps at
            # most this many at a time for one endpoint that answers so fast.
            workers = {received.connection for received in receiver.received}
            assert len(workers) > 1

    asyncio.run(scenario())


@pytest.mark.timeout(180)
def test_when_one_of_two_servers_is_killed_the_other_delivers_the_rest(
    pair: tuple[Server, Server],
) -> None:
    """SIGKILL with outstanding responses: all messages arrive, and only those in flight twice."""
    survivor = pair[0]
    made = survivor.deployment
    account = made.account("one dies")

    async def scenario() -> None:
        victim = await asyncio.to_thread(start_server, made, WEBHOOK_TIMEOUT_SECONDS="3")
        async with running_receiver() as receiver:
            receiver.answers(Answer(wait_seconds=0.1))
            id_ = await endpoint(made, account, receiver)
            objects = await asyncio.to_thread(happen, made, account, EVENTS)
            await until(lambda: len(receiver.received) >= EVENTS // 4)
            victim.kill()
            receiver.answers(Answer())
            await until(lambda: len(set(receiver.ids)) == EVENTS)
            await all_done(made, id_)
            answer = {received.message["data"]["cbid"] for received in receiver.received}
            assert answer == set(objects), "nothing is lost"
            twice = [id_ for id_, number in Counter(receiver.ids).items() if number > 1]
            assert len(twice) <= 64, "no more than were on their way"
            assert max(Counter(receiver.ids).values()) <= 2

    asyncio.run(scenario())
