"""Reading a log over HTTP: bounded in time and size, and never redirected.

The log may be hostile: whatever it sends is a value, or one of the two exceptions here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import httpx2

CONNECT_SECONDS_MAX: Final = 10.0
REQUEST_SECONDS_MAX: Final = 60.0
"""For one resource, from the request to its last byte."""
TRIES: Final = 3
PAUSE_SECONDS: Final = 1.0
CONNECTIONS: Final = 8

Pause = Callable[[float], Awaitable[None]]
"""Waits so many seconds."""


class Unreachable(Exception):
    """The log did not respond, or not with something that can be read. It may do so later."""


class Missing(Exception):
    """The log responded that it has no such resource."""


class LogSource:
    """The resources below the address of one log."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        url: str,
        *,
        pause: Pause = asyncio.sleep,
        seconds: float = REQUEST_SECONDS_MAX,
    ) -> None:
        self._client = client
        self.url = url.rstrip("/")
        self.pause = pause
        self._seconds = seconds

    def at(self, url: str) -> LogSource:
        """The resources below another address, read in the same way."""
        return LogSource(self._client, url, pause=self.pause, seconds=self._seconds)

    async def get(self, path: str, most: int) -> bytes:
        """A resource; at most `most` bytes and one more.

        Tried three times. Raises Missing or Unreachable.
        """
        for _ in range(TRIES - 1):
            with suppress(Unreachable):
                return await self._get(f"{self.url}/{path}", most)
            await self.pause(PAUSE_SECONDS)
        return await self._get(f"{self.url}/{path}", most)

    async def _get(self, url: str, most: int) -> bytes:
        try:
            async with asyncio.timeout(self._seconds), self._client.stream("GET", url) as response:
                if response.status_code in {404, 410}:
                    raise Missing(url)
                if response.status_code != 200:
                    raise Unreachable(f"{url} responded with the status {response.status_code}")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise Unreachable(f"{url} responded with compressed data, unasked")
                body = bytearray()
                async for chunk in response.aiter_raw(64 * 1024):
                    body += chunk
                    if len(body) > most:
                        break
                return bytes(body[: most + 1])
        except TimeoutError as error:
            raise Unreachable(f"{url} did not respond within {self._seconds:g} seconds") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError) as error:
            raise Unreachable(f"{url} cannot be read: {type(error).__name__}") from error


@asynccontextmanager
async def open_source(
    url: str, *, pause: Pause = asyncio.sleep, seconds: float = REQUEST_SECONDS_MAX
) -> AsyncIterator[LogSource]:
    """The resources below this address. Raises Unreachable if it is not an http(s) address."""
    try:
        scheme = httpx2.URL(url).scheme
    except (httpx2.InvalidURL, ValueError):
        scheme = ""
    if scheme not in {"http", "https"}:
        raise Unreachable(f"{url} is not an http or https address")
    async with httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", "User-Agent": "Countersign-Monitor"},
        follow_redirects=False,
        # Reading the certificates of the system takes longer than many a check.
        verify=scheme == "https",
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS_MAX),
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
    ) as client:
        yield LogSource(client, url, pause=pause, seconds=seconds)
