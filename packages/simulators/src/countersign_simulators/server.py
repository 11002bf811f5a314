"""Serves a simulator over HTTP/1.1, with failures that a server library would prevent.

Only for rehearsing and for tests: it announces bodies that it then cuts short, and takes its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from ssl import SSLContext
from typing import Final
from urllib.parse import parse_qsl

import h11
import httpx2

from countersign_simulators.base import Reply, Request, Simulator, Webhook

_READ_BYTES: Final = 65536
_BODY_BYTES_MAX: Final = 1024 * 1024
_WRITE_BYTES: Final = 256 * 1024
_SEND_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """A simulator at an address."""

    url: str
    """`http://127.0.0.1:PORT`, without a final slash."""
    requests: list[Request]
    """Every request that arrived, in order."""


@asynccontextmanager
async def serve(
    simulator: Simulator,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl: SSLContext | None = None,
    webhook_url: str | None = None,
) -> AsyncIterator[Served]:
    """Serve until the context ends; `port` 0 takes a free one.

    Messages about changes are sent to `webhook_url`, one after the other, once each.

    Raises:
        OSError: the address cannot be used.
    """
    seen: list[Request] = []
    tasks: set[asyncio.Task[None]] = set()
    messages: asyncio.Queue[Webhook] = asyncio.Queue()

    def answer(request: Request) -> Reply:
        seen.append(request)
        reply = simulator.answer(request)
        for message in simulator.take_messages():
            if webhook_url is not None:
                messages.put_nowait(message)
        return reply

    def started(work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        started(_converse(answer, reader, writer, secure=ssl is not None))

    server = await asyncio.start_server(connected, host, port, ssl=ssl)
    if webhook_url is not None:
        started(_send(messages, webhook_url))
    bound = server.sockets[0].getsockname()[1]
    try:
        yield Served(f"{'https' if ssl else 'http'}://{host}:{bound}", seen)
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _send(messages: asyncio.Queue[Webhook], url: str) -> None:
    """Send queued messages; a receiver that cannot be reached has missed them."""
    async with httpx2.AsyncClient(trust_env=False, timeout=_SEND_SECONDS) as client:
        while True:
            message = await messages.get()
            with suppress(httpx2.HTTPError, httpx2.InvalidURL):
                await client.post(url, content=message.body, headers=dict(message.headers))


async def _converse(
    answer: Callable[[Request], Reply],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    secure: bool,
) -> None:
    connection = h11.Connection(h11.SERVER)
    try:
        while (request := await _next_request(connection, reader)) is not None:
            reply = answer(replace(request, secure=secure))
            await asyncio.sleep(reply.delay)
            if not await _answer(connection, writer, reply):
                return
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()
    except (h11.RemoteProtocolError, ConnectionError):
        # The caller does not speak HTTP, or has gone: no response is possible.
        return
    finally:
        writer.close()
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()


async def _next_request(connection: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _BODY_BYTES_MAX:
                return None
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _request(head, bytes(body))
        else:
            return None


def _request(head: h11.Request, body: bytes) -> Request:
    path, _, query = head.target.decode("ascii").partition("?")
    return Request(
        method=head.method.decode("ascii"),
        path=path,
        query=tuple(parse_qsl(query, keep_blank_values=True)),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in head.headers},
        body=body,
    )


async def _answer(connection: h11.Connection, writer: asyncio.StreamWriter, reply: Reply) -> bool:
    """Send it; False if the connection is to be closed in the middle of it."""
    shown_headers = (*reply.headers, ("Content-Length", str(len(reply.body))))
    headers = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in shown_headers]
    head = h11.Response(status_code=reply.status, headers=headers)
    writer.write(connection.send(head) or b"")
    shown = reply.body if reply.cut_after is None else reply.body[: reply.cut_after]
    for start in range(0, len(shown), _WRITE_BYTES):
        writer.write(connection.send(h11.Data(data=shown[start : start + _WRITE_BYTES])) or b"")
        await writer.drain()
    if reply.cut_after is not None and reply.cut_after < len(reply.body):
        await writer.drain()
        return False
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    await writer.drain()
    return True
