"""How a server stops: it drains, closes, then cancels running requests.

See docs/decisions/operations.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from countersign.server.manager import STOPPING, notify
from countersign.server.streams import Streams

_GRACE_SECONDS: Final = 10.0
"""How long active requests may take after the server has closed."""


class Stopping:
    """Handles the stop signals on the server's event loop."""

    def __init__(
        self,
        draining: asyncio.Event,
        drain_seconds: float,
        streams: Streams,
        interrupt: Callable[[], None],
        serving: asyncio.Task[None],
    ) -> None:
        """`interrupt` closes the server's sockets; `serving` ends after the last response."""
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._streams = streams
        self._interrupt = interrupt
        self._serving = serving
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """At the first signal: drain. At a later one, or without drain seconds: close."""
        notify(STOPPING)
        if self._draining.is_set() or not self._drain_seconds:
            self._close()
        else:
            self._loop.call_later(self._drain_seconds, self._close)
        self._draining.set()

    def _close(self) -> None:
        # Their clients reconnect at once, which should reach another server.
        self._streams.end()
        self._loop.call_soon(self._interrupt)
        self._loop.call_later(_GRACE_SECONDS, self._abandon)

    def _abandon(self) -> None:
        # The callbacks of the server find their work cancelled, as intended.
        self._loop.set_exception_handler(lambda *_: None)
        self._serving.cancel()
