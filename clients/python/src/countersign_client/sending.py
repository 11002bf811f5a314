"""Sending a call: attempts, waits, errors. The two senders differ in `await` alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

import httpx2
import msgspec

from countersign_client.call import Call
from countersign_client.errors import BY_CODE
from countersign_client.failure import (
    ConnectionFailed,
    CountersignError,
    TimedOut,
    UnexpectedResponse,
)
from countersign_client.retries import Retries, wait_before_next

T = TypeVar("T")

_COPIES_MAX: Final = 32
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
# JSON that nests too deeply is none of ours, either.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _ErrorDetail(msgspec.Struct):
    code: str
    message: str


class _ErrorBody(msgspec.Struct):
    error: _ErrorDetail


class Exchange:
    """Parts shared by both senders: building requests, and cached copies."""

    def __init__(self, *, base_url: str, api_key: str, retries: Retries) -> None:
        self._base_url = base_url
        self.is_plain: Final = base_url.startswith("http://")
        self._api_key = api_key
        self.retries = retries
        self._copies: dict[str, tuple[str, bytes]] = {}

    def copy_of(self, call: Call[Any]) -> tuple[str, bytes] | None:
        """The last response to this call, if it can be asked whether that is current: tag, body."""
        return self._copies.get(call.target) if call.revalidated else None

    def request_of(self, call: Call[Any], etag: str | None) -> dict[str, Any]:
        """The arguments of `request`."""
        content = call.content
        headers = {name: value for name, value in call.headers.items() if value is not None}
        if content is not None:
            headers["Content-Type"] = "application/json"
        if etag is not None:
            headers["If-None-Match"] = etag
        return {
            "method": call.method,
            "url": self._base_url + call.target,
            "headers": headers,
            "content": content,
            # Not in `headers`: reports of errors show the variables of functions.
            "auth": self._authorize,
            "follow_redirects": False,
        }

    def _authorize(self, request: httpx2.Request) -> httpx2.Request:
        request.headers["Authorization"] = f"Bearer {self._api_key}"
        return request

    def keep_copy(self, call: Call[Any], response: httpx2.Response) -> None:
        if call.revalidated and (etag := response.headers.get("ETag")):
            if len(self._copies) >= _COPIES_MAX:
                self._copies.clear()
            self._copies[call.target] = (etag, response.content)


class Attempts(Generic[T]):
    """The attempts at one call: judges each, and says how long to wait before the next."""

    def __init__(self, exchange: Exchange, call: Call[T]) -> None:
        self._exchange, self._call = exchange, call
        self._copy = exchange.copy_of(call)
        self.request: Final = exchange.request_of(call, self._copy and self._copy[0])
        self._attempt, self._waited = 0, 0.0

    def failed(self, error: httpx2.RequestError) -> float:
        """The seconds to wait after an attempt without a response.

        Raises ConnectionFailed or TimedOut if it was the last one.
        """
        return self._wait_or_raise(_lost(error), error)

    def refused(self, response: httpx2.Response) -> float | None:
        """The seconds to wait after this response, or None if it is a success.

        Raises CountersignError if it was the last one.
        """
        if response.status_code in {200, 304}:
            return None
        return self._wait_or_raise(error_of(response), None)

    def result(self, response: httpx2.Response) -> T:
        """The content of a successful response.

        Raises UnexpectedResponse if it is none of this API.
        """
        content = response.content
        if response.status_code == httpx2.codes.NOT_MODIFIED and self._copy is not None:
            content = self._copy[1]
        else:
            self._exchange.keep_copy(self._call, response)
        try:
            return self._call.result(content)
        except _UNREADABLE as error:
            raise _unexpected(response, str(error)) from error

    def _wait_or_raise(self, error: CountersignError, cause: Exception | None) -> float:
        self._attempt += 1
        wait = wait_before_next(
            self._exchange.retries,
            error,
            attempt=self._attempt,
            waited=self._waited,
            repeatable=self._call.repeatable,
        )
        if wait is None:
            raise error from cause
        self._waited += wait
        return wait


class Sender:
    """Sends calls, and waits for what they return."""

    def __init__(
        self, exchange: Exchange, http: httpx2.Client, sleep: Callable[[float], object]
    ) -> None:
        self._exchange, self._http, self._sleep = exchange, http, sleep

    def send(self, call: Call[T]) -> T:
        """Send a call until it succeeds or fails finally.

        Raises CountersignError.
        """
        attempts = Attempts(self._exchange, call)
        while True:
            try:
                response = self._http.request(**attempts.request)
            except httpx2.RequestError as error:
                wait = attempts.failed(error)
            else:
                refused = attempts.refused(response)
                if refused is None:
                    return attempts.result(response)
                wait = refused
            self._sleep(wait)


class AsyncSender:
    """Sends calls in an event loop."""

    def __init__(
        self,
        exchange: Exchange,
        http: httpx2.AsyncClient,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._exchange, self._http, self._sleep = exchange, http, sleep

    async def send(self, call: Call[T]) -> T:
        """Send a call until it succeeds or fails finally.

        Raises CountersignError.
        """
        attempts = Attempts(self._exchange, call)
        while True:
            try:
                response = await self._http.request(**attempts.request)
            except httpx2.RequestError as error:
                wait = attempts.failed(error)
            else:
                refused = attempts.refused(response)
                if refused is None:
                    return attempts.result(response)
                wait = refused
            await self._sleep(wait)


def error_of(response: httpx2.Response) -> CountersignError:
    """The error that a response stands for; one of another shape did not come from this API."""
    try:
        error = msgspec.json.decode(response.content, type=_ErrorBody).error
    except _UNREADABLE:
        return _unexpected(response, f"HTTP status {response.status_code}")
    return BY_CODE.get(error.code, CountersignError)(
        error.message, code=error.code, **_circumstances(response)
    )


def _unexpected(response: httpx2.Response, what: str) -> UnexpectedResponse:
    message = f"The response is not one of this API: {what}"
    return UnexpectedResponse(message, **_circumstances(response))


def _circumstances(response: httpx2.Response) -> dict[str, Any]:
    after = response.headers.get("Retry-After", "")
    return {
        "status": response.status_code,
        "request_id": response.headers.get("X-Request-Id"),
        # A date is possible too (RFC 9110), but this API does not send one.
        "retry_after": float(after) if after.isascii() and after.isdigit() else None,
    }


def _lost(error: httpx2.RequestError) -> ConnectionFailed | TimedOut:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, _NEVER_SENT):
        return ConnectionFailed(text, sent=False)
    if isinstance(error, httpx2.TimeoutException):
        return TimedOut(text)
    return ConnectionFailed(text, sent=True)
