"""A fast local receiver of webhooks, in a process of its own: ``python -m bench.receiver PORT``.

It answers 204 at once, and to a GET with the number of received messages.
"""

from __future__ import annotations

import asyncio
import sys
from http.client import HTTPConnection
from typing import cast

import uvloop


class Receiver(asyncio.Protocol):
    """Reads requests with a Content-Length, and nothing cleverer."""

    messages = 0

    def __init__(self) -> None:
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop has classes of its own

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._data += data
        assert self._transport is not None
        while True:
            head, end, rest = self._data.partition(b"\r\n\r\n")
            if not end:
                return
            length = 0
            for line in head.split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if len(rest) < length:
                return
            self._data = rest[length:]
            self._transport.write(_answer(head))


def _answer(head: bytes) -> bytes:
    if head.startswith(b"POST"):
        Receiver.messages += 1
        return b"HTTP/1.1 204 No Content\r\n\r\n"
    body = b"%d" % Receiver.messages
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def arrived(port: int) -> int:
    """How many messages have arrived at the receiver on this port."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    messages = int(connection.getresponse().read())
    connection.close()
    return messages


def is_ready(port: int) -> bool:
    """Whether the receiver is there."""
    try:
        arrived(port)
    except OSError:
        return False
    return True


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
