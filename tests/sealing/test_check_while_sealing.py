"""`log check` of a log that goes on meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from countersign.base.values import Mode
from countersign.core.log.check import LogFinding, check_logs
from countersign.operate.bootstrap import Deployment as Opened
from tests.cli.notice_files import write_notice
from tests.sealing.inside import acknowledge_inside
from tests.sealing.test_kept_checkpoints import NOTICE, inside
from tests.support.service import Deployment
from tests.unit.support import HandClock

pytestmark = pytest.mark.both_engines


def test_records_that_arrive_during_a_check_are_no_finding(own: Deployment, tmp_path: Path) -> None:
    """A server goes on accepting and sealing, in the middle of a log and after it."""
    own.run("notices", "publish", str(write_notice(tmp_path / "notice.toml")))
    account, clock = own.account("vendor"), HandClock(ns=time.time_ns() + 10**9)

    async def act(service: Opened) -> None:
        async def one() -> None:
            clock.advance(2)
            await acknowledge_inside(service, account, NOTICE, Mode.LIVE)
            await service.log.seal.settle()

        await one()
        found = []
        async for step in check_logs(service.log):
            await one()
            if isinstance(step, LogFinding):
                found.append(step)
        assert found == []

    inside(own, clock, act)
