"""The room of checkout sessions: what its acts work with."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from msgspec import Struct
from sqlalchemy import Connection, select

from countersign.base.db.database import Database
from countersign.base.db.tables import checkout_sessions
from countersign.base.deadline import detached
from countersign.base.errors import Overloaded
from countersign.base.host import Network
from countersign.base.loops import forever
from countersign.base.snapshot import KeyedLocks
from countersign.base.values import Clock, Mode
from countersign.core.access.room import Access
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.buyers.room import Buyers
from countersign.core.clearances.room import Clearances
from countersign.core.vault.vault import Vault

ASKED_MAX: Final = 20
"""In a minute, for one session in one process."""
_SECONDS: Final = 60.0
_SESSIONS_MAX: Final = 10_000


class Asking(Struct, eq=False):
    """Counts the recent queries of each session."""

    clock: Clock
    _asked: dict[str, tuple[float, int]] = {}

    def may(self, session_id: str) -> bool:
        """Count one more, if there is room."""
        now = self.clock.monotonic()
        begun, number = self._asked.get(session_id, (now, 0))
        if now - begun >= _SECONDS:
            begun, number = now, 0
        if number >= ASKED_MAX:
            return False
        if len(self._asked) >= _SESSIONS_MAX:
            self._asked = {k: v for k, v in self._asked.items() if now - v[0] < _SECONDS}
        self._asked[session_id] = (begun, number + 1)
        return True


# Server-sent events that say when a session has changed (HTML Living Standard §9.2).
#
# They only signal the change; the page then fetches the state.

STREAMS_MAX: Final[Mapping[Mode, int]] = {Mode.LIVE: 256, Mode.TEST: 64}
"""Open at a time in one process; a page whose stream ended reloads itself."""
ACCOUNT_PART: Final = 4
"""An account has at most this part of them: then its newest stream ends its oldest."""
STREAMS_EACH_MAX: Final = 4
"""Limit per session, so that its browsers leave room for others."""
_ALIVE_LOOKS: Final = 15
_LOOKS_MAX: Final = 300
_BUSY_SECONDS: Final = 30
_c: Final = checkout_sessions.c


Owner: TypeAlias = tuple[str, Mode]
"""An account, and a mode of it."""


@dataclass(slots=True, eq=False)
class _Stream:
    session_id: str
    is_over: bool = False


class Updates:
    """The sessions that browsers look at, read together: one query for any number of them."""

    seconds: float = 1.0
    """Between two looks at the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._streams: defaultdict[Owner, list[_Stream]] = defaultdict(list)
        self._seen: dict[str, int | None] = {}
        self._looked = asyncio.Event()
        self._looking: asyncio.Task[object] | None = None

    async def after(
        self, session_id: str, revision: int, owner: Owner, streams_max: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The events of a session that a page shows at this revision: one, as soon as it changed.

        A comment keeps the connection open meanwhile, until five minutes are over. Take the first
        piece before anything is sent: it raises Overloaded where the session has too many streams.
        If its account, or all accounts of its mode together, have too many, the oldest stream of
        the account ends, or that of the account with most.
        """
        own = self._streams.get(owner, ())
        if sum(one.session_id == session_id for one in own) >= STREAMS_EACH_MAX:
            raise Overloaded(retry_after=_BUSY_SECONDS)
        self._make_room(owner, streams_max or STREAMS_MAX[owner[1]])
        stream = _Stream(session_id)
        self._streams[owner].append(stream)
        if self._looking is None:
            self._looking = detached(forever("checkout_updates", self._look, self.seconds))
        try:
            yield b":\n\n"
            for look in range(1, _LOOKS_MAX):
                if not stream.is_over:
                    await self._looked.wait()
                if stream.is_over:
                    return
                seen = self._seen.get(session_id, revision)
                if seen is None or seen > revision:
                    yield b"event: changed\ndata:\n\n"
                    return
                if look % _ALIVE_LOOKS == 0:
                    yield b":\n\n"
        finally:
            self._leave(owner, stream)

    @property
    def open(self) -> int:
        """How many streams are open."""
        return sum(map(len, self._streams.values()))

    async def _look(self) -> None:
        watched = {one.session_id for streams in self._streams.values() for one in streams}
        try:
            found = await self._database.scan(_revisions, watched)
            self._seen = {one: found.get(one) for one in watched}
        finally:
            self._wake()

    def _wake(self) -> None:
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    def _make_room(self, owner: Owner, most: int) -> None:
        """End one stream if the account has used up its share, or if all places are taken."""
        same_mode = [one for one in self._streams if one[1] is owner[1]]
        fullest = None
        if len(self._streams.get(owner, ())) >= max(1, most // ACCOUNT_PART):
            fullest = owner
        elif sum(len(self._streams[one]) for one in same_mode) >= most:
            fullest = max(same_mode, key=lambda one: len(self._streams[one]))
        if fullest is not None:
            self._leave(fullest, self._streams[fullest][0])

    def _leave(self, owner: Owner, stream: _Stream) -> None:
        """Remove a stream (idempotent); it ends at the next look, or now if none follows."""
        if stream.is_over:
            return
        stream.is_over = True
        self._streams[owner].remove(stream)
        if not self._streams[owner]:
            del self._streams[owner]
        if not self._streams and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._wake()  # streams that gave way: no later look wakes them


def _revisions(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    rows = connection.execute(select(_c.id, _c.revision).where(_c.id.in_(ids)))
    return {row.id: row.revision for row in rows}


CHANGES_WAITING_MAX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """Checkout sessions, and the data that they collect."""

    access: Access
    vault: Vault
    acknowledgments: Acknowledgments
    buyers: Buyers
    clearances: Clearances
    updates: Updates
    asking: Asking
    public_url: str
    client_ip_header: str
    trusted_proxies: Sequence[Network]
    changes: KeyedLocks = field(
        default_factory=lambda: KeyedLocks(CHANGES_WAITING_MAX, of_database=True)
    )
    """Serialises changes of a session: otherwise they would undo each other's work."""
