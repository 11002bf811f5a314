"""A vendor's receiver of webhooks: real sockets, and manners as good or bad as a test wants."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.support.service import free_port

HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request that arrived whole."""

    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The number of its connection, from 1."""

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How to answer. `cut`: send no more of the answer than this many bytes, and hang up."""

    status: int = 204
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    wait_seconds: float = 0.0
    cut: int | None = None
    endless: bool = False
    """Never end the body, as if there were more to come."""
    before: bytes = b""
    """Bytes to send before it."""


@dataclass(kw_only=True)
class Receiver:
    """A running receiver. `answer` may be changed at any time."""

    url: str
    port: int
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], Answer] = lambda _: Answer()
    connections: int = 0

    @property
    def ids(self) -> list[str]:
        """The webhook-id of each request, in the order of arrival."""
        return [received.id for received in self.received]

    def answers(self, *answers: Answer) -> None:
        """Give these answers one after the other, and the last one from then on."""
        left = list(answers)
        self.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]


async def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something to become true."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not true():
        assert loop.time() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


def absent() -> socket.socket:
    """Reserve a port where nothing listens, until a receiver is run on this socket."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


def address(listening: socket.socket, scheme: str = "http") -> str:
    """The URL of the receiver on this socket."""
    host, port = listening.getsockname()
    return f"{scheme}://{host}:{port}/hook"


@asynccontextmanager
async def running_receiver(
    *,
    host: str = "127.0.0.1",
    bound: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Receiver]:
    """Run a receiver for the length of the block, on a free port or on this socket."""
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver.connections += 1
        task = asyncio.ensure_future(_converse(receiver, receiver.connections, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # Not a port of simulators: a server may still poll one that is gone.
    listening = bound or socket.create_server((host, free_port()))
    server = await asyncio.start_server(connected, sock=listening, ssl=tls)
    url = address(listening, "https" if tls else "http")
    receiver = Receiver(url=url, port=listening.getsockname()[1])
    try:
        yield receiver
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _converse(
    receiver: Receiver, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        while await _serve_one(receiver, number, reader, writer):
            pass
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _serve_one(
    receiver: Receiver, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answer a request; False if the connection is to be closed after it."""
    received = await _read(reader, number)
    receiver.received.append(received)
    answer = receiver.answer(received)
    await asyncio.sleep(answer.wait_seconds)
    writer.write(_bytes(answer)[: answer.cut])
    await writer.drain()
    if answer.endless:
        await asyncio.sleep(3600)
    return answer.cut is None


async def _read(reader: asyncio.StreamReader, number: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(target=first.split()[1], headers=headers, body=body, connection=number)


def _bytes(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Whatever"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if answer.endless:
        lines.append("Content-Length: 1000000")
    elif answer.status != 204:
        lines.append(f"Content-Length: {len(answer.body)}")
    return answer.before + "\r\n".join([*lines, "", ""]).encode() + answer.body
