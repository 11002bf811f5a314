"""A process that clears an order and closes it, and is killed on the way.

`python -m tests.clearances.victim POINT ACCOUNT ACK_ID CBID`, see `tests.support.killed`. It prints
each response as soon as it arrives.
"""

from __future__ import annotations

from typing import Final

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.clearances.clear import clear_order, prepare_order
from countersign.core.clearances.fulfil import fulfil_order
from countersign.core.clearances.schemas import FulfilmentRequest
from countersign.core.gate.act import Writing
from countersign.operate.bootstrap import open_deployment
from tests.clearances.desk import order
from tests.support.killed import counted, run

SESSION: Final = "cs_1"
ZIP: Final = "94110"


async def _work(account: str, ack_id: str, cbid: str) -> None:
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
        with counted():
            room, asked = deployment.clearances, order(ack_id, cbid, SESSION, ZIP)
            write = Writing(room.access.database)
            item = await prepare_order(room, principal, asked)
            decision = (await clear_order(item)).decision
            print(f"cleared {decision.clearance_id} {decision.cleared}", flush=True)  # noqa: T201 - for the test
            receipt = await fulfil_order(room, principal, decision.clearance_id, done, write)
            print(f"closed {receipt.fulfilment_id}", flush=True)  # noqa: T201 - as above


if __name__ == "__main__":
    run(_work)
