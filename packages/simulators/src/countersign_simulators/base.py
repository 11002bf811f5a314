"""Base of all simulated identity providers.

A simulator shares no code with the adapters, so that the two cannot contain the same mistake: it is
written from the provider's documentation. It never sleeps and never opens a socket: its replies
tell the server what to do.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Protocol, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]
Clock: TypeAlias = Callable[[], float]
"""Gives Unix seconds."""

JSON_TYPE: Final = ("Content-Type", "application/json")
_HUGE_BYTES: Final = 50 * 1024 * 1024
_SLOW_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    """Percent-encoded, as sent, without the query."""
    query: tuple[tuple[str, str], ...]
    """Decoded pairs, in order."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    secure: bool = False
    """Whether it came over TLS."""

    @property
    def origin(self) -> str:
        """The simulator's address for callers, such as `http://127.0.0.1:9100`."""
        scheme = "https" if self.secure else "http"
        return f"{scheme}://{self.headers.get('host', 'localhost')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response, and faults on its way."""

    status: int
    body: bytes = b""
    headers: Headers = (JSON_TYPE,)
    delay: float = 0.0
    """Seconds before the first byte."""
    cut_after: int | None = None
    """The connection is closed after this many bytes of the body; its length was announced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session that a simulator knows."""

    session_id: str
    scenario: str = "verified"
    """`verified` if a first live verification with `shipping_zip` must return `verified`; else the
    name of the scenario, such as `underage`. Only `verified` occurs more than once."""
    shipping_zip: str
    subject_reference: str | None = None
    personal: tuple[str, ...] = ()
    """Every personal string in the session: names, date of birth as written, address lines,
    document number, phone, e-mail. None of them may ever be seen outside the vault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A message that the provider would send."""

    headers: Headers
    body: bytes


class Simulator(Protocol):
    """One provider."""

    @property
    def name(self) -> str:
        """`stripe`, `persona`, `veriff`, `plaid`, `didit` or `onfido`."""
        ...

    @property
    def sessions(self) -> Sequence[Session]:
        """Its sessions, the same at every start; at least twelve scenarios."""
        ...

    @property
    def credentials(self) -> Mapping[str, object]:
        """The content of a credentials file that it accepts."""
        ...

    @property
    def test_credentials(self) -> Mapping[str, object]:
        """The same for the provider's test mode: sessions that it creates are not live."""
        ...

    def answer(self, request: Request) -> Reply:
        """The reply to any request."""
        ...

    def webhook(self, session_id: str) -> Webhook:
        """A message that this session has changed, signed now."""
        ...

    def take_messages(self) -> Sequence[Webhook]:
        """The messages about changes since the last call, in order."""
        ...


def failing(reply: Reply, failure: str | None) -> Reply:
    """The reply, with a failure of the network or of a server in front of the provider.

    `truncated`, `huge`, `slow`, `cut` or `bad_gateway`; any other word changes nothing.
    """
    half = len(reply.body) // 2
    match failure:
        case "truncated":
            return replace(reply, body=reply.body[:half])
        case "huge":
            return replace(reply, body=reply.body + b" " * _HUGE_BYTES)
        case "slow":
            return replace(reply, delay=_SLOW_SECONDS)
        case "cut":
            return replace(reply, cut_after=half)
        case "bad_gateway":
            page = b"<html><head><title>502 Bad Gateway</title></head></html>"
            return Reply(status=502, body=page, headers=(("Content-Type", "text/html"),))
        case _:
            return reply


def with_headers(reply: Reply, *headers: tuple[str, str]) -> Reply:
    """The reply with more headers."""
    return replace(reply, headers=(*reply.headers, *headers))


def json_reply(status: int, body: object, headers: Headers = (JSON_TYPE,)) -> Reply:
    """A reply with a JSON body."""
    return Reply(status=status, body=json.dumps(body).encode(), headers=headers)


def hmac_hex(secret: str, message: bytes) -> str:
    """HMAC-SHA256 (RFC 2104) in lower-case hex."""
    return hmac.new(secret.encode(), message, sha256).hexdigest()


def timestamp(unix_seconds: float) -> str:
    """A time in UTC, in whole seconds (RFC 3339)."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).isoformat().replace("+00:00", "Z")


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the members of `changes`, also inside objects; `...` removes a member."""
    result = dict(base)
    for name, value in changes.items():
        within = result.get(name)
        if value is ...:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(within, Mapping):
            result[name] = merged(within, value)
        else:
            result[name] = value
    return result
