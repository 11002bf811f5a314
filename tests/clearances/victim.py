"""A process that clears an order and closes it, and is killed on the way.

`python -m tests.clearances.victim POINT ACCOUNT ACK_ID CBID`: it kills itself with SIGKILL right
before its POINTth statement or commit. It prints what it was answered as soon as it knows, and at
the end, if it got there, how many such points there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Final

from sqlalchemy import event
from sqlalchemy.engine import Engine

from countersign.access.key import VENDOR_SCOPES, Principal
from countersign.bootstrap import open_deployment
from countersign.clearances.clear import clear_order
from countersign.clearances.fulfil import fulfil_order
from countersign.clearances.schemas import FulfilmentRequest
from countersign.config import load_settings
from countersign.mode import Mode
from tests.clearances.desk import order

SESSION: Final = "cs_1"
ZIP: Final = "94110"
_points = 0
_last: int | None = None


def _point(*_: object, **__: object) -> None:
    global _points  # noqa: PLW0603 - one counter for every kind of point
    if _last is None:
        return
    _points += 1
    if _points == _last:
        os.kill(os.getpid(), signal.SIGKILL)


async def _work(last: int, account: str, ack_id: str, cbid: str) -> None:
    global _last  # noqa: PLW0603 - from here on it counts
    principal = Principal(
        key_id="key_of_this_test",
        account_id=account,
        mode=Mode.TEST,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )
    done = FulfilmentRequest(carrier="UPS", adult_signature_obtained=True)
    async with open_deployment(load_settings()) as deployment:
        await deployment.notices.registry.notices()
        _last = last
        room, asked = deployment.clearances, order(ack_id, cbid, SESSION, ZIP)
        decision = (await clear_order(room, principal, asked)).decision
        print(f"cleared {decision.clearance_id} {decision.cleared}", flush=True)  # noqa: T201 - for the test
        receipt = await fulfil_order(room, principal, decision.clearance_id, done)
        print(f"closed {receipt.fulfilment_id}", flush=True)  # noqa: T201 - as above
        _last = None
    print(f"points {_points}", flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    event.listen(Engine, "before_cursor_execute", _point)
    event.listen(Engine, "commit", _point)
    asyncio.run(_work(int(sys.argv[1]), *sys.argv[2:]))
