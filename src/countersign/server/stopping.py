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


def stopper(
    draining: asyncio.Event,
    drain_seconds: float,
    streams: Streams,
    interrupt: Callable[[], None],
    serving: asyncio.Task[None],
) -> Callable[[], None]:
    """The handler of stop signals. At the first one it drains; at a later one it closes.

    Without drain seconds it closes at once. `interrupt` closes the server's sockets; `serving` ends
    after the last response.
    """
    loop = asyncio.get_running_loop()

    def stop() -> None:
        notify(STOPPING)
        if draining.is_set() or not drain_seconds:
            close()
        else:
            loop.call_later(drain_seconds, close)
        draining.set()

    def close() -> None:
        # Their clients reconnect at once, which should reach another server.
        streams.end()
        loop.call_soon(interrupt)
        loop.call_later(_GRACE_SECONDS, abandon)

    def abandon() -> None:
        # The callbacks of the server find their work cancelled, as intended.
        loop.set_exception_handler(lambda *_: None)
        serving.cancel()

    return stop
