"""A hostile receiver, and another account's neighbour who notices nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain, repeat
from pathlib import Path

import pytest

from countersign.base.errors import RateLimited
from countersign.core.access.account import add_account
from countersign.core.events.model import EventType
from countersign.core.webhooks import sender as webhook_sender
from countersign.core.webhooks.address_guard import AddressGuard
from countersign.core.webhooks.deliver import EXAMPLES_PER_ACCOUNT, send_example
from countersign.core.webhooks.model import ENDPOINTS_MAX, Outcome, TargetAddress
from countersign.core.webhooks.sender import HEADER_BYTES_MAX, RESPONSE_BYTES_MAX, WebhookSender
from tests.storage import items
from tests.support.databases import Run, on_sqlite
from tests.webhooks.conftest import Service, assemble
from tests.webhooks.receiver import Answer, running_receiver, until
from tests.webhooks.test_address_guard import certificate_for

ACCOUNT = "acct_of_this_test"
PIECE = 64 * 1024
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EXTENSION = b"1;" + b"x" * 15_000 + b"\r\na\r\n"


def _filled(part: bytes) -> Iterator[bytes]:
    return repeat(part * (PIECE // len(part) + 1))


# The endless data that each sends after a request, and whether its status counts.
ENDLESS: dict[str, tuple[bytes, bytes, Outcome]] = {
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", Outcome.UNREACHABLE),
    "early hints": (b"", b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n", Outcome.UNREACHABLE),
    "header lines": (HEAD, b"a: b\r\n", Outcome.UNREACHABLE),
    "one header line": (HEAD + b"a: ", b"b", Outcome.UNREACHABLE),
    "chunk extensions": (CHUNKED, EXTENSION, Outcome.DELIVERED),
    "tiny chunks": (CHUNKED, b"1\r\na\r\n", Outcome.DELIVERED),
    "one chunk size": (CHUNKED, b"0", Outcome.UNREACHABLE),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n", Outcome.UNREACHABLE),
    "a body": (HEAD + b"Content-Length: 999999999\r\n\r\n", b"x", Outcome.DELIVERED),
    "a body until the end": (HEAD + b"\r\n", b"x", Outcome.DELIVERED),
}


class Flood:
    """A server that sends as much as is taken, and counts it."""

    def __init__(self) -> None:
        self.port = 0
        self.taken = 0
        self.ended = 0
        self.connections = 0


@asynccontextmanager
async def flooding(
    first: bytes, then: bytes, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Flood]:
    """Answer each connection's first request with `first`, and then with `then` without end."""
    flood = Flood()
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in chain([first], _filled(then)):
                writer.write(piece)
                await writer.drain()
                flood.taken += len(piece)
                await asyncio.sleep(0)
        flood.ended += 1
        writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flood.connections += 1
        task = asyncio.ensure_future(converse(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    flood.port = server.sockets[0].getsockname()[1]
    try:
        yield flood
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _local(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_response_is_given_up_after_a_bounded_number_of_bytes(kind: str) -> None:
    """Not at the timeout, which is far away here: all bytes are counted."""
    first, then, outcome = ENDLESS[kind]

    async def scenario() -> None:
        sender = WebhookSender(AddressGuard(private=True), timeout_seconds=3600)
        async with flooding(first, then) as flood, running_receiver() as good:
            target = TargetAddress("http", "127.0.0.1", flood.port, "/")
            hostile = asyncio.ensure_future(sender.post(target, {}, b"{}", ACCOUNT))
            innocent = TargetAddress("http", "127.0.0.1", good.port, "/")
            assert (await sender.post(innocent, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert (await hostile).outcome is outcome
            await until(lambda: flood.ended == 1)
            assert flood.connections == 1, "and it is not asked a second time"
        await sender.close()

    asyncio.run(scenario())


def test_an_endless_response_over_tls_is_given_up_too(tmp_path: Path) -> None:
    """As in production: https, a good certificate, and interim responses forever."""

    async def scenario() -> None:
        tls = certificate_for("hook.example.com", tmp_path)
        sender = WebhookSender(
            AddressGuard(private=True, resolve=_local),
            timeout_seconds=3600,
            tls=ssl.create_default_context(cafile=str(tmp_path / "certificate.pem")),
        )
        first, then, outcome = ENDLESS["interim responses"]
        async with flooding(first, then, tls) as flood:
            target = TargetAddress("https", "hook.example.com", flood.port, "/")
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is outcome
            await until(lambda: flood.ended == 1)
        await sender.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("interim", [0, 1, 3])
def test_a_few_interim_responses_are_passed_over(interim: int) -> None:
    """100 and 103 are HTTP: an honest server may send some before its response."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            receiver.answers(Answer(before=b"HTTP/1.1 103 Early Hints\r\n\r\n" * interim))
            sender = WebhookSender(AddressGuard(private=True), timeout_seconds=3600)
            target = TargetAddress("http", "127.0.0.1", receiver.port, "/")
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            await sender.close()

    asyncio.run(scenario())


def test_the_read_part_of_a_response_stays_below_the_limit() -> None:
    """The limit is that of the page: a body of 64 KiB after a header of 16 KiB."""

    async def scenario() -> None:
        async with running_receiver() as receiver:
            sender = WebhookSender(AddressGuard(private=True), timeout_seconds=3600)
            target = TargetAddress("http", "127.0.0.1", receiver.port, "/")
            header = ("X", "x" * (HEADER_BYTES_MAX - 1000))
            receiver.answers(
                Answer(status=200, headers=(header,), body=b"x" * (RESPONSE_BYTES_MAX - 1000))
            )
            for _ in range(2):
                assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
            assert receiver.connections == 1, "read to its end, so the connection is kept"
            await sender.close()

    asyncio.run(scenario())


def test_connections_to_ever_new_addresses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor can change the address before each message: none may cost a descriptor for good."""
    monkeypatch.setattr(webhook_sender, "IDLE_SECONDS_MAX", 0.2)
    gone: list[int] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        gone.append(len(await reader.read()))  # until the other side hangs up
        writer.close()
        await writer.wait_closed()

    async def scenario() -> None:
        sender = WebhookSender(AddressGuard(private=True), timeout_seconds=3600)
        servers = [await asyncio.start_server(converse, "127.0.0.1", 0) for _ in range(8)]
        for server in servers:
            target = TargetAddress("http", "127.0.0.1", server.sockets[0].getsockname()[1], "/")
            assert (await sender.post(target, {}, b"{}", ACCOUNT)).outcome is Outcome.DELIVERED
        await until(lambda: len(gone) == len(servers), seconds=20)
        for server in servers:
            server.close()
        await sender.close()

    asyncio.run(scenario())


@on_sqlite
def test_examples_to_hostile_receivers_are_few_at_a_time_and_others_are_served(
    service: Service, run: Run
) -> None:
    """One at a time for each endpoint, a few for an account; the next one is refused with 429."""

    async def scenario() -> None:
        other = items.account()
        await service.database.write(add_account, other)
        patient = assemble(
            service.database, service.account_id, service.clock, timeout_seconds=3600
        )
        example = EventType.ACKNOWLEDGMENT_CREATED
        async with AsyncExitStack() as stack:
            hanging = await stack.enter_async_context(running_receiver())
            good = await stack.enter_async_context(running_receiver())
            hanging.answers(Answer(wait_seconds=3600))
            endpoints = [(await service.endpoint(hanging.url))[0] for _ in range(ENDPOINTS_MAX)]
            under_way = []
            for endpoint in endpoints[:EXAMPLES_PER_ACCOUNT]:
                send = send_example(patient.room, endpoint, example)
                under_way.append(asyncio.ensure_future(send))
                await until(lambda: len(hanging.received) == len(under_way))
                with pytest.raises(RateLimited):
                    await send_example(patient.room, endpoint, example)
            with pytest.raises(RateLimited):
                await send_example(patient.room, endpoints[-1], example)
            neighbour = assemble(service.database, other.id, service.clock)
            innocent, _ = await neighbour.endpoint(good.url)
            attempt = await send_example(patient.room, innocent, example)
            assert attempt.outcome is Outcome.DELIVERED
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            hanging.answers(Answer())
            again = await send_example(patient.room, endpoints[0], example)
            assert again.outcome is Outcome.DELIVERED, "there is room again"
            await neighbour.room.sender.close()
        await patient.room.sender.close()

    run(scenario())
