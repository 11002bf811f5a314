"""HTTP to an identity provider: one host, bounded in time, size and number of attempts.

Nothing that is sent or received here reaches a log: the paths contain session ids, the bodies
personal data.
"""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Final
from urllib.parse import urlencode

import httpx2

from countersign.clock import Clock
from countersign.identity.breaker import Breaker
from countersign.identity.budget import Allowance, Budget
from countersign.identity.model import Finding
from countersign.identity.types import ProviderReply, ProviderRequest, TransportFailure

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 8.0
TOTAL_SECONDS: Final = 12.0
"""For all requests of one result together, with every repetition."""
PLACE_SECONDS: Final = 2.0
"""For all their waiting for a free place: that is our load, not a fault of the provider."""
BODY_BYTES_MAX: Final = 1024 * 1024
ATTEMPTS: Final = 3
CONCURRENT_MAX: Final = 64
"""Requests of one account at the same time, unless the deployment sets another number."""
_KINDS: Final = (
    (socket.gaierror, "name_not_resolved"),
    (ConnectionRefusedError, "connection_refused"),
    (ssl.SSLCertVerificationError, "certificate_refused"),
    (ssl.SSLError, "tls_failure"),
)
_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM})
"""No way there, or a firewall that says so."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How every identity provider of a deployment is reached."""

    concurrency: int = CONCURRENT_MAX
    """Requests of one account at the same time."""
    proxy_url: str | None = field(default=None, repr=False)
    """A forward proxy (CONNECT); it may hold a password. None: providers are reached directly."""
    ca_file: Path | None = None
    """Certificates (PEM) that are trusted in addition to those of the system."""


DIRECT: Final = Reach()


class ProviderHttp:
    """Sends requests to one host.

    Certificates are checked, redirects refused, proxies of the environment not used, so that a
    credential goes nowhere but to the provider. A proxy of the settings carries what is encrypted
    for the provider; a simulator on this machine, over plain HTTP, is reached without it.
    """

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        *,
        reach: Reach = DIRECT,
        attempts: int = ATTEMPTS,
        total_seconds: float = TOTAL_SECONDS,
        read_seconds: float = READ_SECONDS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._attempts = attempts
        self._total_seconds = total_seconds
        self._jitter = jitter
        self._timeout = httpx2.Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._clock = clock
        self._breaker = Breaker(clock)
        self._reach = reach
        self._places = asyncio.Semaphore(reach.concurrency)
        self._client: httpx2.AsyncClient | None = None

    def budget(self) -> Budget:
        """The time for one result, shared by all its `send`."""
        return Budget(sending=Allowance(self._total_seconds), waiting=Allowance(PLACE_SECONDS))

    async def send(self, request: ProviderRequest, budget: Budget | None = None) -> ProviderReply:
        """Send a request, repeatedly where that helps; returns the last response.

        Raises:
            TransportFailure: there was no response that could be read.
        """
        budget = budget or self.budget()
        if self._breaker.is_open():
            raise self._open_breaker()
        try:
            async with budget.waiting.spend():
                await self._places.acquire()
        except TimeoutError:
            raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, "no_place") from None
        try:
            return await self._send_counted(request, budget)
        finally:
            self._places.release()

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open_breaker(self) -> TransportFailure:
        seconds = self._breaker.seconds_left()
        return TransportFailure(Finding.PROVIDER_UNAVAILABLE, "breaker_open", seconds)

    async def _send_counted(self, request: ProviderRequest, budget: Budget) -> ProviderReply:
        """Send, and report success or failure to the breaker."""
        if not self._breaker.lets_through():
            raise self._open_breaker()
        try:
            async with budget.sending.spend():
                reply = await self._send_repeatedly(request)
        except TimeoutError:
            self._breaker.failed()
            raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, "timeout") from None
        except TransportFailure as failure:
            if failure.outcome is Finding.INVALID_RESPONSE:
                # It did respond; one odd session must not block all others.
                self._breaker.succeeded()
            else:
                self._breaker.failed()
            raise
        except BaseException:
            # The caller went away: that says nothing about the provider.
            self._breaker.let_go()
            raise
        if reply.status >= 500:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return reply

    async def _send_repeatedly(self, request: ProviderRequest) -> ProviderReply:
        for attempt in range(self._attempts - 1):
            pause: float = min(_FIRST_PAUSE * (2**attempt + self._jitter()), _LONGEST_PAUSE)
            try:
                reply = await self._send_once(request)
            except TransportFailure as failure:
                if failure.outcome is Finding.INVALID_RESPONSE:
                    raise
            else:
                pause = reply.retry_after or pause
                if not request.is_transient(reply) or pause > _LONGEST_PAUSE:
                    # Longer than a response may take: our caller has to come back.
                    return reply
            await asyncio.sleep(pause)
        return await self._send_once(request)

    async def _send_once(self, request: ProviderRequest) -> ProviderReply:
        try:
            async with self._open(request) as response:
                if response.headers.get("content-encoding", "identity") != "identity":
                    # None was requested, and a small body could unpack to gigabytes.
                    raise TransportFailure(Finding.INVALID_RESPONSE, "encoded_body")
                return ProviderReply(
                    status=response.status_code,
                    headers={name.lower(): value for name, value in response.headers.items()},
                    body=await _bounded(response),
                    target=request.target,
                    came_at=self._clock.time_ns() // 1_000_000_000,
                )
        except httpx2.HTTPError as error:
            # The error's text can contain the address with the session id; its kind cannot.
            raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, _kind(error)) from None

    @asynccontextmanager
    async def _open(self, request: ProviderRequest) -> AsyncIterator[httpx2.Response]:
        if self._client is None:
            context = httpx2.create_ssl_context(trust_env=False)
            if self._reach.ca_file is not None:
                context.load_verify_locations(self._reach.ca_file)
            self._client = httpx2.AsyncClient(
                verify=context,
                proxy=self._proxy(context),
                limits=httpx2.Limits(max_keepalive_connections=self._reach.concurrency),
                timeout=self._timeout,
                follow_redirects=False,
                trust_env=False,
                headers={"Accept-Encoding": "identity", "User-Agent": "countersign"},
            )
        query = f"?{urlencode(request.query)}" if request.query else ""
        async with self._client.stream(
            request.method,
            f"{self._base_url}{request.path}{query}",
            headers=dict(request.headers),
            content=request.body,
        ) as response:
            yield response

    def _proxy(self, context: SSLContext) -> httpx2.Proxy | None:
        url = self._reach.proxy_url
        if url is None or not self._base_url.startswith("https://"):
            return None
        return httpx2.Proxy(url, ssl_context=context if url.startswith("https://") else None)


async def _bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise TransportFailure(Finding.INVALID_RESPONSE, "body_too_large")
    return bytes(body)


def _kind(error: BaseException) -> str:
    """What went wrong, as the operator can look for it; else the name of the error's type."""
    seen: BaseException | None = error
    while seen is not None:
        inner = seen.exceptions[0] if isinstance(seen, BaseExceptionGroup) else seen
        for type_, kind in _KINDS:
            if isinstance(inner, type_):
                return kind
        if isinstance(inner, OSError) and inner.errno in _UNREACHABLE:
            return "network_unreachable"
        seen = inner.__cause__ or inner.__context__
    return type(error).__name__
