"""`Prefer: wait`: places for each account, so that waiting callers cost no other account."""

from __future__ import annotations

import asyncio

import pytest

from countersign.base.errors import EvidencePending
from countersign.base.values import Mode
from countersign.core.acknowledgments.evidence_routes import proof
from countersign.core.acknowledgments.room import WAITING_MAX
from tests.sealing.acts import NOTICE
from tests.sealing.inside import acknowledge_inside, opened
from tests.support.service import Deployment

pytestmark = pytest.mark.both_engines

MORE = 20


def test_an_account_that_waits_a_thousandfold_takes_no_place_from_another(own: Deployment) -> None:
    """Excess callers get a response at once; all waiting ones are served."""
    hostile, innocent = own.account("hostile"), own.account("innocent")
    head = own.data_dir / "heads" / "test.checkpoint"
    kept = head.read_bytes()

    async def act() -> None:
        async with opened(own) as service:
            head.write_bytes(b"so sealing is suspended")
            asked = [
                await acknowledge_inside(service, account, NOTICE, Mode.TEST)
                for account in (hostile, innocent)
            ]
            await service.log.seal.settle()
            assert service.log.seal.suspended
            crowd = [
                asyncio.create_task(proof(service.acknowledgments, *asked[0], wait=120.0))
                for _ in range(WAITING_MAX + MORE)
            ]
            refused, _ = await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
            while len(refused) < MORE:
                done, _ = await asyncio.wait(
                    set(crowd) - refused, return_when=asyncio.FIRST_COMPLETED
                )
                refused |= done
            assert {type(task.exception()) for task in refused} == {EvidencePending}
            waiting = asyncio.create_task(proof(service.acknowledgments, *asked[1], wait=120.0))
            head.write_bytes(kept)
            assert await service.log.seal.settle()
            assert (await waiting).startswith(b"c2sp.org/tlog-proof@v1")
            served = await asyncio.gather(*(set(crowd) - refused))
            assert len(served) == WAITING_MAX

    asyncio.run(act())
