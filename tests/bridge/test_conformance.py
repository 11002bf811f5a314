"""examples/bridge under `countersign conformance`; a warehouse reports what was released."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from countersign.operate import bootstrap
from countersign_client import Countersign
from countersign_conformance.kit import run_conformance
from countersign_conformance.model import Report, Verdict
from tests.bridge.conftest import Started
from tests.bridge.mocks import Shopify
from tests.clients.conftest import Place
from tests.storefront.shopper import Shopper

pytestmark = [pytest.mark.npm, pytest.mark.one_engine, pytest.mark.long]
PASSED = {"clearance_first", "not_cleared_kept"}
PASSED |= {"webhook_duplicate", "webhook_signature", "webhook_timestamp"}


def business(started: Started, client: Countersign, closed: threading.Event) -> None:
    """One order after the other: bought, initialed, and shipped where it was released."""
    shop, mails, number = started.shop, started.mails.mails, 0
    while not closed.wait(0.1):
        number += 1
        shop.begin()
        shop.order = f"gid://shopify/Order/{number}"
        before = len(mails)
        started.post()
        if not _soon(lambda: len(mails) > before):  # noqa: B023 - called at once
            continue
        shopper = Shopper(started.url)
        with shopper.client:
            shopper.initial(shopper.identify(shopper.open(mails[-1].text.split()[-1])))
        if _soon(lambda: shop.state == "released") and _soon(lambda: started.noted("clearance")):
            client.clearances.fulfil(started.noted("clearance"), carrier="UPS")


def _soon(happened: object) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if happened():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("started", [Shopify], indirect=True)
def test_the_bridge_passes_what_the_kit_can_judge_of_it(
    started: Started, account: str, client: Countersign, place: Place
) -> None:
    """The rest is done by the hosted pages, and is not seen."""
    answers: list[str] = []

    async def judge(opened: bootstrap.Deployment) -> Report:
        return await run_conformance(opened)(
            account,
            duration=timedelta(seconds=90),
            step_limit=timedelta(seconds=10),
            hold=timedelta(seconds=3),
            linger=timedelta(seconds=6),
            stop=asyncio.Event(),
            say=answers.append,
        )

    closed = threading.Event()
    with started.running():
        thread = threading.Thread(target=business, args=(started, client, closed))
        thread.start()
        try:
            report = place.operator.act(judge)
        finally:
            closed.set()
            thread.join()
    verdicts = {check.id: finding.verdict for check, finding in report.findings}
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.PASSED} >= PASSED, (
        verdicts,
        answers,
    )
    assert Verdict.FAILED not in verdicts.values(), (verdicts, answers)
