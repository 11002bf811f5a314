"""Processes that are killed at one step of starting or asking about an identity check.

`python -m tests.verification.start_victim`: for each line of JSON on standard input it forks a
process that opens the deployment, does one act, and kills itself with SIGKILL right before the nth
statement or commit after the provider has responded. It writes the child's result: the JSON of the
act's result, or `null` if the child died. Forking saves importing everything for every point.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.buyers import started
from countersign.identity.stripe import Stripe
from countersign.operate import bootstrap

_points = 0
_last: int | None = None


def _point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


def _count_from(name: str, last: int) -> None:
    """Count from the moment of the provider's response."""
    plain, changed = getattr(Stripe, name), Stripe

    async def then(self: Stripe, wanted: Any) -> Any:  # noqa: ANN401 - of either act
        global _last  # noqa: PLW0603 - from here on it counts
        result = await plain(self, wanted)
        _last = last
        return result

    setattr(changed, name, then)


async def _act(order: Mapping[str, Any]) -> object:
    who = AccountReach(order["account_id"], Mode(order["mode"]))
    async with bootstrap.open_deployment(load_settings(os.environ)) as opened:
        if order["act"] == "start":
            made = await started.start(
                opened.buyers,
                who,
                provider=None,
                reference=order["reference"],
                attempt=1,
                return_url="https://verify.example/return",
                locale="en",
                shipping_zip=order["zip"],
            )
            return {"session_id": made.provider_session, "url": made.url}
        check = await started.ask(
            opened.buyers,
            who,
            provider="stripe",
            session_id=order["session_id"],
            reference=order["reference"],
            shipping_zip=order["zip"],
        )
        return {"cbid": check.cbid, "status": check.status}


def _child(order: Mapping[str, Any], pipe: int) -> None:
    """Do it, to the point that the order names."""
    event.listen(Engine, "before_cursor_execute", _point)
    event.listen(Engine, "commit", _point)
    _count_from("start" if order["act"] == "start" else "retrieve", order["point"])
    os.write(pipe, json.dumps(asyncio.run(_act(order))).encode())


if __name__ == "__main__":
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(0)
            os.close(reading)
            _child(json.loads(line), writing)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as said:
            words = said.read().decode() or "null"
        os.waitpid(child, 0)
        sys.stdout.write(words + "\n")
        sys.stdout.flush()
