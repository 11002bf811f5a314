"""Servers that are killed at one step between a provider's answer and our own.

`python -m tests.verification.victim`: for each line `POINT` on standard input it forks a process
that becomes `countersign serve`, and writes its process id. That server counts from the provider's
response, and kills itself with SIGKILL right before the POINTth operation that could leave
something half done: a statement, or a commit. Forking saves importing everything for every point.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.identity.model import ProviderResult
from countersign.identity.stripe import Stripe

_points = 0
_last: int | None = None


def _point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


def _become_server(last: int) -> None:
    """Be a server from here on, to the POINTth point."""
    plain = Stripe.retrieve

    async def retrieve(self: Stripe, session_id: str) -> ProviderResult:
        global _last  # noqa: PLW0603 - from here on it counts
        result = await plain(self, session_id)
        _last = last
        return result

    changed: Any = Stripe
    changed.retrieve = retrieve
    event.listen(Engine, "before_cursor_execute", _point)
    event.listen(Engine, "commit", _point)
    from countersign.root import main  # noqa: PLC0415 - imported already, see below

    main(["serve"], prog_name="countersign")


if __name__ == "__main__":
    for name in ("countersign.root", "countersign.server.server", "uvloop"):
        importlib.import_module(name)
    # A killed child's end is irrelevant: only the data that it left counts.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.close(0)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become_server(int(line))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
