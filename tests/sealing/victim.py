"""A process that acknowledges, seals and publishes once, and is killed on the way.

`python -m tests.sealing.victim POINT ACCOUNT`: it kills itself with SIGKILL right before it does
the POINTth thing that could leave something half done: a statement, a commit, or a step in
replacing a head file. It prints the id of each acknowledgment that has been answered for, and at
the end, if it got there, how many such points there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.access.key import VENDOR_SCOPES, Principal
from countersign.acknowledgments.acknowledge import acknowledge
from countersign.acknowledgments.model import Submission
from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.mode import Mode
from tests.cli.evidence import NOBODY

_points = 0
_last: int | None = None


def point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


def audited(name: str, arguments: tuple[Any, ...]) -> None:
    if name in {"open", "os.rename"} and "heads" in str(arguments[0]):
        point()


def begin(last: int) -> None:
    """From here on things are counted, up to the one before which the process ends."""
    global _last  # noqa: PLW0603 - as above
    _last = last


def end() -> int:
    """Nothing is counted any more; how many there were."""
    global _last  # noqa: PLW0603 - as above
    _last = None
    return _points


async def _work(last: int, account: str) -> None:
    principal = Principal(
        key_id="key_of_this_test",
        account_id=account,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )
    submission = Submission(
        initials_per_line=["A", "B", "C", "D"],
        session_id="cs_1",
        cbid=None,
        notice_version=None,
        origin=NOBODY,
    )
    async with open_deployment(load_settings()) as deployment:
        notice = await deployment.notices.registry.in_force("ab1263", Mode.TEST)
        begin(last)
        receipt = await acknowledge(deployment.acknowledgments, principal, notice, submission)
        print(receipt.ack_id, flush=True)  # noqa: T201 - for the test that started it
        await deployment.log.seal.settle()
        await deployment.log.seal.publish()
        points = end()
    print(f"points {points}", flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    event.listen(Engine, "before_cursor_execute", point)
    event.listen(Engine, "commit", point)
    sys.addaudithook(audited)
    asyncio.run(_work(int(sys.argv[1]), sys.argv[2]))
