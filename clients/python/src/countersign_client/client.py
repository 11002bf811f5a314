"""The two clients."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

import httpx2

from countersign_client.call import check_sendable
from countersign_client.resources import Resources
from countersign_client.retries import Retries
from countersign_client.sending import AsyncSender, Exchange, Sender
from countersign_client.tokens import ClearanceTokens
from countersign_client.version import __version__
from countersign_client.webhooks import Webhooks

TIMEOUT_SECONDS: Final = 30.0
_BASE_URL: Final = re.compile(
    r"https?://(\[[0-9A-Fa-f:.]+\](:[0-9]+)?|[^\s/?#@\\[\]]+)(/[^\s?#\\]*)?"
)


class Countersign(Resources[Sender]):
    """The API of a Countersign server.

    `api_key` and `base_url` are read from `COUNTERSIGN_API_KEY` and `COUNTERSIGN_BASE_URL` if they
    are left out. `timeout` is in seconds, for the longest silence of an attempt. Threads may share
    a client. Pass `http_client` for a proxy, an authority of your own, or to see every response: it
    is not closed.

    Raises ValueError if the key or the base URL is missing, or cannot be one.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        http_client: httpx2.Client | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        exchange = _exchange(api_key, base_url, retries)
        self._own = None
        if http_client is None:
            self._own = http_client = httpx2.Client(**_settings(exchange, timeout))
        sender = Sender(exchange, http_client, sleep)
        super().__init__(sender)
        self.clearance_tokens: Final = ClearanceTokens(sender)
        self.webhooks: Final = Webhooks()

    def close(self) -> None:
        """Close the connections."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncCountersign(Resources[AsyncSender]):
    """The API of a Countersign server, for `await`; the arguments are those of `Countersign`."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        http_client: httpx2.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        exchange = _exchange(api_key, base_url, retries)
        self._own = None
        if http_client is None:
            self._own = http_client = httpx2.AsyncClient(**_settings(exchange, timeout))
        sender = AsyncSender(exchange, http_client, sleep)
        super().__init__(sender)
        self.clearance_tokens: Final = ClearanceTokens(sender)
        self.webhooks: Final = Webhooks()

    async def close(self) -> None:
        """Close the connections."""
        if self._own is not None:
            await self._own.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _exchange(api_key: str | None, base_url: str | None, retries: Retries | None) -> Exchange:
    api_key = api_key or os.environ.get("COUNTERSIGN_API_KEY")
    base_url = base_url or os.environ.get("COUNTERSIGN_BASE_URL")
    if not api_key:
        raise ValueError("No key: pass api_key, or set COUNTERSIGN_API_KEY.")
    check_sendable("The key", api_key)
    if not base_url or not _BASE_URL.fullmatch(base_url):
        raise ValueError(
            "No base URL such as https://countersign.example.com: pass base_url, or set "
            "COUNTERSIGN_BASE_URL."
        )
    return Exchange(base_url=base_url.rstrip("/"), api_key=api_key, retries=retries or Retries())


def _settings(exchange: Exchange, timeout: float) -> dict[str, Any]:
    return {
        "timeout": timeout,
        "headers": {"User-Agent": f"countersign-client-python/{__version__}"},
        # Reading the certificates takes longer than anything else, and plain HTTP needs none.
        "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if exchange.is_plain else True,
    }
