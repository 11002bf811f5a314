"""Events and webhooks over HTTP and from the command line, against a running server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import standardwebhooks

from countersign.core.events.model import EventType
from tests.support import forked, postgres
from tests.support.service import Deployment, Server, free_port, running_server
from tests.webhooks.happenings import happen
from tests.webhooks.receiver import running_receiver, until

pytestmark = [pytest.mark.long, pytest.mark.one_engine]

URL = "https://hook.example.com/countersign"


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server that delivers to this machine."""
    made = Deployment(
        data_dir=tmp_path_factory.mktemp("webhooks") / "data",
        settings={
            "WEBHOOK_ALLOW_PRIVATE": "true",
            "WEBHOOK_TIMEOUT_SECONDS": "20",
            "METRICS_PORT": str(free_port()),
        },
    )
    made.run("init")
    with running_server(made) as server:
        yield server


def make(client: httpx2.Client, url: str = URL, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    answer = client.post("/v1/webhook_endpoints", json={"url": url} | more)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    made: dict[str, Any] = answer.json()
    return made


def test_an_endpoint_is_made_read_changed_and_deleted(client: httpx2.Client) -> None:
    """The secret is in the first answer and in no other."""
    made = make(client, event_types=["buyer.verified"], description="the shop")
    path = f"/v1/webhook_endpoints/{made['endpoint_id']}"
    assert made["secret"].startswith("whsec_")
    assert made["secrets"][0]["public_key"].startswith("whpk_")
    shown = {name: value for name, value in made.items() if name != "secret"}
    assert client.get(path).json() == shown
    assert client.get("/v1/webhook_endpoints").json() == {"data": [shown], "next_cursor": None}
    changed = client.patch(path, json={"every_event_type": True, "disabled": True}).json()
    assert changed["event_types"] is None
    assert changed["disabled_reason"] == "requested"
    assert changed["url"] == URL
    enabled = client.patch(path, json={"disabled": False}).json()
    assert enabled["disabled_at"] is None
    assert client.delete(path).json() == {"endpoint_id": made["endpoint_id"], "deleted": True}
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


def test_a_repeated_creation_makes_one_endpoint_and_shows_the_same_secret(
    client: httpx2.Client,
) -> None:
    """A lost answer is fetched again with the Idempotency-Key: secret and all."""
    headers = {"Idempotency-Key": "once"}
    first = client.post("/v1/webhook_endpoints", json={"url": URL}, headers=headers)
    again = client.post("/v1/webhook_endpoints", json={"url": URL}, headers=headers)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert len(client.get("/v1/webhook_endpoints").json()["data"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "$.url"),
        ({"url": "http://hook.example.com/"}, "$.url"),
        ({"url": "https://user:pw@hook.example.com/"}, "$.url"),
        ({"url": URL, "event_types": []}, "$.event_types"),
        ({"url": URL, "event_types": ["buyer.known"]}, "$.event_types[0]"),
        ({"url": URL, "description": "x" * 201}, "$.description"),
        ({"url": URL, "description": "a\x1b[31m"}, "$.description"),
        ({"url": URL, "description": "a\u202eb"}, "$.description"),
        ({"url": URL, "secret": "whsec_mine"}, "$.secret"),
    ],
)
def test_an_unacceptable_value_is_refused_with_its_field(
    body: dict[str, Any], field: str, client: httpx2.Client
) -> None:
    """One shape of error, and the message names the field."""
    answer = client.post("/v1/webhook_endpoints", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_request"
    if body.get("event_types") == ["buyer.known"]:
        named = answer.json()["error"]["message"]
        assert all(named.count(type_) == 1 for type_ in EventType), "each type, once"
    assert f"`{field}`" in answer.json()["error"]["message"]


def test_a_server_on_the_open_internet_calls_no_internal_address(client: httpx2.Client) -> None:
    """Plain https to a name that leads to this machine: refused when it is to be connected to."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            made = make(client, f"https://localhost:{receiver.port}/")
            path = f"/v1/webhook_endpoints/{made['endpoint_id']}/send_example"
            send = {"type": "buyer.failed"}
            answer = await asyncio.to_thread(client.post, path, json=send)
            assert answer.json()["outcome"] == "address_refused"
            assert receiver.connections == 0

    asyncio.run(scenario())


def test_another_account_and_the_other_mode_find_no_events(
    client: httpx2.Client, server: Server, deployment: Deployment, account: str
) -> None:
    """404 for reading, changing, deleting and for every act on it."""
    made = make(client)
    path = f"/v1/webhook_endpoints/{made['endpoint_id']}"
    stranger = deployment.account(f"stranger to {account}")
    for key in (deployment.key(stranger), deployment.key(account, "live")):
        with server.client(key) as other:
            assert other.get("/v1/webhook_endpoints").json()["data"] == []
            for answer in (
                other.get(path),
                other.patch(path, json={"disabled": True}),
                other.delete(path),
                other.get(f"{path}/deliveries"),
                other.post(f"{path}/rotate_secret", json={}),
                other.post(f"{path}/resend", json={"event_id": "evt_x"}),
                other.post(f"{path}/recover", json={"since": "2026-11-20T00:00:00Z"}),
                other.post(f"{path}/send_example", json={"type": "buyer.failed"}),
            ):
                assert answer.status_code == 404, answer.request.url
                assert answer.json()["error"]["code"] == "not_found"
    assert client.get(path).json()["disabled_at"] is None


def test_events_are_followed_with_the_id_of_the_last_one(
    client: httpx2.Client, deployment: Deployment, account: str
) -> None:
    """The latest page has no next_cursor, and its last id goes on from there."""
    assert client.get("/v1/events").json() == {"data": [], "next_cursor": None}
    objects = happen(deployment, account, 3)
    postgres.settle()
    first = client.get("/v1/events", params={"limit": 2}).json()
    assert first["next_cursor"] == first["data"][-1]["id"]
    rest = client.get("/v1/events", params={"after": first["next_cursor"]}).json()
    assert rest["next_cursor"] is None
    found = [*first["data"], *rest["data"]]
    assert [event["data"] for event in found] == [{"cbid": cbid} for cbid in objects]
    more = happen(deployment, account, 1)
    postgres.settle()
    later = client.get("/v1/events", params={"after": found[-1]["id"]}).json()["data"]
    assert [event["data"]["cbid"] for event in later] == more
    assert client.get(f"/v1/events/{later[0]['id']}").json() == later[0]


@pytest.mark.parametrize(
    "query", ["after=evt_1", "after=latest", "type=buyer.known", "since=yesterday", "limit=101"]
)
def test_a_meaningless_query_is_refused(query: str, client: httpx2.Client) -> None:
    """Silently starting from the beginning would look like an answer."""
    assert client.get(f"/v1/events?{query}").status_code == 400


def test_the_whole_way_from_the_event_to_the_log_of_deliveries(open_server: Server) -> None:
    """Made over HTTP, delivered by the server, verified with the reference library, resent."""
    deployment = open_server.deployment
    account = deployment.account("the whole way")

    async def scenario(client: httpx2.Client) -> None:
        async with running_receiver() as receiver:
            made = await asyncio.to_thread(make, client, receiver.url)
            library = standardwebhooks.Webhook(made["secret"])
            path = f"/v1/webhook_endpoints/{made['endpoint_id']}"
            (cbid,) = await asyncio.to_thread(happen, deployment, account)
            await until(lambda: len(receiver.received) == 1)
            received = receiver.received[0]
            assert library.verify(received.body, received.headers)["data"] == {"cbid": cbid}
            assert client.get(f"/v1/events/{received.id}").json()["data"] == {"cbid": cbid}
            await until(lambda: statuses(client, path) == ["succeeded"])
            answer = client.post(f"{path}/resend", json={"event_id": received.id})
            assert answer.json()["id"] == received.id
            await until(lambda: len(receiver.received) == 2)
            assert receiver.ids == [received.id] * 2
            example = await asyncio.to_thread(
                client.post, f"{path}/send_example", json={"type": "clearance.created"}
            )
            assert example.json()["outcome"] == "delivered"
            rotated = client.post(f"{path}/rotate_secret", json={"overlap_seconds": 60}).json()
            assert [secret["expires_at"] is None for secret in rotated["secrets"]] == [True, False]
            client.delete(path)

    with open_server.client(deployment.key(account)) as client:
        asyncio.run(scenario(client))


def test_metrics_show_the_outcome_of_attempts(open_server: Server) -> None:
    """Counted by outcome; and how many endpoints wait."""
    deployment = open_server.deployment
    account = deployment.account("counted")

    async def scenario(client: httpx2.Client) -> None:
        async with running_receiver() as receiver:
            made = await asyncio.to_thread(make, client, receiver.url)
            path = f"/v1/webhook_endpoints/{made['endpoint_id']}"
            before = await asyncio.to_thread(delivered, deployment)
            await asyncio.to_thread(happen, deployment, account, 3)
            await until(lambda: statuses(client, path) == ["succeeded"] * 3)
            assert await asyncio.to_thread(delivered, deployment) == before + 3
            client.delete(path)

    with open_server.client(deployment.key(account)) as client:
        asyncio.run(scenario(client))


def delivered(deployment: Deployment) -> float:
    """Read the metric, which is served on a port of its own."""
    port = deployment.settings["METRICS_PORT"]
    shown = httpx2.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    name = 'countersign_webhook_attempts_total{outcome="delivered"} '
    return sum(float(line.removeprefix(name)) for line in shown.splitlines() if name in line)


@pytest.mark.timeout(300)  # a process for each command
def test_an_operator_does_the_same_from_the_command_line(open_server: Server) -> None:
    """Add, send an example, look at deliveries, resend, recover, rotate, disable, delete."""
    deployment = open_server.deployment
    account = deployment.account("by command")

    async def scenario() -> None:
        async with running_receiver() as receiver:
            at = ["--account", account, "--mode", "test", "--url", receiver.url]
            made = await asyncio.to_thread(deployment.read, "webhooks", "add", *at)
            id_ = made["endpoint_id"]
            answer = await asyncio.to_thread(deployment.read, "webhooks", "send-example", id_)
            assert (answer["outcome"], answer["http_status"]) == ("delivered", 204)
            await asyncio.to_thread(happen, deployment, account)
            await until(lambda: len(receiver.received) == 2)
            event_id = receiver.received[1].id
            await asyncio.to_thread(deployment.run, "webhooks", "resend", id_, event_id)
            await until(lambda: len(receiver.received) == 3)
            recover = ["webhooks", "recover", id_, "--since", "2026-01-01T00:00:00Z"]
            refused = await asyncio.to_thread(deployment.run, *recover, check=False)
            assert refused.returncode == 1
            (delivery,) = await asyncio.to_thread(deployment.read, "webhooks", "deliveries", id_)
            assert delivery["event"]["id"] == event_id
            rotated = await asyncio.to_thread(deployment.read, "webhooks", "rotate-secret", id_)
            assert rotated["secret"] not in (made["secret"], None)
            change = ["webhooks", "change", id_, "--type", "buyer.failed", "--description", "shop"]
            changed = await asyncio.to_thread(deployment.read, *change)
            shown = await asyncio.to_thread(deployment.read, "webhooks", "show", id_)
            assert shown == changed
            assert (shown["event_types"], shown["description"]) == (["buyer.failed"], "shop")
            assert shown["url"] == receiver.url
            assert "secret" not in shown
            people = await asyncio.to_thread(deployment.run, "webhooks", "show", id_)
            assert shown["secrets"][0]["public_key"] in people.stdout
            both = ["webhooks", "change", id_, "--type", "buyer.failed", "--every-type"]
            assert (await asyncio.to_thread(deployment.run, *both, check=False)).returncode == 1
            again = ["webhooks", "change", id_, "--every-type"]
            assert (await asyncio.to_thread(deployment.read, *again))["event_types"] is None
            disabled = await asyncio.to_thread(deployment.read, "webhooks", "disable", id_)
            assert disabled["disabled_reason"] == "requested"
            await asyncio.to_thread(deployment.run, "webhooks", "enable", id_)
            await asyncio.to_thread(deployment.run, "webhooks", "delete", id_, "--yes")
            listed = await asyncio.to_thread(
                deployment.read, "webhooks", "list", "--account", account
            )
            assert listed == []

    asyncio.run(scenario())


def test_listen_brings_events_to_a_laptop(open_server: Server, tmp_path: Path) -> None:
    """Signed with the given secret, under the event's id, until it is stopped."""
    deployment = open_server.deployment
    account = deployment.account("laptop")
    secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    environment = deployment.environment | {"COUNTERSIGN_API_KEY": deployment.key(account)}

    async def scenario() -> None:
        async with running_receiver() as receiver:
            words = ["countersign", "webhooks", "listen", "--forward-to", receiver.url]
            words += ["--server", open_server.url, "--secret", secret]
            words += ["--since", "2026-01-01T00:00:00Z"]
            output, errors = tmp_path / "output", tmp_path / "errors"
            with output.open("wb") as out, errors.open("wb") as err:
                process = forked.start(words, environment, stdout=out, stderr=err)
            try:
                objects = await asyncio.to_thread(happen, deployment, account, 2)
                # It says so after the receiver has answered.
                await until(lambda: len(output.read_text().splitlines()) == 2)
            finally:
                process.send_signal(signal.SIGINT)
                await asyncio.to_thread(process.wait, 20)
            assert secret in errors.read_text()
            library = standardwebhooks.Webhook(secret)
            for received, cbid in zip(receiver.received, objects, strict=True):
                assert library.verify(received.body, received.headers)["data"] == {"cbid": cbid}
                assert received.message["id"] == received.id
            assert [line.split()[1] for line in output.read_text().splitlines()] == receiver.ids

    asyncio.run(scenario())


@pytest.mark.parametrize("address", ["localhost:3000", "http://", "https://exa mple.com/"])
@pytest.mark.parametrize("option", ["--server", "--forward-to"])
def test_listen_refuses_an_invalid_address(open_server: Server, option: str, address: str) -> None:
    """At once and by name, not by trying forever."""
    addresses = {"--server": open_server.url, "--forward-to": "http://127.0.0.1:1/"}
    addresses[option] = address
    words = [word for pair in addresses.items() for word in pair]
    done = open_server.deployment.run("webhooks", "listen", "--key", "k", *words, check=False)
    assert done.returncode == 1
    assert f"{option} must be a URL like" in done.stderr
    assert ("Did you mean http://localhost:3000?" in done.stderr) == (address == "localhost:3000")


def test_listen_without_a_key_names_the_variable(open_server: Server) -> None:
    """Better there than on a command line, which others can read."""
    done = open_server.deployment.run("webhooks", "listen", "--forward-to", "x", check=False)
    assert done.returncode == 2
    assert "COUNTERSIGN_API_KEY" in done.stderr


def test_the_setting_that_allows_a_private_address_is_named_in_the_refusal(
    open_server: Server,
) -> None:
    """On the server, and in the shell of a command, which uses its own settings."""
    deployment = open_server.deployment
    account = deployment.account("private")
    at = ["--account", account, "--mode", "test", "--url", "http://127.0.0.1:9/hook"]
    made = deployment.read("webhooks", "add", *at)
    settings = {name: value for name, value in deployment.settings.items() if "PRIVATE" not in name}
    strict = Deployment(data_dir=deployment.data_dir, settings=settings)
    refused = strict.run("webhooks", "add", *at, check=False)
    assert refused.returncode == 1
    assert "COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE" in refused.stderr
    sent = strict.run("webhooks", "send-example", made["endpoint_id"])
    assert "address_refused" in sent.stdout
    assert "COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE" in sent.stderr


def statuses(client: httpx2.Client, path: str) -> list[str]:
    return [item["status"] for item in client.get(f"{path}/deliveries").json()["data"]]
