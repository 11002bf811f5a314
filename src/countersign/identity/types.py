"""What is sent to an identity provider, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlencode

from countersign.identity.model import Finding

RETRY_AFTER_SECONDS: Final = 5
"""What our caller has to wait if the provider does not say."""
RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which a second attempt can succeed, with every provider."""
_RETRY_AFTER_MAX: Final = 3600
_EPOCH_MIN: Final = 1_000_000_000
"""Larger numbers are a time in Unix seconds (since 2001), smaller ones a number of seconds."""


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
        seconds = self._until_date() or self._seconds("retry-after")
        if seconds is None and self.status == 429:
            # Some state the reset of their limit in every response: it matters once it is reached.
            seconds = self._reset("ratelimit-reset") or self._reset("x-ratelimit-reset")
        return None if seconds is None else min(max(seconds, 1), _RETRY_AFTER_MAX)

    def _until_date(self) -> int | None:
        """The time until an HTTP date (RFC 9110, section 5.6.7)."""
        text = self.headers.get("retry-after", "").strip()
        if self.came_at is None or not text.endswith(" GMT"):
            return None
        try:
            return max(1, int(parsedate_to_datetime(text).timestamp()) - self.came_at)
        except (ValueError, OverflowError):
            return None

    def _seconds(self, header: str) -> int | None:
        text = self.headers.get(header, "").strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None

    def _reset(self, header: str) -> int | None:
        seconds = self._seconds(header)
        if seconds is None or seconds < _EPOCH_MIN:
            return None if seconds is None else max(1, seconds)
        return None if self.came_at is None else max(1, seconds - self.came_at)


def is_transient(reply: ProviderReply) -> bool:
    """Whether a second attempt can succeed."""
    return reply.status in RETRIED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """A request to a provider; safe to repeat."""

    path: str
    """Percent-encoded, beginning with `/`."""
    method: str = "GET"
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    is_transient: Callable[[ProviderReply], bool] = is_transient
    """Whether it is sent again after this response."""

    @property
    def target(self) -> str:
        """Method, path and query, as the evidence keeps them."""
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{self.method} {self.path}{query}"

    def __repr__(self) -> str:
        return "<ProviderRequest: hidden>"


class TransportFailure(Exception):
    """There is no response that could be read.

    `outcome` is PROVIDER_UNAVAILABLE, or INVALID_RESPONSE for a response that is too large or
    compressed; `reason` is a fixed word, without anything of the request or the response.
    """

    def __init__(self, outcome: Finding, reason: str, retry_after: int | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.retry_after = retry_after
