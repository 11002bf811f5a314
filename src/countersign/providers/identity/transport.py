"""HTTP to an identity provider: one host, bounded in time, size and number of attempts.

What a provider's adapter sends goes through here, and nothing of it reaches a log: the paths hold
session ids, the bodies hold people.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import httpx2
import stamina

from countersign.domain.identity import Outcome
from countersign.ports import Clock
from countersign.providers.identity.breaker import Breaker

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 8.0
TOTAL_SECONDS: Final = 12.0
BODY_BYTES_MAX: Final = 1024 * 1024
ATTEMPTS: Final = 3
CONCURRENT_MAX: Final = 16
RETRY_AFTER_SECONDS: Final = 5
"""What our caller is told to wait when the provider says nothing."""
_RETRY_AFTER_MAX: Final = 3600
# Retries of this module end in an outcome that is counted; a line in the log for each says less.
stamina.instrumentation.set_on_retry_hooks(())
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 4.0

RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that a second attempt may outlive, with every provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """A request to a provider; safe to repeat."""

    path: str
    """Percent-encoded, beginning with `/`."""
    method: str = "GET"
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    retried: frozenset[int] = RETRIED
    """The statuses after which it is sent again."""

    @property
    def target(self) -> str:
        """Method, path and query, as the evidence keeps them."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{self.method} {self.path}{query}"

    def __repr__(self) -> str:
        return "<ProviderRequest: hidden>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """An answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes
    target: str
    """See `ProviderRequest.target`."""

    def __repr__(self) -> str:
        return f"<ProviderReply: status {self.status}>"

    @property
    def retry_after(self) -> int | None:
        """Whole seconds that the provider asks us to wait, at most an hour."""
        # Some say in every answer when their limit begins anew: that matters when it is reached.
        limits = ("ratelimit-reset", "x-ratelimit-reset") if self.status == 429 else ()
        for name in ("retry-after", *limits):
            text = self.headers.get(name, "").strip()
            if text.isascii() and text.isdigit() and len(text) <= 9:
                return min(max(int(text), 1), _RETRY_AFTER_MAX)
        return None


class TransportFailure(Exception):
    """There is no answer that could be read.

    `outcome` is PROVIDER_UNAVAILABLE, or INVALID_RESPONSE for an answer that is too large or cut
    short; `reason` is a word of ours for it, without anything of the request or the answer.
    """

    def __init__(self, outcome: Outcome, reason: str, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.retry_after = retry_after


class _TryAgain(Exception):
    """An attempt failed in a way that another may not."""

    def __init__(self, failure: TransportFailure | None, reply: ProviderReply | None) -> None:
        super().__init__()
        self.failure = failure
        self.reply = reply


class ProviderHttp:
    """Sends requests to one host.

    Certificates are checked, redirects refused, proxies of the environment not used, so that a
    credential goes nowhere but to the provider.
    """

    def __init__(
        self,
        base_url: str,
        clock: Clock,
        *,
        attempts: int = ATTEMPTS,
        total_seconds: float = TOTAL_SECONDS,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._attempts = attempts
        self._total_seconds = total_seconds
        self._timeout = httpx2.Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._breaker = Breaker(clock)
        self._places = asyncio.Semaphore(CONCURRENT_MAX)
        self._client: httpx2.AsyncClient | None = None

    async def send(self, request: ProviderRequest) -> ProviderReply:
        """Send a request, again where that helps; gives the last answer, also one of an error.

        Raises:
            TransportFailure: there was no answer that could be read.
        """
        if not self._breaker.lets_through():
            raise TransportFailure(
                Outcome.PROVIDER_UNAVAILABLE, "breaker_open", self._breaker.seconds_left()
            )
        try:
            async with asyncio.timeout(self._total_seconds), self._places:
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

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

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
                )
        except httpx2.HTTPError as error:
            # The error's text can name the address with the session id; its type cannot.
            failure = TransportFailure(Outcome.PROVIDER_UNAVAILABLE, type(error).__name__)
            raise _TryAgain(failure, None) from None
        if _worth_repeating(request, reply):
            raise _TryAgain(None, reply)
        return reply

    @asynccontextmanager
    async def _open(self, request: ProviderRequest) -> AsyncIterator[httpx2.Response]:
        if self._client is None:
            self._client = httpx2.AsyncClient(
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
