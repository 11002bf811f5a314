"""How long a request may wait for the database: one sum for all that it asks.

What a request waits for elsewhere, such as an identity provider, does not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

from msgspec import Struct

from countersign.errors import StorageUnavailable
from countersign.time_limit import TimeLimit

T = TypeVar("T")

PATIENCE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2
"""What a caller is asked to wait before its next attempt."""


class TimeLeft(Struct, eq=False):
    """What is left of a wait; each call on the database takes off how long it took."""

    left: float
    has_written: bool = False
    """Whether a write was accepted for it: from then on nothing of it is refused for overload."""


PATIENCE: Final[ContextVar[TimeLeft | None]] = ContextVar("patience", default=None)
"""What is left for all calls of this task; None: no request is being answered."""


async def patiently(shared: Awaitable[T]) -> T:
    """Await what others may have begun: a wait for it is one for the database.

    Raises StorageUnavailable when the request has waited for too long.
    """
    patience = PATIENCE.get()
    if patience is None:
        return await shared
    began = time.monotonic()
    limit = TimeLimit(patience.left)
    try:
        with limit:
            return await shared
    except TimeoutError:
        if limit.is_over:
            raise StorageUnavailable(retry_after=RETRY_SECONDS) from None
        raise
    finally:
        patience.left -= time.monotonic() - began


def detached(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin what is not for this request alone: it does not use up this request's patience."""
    context = copy_context()
    context.run(PATIENCE.set, None)
    return asyncio.create_task(work, context=context)


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """The same for what several requests wait for; all of them may leave before its end."""
    task = detached(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
