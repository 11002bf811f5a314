"""What a simulated identity provider is made of.

A simulator knows nothing of our adapters, so that the two cannot share a mistake: it is written
from the provider's own description. It never sleeps and never opens a socket: it says in its reply
what the server is to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    """Percent-encoded, as sent, without the query."""
    query: tuple[tuple[str, str], ...]
    """Decoded pairs, in order."""
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, and what becomes of it on the way."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    delay: float = 0.0
    """Seconds before the first byte."""
    cut_after: int | None = None
    """The connection is closed after this many bytes of the body, which was announced whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session that a simulator knows."""

    session_id: str
    plays: str
    """`verified` if a first live verify with `shipping_zip` must answer `verified`; else a word
    for the part, such as `underage`. No two sessions of a simulator play the same word, but for
    `verified`."""
    shipping_zip: str
    subject_reference: str | None
    personal: tuple[str, ...]
    """Every personal string in the session: names, date of birth as it is written, address lines,
    document number, phone, e-mail. Nothing of them may ever be seen outside the vault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A message that the provider would send."""

    headers: tuple[tuple[str, str], ...]
    body: bytes


class Simulator(Protocol):
    """One provider."""

    @property
    def name(self) -> str:
        """`stripe`, `persona`, `veriff`, `plaid`, `didit` or `onfido`."""
        ...

    @property
    def sessions(self) -> Sequence[Session]:
        """The sessions that it knows, the same at every start; at least twelve parts."""
        ...

    @property
    def credentials(self) -> Mapping[str, object]:
        """The content of a credentials file that it accepts."""
        ...

    def answer(self, request: Request) -> Reply:
        """The answer to a request; any request whatever has one."""
        ...

    def webhook(self, session_id: str) -> Webhook:
        """A signed message that this session has changed, as of now."""
        ...


SimulatorFactory = Callable[[Callable[[], float]], Simulator]
"""Makes a simulator from a clock that gives Unix seconds."""
