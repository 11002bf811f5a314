"""What a dossier costs: ``python -m bench.dossier``; ``--help`` lists the options.

An order with five records, made and verified in this process, next to that of its
acknowledgment alone: their ratio says what the other records cost.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.vendor import initials, vendor
from countersign.access.account import create_account
from countersign.access.key import Principal
from countersign.acknowledgments.acknowledge import acknowledge
from countersign.bootstrap import Deployment, initialise, open_deployment
from countersign.buyers import routes as buyers
from countersign.buyers.schemas import BuyerVerificationRequest
from countersign.clearances.clear import clear_order
from countersign.clearances.fulfil import fulfil_order
from countersign.clearances.schemas import ClearanceRequest, FulfilmentRequest
from countersign.config import load_settings
from countersign.dossiers.dossier import dossier
from countersign.dossiers.schemas import DossierQuery
from countersign.http.act import Writing
from countersign.mode import Mode
from countersign_evidence.verification import verify_file

_ZIP = "94103"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.dossier", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="countersign-bench-") as folder:
        asyncio.run(_measure(Path(folder) / "data", options.rounds))


async def _measure(folder: Path, rounds: int) -> None:
    settings = load_settings({"COUNTERSIGN_DATA_DIR": str(folder)})
    await initialise(settings)
    async with open_deployment(settings) as service:
        who, ack_id, clearance_id = await _order(service)
        await service.log.seal.settle()
        room, query = service.acknowledgments, DossierQuery()
        data = await dossier(room, who, clearance_id, query)
        checked = verify_file(data).dossier
        if checked is None:
            raise SystemExit("the dossier does not verify")
        made = await _timed(lambda: dossier(room, who, clearance_id, query), rounds)
        alone = await _timed(lambda: dossier(room, who, ack_id, query, alone=True), rounds)
        begun = time.perf_counter()
        verify_file(data)
        read = time.perf_counter() - begun
    say = sys.stdout.write
    say(f"dossier, {len(checked.records)} records  {made * 1000:8.1f} ms  target 250 ms\n")
    say(f"of one record         {alone * 1000:8.1f} ms  ratio {made / alone:.2f}\n")
    say(f"verifying the dossier {read * 1000:8.1f} ms\n")


async def _timed(work: Callable[[], Awaitable[bytes]], rounds: int) -> float:
    """Seconds of one call, the median."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - begun)
    return median(seconds)


async def _order(service: Deployment) -> tuple[Principal, str, str]:
    """An order of one notice event and of four records of its own."""
    account = await create_account(service.access, "a vendor")
    who = vendor(account.id)
    buyer = BuyerVerificationRequest(
        provider_identity_session_id="a-session",
        shipping_zip=_ZIP,
        test_mode=True,
        subject_reference=None,
    )
    cbid = (await buyers.verify(service.buyers, who, buyer)).cbid
    notice = await service.notices.registry.in_force("ab1263", Mode.TEST)
    submission = initials(len(notice.content.bullets), "sess_1", cbid)
    ack_id = (await acknowledge(service.acknowledgments, who, notice, submission)).ack_id
    order = ClearanceRequest(
        ack_id=ack_id,
        cbid=cbid,
        session_id="sess_1",
        shipping_zip=_ZIP,
        product_class="accessory",
    )
    clearance_id = (await clear_order(service.clearances, who, order)).decision.clearance_id
    reported, write = FulfilmentRequest(carrier="UPS"), Writing(service.clearances.access.database)
    await fulfil_order(service.clearances, who, clearance_id, reported, write)
    return who, ack_id, clearance_id


if __name__ == "__main__":
    main()
