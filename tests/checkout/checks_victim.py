"""A process that starts and follows an identity check, and is killed on the way.

`python -m tests.checkout.checks_victim POINT SESSION`: it kills itself with SIGKILL right before
its POINTth statement or commit, and prints at the end, if it got there, how many such points there
were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.bootstrap import open_deployment
from countersign.checkout import identity, store
from countersign.config import load_settings
from tests.checkout.checks import submit

_points = 0
_last: int | None = None


def _point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


async def _work(last: int, session_id: str) -> None:
    global _last  # noqa: PLW0603 - from here on it counts
    async with open_deployment(load_settings()) as deployment:
        room = deployment.checkout
        session = await store.find_by_id(room, session_id)
        assert session is not None
        _last = last
        session = await identity.begin(room, session)
        assert session.asked.check is not None
        await asyncio.to_thread(submit, session.asked.check.url, "verified")
        await identity.follow(room, session)
        _last = None
    print(f"points {_points}", flush=True)  # noqa: T201 - for the test that started it


if __name__ == "__main__":
    event.listen(Engine, "before_cursor_execute", _point)
    event.listen(Engine, "commit", _point)
    asyncio.run(_work(int(sys.argv[1]), sys.argv[2]))
