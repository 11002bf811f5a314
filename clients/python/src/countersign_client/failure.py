"""Exceptions of a call, except the errors that the API names: those are in `errors`."""

from __future__ import annotations

from typing import ClassVar


class CountersignError(Exception):
    """A call failed. Decide by `code`; the message is for people and may change."""

    default_code: ClassVar[str] = "unknown"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.status = status
        """The HTTP status; None if there was no response."""
        self.request_id = request_id
        """Quote it to the operator; None if there was no response."""
        self.retry_after = retry_after
        """The number of seconds after which the server can do it, if it says so."""

    def __str__(self) -> str:
        place = "" if self.status is None else f" (HTTP {self.status}, request {self.request_id})"
        return f"{self.code}: {self.message}{place}"


class ConnectionFailed(CountersignError):
    """The server was not reached, or the connection was lost before the response was complete.

    The server may have acted on the call if it was `sent`.
    """

    default_code = "connection_failed"

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class TimedOut(CountersignError):
    """There was no complete response in time. The server may have acted on the call."""

    default_code = "timed_out"


class UnexpectedResponse(CountersignError):
    """The response is not one of this API: a proxy's, a redirect, or of another version."""

    default_code = "unexpected_response"


class InvalidSignature(CountersignError):
    """A webhook message is not authentic, or too old: return 400, and do not act on it."""

    default_code = "invalid_signature"


class InvalidClearanceToken(CountersignError):
    """The token does not allow this order to ship; the message says why."""

    default_code = "invalid_clearance_token"
