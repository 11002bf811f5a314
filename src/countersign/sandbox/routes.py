"""The test helpers: what a test key does to its own sandbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from countersign.bootstrap import Deployment
from countersign.buyers import sandbox_faults
from countersign.buyers.model import BuyerStatusView
from countersign.buyers.sandbox_faults import FaultPlan
from countersign.errors import InvalidRequest, ModeMismatch
from countersign.events.read_events import EventView
from countersign.events.routes import event_body
from countersign.http import schemas
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.instant import to_the_second
from countersign.mode import Mode
from countersign.sandbox import clock, helpers
from countersign.sandbox import schemas as sandbox_schemas
from countersign.sandbox.clock import ClockView

_SECOND = timedelta(seconds=1)


async def get_clock(deployment: Deployment, call: Call) -> Reply:
    """The test clock of this account."""
    return Reply(_clock(await clock.show(deployment.sandbox, _sandbox(call))))


async def advance_clock(deployment: Deployment, call: Call) -> Reply:
    """Advance the test clock. Every server uses it once the response is sent."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.ClockAdvance)
    view = await clock.advance(
        deployment.sandbox,
        account_id,
        by=None if body.seconds is None else timedelta(seconds=body.seconds),
        to=None if body.to is None else _utc(body.to),
        remember=call.remembering(_clock),
    )
    return Reply(_clock(view))


async def reset_clock(deployment: Deployment, call: Call) -> Reply:
    """Reset the test clock to real time. Existing objects keep their times."""
    return Reply(_clock(await clock.reset(deployment.sandbox, _sandbox(call))))


async def move_buyer(deployment: Deployment, call: Call) -> Reply:
    """Give a sandbox buyer any status, and write the event of that status."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.BuyerMove)

    def render(view: BuyerStatusView) -> bytes:
        return encode(
            schemas.BuyerStatusAnswer(
                cbid=body.cbid,
                status=view.status,
                verified_at=to_the_second(view.verified_at),
                expires_at=to_the_second(view.expires_at),
                reasons=list(view.reasons) or msgspec.UNSET,
            )
        )

    view = await helpers.move_buyer(
        deployment.sandbox,
        account_id,
        body.cbid,
        body.status,
        tuple(body.reasons or ()),
        call.remembering(render),
    )
    return Reply(render(view))


async def trigger_event(deployment: Deployment, call: Call) -> Reply:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.EventTrigger)
    view = await helpers.trigger_event(
        deployment.sandbox, account_id, body.type, body.object_id, call.remembering(_event)
    )
    return Reply(_event(view))


async def get_fault(deployment: Deployment, call: Call) -> Reply:
    """The fault that the next verification in the sandbox gets."""
    database = deployment.database
    return Reply(_fault(await database.read(sandbox_faults.planned_fault, _sandbox(call))))


async def plan_fault(deployment: Deployment, call: Call) -> Reply:
    """Let the next verifications in the sandbox fail. This replaces a planned fault."""
    account_id = _sandbox(call)
    body = parse_body(call.body, sandbox_schemas.FaultRequest)
    plan = FaultPlan(
        fault=body.fault, calls=body.calls, delay=timedelta(seconds=body.delay_seconds or 0)
    )
    reply = _fault(plan)
    await sandbox_faults.plan_fault(deployment.buyers, account_id, plan, reply, call.entry)
    return Reply(reply)


async def clear_fault(deployment: Deployment, call: Call) -> Reply:
    """Remove the planned fault."""
    await deployment.database.write(sandbox_faults.clear_fault, _sandbox(call))
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
