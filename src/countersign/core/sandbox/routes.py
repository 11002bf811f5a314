"""The test helpers: acts of a test key in its sandbox."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final, NewType

from sqlalchemy import Connection

from countersign.base.errors import InvalidRequest, ModeMismatch, NotFound
from countersign.base.http.body import in_utc
from countersign.base.http.schemas import CBID, view
from countersign.base.values import SANDBOX_BUYER, Mode, Reason, is_id
from countersign.core.access.key import Scope
from countersign.core.buyers import sandbox as faults
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import PlannedFault, sandbox_act
from countersign.core.buyers.schemas import BuyerStatusAnswer
from countersign.core.events.routes import Event
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Call, Command
from countersign.core.sandbox import helpers, schemas
from countersign.core.sandbox.helpers import NO_BUYER, SandboxRoom

Sandbox = NewType("Sandbox", str)
"""The account whose sandbox an act changes."""
_DEFAULT_REASONS: Final = {
    BuyerStatus.FAILED: (Reason.IDENTITY_FAILED,),
    BuyerStatus.REQUIRES_INPUT: (Reason.IDENTITY_REQUIRES_INPUT,),
}


def _sandbox(_: Any, call: Call) -> Sandbox:  # noqa: ANN401 - unused
    """The sandbox that this key may change.

    Raises ModeMismatch if it is a live key.
    """
    if call.principal.mode is Mode.LIVE:
        raise ModeMismatch("The test helpers need a test key: live keys have no sandbox.")
    return Sandbox(call.principal.account_id)


SANDBOX: Final = Acts(
    "Test helpers",
    SandboxRoom,
    {Sandbox: _sandbox},
    scope=Scope.SANDBOX_MANAGE,
    refusals=(ModeMismatch,),
)
_command: Final = partial(Command, sandbox=True)
_NO_FAULT: Final = dict.fromkeys(PlannedFault.__struct_fields__)


@SANDBOX.act(
    "GET /v1/test/clock", "Get the test clock", commands=(_command(name="test clock show"),)
)
async def get_test_clock(room: SandboxRoom, account_id: Sandbox) -> schemas.TestClock:
    """The test clock of this account."""
    return await helpers.show_clock(room, account_id)


@SANDBOX.act(
    "POST /v1/test/clock/advance",
    "Advance the test clock",
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
)
async def advance_test_clock(
    room: SandboxRoom, account_id: Sandbox, wanted: schemas.ClockAdvance, write: Writing
) -> schemas.TestClock:
    """Advance the test clock. Every server uses it once the response is sent."""
    by = None if wanted.seconds is None else timedelta(seconds=wanted.seconds)
    to = None if wanted.to is None else in_utc(wanted.to, "$.to")
    if (by is None) == (to is None):
        raise InvalidRequest("Give either the time to advance by, or the time to advance to.")
    advanced = await write(helpers.advance_clock, room, account_id, by=by, to=to)
    await room.access.test_clocks.renew()
    return advanced


@SANDBOX.act(
    "DELETE /v1/test/clock",
    "Reset the test clock to real time",
    commands=(_command(name="test clock reset"),),
)
async def reset_test_clock(
    room: SandboxRoom, account_id: Sandbox, write: Writing
) -> schemas.TestClock:
    """Reset the test clock to real time. Existing objects keep their times."""
    reset = await write(helpers.reset_clock, room, account_id)
    await room.access.test_clocks.renew()
    return reset


@SANDBOX.act(
    "POST /v1/test/buyers",
    "Set the status of a sandbox buyer",
    refusals=(ModeMismatch, NotFound),
    request_examples={
        "revoked": {"cbid": CBID, "status": "revoked"},
        "failed": {"cbid": CBID, "status": "failed", "reasons": ["age_below_minimum"]},
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
)
async def move_test_buyer(
    room: SandboxRoom, account_id: Sandbox, wanted: schemas.BuyerMove, write: Writing
) -> BuyerStatusAnswer:
    """Give a sandbox buyer any status, and write the event of that status."""
    usual = _DEFAULT_REASONS.get(wanted.status)
    if usual is None and wanted.reasons:
        msg = f"Only the states {' and '.join(_DEFAULT_REASONS)} have reasons - at `$.reasons`."
        raise InvalidRequest(msg)
    if not is_id(SANDBOX_BUYER, wanted.cbid):
        raise NotFound(NO_BUYER)
    act = await sandbox_act(room.buyers, account_id, wanted.cbid)
    result = (wanted.status, tuple(wanted.reasons or usual or ()))
    return await write(helpers.move_buyer, room, act, result)


@SANDBOX.act(
    "POST /v1/test/events",
    "Write an event of any type",
    request_examples={"any buyer": {"type": "buyer.revoked"}},
    response_examples={
        "written": {"type": "buyer.revoked", "data": {"cbid": CBID}, "triggered": True}
    },
    commands=(_command(name="test trigger", arguments=("type",), shows=("id",)),),
)
async def trigger_event(
    room: SandboxRoom, account_id: Sandbox, wanted: schemas.EventTrigger, write: Writing
) -> Event:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    new = helpers.event_of(room, account_id, wanted.type, wanted.object_id)
    return await write(helpers.trigger_event, room, new)


@SANDBOX.act(
    "GET /v1/test/fault",
    "Get the planned fault",
    response_examples={"planned": {}, "none": _NO_FAULT},
    commands=(_command(name="test fault show"),),
)
def get_test_fault(connection: Connection, account_id: Sandbox) -> PlannedFault:
    """The fault that the next verification in the sandbox gets."""
    return faults.planned_fault(connection, account_id)


@SANDBOX.act(
    "POST /v1/test/fault",
    "Let the next verifications fail",
    request_examples={"twice": {"fault": "timeout", "calls": 2}},
    commands=(_command(name="test fault set", arguments=("fault",)),),
)
async def plan_test_fault(
    room: SandboxRoom, account_id: Sandbox, wanted: schemas.FaultRequest, write: Writing
) -> PlannedFault:
    """Let the next verifications in the sandbox fail. This replaces a planned fault."""
    plan = view(PlannedFault, wanted, delay_seconds=wanted.delay_seconds or 0)
    planned = await write(faults.plan_fault, room.buyers, account_id, plan)
    await room.access.test_clocks.renew()
    return planned


@SANDBOX.act(
    "DELETE /v1/test/fault",
    "Remove the planned fault",
    response_examples={"cleared": _NO_FAULT},
    commands=(_command(name="test fault clear"),),
)
def clear_test_fault(connection: Connection, account_id: Sandbox) -> PlannedFault:
    """Remove the planned fault."""
    return faults.clear_fault(connection, account_id)


ROUTES: Final = SANDBOX.routes
