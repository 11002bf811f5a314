"""A clock for a server process: the machine's, moved forward by the value in a file.

Tests move it instead of waiting. The product does not know about it: `forked` puts it in place of
the system's clock, before the program starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Final

VARIABLE: Final = "TESTS_CLOCK"
"""Of the environment of the process: the file."""
_MOVING: Final = Lock()


class MovedClock:
    """The time of a process that was started with this file in its environment."""

    def __init__(self, file: Path) -> None:
        self.file: Final = file

    def ahead(self, by: timedelta) -> None:
        """Move it on: time passes, also for the clocks that it is compared with."""
        self._move(by, timedelta())

    def jump(self, by: timedelta) -> None:
        """Set it wrong, forward or back: no time passes."""
        self._move(timedelta(), by)

    def _move(self, passed: timedelta, jumped: timedelta) -> None:
        with _MOVING:
            moved = zip(self._moved_us(), (passed, jumped), strict=True)
            both = [known + by // timedelta(microseconds=1) for known, by in moved]
            new = self.file.with_suffix(f".{os.getpid()}")
            new.write_text(" ".join(map(str, both)), encoding="ascii")
            new.replace(self.file)

    def time_ns(self) -> int:
        return time.time_ns() + sum(self._moved_us()) * 1000

    def monotonic(self) -> float:
        return time.monotonic() + self.passed()

    def passed(self) -> float:
        """By how many seconds it was moved on."""
        return self._moved_us()[0] / 1e6

    def _moved_us(self) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            passed, jumped = self.file.read_text(encoding="ascii").split()
            return int(passed), int(jumped)
        return 0, 0


def install() -> None:
    """Use it in this process, if the environment names a file."""
    from countersign.core.log.clock_guard import ClockGuard  # noqa: PLC0415 - as above
    from countersign.operate.bootstrap import SystemClock  # noqa: PLC0415 - `forked` preloads it

    if file := os.environ.pop(VARIABLE, ""):
        clock = MovedClock(Path(file))
        for name in ("time_ns", "monotonic"):
            setattr(SystemClock, name, staticmethod(getattr(clock, name)))
        ask = ClockGuard.ask

        async def moved(self: ClockGuard) -> Mapping[str, float]:
            return {name: at + clock.passed() for name, at in (await ask(self)).items()}

        ClockGuard.ask = moved  # type: ignore[method-assign]
