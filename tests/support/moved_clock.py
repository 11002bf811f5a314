"""A clock for the process of a server: the machine's, moved forward by what a file says.

Tests move it instead of waiting. The product knows nothing of it: `forked` puts it in place of the
system's clock, before the program starts.
"""

from __future__ import annotations

import os
import time
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
        """Move it on."""
        with _MOVING:
            moved = self._moved_us() + by // timedelta(microseconds=1)
            new = self.file.with_suffix(f".{os.getpid()}")
            new.write_text(str(moved), encoding="ascii")
            new.replace(self.file)

    def time_ns(self) -> int:
        return time.time_ns() + self._moved_us() * 1000

    def monotonic(self) -> float:
        return time.monotonic() + self._moved_us() / 1e6

    def _moved_us(self) -> int:
        with suppress(FileNotFoundError):
            return int(self.file.read_text(encoding="ascii"))
        return 0


def install() -> None:
    """Use it in this process, if the environment names a file."""
    from countersign.bootstrap import SystemClock  # noqa: PLC0415 - `forked` preloads it

    if file := os.environ.pop(VARIABLE, ""):
        clock = MovedClock(Path(file))
        for name in ("time_ns", "monotonic"):
            setattr(SystemClock, name, staticmethod(getattr(clock, name)))
