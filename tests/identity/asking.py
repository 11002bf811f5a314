"""Tools for the tests of adapters: a fixed clock, a fingerprint, a reply, a response."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from countersign.identity.base import Credentials, IdentityProvider, Response, evidence_of
from countersign.identity.fingerprint import fingerprints
from countersign.identity.model import ProviderResult
from countersign.identity.transport import Outbound, ProviderHttp, ProviderReply

C = TypeVar("C", bound=Credentials)

NOW: Final = 1_794_949_200.0
"""2026-11-17T17:00:00Z."""


@dataclass(slots=True)
class FixedClock:
    """A clock that stands still unless a test moves it."""

    seconds: float = NOW

    def time_ns(self) -> int:
        """Unix time in nanoseconds."""
        return int(self.seconds) * 1_000_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.seconds

    def now(self) -> float:
        """Unix seconds, as simulators want them."""
        return self.seconds


def keyed(issuer: str, kind: str, number: str) -> bytes:
    """A hash under a key that anybody has."""
    return sha256(f"{issuer}|{kind}|{number}".encode()).digest()


fingerprint: Final = fingerprints(keyed, None)
"""The distinguishing data of documents, at the providers' own addresses."""


def reply(body: object, status: int = 200, **headers: str) -> ProviderReply:
    """An answer with this body: bytes as they are, anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProviderReply(status=status, headers=named, body=raw, target="GET /")


def translated(
    adapter: type[IdentityProvider[C]], credentials: C, answer: ProviderReply, session_id: str
) -> ProviderResult:
    """The adapter's result for this reply about a session."""
    clock = FixedClock()
    provider = adapter(credentials, base_url=None, fingerprint=fingerprint, clock=clock)
    return provider.translate(
        Response(
            provider=adapter.name,
            session_id=session_id,
            reply=answer,
            evidence=evidence_of(answer, clock, "v1", None),
        )
    )


def single(
    url: str,
    clock: FixedClock,
    *,
    read_seconds: float = 10.0,
    total_seconds: float | None = None,
    concurrency: int = 16,
) -> ProviderHttp:
    """A connection that tries once only, for providers that fail for good or hang."""
    http = ProviderHttp(url, clock, outbound=Outbound(concurrency=concurrency))
    http.attempts, http.read_seconds = 1, read_seconds
    http.total_seconds = total_seconds or 2 * read_seconds
    return http


def day(text: str) -> datetime:
    """A UTC time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


JUNK: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["verified", "passed", "approved", "2026-13-01", "[redacted]", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
"""Any JSON value."""


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every member at every level."""
    found: list[tuple[str | int, ...]] = [path] if path else []
    members: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for key, member in members:
        found += places(member, (*path, key))
    return found


def put(value: Any, path: tuple[str | int, ...], junk: object) -> Any:  # noqa: ANN401 - any JSON
    """A copy with another member at this path; with `...`, without it."""
    copy = json.loads(json.dumps(value))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    if junk is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = junk
    return copy
