"""Responses that are sent in pieces, for as long as their readers stay: over any ASGI server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing, suppress
from typing import Any, Final, TypeAlias

import structlog

from countersign.base.deadline import detached
from countersign.base.errors import CountersignError
from countersign.base.http.body import Receive
from countersign.base.loops import without_values

Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log: Final = structlog.get_logger("countersign.http")


class Streams:
    """The streams that are open in this process."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()

    async def send(
        self, first: bytes, pieces: AsyncGenerator[bytes, None], receive: Receive, send: Send
    ) -> None:
        """Send these pieces as a body: to their end, a disconnect of the client, or `end`."""
        # Its pieces may ask the database for as long as the reader stays.
        sending = detached(_send_all(first, pieces, send))
        leaving = asyncio.create_task(_disconnected(receive))
        self._open.add(sending)
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            left = leaving.done()
        finally:
            self._open.discard(sending)
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))
        if not left:
            with suppress(OSError):  # the client has disconnected this very moment
                await send({"type": "http.response.body", "body": b""})
        error = None if sending.cancelled() else sending.exception()
        if error is not None and not isinstance(error, CountersignError | OSError):
            _log.error("stream_failed", exc_info=without_values(error))

    def end(self) -> None:
        """End every stream: a server that stops waits for the responses that it still sends."""
        for sending in self._open:
            sending.cancel()


async def _send_all(first: bytes, pieces: AsyncGenerator[bytes, None], send: Send) -> None:
    async with aclosing(pieces):
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
