"""A buyer ends with nothing left that needs one, and each end is written down once."""

from __future__ import annotations

import asyncio

import pytest

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers.review import queue
from countersign.core.privacy.retention import BUYERS_KEPT, Retained, retain
from countersign.operate import bootstrap
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.test_cut_responses import DAY, failed, retained


@each_engine
@pytest.mark.parametrize("setting", ["EVIDENCE_DAYS", "FAILED_EVIDENCE_DAYS"])
def test_evidence_is_kept_for_as_long_as_the_settings_say(stage: Stage, setting: str) -> None:
    """The buyer stays with it."""
    stage.restart(**{setting: "3000"})
    vendor = stage.insider()
    if setting == "EVIDENCE_DAYS":
        vendor.verify(vendor.part("verified"))
    else:
        failed(vendor)
    retained(stage, 3 * BUYERS_KEPT)
    assert len(stage.rows("SELECT 1 FROM verification_evidence")) == 1
    retained(stage, 3000 * DAY)
    assert stage.rows("SELECT 1 FROM verification_evidence") == []
    assert stage.rows("SELECT 1 FROM buyers") == []


def waiting(stage: Stage) -> int:
    """How many buyers wait for review."""
    return len(stage.do(stage.opened.database.read(queue, DEPLOYMENT, Mode.LIVE)))


@each_engine
def test_a_buyer_who_waits_for_review_stays_another_year(stage: Stage) -> None:
    """Then nobody has decided for two years."""
    failed(stage.insider())
    retained(stage, BUYERS_KEPT + DAY)
    assert waiting(stage) == 1
    retained(stage, BUYERS_KEPT)
    assert waiting(stage) == 0
    assert stage.rows("SELECT 1 FROM buyers") == []


@each_engine
def test_two_that_retain_at_once_write_each_erasure_once(stage: Stage) -> None:
    """As a server and a command do, or two processes of retention."""
    vendor = stage.insider()
    cbids = {vendor.verify(vendor.part("verified", number)).cbid for number in range(6)}
    number = len(stage.rows("SELECT 1 FROM verifications")) + len(cbids)
    stage.clock.now += 1000 * DAY
    settings = load_settings(stage.environment)

    async def both() -> tuple[Retained, Retained]:
        async with bootstrap.open_deployment(settings, clock=stage.clock) as other:
            return await asyncio.gather(retain(stage.opened.privacy), retain(other.privacy))

    found = stage.do(both())
    assert [one.failed for one in found] == [{}, {}]
    assert sum(len(one.erased) for one in found) == number, found
    assert stage.rows("SELECT 1 FROM buyers") == []
    written = stage.rows("SELECT 1 FROM records WHERE type = 'erasure'")
    told = stage.rows("SELECT 1 FROM audit_log WHERE action = 'erased'")
    assert (len(written), len(told)) == (number, number)
