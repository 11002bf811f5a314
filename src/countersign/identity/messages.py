"""What is sent to an identity provider, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlencode

from countersign.identity.model import Outcome

RETRY_AFTER_SECONDS: Final = 5
"""What our caller is told to wait when the provider says nothing."""
_RETRY_AFTER_MAX: Final = 3600
_EPOCH_MIN: Final = 1_000_000_000
"""What tells a time in Unix seconds (since 2001) from a number of seconds to wait."""

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
    came_at: int | None = None
    """Unix seconds."""

    def __repr__(self) -> str:
        return f"<ProviderReply: status {self.status}>"

    @property
    def retry_after(self) -> int | None:
        """Whole seconds that the provider asks us to wait, at most an hour."""
        # Some say in every answer when their limit begins anew: that matters when it is reached.
        limits = ("ratelimit-reset", "x-ratelimit-reset") if self.status == 429 else ()
        for name in ("retry-after", *limits):
            text = self.headers.get(name, "").strip()
            until = _until(text, self.came_at) if name == "retry-after" else None
            if until is not None:
                return min(max(until, 1), _RETRY_AFTER_MAX)
            if not (text.isascii() and text.isdigit() and len(text) <= 10):
                continue
            seconds = int(text)
            if name in limits and seconds >= _EPOCH_MIN:
                # Some name the time, not how long it is until then.
                if self.came_at is None:
                    continue
                seconds -= self.came_at
            return min(max(seconds, 1), _RETRY_AFTER_MAX)
        return None


def _until(text: str, now: int | None) -> int | None:
    """Seconds until a date as HTTP writes them (RFC 9110, section 5.6.7); None if it is none."""
    if now is None or not text.endswith(" GMT"):
        return None
    try:
        return int(parsedate_to_datetime(text).timestamp()) - now
    except (ValueError, OverflowError):
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
