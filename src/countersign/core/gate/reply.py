"""Input and output of a handler."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from countersign.core.access.audit import Audit
from countersign.core.access.idempotency import Keep, Remember
from countersign.core.access.key import Principal

T = TypeVar("T")

Header: TypeAlias = tuple[bytes, bytes]

JSON: Final[Header] = (b"content-type", b"application/json; charset=utf-8")
NO_STORE: Final[Header] = (b"cache-control", b"no-store")
PERSONAL: Final = (JSON, NO_STORE)
REPLAYED: Final[Header] = (b"idempotent-replayed", b"true")
LIVE_WOULD_REFUSE: Final = b"countersign-live-would-refuse"
"""The header that names, in test mode, the reasons that only a live key would get."""

ReadBody: TypeAlias = Callable[[int, Sequence[str]], Awaitable[bytes]]
"""Reads at most so many bytes, which are counted for these owners, the narrowest one first."""

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """A response."""

    body: bytes
    headers: Sequence[Header] = PERSONAL
    status: int = 200
    pieces: AsyncGenerator[bytes, None] | None = None
    """A stream after `body`, without a known length, until its reader leaves."""


@dataclass(slots=True, kw_only=True)
class Call:
    """A request on its way to a handler, and what each gate has found out about it."""

    method: str
    path: str
    query_string: bytes
    headers: dict[bytes, bytes]
    raw_headers: Sequence[Header]
    peer: str | None
    is_within: bool = False
    """Whether it comes from this process itself: of the console's pages."""
    needs_host: bool = False
    """Whether it names no host and has to: from HTTP/1.1 on (RFC 9112 §3.2)."""
    parameter: str = ""
    principal: Principal = field(init=False)
    """The caller; only on a route that needs a key."""
    also: Sequence[Header] = ()
    """Headers of the response, also of a refusal."""
    body: bytes = b""
    read_body: ReadBody | None = None
    """Reads a body that is not read before the handler, which first checks whom it is for."""
    count_visit: Callable[[str, str], Awaitable[None]] | None = None
    """Counts a request of one who has no key: for this session, and for all of this account.

    Raises RateLimited where there were too many.
    """
    locale: str = ""
    """The language for who asks, as soon as something says more than Accept-Language."""
    entry: Keep | None = None
    """Makes the kept response from its body; None without an Idempotency-Key."""
    audit: Audit | None = None
    """Where an act notes itself: of operators and staff; None: a vendor's key acts."""
    query: Any = None
    """The parameters of the query, as the `query` of the route."""

    def remembering(self, render: Callable[[T], bytes]) -> Remember[T]:
        """What a service calls inside its transaction to store the response; None: no key."""
        entry = self.entry
        if entry is None:
            return None
        return lambda outcome: entry(render(outcome))

    async def kept(
        self, view: Callable[[T], Any], act: Callable[[Remember[T]], Awaitable[T]]
    ) -> Reply:
        """Do an act: `view` is returned of its outcome, and kept in its transaction."""

        def render(outcome: T) -> bytes:
            return encode(view(outcome))

        return Reply(render(await act(self.remembering(render))))


def etag_of(body: bytes) -> bytes:
    """The strong entity tag of these bytes (RFC 9110 §8.8.3)."""
    return f'"sha256-{sha256(body).hexdigest()}"'.encode()


def tagged(call: Call, body: bytes, etag: bytes, media_type: Header, *headers: Header) -> Reply:
    """A response with an entity tag; 304 without a body where the caller has it already."""
    rest = (*headers, (b"etag", etag))
    wanted = call.headers.get(b"if-none-match")
    if wanted is not None and _matches(wanted, etag):
        return Reply(b"", rest, 304)
    return Reply(body, (media_type, *rest))


def _matches(if_none_match: bytes, etag: bytes) -> bool:
    """RFC 9110 §13.1.2: `*`, or one of the listed tags by weak comparison."""
    if if_none_match.strip() == b"*":
        return True
    return any(tag.strip().removeprefix(b"W/") == etag for tag in if_none_match.split(b","))
