"""Faults of an identity provider, planned for verifications in the sandbox of an account."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.sandbox_state import OUTCOMES, PROVIDER_RETRY_SECONDS, FaultPlan
from countersign.access.test_clocks import TestClocks
from countersign.buyers.evaluate_session import refuse_unusable
from countersign.errors import ProviderSessionNotBound
from countersign.identity.model import ProviderResult
from countersign.instant import from_ns
from countersign.ports import Clock, SandboxStore

_PROVIDER: Final = "sandbox"


class SandboxFaults:
    """What the next verifications meet: as many as planned, in the order in which they come."""

    def __init__(self, store: SandboxStore, clocks: TestClocks, clock: Clock) -> None:
        self._store = store
        self._clocks = clocks
        self._clock = clock

    async def planned(self, account_id: str) -> FaultPlan | None:
        """What the next verification meets; None: no fault."""
        return await self._store.planned(account_id)

    async def plan(
        self,
        account_id: str,
        plan: FaultPlan,
        remember: Callable[[FaultPlan], IdempotencyEntry] | None = None,
    ) -> FaultPlan:
        """Plan a fault in place of any before; when this returns, every server knows of it."""
        await self._store.plan(account_id, plan, from_ns(self._clock.time_ns()), remember)
        await self._clocks.renew()
        return plan

    async def clear(self, account_id: str) -> None:
        """Let verifications come out as their sessions say again."""
        await self._store.clear(account_id)

    async def meet(self, account_id: str, session_id: str | None) -> None:
        """Fail as planned; nothing happens where nothing is.

        Raises:
            ProviderUnavailable, ProviderSessionNotFound, ProviderSessionNotBound,
            VerificationMisconfigured: as a live verification would that met this fault.
        """
        if not await self._clocks.is_failing(account_id):
            return
        plan = await self._store.take(account_id)
        if plan is None:
            return
        await asyncio.sleep(plan.delay.total_seconds())
        outcome = OUTCOMES.get(plan.fault)
        if outcome is None:
            raise ProviderSessionNotBound
        refuse_unusable(
            ProviderResult(
                provider=_PROVIDER,
                session_id=session_id or "",
                outcome=outcome,
                retry_after=PROVIDER_RETRY_SECONDS.get(plan.fault),
            )
        )
