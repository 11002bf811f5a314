"""The test helpers: acts of a test key in its sandbox."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NewType

from msgspec import UNSET
from sqlalchemy import Connection, delete, insert, select, update

from countersign.base.db.tables import test_clocks, test_faults, verifications
from countersign.base.errors import InvalidRequest, ModeMismatch, NotFound
from countersign.base.http.body import in_utc
from countersign.base.http.schemas import CBID, view
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CHECKOUT_SESSION,
    CLEARANCE,
    SANDBOX_BUYER,
    Mode,
    Reason,
    base32,
    from_ns,
    is_id,
    timed_id,
)
from countersign.core.access.clocks import REAL_TIME, AccountClock, sandbox_state
from countersign.core.access.key import Scope
from countersign.core.buyers import sandbox as faults
from countersign.core.buyers.expiry import write_expiries
from countersign.core.buyers.model import BuyerStatus, status_view
from countersign.core.buyers.sandbox import PlannedFault, in_state, sandbox_act, write_simulated
from countersign.core.buyers.schemas import BuyerStatusAnswer
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.core.events.model import EventType, NewEvent, RecordedEvent
from countersign.core.events.routes import Event, event_view
from countersign.core.events.sql import write_one_event
from countersign.core.gate.act import Acts, Writing
from countersign.core.gate.route import Call, Command
from countersign.core.sandbox import schemas
from countersign.core.sandbox.room import SandboxRoom

Sandbox = NewType("Sandbox", str)
"""The account whose sandbox an act changes."""
_PREFIXES: Final = {
    "buyer": SANDBOX_BUYER,
    "acknowledgment": ACKNOWLEDGMENT,
    "clearance": CLEARANCE,
    "checkout_session": CHECKOUT_SESSION,
}
"""Prefixes of object identifiers, by the first word of an event's type."""
_NOTICE_ID_MAX: Final = 64
_NO_OBJECT: Final = "Expected {} for this type of event - at `$.object_id`."
_NO_BUYER: Final = "The buyer identifier was not found in the sandbox of this account."
_EXPIRED_MAX: Final = 1000
"""Buyers whose expiry is written in the transaction of an advance; the sweep writes the rest."""
_MILLISECOND: Final = timedelta(milliseconds=1)
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
    state = await room.access.database.read_batched(sandbox_state, None)
    return _clock_view(state.clock(account_id), _now(room))


