"""A server that is killed while it delivers: at least once, one id, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.service import Deployment, Server, start_server
from tests.webhooks.happenings import happen
from tests.webhooks.receiver import Answer, Receiver, running_receiver

pytestmark = [pytest.mark.crash, pytest.mark.long]
EVENTS = 40
# Killed ones have short leases; the last one must not give up on a busy machine, since the next
# attempt is minutes later.
SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": "true", "WEBHOOK_TIMEOUT_SECONDS": "3"}


@pytest.mark.timeout(180)
def test_killed_between_send_and_record_every_event_arrives_under_its_one_id(
    tmp_path: Path,
) -> None:
    """SIGKILL while answers are outstanding, twice; then each event is delivered to the end."""
    made = Deployment(data_dir=tmp_path / "data", settings=SETTINGS)
    made.run("init")
    account = made.account("vendor")
    key = made.key(account)

    async def scenario() -> None:
        async with running_receiver() as receiver:
            server = await asyncio.to_thread(start_server, made)
            endpoint = await asyncio.to_thread(add_endpoint, server, key, receiver.url)
            # Received and never answered: the server dies before it can write anything down.
            receiver.answers(Answer(wait_seconds=3600))
            objects = await asyncio.to_thread(happen, made, account, EVENTS)
            await received(receiver, 1)
            server.kill()
            held_back = set(receiver.ids)
            # The next one is killed in the middle of it.
            receiver.answers(Answer(wait_seconds=0.1))
            server = await asyncio.to_thread(start_server, made)
            await received(receiver, len(receiver.received) + EVENTS // 4)
            server.kill()
            receiver.answers(Answer())
            patient = partial(start_server, made, WEBHOOK_TIMEOUT_SECONDS="30")
            server = await asyncio.to_thread(patient)
            log = await asyncio.to_thread(delivered, server, key, endpoint)
            assert await asyncio.to_thread(server.stop) == 0
            by_object: dict[str, set[str]] = {}
            for message in receiver.received:
                by_object.setdefault(message.message["data"]["cbid"], set()).add(message.id)
            assert by_object.keys() == set(objects), "nothing is lost"
            assert all(len(ids) == 1 for ids in by_object.values()), "one id for each event"
            assert {item["event"]["id"] for item in log} == set(receiver.ids)
            again = [id_ for id_ in held_back if receiver.ids.count(id_) > 1]
            assert set(again) == held_back, "what was sent and not recorded comes again"
            assert len(receiver.received) < 3 * EVENTS, "and no more often than needed"

    asyncio.run(scenario())


def add_endpoint(server: Server, key: str, url: str) -> str:
    with server.client(key) as client:
        answer = client.post("/v1/webhook_endpoints", json={"url": url})
        assert answer.status_code == 200, answer.text
        made: str = answer.json()["endpoint_id"]
        return made


async def received(receiver: Receiver, number: int) -> None:
    """Wait until this many messages have arrived."""
    end = time.monotonic() + 60
    while len(receiver.received) < number:
        assert time.monotonic() < end, f"{len(receiver.received)} arrived"
        await asyncio.sleep(0.01)


def delivered(server: Server, key: str, endpoint: str) -> list[dict[str, dict[str, str]]]:
    """Wait until everything is delivered; gives the log of deliveries."""
    end = time.monotonic() + 90
    with server.client(key) as client:
        while True:
            path = f"/v1/webhook_endpoints/{endpoint}/deliveries"
            found = client.get(path, params={"limit": 100}).json()["data"]
            if len(found) == EVENTS and all(item["status"] == "succeeded" for item in found):
                return list(found)
            assert time.monotonic() < end, found
            time.sleep(0.2)
