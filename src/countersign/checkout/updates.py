"""Server-sent events that say when a session has changed (HTML Living Standard §9.2).

They say that it has, and nothing else: the page then shows how it stands.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Collection
from typing import Final

from sqlalchemy import Connection, select

from countersign.db.database import Database
from countersign.db.tables import checkout_sessions
from countersign.errors import Overloaded
from countersign.loops import forever

STREAMS_MAX: Final = 256
"""Open at a time in one process; beyond them, the page reloads itself."""
STREAMS_EACH_MAX: Final = 4
"""Of these, for one session: its browsers leave room for others."""
_ALIVE_SECONDS: Final = 15.0
_LONGEST_SECONDS: Final = 300.0
_BUSY_SECONDS: Final = 30
_c: Final = checkout_sessions.c


class Updates:
    """The sessions that browsers look at, read together: one query, however many there are."""

    def __init__(self, database: Database, seconds: float = 1.0) -> None:
        """`seconds` are between two looks at the database."""
        self._database = database
        self._seconds = seconds
        self._watched: Counter[str] = Counter()
        self._seen: dict[str, int | None] = {}
        self._looked = asyncio.Event()
        self._looking: asyncio.Task[object] | None = None

    async def after(
        self, session_id: str, revision: int, streams_max: int = STREAMS_MAX
    ) -> AsyncGenerator[bytes, None]:
        """The events of a session that a page shows at this revision: one, as soon as it changed.

        A comment keeps the connection open meanwhile, until five minutes are over. Take the first
        piece before anything is sent: it raises Overloaded where too many streams are open.
        """
        each = self._watched[session_id]
        if self.open >= streams_max or each >= STREAMS_EACH_MAX:
            raise Overloaded(retry_after=_BUSY_SECONDS)
        self._watched[session_id] += 1
        if self._looking is None:
            run = forever("checkout_updates", self._look, self._seconds)
            self._looking = asyncio.create_task(run)
        try:
            yield b":\n\n"
            alive = max(1, round(_ALIVE_SECONDS / self._seconds))
            for look in range(1, round(_LONGEST_SECONDS / self._seconds)):
                await self._looked.wait()
                seen = self._seen.get(session_id, revision)
                if seen is None or seen > revision:
                    yield b"event: changed\ndata:\n\n"
                    return
                if look % alive == 0:
                    yield b":\n\n"
        finally:
            self._leave(session_id)

    @property
    def open(self) -> int:
        """How many streams are open."""
        return self._watched.total()

    async def _look(self) -> None:
        watched = [*self._watched]
        try:
            found = await self._database.scan(_revisions, watched)
            self._seen = {one: found.get(one) for one in watched}
        finally:
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()

    def _leave(self, session_id: str) -> None:
        self._watched -= Counter((session_id,))  # without those at zero
        if not self._watched and self._looking is not None:
            self._looking.cancel()
            self._looking = None


def _revisions(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    rows = connection.execute(select(_c.id, _c.revision).where(_c.id.in_(ids)))
    return {row.id: row.revision for row in rows}