@SANDBOX.act(
    "POST /v1/test/clock/advance",
    "Advance the test clock",
    request_examples={"by a day": {"seconds": 86400}, "to a time": {"to": "2027-01-01T00:00:00Z"}},
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

    def advance(connection: Connection) -> schemas.TestClock:
        of_account, now = test_clocks.c.account_id == account_id, _now(room)
        known = select(test_clocks.c.ahead_ms).where(of_account).with_for_update()
        ahead = connection.execute(known).scalar_one_or_none()
        clock = REAL_TIME if ahead is None else AccountClock(ahead=ahead * _MILLISECOND)
        if by is not None:
            clock = clock.advanced(by)
        if to is not None:
            clock = clock.advanced_to(to, now)
        values = {"ahead_ms": clock.ahead // _MILLISECOND, "changed_at": now}
        if ahead is None:
            # If another process advances it at the same moment, its row makes this transaction
            # fail; the call is retried and then sees that row.
            connection.execute(insert(test_clocks), {"account_id": account_id} | values)
        else:
            connection.execute(update(test_clocks).where(of_account).values(values))
        # The events of buyers that expire by it, or soon will.
        write_expiries(connection, account_id, by=clock.at(now), at=now, limit=_EXPIRED_MAX)
        return _clock_view(clock, now)

    advanced = await write(advance)
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

    def reset(connection: Connection) -> schemas.TestClock:
        connection.execute(delete(test_clocks).where(test_clocks.c.account_id == account_id))
        return _clock_view(REAL_TIME, _now(room))

    shown = await write(reset)
    await room.access.test_clocks.renew()
    return shown


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
        raise NotFound(_NO_BUYER)
    act = await sandbox_act(room.buyers, account_id, wanted.cbid)
    result = (wanted.status, tuple(wanted.reasons or usual or ()))

    def move(connection: Connection) -> BuyerStatusAnswer | NotFound:
        before = buyers_by_cbid(connection, [act.cbid], to_change=True).get(act.cbid)
        if before is None or (before.account_id, before.mode) != (account_id, Mode.TEST):
            return NotFound(_NO_BUYER)
        after = in_state(before, *result, act.now)
        if after != before:
            # The session whose guesses of ZIP codes are counted.
            of_buyer = select(verifications.c.subject_index).where(verifications.c.cbid == act.cbid)
            first = connection.execute(of_buyer.order_by(verifications.c.id).limit(1)).scalar()
            change = (room.buyers, act, (before, after), result)
            write_simulated(connection, *change, subject_index=first, members={"test_helper": True})
        shown = status_view(after, account_id, room.buyers.providers.floor, act.now)
        return view(BuyerStatusAnswer, shown, cbid=act.cbid, reasons=shown.reasons or UNSET)

    return await write(move)


@SANDBOX.act(
    "POST /v1/test/events",
    "Write an event of any type",
    request_examples={"any buyer": {"type": "buyer.revoked"}},
    response_examples={
        "written": {"type": "buyer.revoked", "data": {"cbid": CBID}, "triggered": True}
    },
    commands=(_command(name="test trigger", arguments=("type",), shows=("id",)),),
)
def trigger_event(
    connection: Connection, room: SandboxRoom, account_id: Sandbox, wanted: schemas.EventTrigger
) -> Event:
    """Write an event without a cause. It is listed and delivered with `triggered: true`."""
    new = _event_of(room, account_id, wanted.type, wanted.object_id)
    return event_view(room.events.ids, write_one_event(connection, new))


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

    def put(connection: Connection) -> PlannedFault:
        faults.clear_fault(connection, account_id)
        row = {
            "account_id": account_id,
            "fault": plan.fault,
            "calls_left": plan.calls,
            "delay_ms": (plan.delay_seconds or 0) * 1000,
            "planned_at": _now(room),
        }
        connection.execute(insert(test_faults), row)
        return plan

    planned = await write(put)
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


def _event_of(
    room: SandboxRoom, account_id: str, type_: EventType, object_id: str | None
) -> NewEvent:
    """An event about this object; None: about an object that does not exist.

    Raises InvalidRequest if the id is not of an object that such an event is about.
    """
    time_ns = room.access.clock.time_ns()
    now = from_ns(time_ns)
    example = RecordedEvent.example(account_id, Mode.TEST, type_, now)
    prefix = _PREFIXES.get(type_.partition(".")[0])
    if prefix is None:
        if object_id is not None and not 0 < len(object_id) <= _NOTICE_ID_MAX:
            raise InvalidRequest(_NO_OBJECT.format("the id of a notice"))
        object_id = object_id or example.object_id
    elif object_id is None:
        object_id = f"{prefix}_{base32(int.from_bytes(room.access.entropy(16), 'big'))}"
        if prefix != SANDBOX_BUYER:  # that one is random
            object_id = timed_id(prefix, time_ns, room.access.entropy(8))
    elif not is_id(prefix, object_id):
        raise InvalidRequest(_NO_OBJECT.format(f"an identifier that begins with {prefix}_"))
    return NewEvent(account_id, Mode.TEST, type_, object_id, now, example.version, triggered=True)


def _now(room: SandboxRoom) -> datetime:
    return from_ns(room.access.clock.time_ns())


def _clock_view(clock: AccountClock, now: datetime) -> schemas.TestClock:
    ahead = clock.ahead // timedelta(seconds=1)
    return view(schemas.TestClock, now=clock.at(now), real_time=now, ahead_seconds=ahead)


ROUTES: Final = SANDBOX.routes
