"""Faults of an identity provider, planned for verifications in the sandbox of an account.

As many verifications as planned meet the fault, in the order in which they come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, Row, delete, insert, select, update

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.buyers.decision import refuse_unusable
from countersign.buyers.room import Buyers
from countersign.db.tables import test_faults
from countersign.errors import ProviderSessionNotBound
from countersign.identity.model import Outcome, ProviderResult
from countersign.instant import from_ns

CALLS_MAX: Final = 1000
DELAY_MAX: Final = timedelta(seconds=15)
"""The longest that a planned fault takes: longer than any live call to a provider may."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class Fault(StrEnum):
    """A failure of an identity provider, or of the access to it."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNINTELLIGIBLE = "unintelligible"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_NOT_BOUND = "session_not_bound"
    MISCONFIGURED = "misconfigured"


OUTCOMES: Final = {
    Fault.TIMEOUT: Outcome.PROVIDER_UNAVAILABLE,
    Fault.RATE_LIMITED: Outcome.PROVIDER_UNAVAILABLE,
    Fault.SERVER_ERROR: Outcome.PROVIDER_UNAVAILABLE,
    Fault.UNINTELLIGIBLE: Outcome.INVALID_RESPONSE,
    Fault.SESSION_NOT_FOUND: Outcome.NOT_FOUND,
    Fault.MISCONFIGURED: Outcome.PROVIDER_REJECTED,
}
"""What an adapter makes of each; a session that is not bound is found out after that."""
_PROVIDER_RETRY_SECONDS: Final = {Fault.RATE_LIMITED: 30}
"""When a provider that fails so asks to be called again; the others say nothing."""


class FaultPlan(Struct, frozen=True, kw_only=True):
    """What the next verifications in an account's sandbox meet in place of their outcome."""

    fault: Fault
    calls: int | None
    """How many calls are left that meet it; None: all, until it is cleared."""
    delay: timedelta = timedelta(0)
    """How long each of them takes to respond."""


async def plan_fault(
    room: Buyers,
    account_id: str,
    plan: FaultPlan,
    body: bytes = b"",
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> None:
    """Plan a fault in place of any before; when this returns, every server knows of it.

    With `entry`, the response `body` is kept for a repeated request.
    """
    kept = entry(body) if entry is not None else None
    now = from_ns(room.clock.time_ns())
    await room.database.write(_plan, account_id, plan, now, kept)
    await room.test_clocks.renew()


async def meet_fault(room: Buyers, account_id: str, session_id: str | None) -> None:
    """Fail as planned; nothing happens if nothing is planned.

    Raises:
        ProviderUnavailable, ProviderSessionNotFound, ProviderSessionNotBound,
        VerificationMisconfigured: as a live verification would that met this fault.
    """
    if not await room.test_clocks.is_failing(account_id):
        return
    plan = await room.database.write(_take, account_id)
    if plan is None:
        return
    await asyncio.sleep(plan.delay.total_seconds())
    outcome = OUTCOMES.get(plan.fault)
    if outcome is None:
        raise ProviderSessionNotBound
    refuse_unusable(
        ProviderResult(
            provider="sandbox",
            session_id=session_id or "",
            outcome=outcome,
            retry_after=_PROVIDER_RETRY_SECONDS.get(plan.fault),
        )
    )


def planned_fault(connection: Connection, account_id: str) -> FaultPlan | None:
    """What the next verification of an account meets; None: no fault."""
    of_account = test_faults.c.account_id == account_id
    row = connection.execute(select(test_faults).where(of_account)).one_or_none()
    return None if row is None else _to_plan(row)


def clear_fault(connection: Connection, account_id: str) -> None:
    """Remove what was planned."""
    connection.execute(delete(test_faults).where(test_faults.c.account_id == account_id))


def _plan(
    connection: Connection,
    account_id: str,
    plan: FaultPlan,
    at: datetime,
    kept: IdempotencyEntry | None,
) -> None:
    clear_fault(connection, account_id)
    connection.execute(
        insert(test_faults),
        {
            "account_id": account_id,
            "fault": plan.fault,
            "calls_left": plan.calls,
            "delay_ms": plan.delay // _MILLISECOND,
            "planned_at": at,
        },
    )
    if kept is not None:
        keep_answers(connection, [kept])


def _take(connection: Connection, account_id: str) -> FaultPlan | None:
    """The fault that this call meets; it counts as one of those that do."""
    of_account = test_faults.c.account_id == account_id
    row = connection.execute(select(test_faults).where(of_account).with_for_update()).one_or_none()
    if row is None:
        return None
    if row.calls_left == 1:
        clear_fault(connection, account_id)
    elif row.calls_left is not None:
        fewer = update(test_faults).where(of_account).values(calls_left=row.calls_left - 1)
        connection.execute(fewer)
    return _to_plan(row)


def _to_plan(row: Row[*tuple[Any, ...]]) -> FaultPlan:
    return FaultPlan(
        fault=Fault(row.fault),
        calls=row.calls_left,
        delay=timedelta(milliseconds=row.delay_ms),
    )
