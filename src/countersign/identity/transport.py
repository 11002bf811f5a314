"""HTTP to an identity provider: one host, bounded in time, size and number of attempts.

No request or response is logged: the paths contain session ids, the bodies personal data.
"""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from ssl import SSLContext
from typing import Final
from urllib.parse import urlencode, urlsplit

import httpx2

from countersign.base.spans import outgoing
from countersign.base.values import Clock, digits
from countersign.identity.model import Finding, Private

FAILURES: Final = 8
"""Failures in a row that open a breaker."""
OPEN_SECONDS: Final = 5.0


class Allowance:
    """Seconds, of the event loop's clock, that can be spent in parts."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Work in the block uses up this allowance.

        Raises:
            TimeoutError: the allowance is used up.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                yield
        finally:
            self._left = max(0.0, self._left - (clock() - began))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The time for one result, however many requests it needs."""

    sending: Allowance
    """For requests and responses, with every repetition."""
    waiting: Allowance
    """Maximum wait for one of the concurrent places: a longer one is our overload, not a fault of
    the provider."""


class Breaker:
    """Closed; open after FAILURES in a row; after OPEN_SECONDS one request is tried.

    A provider that is down does not delay every checkout. It belongs to one event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._closed_again_at = 0.0
        self._trying = False

    def lets_through(self) -> bool:
        """Whether a request may be sent now; each one must end in one of the methods below."""
        if self.is_open():
            return False
        self._trying = self._failures >= FAILURES
        return True

    def is_open(self) -> bool:
        """Whether no request may be sent now; asking this lets none through."""
        waits = self._trying or self._clock.monotonic() < self._closed_again_at
        return waits and self._failures >= FAILURES

    def seconds_left(self) -> int:
        """Whole seconds until the next try, at least 1."""
        return max(1, int(self._closed_again_at - self._clock.monotonic()) + 1)

    def succeeded(self) -> None:
        """The provider responded."""
        self._failures, self._trying = 0, False

    def failed(self) -> None:
        """The provider did not respond, or with an error of its server."""
        self._failures += 1
        self._trying = False
        if self._failures >= FAILURES:
            self._closed_again_at = self._clock.monotonic() + OPEN_SECONDS

    def let_go(self) -> None:
        """The request was given up by our side."""
        self._trying = False


RETRY_AFTER_SECONDS: Final = 5
"""Retry-After for our caller if the provider sends none."""
RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which a retry can succeed, with every provider."""
_EPOCH_MIN: Final = 1_000_000_000
"""Larger numbers are a time in Unix seconds (since 2001), smaller ones a number of seconds."""
PLACE_SECONDS: Final = 2.0
"""For all their waiting for a free place: that is our load, not a fault of the provider."""
BODY_BYTES_MAX: Final = 1024 * 1024
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
_LONGEST_PAUSE: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """A response, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes
    target: str
    """See `ProviderRequest.target`."""
    came_at: int | None = None
    """Unix seconds."""

    def __repr__(self) -> str:
        return f"<ProviderReply: status {self.status}>"

    @property
    def retry_after(self) -> int | None:
        """Seconds that the provider asks us to wait, from 1 to 3600."""
        wait = self._number("retry-after")
        if wait is None:
            wait = self._until(self._date("retry-after"))
        if wait is None and self.status == 429:
            # Some state the reset of their limit in every response: it matters once it is reached.
            found = [self._number("ratelimit-reset"), self._number("x-ratelimit-reset")]
            reset = next((number for number in found if number is not None), None)
            wait = self._until(reset) if reset is not None and reset >= _EPOCH_MIN else reset
        return None if wait is None else min(max(wait, 1), 3600)

    @property
    def wait(self) -> int:
        """Seconds until a retry; the default if the provider names none."""
        return self.retry_after or RETRY_AFTER_SECONDS

    def _number(self, header: str) -> int | None:
        return digits(self.headers.get(header, "").strip(), 10)

    def _date(self, header: str) -> int | None:
        """An HTTP date (RFC 9110, section 5.6.7)."""
        text = self.headers.get(header, "").strip()
        try:
            return int(parsedate_to_datetime(text).timestamp()) if text.endswith(" GMT") else None
        except (ValueError, OverflowError):
            return None

    def _until(self, seconds: int | None) -> int | None:
        return None if seconds is None or self.came_at is None else seconds - self.came_at


def is_transient(reply: ProviderReply) -> bool:
    """Whether a second attempt can succeed."""
    return reply.status in RETRIED


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProviderRequest(Private):
    """A request to a provider."""

    path: str
    """Percent-encoded, beginning with `/`."""
    method: str = "GET"
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_transient: Callable[[ProviderReply], bool] = is_transient
    """Whether a second attempt can succeed after this response."""
    repeatable: bool = True
    """False if a retry would create a second object: then it is retried only if none of it reached
    the provider, or if the provider refused it unread (429)."""

    def repeats_after(self, reply: ProviderReply) -> bool:
        """Whether it is sent again after this response."""
        return self.is_transient(reply) and (self.repeatable or reply.status == 429)

    @property
    def target(self) -> str:
        """Method, path and query, as the evidence keeps them."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{self.method} {self.path}{query}"


