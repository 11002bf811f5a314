"""The test helpers: what a test key does to its own sandbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from countersign.access.sandbox_state import FaultPlan
from countersign.access.test_clocks import ClockView
from countersign.bootstrap import Deployment
from countersign.buyers.model import Standing
from countersign.errors import InvalidRequest, ModeMismatch
from countersign.events.model import EventView
from countersign.events.schemas import event_body
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.instant import to_the_second
from countersign.mode import Mode
from countersign.sandbox import schemas as sandbox_schemas

_SECOND = timedelta(seconds=1)


async def get_clock(deployment: Deployment, call: Call) -> Reply:
    """The test clock of this account."""
    return Reply(_clock(await deployment.sandbox.clock.show(_sandbox(call))))


async def advance_clock(deployment: Deployment, call: Call) -> Reply:
    """Advance the test clock. Every server uses it once the response is sent."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.ClockAdvance)
    view = await deployment.sandbox.clock.advance(
        account_id,
        by=None if body.seconds is None else timedelta(seconds=body.seconds),
        to=None if body.to is None else _utc(body.to),
        remember=call.remembering(_clock),
    )
    return Reply(_clock(view))


async def reset_clock(deployment: Deployment, call: Call) -> Reply:
    """Reset the test clock to real time. Existing objects keep their times."""
    return Reply(_clock(await deployment.sandbox.clock.reset(_sandbox(call))))


async def move_buyer(deployment: Deployment, call: Call) -> Reply:
    """Give a sandbox buyer any status, and write the event of that status."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.BuyerMove)

    def render(standing: Standing) -> bytes:
        return encode(
            schemas.BuyerStatusAnswer(
                cbid=body.cbid,
                status=standing.status,
                verified_at=to_the_second(standing.verified_at),
                expires_at=to_the_second(standing.expires_at),
                reasons=list(standing.reasons) or msgspec.UNSET,
            )
        )

    standing = await deployment.sandbox.move_buyer(
        account_id, body.cbid, body.status, tuple(body.reasons or ()), call.remembering(render)
    )
    return Reply(render(standing))


async def trigger_event(deployment: Deployment, call: Call) -> Reply:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.EventTrigger)
    view = await deployment.sandbox.trigger_event(
        account_id, body.type, body.object_id, call.remembering(_event)
    )
    return Reply(_event(view))


async def get_fault(deployment: Deployment, call: Call) -> Reply:
    """The fault that the next verification in the sandbox gets."""
    return Reply(_fault(await deployment.buyers.faults.planned(_sandbox(call))))


async def plan_fault(deployment: Deployment, call: Call) -> Reply:
    """Let the next verifications in the sandbox fail. This replaces a planned fault."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.FaultRequest)
    plan = FaultPlan(
        fault=body.fault, calls=body.calls, delay=timedelta(seconds=body.delay_seconds or 0)
    )
    return Reply(
        _fault(await deployment.buyers.faults.plan(account_id, plan, call.remembering(_fault)))
    )


async def clear_fault(deployment: Deployment, call: Call) -> Reply:
    """Remove the planned fault."""
    await deployment.buyers.faults.clear(_sandbox(call))
    return Reply(_fault(None))


def _sandbox(call: Call) -> str:
    """The account whose sandbox this key may change.

    Raises:
        ModeMismatch: it is a live key.
    """
    if call.principal.mode is Mode.LIVE:
        msg = "The test helpers need a test key: live keys have no sandbox."
        raise ModeMismatch(msg)
    return call.principal.account_id


def _utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        msg = "This time does not exist in UTC - at `$.to`."
        raise InvalidRequest(msg) from None


def _clock(view: ClockView) -> bytes:
    return encode(
        sandbox_schemas.TestClock(
            now=view.now.replace(microsecond=0),
            real_time=view.real_time.replace(microsecond=0),
            ahead_seconds=view.ahead // _SECOND,
        )
    )


def _event(view: EventView) -> bytes:
    return encode(event_body(view))


def _fault(plan: FaultPlan | None) -> bytes:
    return encode(
        sandbox_schemas.PlannedFault(
            fault=None if plan is None else plan.fault,
            calls=None if plan is None else plan.calls,
            delay_seconds=None if plan is None else plan.delay // _SECOND,
        )
    )
