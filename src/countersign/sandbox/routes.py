"""The test helpers: what a test key may do to its sandbox."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from countersign.access.key import Scope
from countersign.buyers import sandbox as faults
from countersign.buyers.routes import status_body
from countersign.buyers.sandbox import PlannedFault
from countersign.buyers.schemas import BuyerStatusAnswer
from countersign.errors import ModeMismatch, NotFound
from countersign.events.routes import Event, event_body
from countersign.http.body import in_utc, parse_body
from countersign.http.examples import CBID
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Command, Route, grouped
from countersign.mode import Mode
from countersign.sandbox import helpers, schemas
from countersign.sandbox.helpers import SandboxRoom


async def get_clock(room: SandboxRoom, call: Call) -> Reply:
    """The test clock of this account."""
    return Reply(encode(await helpers.show_clock(room, _sandbox(call))))


async def advance_clock(room: SandboxRoom, call: Call) -> Reply:
    """Advance the test clock. Every server uses it once the response is sent."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.ClockAdvance)
    view = await helpers.advance_clock(
        room,
        account_id,
        by=None if body.seconds is None else timedelta(seconds=body.seconds),
        to=None if body.to is None else in_utc(body.to, "$.to"),
        remember=call.remembering(encode),
    )
    return Reply(encode(view))


async def reset_clock(room: SandboxRoom, call: Call) -> Reply:
    """Reset the test clock to real time. Existing objects keep their times."""
    return Reply(encode(await helpers.reset_clock(room, _sandbox(call))))


async def move_buyer(room: SandboxRoom, call: Call) -> Reply:
    """Give a sandbox buyer any status, and write the event of that status."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.BuyerMove)
    render = partial(status_body, body.cbid)
    moved = (account_id, body.cbid, body.status, tuple(body.reasons or ()))
    view = await helpers.move_buyer(room, *moved, remember=call.remembering(render))
    return Reply(render(view))


async def trigger_event(room: SandboxRoom, call: Call) -> Reply:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.EventTrigger)
    act = partial(helpers.trigger_event, room, account_id, body.type, body.object_id)
    return await call.kept(event_body, act)


async def get_fault(room: SandboxRoom, call: Call) -> Reply:
    """The fault that the next verification in the sandbox gets."""
    return Reply(encode(await faults.planned_fault(room.buyers, _sandbox(call))))


async def plan_fault(room: SandboxRoom, call: Call) -> Reply:
    """Let the next verifications in the sandbox fail. This replaces a planned fault."""
    account_id = _sandbox(call)
    body = parse_body(call.body, schemas.FaultRequest)
    plan = PlannedFault(fault=body.fault, calls=body.calls, delay_seconds=body.delay_seconds or 0)
    return await call.kept(
        lambda planned: planned, partial(faults.plan_fault, room.buyers, account_id, plan)
    )


async def clear_fault(room: SandboxRoom, call: Call) -> Reply:
    """Remove the planned fault."""
    return Reply(encode(await faults.clear_fault(room.buyers, _sandbox(call))))


def _sandbox(call: Call) -> str:
    """The account whose sandbox this key may change.

    Raises ModeMismatch if it is a live key.
    """
    if call.principal.mode is Mode.LIVE:
        raise ModeMismatch("The test helpers need a test key: live keys have no sandbox.")
    return call.principal.account_id


_route: Final = partial(Route, scope=Scope.SANDBOX_MANAGE, refusals=(ModeMismatch,))
_command: Final = partial(Command, sandbox=True)
_NO_FAULT: Final = dict.fromkeys(PlannedFault.__struct_fields__)

ROUTES: Final = grouped(
    "Test helpers",
    SandboxRoom,
    _route(
        address="GET /v1/test/clock",
        handler=get_clock,
        operation="getTestClock",
        summary="Get the test clock",
        response=schemas.TestClock,
        commands=(_command(name="test clock show"),),
    ),
    _route(
        address="POST /v1/test/clock/advance",
        handler=advance_clock,
        operation="advanceTestClock",
        summary="Advance the test clock",
        request=schemas.ClockAdvance,
        response=schemas.TestClock,
        request_examples={
            "by a day": {"seconds": 86400},
            "to a time": {"to": "2027-01-01T00:00:00Z"},
        },
        response_examples={"a day ahead": {"now": "2026-11-21T21:31:00Z", "ahead_seconds": 86400}},
        commands=(
            _command(
                name="test clock advance",
                names={"seconds": "by"},
                says="Events were written for sandbox buyers that have expired.",
            ),
        ),
    ),
    _route(
        address="DELETE /v1/test/clock",
        handler=reset_clock,
        operation="resetTestClock",
        summary="Reset the test clock to real time",
        response=schemas.TestClock,
        commands=(_command(name="test clock reset"),),
    ),
    _route(
        address="POST /v1/test/buyers",
        handler=move_buyer,
        operation="moveTestBuyer",
        summary="Set the status of a sandbox buyer",
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
        response_examples={
            "failed": {
                "status": "failed",
                "verified_at": None,
                "expires_at": None,
                "reasons": ["age_below_minimum"],
            }
        },
        commands=(_command(name="test buyer set", arguments=("cbid", "status")),),
    ),
    _route(
        address="POST /v1/test/events",
        handler=trigger_event,
        operation="triggerEvent",
        summary="Write an event of any type",
        request=schemas.EventTrigger,
        response=Event,
        request_examples={"any buyer": {"type": "buyer.revoked"}},
        response_examples={
            "written": {"type": "buyer.revoked", "data": {"cbid": CBID}, "triggered": True}
        },
        commands=(_command(name="test trigger", arguments=("type",), shows=("id",)),),
    ),
    _route(
        address="GET /v1/test/fault",
        handler=get_fault,
        operation="getTestFault",
        summary="Get the planned fault",
        response=PlannedFault,
        response_examples={"planned": {}, "none": _NO_FAULT},
        commands=(_command(name="test fault show"),),
    ),
    _route(
        address="POST /v1/test/fault",
        handler=plan_fault,
        operation="planTestFault",
        summary="Let the next verifications fail",
        request=schemas.FaultRequest,
        response=PlannedFault,
        request_examples={"twice": {"fault": "timeout", "calls": 2}},
        commands=(_command(name="test fault set", arguments=("fault",)),),
    ),
    _route(
        address="DELETE /v1/test/fault",
        handler=clear_fault,
        operation="clearTestFault",
        summary="Remove the planned fault",
        response=PlannedFault,
        response_examples={"cleared": _NO_FAULT},
        commands=(_command(name="test fault clear"),),
    ),
)
