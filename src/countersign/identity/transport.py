"""HTTP to an identity provider: one host, bounded in time, size and number of attempts.

What a provider's adapter sends goes through here, and nothing of it reaches a log: the paths hold
session ids, the bodies hold people.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Final
from urllib.parse import urlencode

import httpx2
import stamina

from countersign.identity.breaker import Breaker
from countersign.identity.budget import Allowance, Budget
from countersign.identity.messages import (
    RETRIED,
    RETRY_AFTER_SECONDS,
    ProviderReply,
    ProviderRequest,
    TransportFailure,
)
from countersign.identity.model import Outcome
from countersign.ports import Clock

__all__ = [
    "ATTEMPTS",
    "BODY_BYTES_MAX",
    "CONCURRENT_MAX",
    "CONNECT_SECONDS",
    "DIRECT",
    "PLACE_SECONDS",
    "READ_SECONDS",
    "RETRIED",
    "RETRY_AFTER_SECONDS",
    "TOTAL_SECONDS",
    "Budget",
    "ProviderHttp",
    "ProviderReply",
    "ProviderRequest",
    "Reach",
    "TransportFailure",
]

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 8.0
TOTAL_SECONDS: Final = 12.0
"""For all requests of one result together, with every repetition."""
PLACE_SECONDS: Final = 2.0
"""For all their waiting until others are done: that is our load, and no fault of the provider."""
BODY_BYTES_MAX: Final = 1024 * 1024
ATTEMPTS: Final = 3
CONCURRENT_MAX: Final = 64
"""Requests of one account at the same time, unless the deployment sets another number."""
# Retries of this module end in an outcome that is counted; a line in the log for each says less.
stamina.instrumentation.set_on_retry_hooks(())
_KINDS: Final = (
    (socket.gaierror, "name_not_resolved"),
    (ConnectionRefusedError, "connection_refused"),
    (ssl.SSLCertVerificationError, "certificate_refused"),
    (ssl.SSLError, "tls_failure"),
)
_UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EACCES, errno.EPERM})
"""No way there, or a firewall that says so."""
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 4.0


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


class _TryAgain(Exception):
    """An attempt failed in a way that another may not."""

    def __init__(self, failure: TransportFailure | None, reply: ProviderReply | None) -> None:
        super().__init__()
        self.failure = failure
        self.reply = reply


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
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._attempts = attempts
        self._total_seconds = total_seconds
        self._timeout = httpx2.Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._clock = clock
        self._breaker = Breaker(clock)
        self._reach = reach
        self._places = asyncio.Semaphore(reach.concurrency)
        self._client: httpx2.AsyncClient | None = None

    def budget(self) -> Budget:
        """The time for one result, for all `send` of it to share."""
        return Budget(sending=Allowance(self._total_seconds), waiting=Allowance(PLACE_SECONDS))

    async def send(self, request: ProviderRequest, budget: Budget | None = None) -> ProviderReply:
        """Send a request, again where that helps; gives the last answer, also one of an error.

        Raises:
            TransportFailure: there was no answer that could be read.
        """
        budget = budget or self.budget()
        if self._breaker.is_open():
            raise self._open_breaker()
        try:
            async with budget.waiting.spend():
                await self._places.acquire()
        except TimeoutError:
            raise TransportFailure(Outcome.PROVIDER_UNAVAILABLE, "no_place") from None
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
        return TransportFailure(Outcome.PROVIDER_UNAVAILABLE, "breaker_open", seconds)

    async def _send_counted(self, request: ProviderRequest, budget: Budget) -> ProviderReply:
        """Send, and tell the breaker what came of it."""
        if not self._breaker.lets_through():
            raise self._open_breaker()
        try:
            async with budget.sending.spend():
                reply = await self._send_repeatedly(request)
        except TimeoutError:
            self._breaker.failed()
            raise TransportFailure(Outcome.PROVIDER_UNAVAILABLE, "timeout") from None
        except TransportFailure as failure:
            if failure.outcome is Outcome.INVALID_RESPONSE:
                # It did answer; one odd session must not shut out everybody else's.
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
        try:
            async for attempt in stamina.retry_context(
                on=_again,
                attempts=self._attempts,
                timeout=self._total_seconds,
                wait_initial=_FIRST_WAIT,
                wait_max=_LONGEST_WAIT,
                wait_jitter=_FIRST_WAIT,
            ):
                with attempt:
                    return await self._send_once(request)
        except _TryAgain as last:
            if last.reply is not None:
                return last.reply
            if last.failure is not None:
                raise last.failure from None
        raise TransportFailure(Outcome.PROVIDER_UNAVAILABLE, "no_attempt")

    async def _send_once(self, request: ProviderRequest) -> ProviderReply:
        try:
            async with self._open(request) as answer:
                if answer.headers.get("content-encoding", "identity") != "identity":
                    # None was asked for; what unpacks to gigabytes is not worth unpacking.
                    raise TransportFailure(Outcome.INVALID_RESPONSE, "encoded_body")
                body = bytearray()
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > BODY_BYTES_MAX:
                        raise TransportFailure(Outcome.INVALID_RESPONSE, "body_too_large")
                reply = ProviderReply(
                    status=answer.status_code,
                    headers={name.lower(): value for name, value in answer.headers.items()},
                    body=bytes(body),
                    target=request.target,
                    came_at=self._clock.time_ns() // 1_000_000_000,
                )
        except httpx2.HTTPError as error:
            # The error's text can name the address with the session id; its kind cannot.
            failure = TransportFailure(Outcome.PROVIDER_UNAVAILABLE, _kind(error))
            raise _TryAgain(failure, None) from None
        if _worth_repeating(request, reply):
            raise _TryAgain(None, reply)
        return reply

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
        ) as answer:
            yield answer

    def _proxy(self, context: SSLContext) -> httpx2.Proxy | None:
        url = self._reach.proxy_url
        if url is None or not self._base_url.startswith("https://"):
            return None
        return httpx2.Proxy(url, ssl_context=context if url.startswith("https://") else None)


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


def _worth_repeating(request: ProviderRequest, reply: ProviderReply) -> bool:
    # Stripe says itself whether a second attempt makes sense, and then that counts.
    asked = reply.headers.get("stripe-should-retry")
    if asked in {"true", "false"}:
        return asked == "true"
    return reply.status in request.retried


def _again(error: Exception) -> bool | float:
    """Whether to try again, and after how many seconds where the provider named them."""
    if not isinstance(error, _TryAgain):
        return False
    named = None if error.reply is None else error.reply.retry_after
    if named is None:
        return True
    # Longer than an answer may take at all: our caller shall come back, not wait here.
    return False if named > _LONGEST_WAIT else float(named)