@dataclass(eq=False)
class TransportFailure(Exception):
    """There is no response that could be read."""

    outcome: Finding
    """PROVIDER_UNAVAILABLE, or INVALID_RESPONSE for a response that is too large or compressed."""
    reason: str
    """A fixed word, without anything of the request or the response."""
    retry_after: int = RETRY_AFTER_SECONDS
    unsent: bool = field(default=False, kw_only=True)
    """Whether nothing of the request can have reached the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """How every identity provider of a deployment is reached."""

    concurrency: int = CONCURRENT_MAX
    """Requests of one account at the same time."""
    proxy_url: str | None = field(default=None, repr=False)
    """A forward proxy (CONNECT); it may hold a password. None: providers are reached directly."""
    ca_file: Path | None = None
    """Trusted certificates (PEM), in addition to those of the system."""


DIRECT: Final = Outbound()


class ProviderHttp:
    """Sends requests to one host.

    Certificates are checked, redirects refused, proxies of the environment not used, so that a
    credential goes nowhere but to the provider. A configured proxy carries encrypted requests to
    providers; a simulator on this machine, over plain HTTP, is reached without it.
    """

    attempts: int = 3
    total_seconds: float = 12.0
    """For all requests of one result together, with every repetition."""
    read_seconds: float = 8.0
    jitter: Callable[[], float] = staticmethod(random.random)

    def __init__(self, base_url: str, clock: Clock, *, outbound: Outbound = DIRECT) -> None:
        self._base_url = base_url.rstrip("/")
        self._clock = clock
        self._breaker = Breaker(clock)
        self._outbound = outbound
        self._places = asyncio.Semaphore(outbound.concurrency)
        self._client: httpx2.AsyncClient | None = None

    def budget(self) -> Budget:
        """The time for one result, shared by all its `send`."""
        return Budget(sending=Allowance(self.total_seconds), waiting=Allowance(PLACE_SECONDS))

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
        for attempt in range(self.attempts - 1):
            pause: float = min(0.25 * (2**attempt + self.jitter()), _LONGEST_PAUSE)
            try:
                reply = await self._send_once(request)
            except TransportFailure as failure:
                may_repeat = request.repeatable or failure.unsent
                if failure.outcome is Finding.INVALID_RESPONSE or not may_repeat:
                    raise
            else:
                pause = reply.retry_after or pause
                if not request.repeats_after(reply) or pause > _LONGEST_PAUSE:
                    # Longer than a response may take: our caller has to retry.
                    return reply
            await asyncio.sleep(pause)
        return await self._send_once(request)

    async def _send_once(self, request: ProviderRequest) -> ProviderReply:
        if self._client is None:
            self._client = self._connected()
        target = request.target
        asked = self._client.stream(
            request.method,
            f"{self._base_url}{target.partition(' ')[2]}",
            headers=dict(request.headers),
            content=request.body,
        )
        try:
            # The host alone: the path can name a session of a person.
            with outgoing(f"{request.method} {urlsplit(self._base_url).netloc}"):
                return await self._read(asked, target)
        except httpx2.HTTPError as error:
            # The error's text can contain the address with the session id; its kind cannot.
            unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            kind = _kind(error)
            raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, kind, unsent=unsent) from None

    async def _read(
        self, asked: AbstractAsyncContextManager[httpx2.Response], target: str
    ) -> ProviderReply:
        async with asked as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                # No compression was requested, and a small body could unpack to gigabytes.
                raise TransportFailure(Finding.INVALID_RESPONSE, "encoded_body")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > BODY_BYTES_MAX:
                    raise TransportFailure(Finding.INVALID_RESPONSE, "body_too_large")
            return ProviderReply(
                status=response.status_code,
                headers={name.lower(): value for name, value in response.headers.items()},
                body=bytes(body),
                target=target,
                came_at=self._clock.time_ns() // 1_000_000_000,
            )

    def _connected(self) -> httpx2.AsyncClient:
        context = _trusted(self._outbound.ca_file)
        return httpx2.AsyncClient(
            verify=context,
            proxy=self._proxy(context),
            limits=httpx2.Limits(max_keepalive_connections=self._outbound.concurrency),
            timeout=httpx2.Timeout(self.read_seconds, connect=2.0),
            follow_redirects=False,
            trust_env=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "countersign"},
        )

    def _proxy(self, context: SSLContext) -> httpx2.Proxy | None:
        url = self._outbound.proxy_url
        if url is None or not self._base_url.startswith("https://"):
            return None
        return httpx2.Proxy(url, ssl_context=context if url.startswith("https://") else None)


@cache
def _trusted(ca_file: Path | None) -> SSLContext:
    """One for all accounts: to read the certificates takes longer than a request."""
    context = httpx2.create_ssl_context(trust_env=False)
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def _kind(error: BaseException) -> str:
    """The kind of failure, for the operator to search for; else the name of the error's type."""
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
