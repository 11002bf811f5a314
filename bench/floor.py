"""The floor, ``python -m bench.floor PORT``: a constant from a parser on the event loop.

It has none of what a server has to keep (limits, time-outs, back-pressure, draining), so no front
of ours reaches it.
"""

import asyncio
import sys
from typing import Final

import httptools
import uvloop

from bench.ceiling import BODY

_RESPONSE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    % (len(BODY), BODY)
)


class Floor(asyncio.Protocol):
    """Answers every request of a connection alike, once its body is read."""

    def __init__(self) -> None:
        """Give the loop the parser itself: it asks for the method before it connects."""
        self.data_received = httptools.HttpRequestParser(self).feed_data  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.WriteTransport) -> None:  # type: ignore[override]
        """Keep where to answer."""
        self._transport = transport

    def on_message_complete(self) -> None:
        """Answer one request."""
        self._transport.write(_RESPONSE)


async def main(port: int) -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(Floor, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
