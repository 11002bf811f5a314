"""A process that completes a checkout session, and is killed on the way.

`python -m tests.checkout.victim POINT TOKEN`: it kills itself with SIGKILL right before its POINTth
statement or commit. It prints the `ack_id` as soon as it is answered, and at the end, if it got
there, how many such points there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.bootstrap import open_deployment
from countersign.checkout import buyer, sessions
from countersign.config import load_settings
from countersign.evidence.process import Surface
from tests.clearances.desk import NOBODY

_points = 0
_last: int | None = None


def _point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


async def _work(last: int, token: str) -> None:
    global _last  # noqa: PLW0603 - from here on it counts
    async with open_deployment(load_settings()) as deployment:
        room = deployment.checkout
        session = await sessions.session_of_token(room, token.encode())
        notice = await buyer.notice_of(room, session)
        initials = ["AB"] * len(notice.content.bullets)
        _last = last
        session = await buyer.show(room, session, notice, Surface.PAGE, None, "en")
        session = await buyer.initial(room, session, notice.digest, initials)
        session = await buyer.review(room, session, "en")
        session = await buyer.accept(room, session, NOBODY)
        _last = None
    print(session.ack_id, flush=True)  # noqa: T201 - for the test that started it
    print(f"points {_points}", flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    event.listen(Engine, "before_cursor_execute", _point)
    event.listen(Engine, "commit", _point)
    asyncio.run(_work(int(sys.argv[1]), sys.argv[2]))
