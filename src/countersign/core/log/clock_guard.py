"""Whether this machine's clock may be signed with: compared with others', and with itself.

A checkpoint with a time of the future cannot be taken back. So a server compares its clock with the
clocks of the database, its witnesses and its authorities, and notices a jump. Times received from
them are advanced by the monotonic clock, which does not jump.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2
import structlog
from msgspec import Struct
from sqlalchemy import Connection, text

from countersign.base.loops import forever
from countersign.base.values import Clock

WRONG_SECONDS: Final = 30.0
HOLD_SECONDS: Final = 60.0
"""How long sealing waits after a jump that no other clock confirms: it may be corrected."""
PERIOD_SECONDS: Final = 1.0
_ASK_SECONDS: Final = 300.0
_ASK_AGAIN_SECONDS: Final = 10.0
_TIMEOUT_SECONDS: Final = 2.0
_NO_TIME: Final = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    TimeoutError,
    KeyError,
    ValueError,
    OverflowError,
)
"""No response, or no valid time in it."""
_TIME: Final = text("SELECT extract(epoch FROM clock_timestamp())::float8")

_log: Final = structlog.get_logger("countersign.clock")


class ClockGuard(Struct, eq=False):
    """Guards the clock of one server, which is trusted until the first call of `look`."""

    clock: Clock
    times: Callable[[], Awaitable[Mapping[str, float]]]
    """Returns the times of other clocks, Unix seconds by name."""
    _trusted: float | None = None
    """By how much the clock was ahead of the monotonic one when it was trusted last."""
    _others: Mapping[str, float] = {}
    """The same for the other clocks."""
    _asked_at: float = float("-inf")
    _was_answered: bool = False
    """Whether asking did not fail; few or none may have responded."""
    _wrong_since: float | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        await forever("clock", self.look, PERIOD_SECONDS)

    def why_not(self) -> str | None:
        """The reason not to sign now; None: signing is allowed."""
        if self._trusted is None:
            return None
        now = self._offset()
        ahead = {name: now - theirs for name, theirs in self._others.items()}
        if ahead:
            name = min(ahead, key=lambda other: abs(ahead[other]))
            if abs(ahead[name]) <= WRONG_SECONDS:
                return None
            return (
                f"This machine's clock is {_of(ahead[name], 'ahead of', 'behind')} that of {name}. "
                "Set it right: sealing then continues automatically."
            )
        moved = now - self._trusted
        if abs(moved) <= WRONG_SECONDS:
            return None
        return (
            f"This machine's clock has jumped by {_of(moved, 'ahead', 'back')}, and there is no "
            f"other clock to compare with. If that is not right, set it right within "
            f"{HOLD_SECONDS:.0f} seconds: sealing continues then."
        )

    async def look(self) -> None:
        """Ask other clocks now and then, and at once when this one seems wrong."""
        now, reason = self.clock.monotonic(), self.why_not()
        is_settled = self._was_answered and reason is None
        if now - self._asked_at >= (_ASK_SECONDS if is_settled else _ASK_AGAIN_SECONDS):
            # Before the requests: a failure must not repeat all of them at each look.
            self._asked_at, self._was_answered = now, False
            found = await self.ask()
            self._asked_at = now = self.clock.monotonic()
            self._was_answered = True
            # Without any response, the previous times stay valid.
            self._others = {name: at - now for name, at in found.items()} or self._others
            self._trusted = self._offset() if self._trusted is None else self._trusted
            reason = self.why_not()
        if reason is None:
            self._wrong_since, self._trusted = None, self._offset()
        elif self._wrong_since is None:
            self._wrong_since = now
            _log.error("clock_wrong", reason=reason)
        elif not self._others and now - self._wrong_since >= HOLD_SECONDS:
            _log.warning("clock_jump_accepted", reason=reason)
            self._trusted = self._offset()

    async def ask(self) -> Mapping[str, float]:
        """The times of the other clocks."""
        return await self.times()

    def _offset(self) -> float:
        return self.clock.time_ns() / 1e9 - self.clock.monotonic()


def _of(seconds: float, ahead: str, behind: str) -> str:
    return f"{abs(seconds):.0f} seconds {ahead if seconds > 0 else behind}"


def database_time(connection: Connection) -> float:
    """The time of PostgreSQL, in Unix seconds."""
    return float(connection.execute(_TIME).scalar_one())


async def times_of(urls: list[str]) -> dict[str, float]:
    """The clocks of servers by their URL, as far as they respond: to the second."""

    async def ask(client: httpx2.AsyncClient, url: str) -> float | None:
        try:
            # The client's own limit is one for each wait: who drips a header would never end.
            async with asyncio.timeout(_TIMEOUT_SECONDS), client.stream("GET", url) as response:
                said = parsedate_to_datetime(response.headers["date"]).timestamp()
                return said + int(response.headers.get("age", "0"))  # since a cache has it
        except _NO_TIME:
            return None

    if not urls:
        return {}
    async with httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client:
        found = await asyncio.gather(*(ask(client, url) for url in urls))
    return {url: at for url, at in zip(urls, found, strict=True) if at is not None}
