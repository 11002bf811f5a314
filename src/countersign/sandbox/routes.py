"""The test helpers: what a test key may do to its sandbox."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from countersign.access.key import Scope
from countersign.buyers import sandbox_faults
from countersign.buyers.model import BuyerStatusView
from countersign.buyers.routes import status_body
from countersign.buyers.sandbox_faults import FaultPlan
from countersign.buyers.schemas import BuyerStatusAnswer
from countersign.errors import ModeMismatch, NotFound
from countersign.events.model import EventView
from countersign.events.routes import Event, event_body
from countersign.http.body import in_utc, parse_body
from countersign.http.examples import CBID
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Route, grouped
from countersign.mode import Mode
from countersign.sandbox import clock, helpers, schemas
from countersign.sandbox.clock import ClockView
from countersign.sandbox.room import SandboxRoom

_SECOND = timedelta(seconds=1)


async def get_clock(room: SandboxRoom, call: Call) -> Reply:
    """The test clock of this account."""
    return Reply(_clock(await clock.show(room, _sandbox(call))))


async def advance_clock(room: SandboxRoom, call: Call) -> Reply:
    """Advance the test clock. Every server uses it once the response is sent."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.ClockAdvance)
    view = await clock.advance(
        room,
        account_id,
        by=None if body.seconds is None else timedelta(seconds=body.seconds),
        to=None if body.to is None else in_utc(body.to, "$.to"),
        remember=call.remembering(_clock),
    )
    return Reply(_clock(view))


async def reset_clock(room: SandboxRoom, call: Call) -> Reply:
    """Reset the test clock to real time. Existing objects keep their times."""
    return Reply(_clock(await clock.reset(room, _sandbox(call))))


async def move_buyer(room: SandboxRoom, call: Call) -> Reply:
    """Give a sandbox buyer any status, and write the event of that status."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.BuyerMove)

    def render(view: BuyerStatusView) -> bytes:
        return status_body(body.cbid, view)

    view = await helpers.move_buyer(
        room,
        account_id,
        body.cbid,
        body.status,
        tuple(body.reasons or ()),
        call.remembering(render),
    )
    return Reply(render(view))


async def trigger_event(room: SandboxRoom, call: Call) -> Reply:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.EventTrigger)
    view = await helpers.trigger_event(
        room, account_id, body.type, body.object_id, call.remembering(_event)
    )
    return Reply(_event(view))


async def get_fault(room: SandboxRoom, call: Call) -> Reply:
    """The fault that the next verification in the sandbox gets."""
    return Reply(
        _fault(await room.buyers.database.read(sandbox_faults.planned_fault, _sandbox(call)))
    )


async def plan_fault(room: SandboxRoom, call: Call) -> Reply:
    """Let the next verifications in the sandbox fail. This replaces a planned fault."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.FaultRequest)
    plan = FaultPlan(
        fault=body.fault, calls=body.calls, delay=timedelta(seconds=body.delay_seconds or 0)
    )
    reply = _fault(plan)
    await sandbox_faults.plan_fault(room.buyers, account_id, plan, reply, call.entry)
    return Reply(reply)


async def clear_fault(room: SandboxRoom, call: Call) -> Reply:
    """Remove the planned fault."""
    await room.buyers.database.write(sandbox_faults.clear_fault, _sandbox(call))
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


def _clock(view: ClockView) -> bytes:
    return encode(
        schemas.TestClock(
            now=view.now.replace(microsecond=0),
            real_time=view.real_time.replace(microsecond=0),
            ahead_seconds=view.ahead // _SECOND,
        )
    )


def _event(view: EventView) -> bytes:
    return encode(event_body(view))


def _fault(plan: FaultPlan | None) -> bytes:
    return encode(
        schemas.PlannedFault(
            fault=None if plan is None else plan.fault,
            calls=None if plan is None else plan.calls,
            delay_seconds=None if plan is None else plan.delay // _SECOND,
        )
    )


ROUTES: Final = grouped(
    "Test helpers",
    SandboxRoom,
    Route(
        address="GET /v1/test/clock",
        handler=get_clock,
        operation="getTestClock",
        summary="Get the test clock",
        scope=Scope.SANDBOX_MANAGE,
        response=schemas.TestClock,
        refusals=(ModeMismatch,),
        response_examples={"real time": schemas.TEST_CLOCK},
    ),
    Route(
        address="POST /v1/test/clock/advance",
        handler=advance_clock,
        operation="advanceTestClock",
        summary="Advance the test clock",
        scope=Scope.SANDBOX_MANAGE,
        request=schemas.ClockAdvance,
        response=schemas.TestClock,
        refusals=(ModeMismatch,),
        request_examples={
            "by a day": {"seconds": 86400},
            "to a time": {"to": "2027-01-01T00:00:00Z"},
        },
        response_examples={"a day ahead": schemas.TEST_CLOCK_AHEAD},
    ),
    Route(
        address="DELETE /v1/test/clock",
        handler=reset_clock,
        operation="resetTestClock",
        summary="Reset the test clock to real time",
        scope=Scope.SANDBOX_MANAGE,
        response=schemas.TestClock,
        refusals=(ModeMismatch,),
        response_examples={"real time": schemas.TEST_CLOCK},
    ),
    Route(
        address="POST /v1/test/buyers",
        handler=move_buyer,
        operation="moveTestBuyer",
        summary="Set the status of a sandbox buyer",
        scope=Scope.SANDBOX_MANAGE,
        request=schemas.BuyerMove,
        response=BuyerStatusAnswer,
        refusals=(ModeMismatch, NotFound),
        request_examples={
            "revoked": {"cbid": CBID, "status": "revoked"},
            "failed": {
                "cbid": CBID,
                "status": "failed",
                "reasons": ["age_below_minimum"],
            },
        },
        response_examples={"failed": schemas.MOVED},
    ),
    Route(
        address="POST /v1/test/events",
        handler=trigger_event,
        operation="triggerEvent",
        summary="Write an event of any type",
        scope=Scope.SANDBOX_MANAGE,
        request=schemas.EventTrigger,
        response=Event,
        refusals=(ModeMismatch,),
        request_examples={"any buyer": {"type": "buyer.revoked"}},
        response_examples={"written": schemas.TRIGGERED},
    ),
    Route(
        address="GET /v1/test/fault",
        handler=get_fault,
        operation="getTestFault",
        summary="Get the planned fault",
        scope=Scope.SANDBOX_MANAGE,
        response=schemas.PlannedFault,
        refusals=(ModeMismatch,),
        response_examples={"planned": schemas.FAULT, "none": schemas.NO_FAULT},
    ),
    Route(
        address="POST /v1/test/fault",
        handler=plan_fault,
        operation="planTestFault",
        summary="Let the next verifications fail",
        scope=Scope.SANDBOX_MANAGE,
        request=schemas.FaultRequest,
        response=schemas.PlannedFault,
        refusals=(ModeMismatch,),
        request_examples={"twice": {"fault": "timeout", "calls": 2}},
        response_examples={"planned": schemas.FAULT},
    ),
    Route(
        address="DELETE /v1/test/fault",
        handler=clear_fault,
        operation="clearTestFault",
        summary="Remove the planned fault",
        scope=Scope.SANDBOX_MANAGE,
        response=schemas.PlannedFault,
        refusals=(ModeMismatch,),
        response_examples={"cleared": schemas.NO_FAULT},
    ),
)
