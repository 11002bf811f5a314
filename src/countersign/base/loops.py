"""Background loops of a server: they pause, log errors, and are restarted when they end.

Also how errors are logged, and seldom enough.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, NoReturn

import structlog
from msgspec import Struct

from countersign.base.errors import CountersignError

_RESTART_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 1.0
_PAUSE_SECONDS_MAX: Final = 60.0
_RETRY_AFTER_SECONDS_MAX: Final = 3600.0
_THROTTLE_SECONDS: Final = 1.0

_log: Final = structlog.get_logger("countersign.loops")


async def forever(
    name: str,
    act: Callable[[], Awaitable[object]],
    seconds: float,
    wake: asyncio.Event | None = None,
) -> NoReturn:
    """Act and pause in turn, until cancelled; whatever goes wrong, the next time may go better.

    A refusal is logged as `NAME_postponed` with its code, any other failure as `NAME_failed`: once,
    until a success or a different failure. A pause ends at the next multiple of `seconds`, so that
    idle loops wake the process together; `wake` ends one when it is set, and is cleared.
    """
    wake, now = wake or asyncio.Event(), asyncio.get_running_loop().time
    failed: type[Exception] | None = None
    while True:
        try:
            await act()
            failed = None
        except CountersignError as error:
            _log.warning(f"{name}_postponed", code=error.code)
        except Exception as error:  # noqa: BLE001 - see above
            if failed is not type(error):
                log_failure(f"{name}_failed", error)
            failed = type(error)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds and seconds - now() % seconds):
                await wake.wait()
        wake.clear()


class Backoff(Struct, eq=False):
    """Pauses deliveries to one receiver: for a second, then twice as long each time.

    During a pause deliveries wait without using up attempts; then one of them tries first.
    Otherwise all waiting deliveries would fail at once, by the thousand, when a receiver restarts.
    """

    monotonic: Callable[[], float]
    _until: float = float("-inf")
    _seconds: float = 0.0

    @property
    def ready(self) -> bool:
        return self.monotonic() >= self._until

    @property
    def suspect(self) -> bool:
        """Whether the last result was such a sign: send one message first."""
        return self._seconds > 0

    def record(self, *, pause: bool, retry_after: timedelta | None) -> None:
        """Count a result; `pause`: it is such a sign."""
        if not pause:
            self._seconds = 0.0
        elif self.ready:  # the failures of one batch count once
            self.pause(retry_after)

    def pause(self, retry_after: timedelta | None = None) -> None:
        """Begin a pause, for as long as the endpoint has requested if that is longer."""
        self._seconds = min(max(2 * self._seconds, _PAUSE_SECONDS), _PAUSE_SECONDS_MAX)
        requested = retry_after.total_seconds() if retry_after else 0.0
        seconds = max(self._seconds, min(requested, _RETRY_AFTER_SECONDS_MAX))
        self._until = self.monotonic() + seconds


async def restarted(
    name: str,
    run: Callable[[], Awaitable[object]],
    ended: Counter[str],
    pause: Callable[[], Awaitable[object]] | None = None,
) -> NoReturn:
    """Run a loop of the server, and run it again if it ends, until cancelled.

    `ended` counts under its name how often it has ended; `pause` is between the end and the next
    start: a second by default.
    """
    while True:
        failure: BaseException | None = None
        try:
            await run()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure = error  # something inside was cancelled, not this
        except Exception as error:  # noqa: BLE001 - nothing may end a loop for good
            failure = error
        ended[name] += 1
        log_failure("loop_ended", failure, loop=name)
        await (pause() if pause else asyncio.sleep(_RESTART_SECONDS))


class Throttle:
    """Lets one log line through for each kind in so many seconds.

    Otherwise anybody could fill the disk, without a key.
    """

    def __init__(self, monotonic: Callable[[], float], seconds: float = _THROTTLE_SECONDS) -> None:
        self._monotonic, self._seconds = monotonic, seconds
        self._said: dict[tuple[str | None, ...], tuple[float, int]] = {}

    def __call__(self, *kind: str | None) -> int | None:
        """How many lines of this kind were left out since the last one; None: omit this line."""
        now = self._monotonic()
        last, unsaid = self._said.get(kind, (float("-inf"), 0))
        if now - last < self._seconds:
            self._said[kind] = (last, unsaid + 1)
            return None
        self._said[kind] = (now, 0)
        return unsaid


def log_failure(event: str, error: BaseException | None, **facts: str) -> None:
    """Log an error of ours with its traceback, and without its message."""
    if isinstance(error, CountersignError):
        facts["code"] = error.code
    elif error is not None:
        facts["kind"] = type(error).__name__
    _log.error(event, exc_info=error and without_values(error), **facts)


class _Unexpected(Exception):
    """An error of ours, by the name of its type."""


def without_values(error: BaseException) -> Exception:
    """The same traceback without the message, which may quote a buyer's input."""
    bare: Exception = _Unexpected(type(error).__name__)
    if isinstance(error, BaseExceptionGroup):
        bare = ExceptionGroup(type(error).__name__, [without_values(e) for e in error.exceptions])
    return bare.with_traceback(error.__traceback__)
