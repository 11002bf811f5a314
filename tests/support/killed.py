"""The frame of processes that kill themselves on the way, at each point in turn.

A point is what could leave something half done: a statement or a commit of the database, and
whatever else a process counts by `point`. `python -m MODULE POINT …` with a module that calls `run`
kills itself with SIGKILL right before its POINTth point. It prints at the end, if it got there, how
many points there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.base.db import statements

T = TypeVar("T")

_points = 0
_last: int | None = None


def point(*_: object, **__: object) -> None:
    """Count one more, and end there if it is the last."""
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def counted() -> Iterator[None]:
    """Count the points inside this block."""
    global _last  # noqa: PLW0603 - from here on it counts
    _last = int(sys.argv[1])
    yield
    _last = None


def _counting(act: Callable[..., T]) -> Callable[..., T]:
    def counting(*arguments: object, **options: object) -> T:
        point()
        return act(*arguments, **options)

    return counting


def run(work: Callable[..., Coroutine[Any, Any, None]]) -> None:
    """Do this with the arguments after POINT, to its end or to that point."""
    event.listen(Engine, "before_cursor_execute", point)
    event.listen(Engine, "commit", point)
    # Statements that bypass SQLAlchemy.
    for owner, name in (
        (statements.DriverStatement, "__call__"),
        (statements.SelectAmong, "__call__"),
        (statements, "_execute"),
    ):
        setattr(owner, name, _counting(getattr(owner, name)))
    asyncio.run(work(*sys.argv[2:]))
    print(f"points {_points}", flush=True)  # noqa: T201 - for the test that started it
