"""Events of every type can be triggered; they are sent like real ones, and marked."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import Iterator

import httpx2
import pytest
import standardwebhooks

from countersign.core.events.model import EventType
from tests.http.backstage import Vendor
from tests.http.calls import refusal
from tests.sandbox.calls import buyer, events, ok, status
from tests.support.service import Deployment, Server, running_server
from tests.webhooks.receiver import running_receiver, until

PATH = "/v1/test/events"
DATA = {
    "buyer": {"cbid"},
    "acknowledgment": {"ack_id"},
    "clearance": {"clearance_id"},
    "checkout_session": {"checkout_session_id"},
    "notice": {"notice_id", "notice_version"},
}


@pytest.mark.parametrize("type_", [type_.value for type_ in EventType])
def test_every_type_can_be_triggered(client: httpx2.Client, type_: str) -> None:
    """It is answered, listed and read as one, with the members of a real one, and marked."""
    answer = ok(client.post(PATH, json={"type": type_}))
    assert (answer["type"], answer["livemode"], answer["triggered"]) == (type_, False, True)
    assert set(answer["data"]) == DATA[type_.partition(".")[0]]
    assert events(client) == [answer]
    assert ok(client.get(f"/v1/events/{answer['id']}")) == answer


def test_an_event_is_about_the_object_that_is_named(client: httpx2.Client) -> None:
    """Nothing happens to that object."""
    cbid = buyer(client)
    answer = ok(client.post(PATH, json={"type": "buyer.revoked", "object_id": cbid}))
    assert answer["data"] == {"cbid": cbid}
    assert status(client, cbid)["status"] == "verified"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": "buyer.married"},
        {"type": "buyer.revoked", "object_id": "cbid_00000000000000000000000000"},
        {"type": "buyer.revoked", "object_id": ""},
        {"type": "clearance.closed", "object_id": "ack_00000000000000000000000000"},
        {"type": "notice.published", "object_id": "n" * 65},
    ],
)
def test_impossible_events_are_refused(client: httpx2.Client, body: dict[str, str]) -> None:
    """Nothing is written."""
    assert refusal(client.post(PATH, json=body)) == (400, "invalid_request")
    assert events(client) == []


def test_a_repeated_trigger_writes_one_event(client: httpx2.Client) -> None:
    """With its first answer."""
    body, headers = {"type": "buyer.failed"}, {"Idempotency-Key": "trigger"}
    first = client.post(PATH, json=body, headers=headers)
    assert client.post(PATH, json=body, headers=headers).content == first.content
    assert events(client) == [first.json()]


def test_an_event_is_its_accounts_and_its_modes_own(vendor: Vendor, other: Vendor) -> None:
    """No one else sees it, not even this account with a live key."""
    answer = ok(vendor.test.post(PATH, json={"type": "clearance.closed"}))
    for asking in (vendor.live, other.test, other.live):
        assert events(asking) == []
        assert refusal(asking.get(f"/v1/events/{answer['id']}")) == (404, "not_found")


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server that delivers to this machine."""
    made = Deployment(
        data_dir=tmp_path_factory.mktemp("triggered") / "data",
        settings={"WEBHOOK_ALLOW_PRIVATE": "true"},
    )
    made.run("init")
    with running_server(made) as server:
        yield server


def test_a_triggered_event_is_delivered_signed(open_server: Server) -> None:
    """The receiver's own library accepts it, and reads there that it was triggered."""
    key = open_server.deployment.key(open_server.deployment.account("triggering"))

    async def scenario(client: httpx2.Client) -> None:
        async with running_receiver() as receiver:
            post = client.post
            made = ok(await to_thread(post, "/v1/webhook_endpoints", json={"url": receiver.url}))
            answer = ok(await to_thread(post, PATH, json={"type": "acknowledgment.erased"}))
            await until(lambda: bool(receiver.received))
            (got,) = receiver.received
        message = standardwebhooks.Webhook(made["secret"]).verify(got.body, got.headers)
        assert message["id"] == got.id == answer["id"]
        assert message["triggered"] is True
        assert message["data"] == answer["data"]

    with open_server.client(key) as client:
        asyncio.run(scenario(client))
