"""`countersign test`: change an account's sandbox, as test keys can through the API."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import click

from countersign.access.account import find_account
from countersign.buyers import sandbox_faults
from countersign.buyers.model import BuyerStatus, BuyerStatusView
from countersign.buyers.sandbox_faults import CALLS_MAX, DELAY_MAX, Fault, FaultPlan
from countersign.cli.support import Duration, command, field_lines, say, show, with_room
from countersign.errors import InvalidArgument
from countersign.events.model import EventType, EventView
from countersign.instant import parse_rfc3339, rfc3339
from countersign.reason import Reason
from countersign.sandbox import clock as clocks
from countersign.sandbox import helpers
from countersign.sandbox.clock import ClockView
from countersign.sandbox.room import SandboxRoom

_SECOND: Final = timedelta(seconds=1)
_STATUSES: Final = click.Choice([status.value for status in BuyerStatus])
_REASONS: Final = click.Choice([reason.value for reason in Reason])
_TYPES: Final = click.Choice([type_.value for type_ in EventType])
_FAULTS: Final = click.Choice([fault.value for fault in Fault])


@click.group("test")
def test_helpers() -> None:
    """The sandbox of an account: its clock, buyers, events and faults. Never live."""


@test_helpers.group()
def clock() -> None:
    """The test clock, which puts the sandbox ahead of real time."""


@clock.command("show")
@click.argument("account")
@command
def show_(account: str, *, as_json: bool) -> None:
    """Show the test clock of ACCOUNT (id or name)."""
    _show_clock(_read(account), as_json=as_json)


@clock.command("advance")
@click.argument("account")
@click.option("--by", type=Duration(), help="The time to advance by, such as 30d.")
@click.option("--to", "to_text", help="The time to advance to, such as 2027-01-01T00:00:00Z.")
@command
def advance(account: str, *, by: timedelta | None, to_text: str | None, as_json: bool) -> None:
    """Advance the test clock of ACCOUNT; every running server uses it afterwards."""
    view = _advance(account, by, _time(to_text))
    say("Events were written for sandbox buyers that have expired.")
    _show_clock(view, as_json=as_json)


@clock.command("reset")
@click.argument("account")
@command
def reset(account: str, *, as_json: bool) -> None:
    """Reset the test clock of ACCOUNT to real time.

    Existing objects keep their times, even times in the future.
    """
    _show_clock(_reset(account), as_json=as_json)


@test_helpers.group()
def buyer() -> None:
    """The buyers of the sandbox."""


@buyer.command("set")
@click.argument("account")
@click.argument("cbid")
@click.argument("status", type=_STATUSES)
@click.option(
    "--reason",
    "reasons",
    type=_REASONS,
    multiple=True,
    help="The reason for failed or requires_input; may be repeated. Left out: the usual one.",
)
@command
def set_buyer(
    account: str, cbid: str, status: str, *, reasons: tuple[str, ...], as_json: bool
) -> None:
    """Give the sandbox buyer CBID of ACCOUNT a status, and write the event of that status."""
    moved = _move(account, cbid, BuyerStatus(status), tuple(Reason(reason) for reason in reasons))
    view = {
        "cbid": cbid,
        "livemode": False,
        "status": moved.status.value,
        "reasons": [reason.value for reason in moved.reasons],
        "verified_at": moved.verified_at and rfc3339(moved.verified_at),
        "expires_at": moved.expires_at and rfc3339(moved.expires_at),
    }
    show(view, field_lines(view), as_json=as_json)


@test_helpers.command("trigger")
@click.argument("account")
@click.argument("type_", metavar="TYPE", type=_TYPES)
@click.option(
    "--object", "object_id", help="The id of the object of the event. Left out: a made-up id."
)
@command
def trigger(account: str, type_: str, *, object_id: str | None, as_json: bool) -> None:
    """Write an event of any TYPE in the sandbox of ACCOUNT, and print the event's id.

    The event is listed and sent to webhook endpoints like any other, with `"triggered": true`.
    """
    view = _trigger(account, EventType(type_), object_id)
    show(view.message, view.id, as_json=as_json)


@test_helpers.group()
def fault() -> None:
    """Simulated faults of the identity provider in the sandbox."""


@fault.command("show")
@click.argument("account")
@command
def show_fault(account: str, *, as_json: bool) -> None:
    """Show the planned fault of ACCOUNT, and for how many calls."""
    _show_fault(_planned(account), as_json=as_json)


@fault.command("set")
@click.argument("account")
@click.argument("kind", metavar="FAULT", type=_FAULTS)
@click.option(
    "--calls",
    type=click.IntRange(1, CALLS_MAX),
    help="The number of calls. Left out: all calls, until cleared.",
)
@click.option(
    "--delay", type=Duration(), help="The response time of each call, 15s at most. Left out: 0."
)
@command
def set_fault(
    account: str, kind: str, *, calls: int | None, delay: timedelta | None, as_json: bool
) -> None:
    """Let verifications in the sandbox of ACCOUNT fail with FAULT; replaces a planned fault."""
    delay = delay or timedelta(0)
    if delay > DELAY_MAX:
        msg = f"--delay can be at most {DELAY_MAX // _SECOND} seconds."
        raise InvalidArgument(msg)
    plan = FaultPlan(fault=Fault(kind), calls=calls, delay=delay)
    _plan(account, plan)
    _show_fault(plan, as_json=as_json)


@fault.command("clear")
@click.argument("account")
@command
def clear_fault(account: str, *, as_json: bool) -> None:
    """Remove the planned fault of ACCOUNT."""
    _clear(account)
    _show_fault(None, as_json=as_json)


@with_room(SandboxRoom)
async def _read(room: SandboxRoom, account: str) -> ClockView:
    return await clocks.show(room, await _id(room, account))


@with_room(SandboxRoom)
async def _advance(
    room: SandboxRoom, account: str, by: timedelta | None, to: datetime | None
) -> ClockView:
    return await clocks.advance(room, await _id(room, account), by=by, to=to)


@with_room(SandboxRoom)
async def _reset(room: SandboxRoom, account: str) -> ClockView:
    return await clocks.reset(room, await _id(room, account))


@with_room(SandboxRoom)
async def _move(
    room: SandboxRoom,
    account: str,
    cbid: str,
    status: BuyerStatus,
    reasons: tuple[Reason, ...],
) -> BuyerStatusView:
    return await helpers.move_buyer(room, await _id(room, account), cbid, status, reasons)


@with_room(SandboxRoom)
async def _trigger(
    room: SandboxRoom, account: str, type_: EventType, object_id: str | None
) -> EventView:
    return await helpers.trigger_event(room, await _id(room, account), type_, object_id)


@with_room(SandboxRoom)
async def _planned(room: SandboxRoom, account: str) -> FaultPlan | None:
    account_id = await _id(room, account)
    return await room.buyers.database.read(sandbox_faults.planned_fault, account_id)


@with_room(SandboxRoom)
async def _plan(room: SandboxRoom, account: str, plan: FaultPlan) -> None:
    await sandbox_faults.plan_fault(room.buyers, await _id(room, account), plan)


@with_room(SandboxRoom)
async def _clear(room: SandboxRoom, account: str) -> None:
    account_id = await _id(room, account)
    await room.buyers.database.write(sandbox_faults.clear_fault, account_id)


async def _id(room: SandboxRoom, account: str) -> str:
    return (await find_account(room.buyers.access, account)).id


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_rfc3339(text)
    except ValueError as error:
        msg = f"--to: {error}."
        raise InvalidArgument(msg) from None


def _show_clock(view: ClockView, *, as_json: bool) -> None:
    shown = {
        "now": rfc3339(view.now),
        "real_time": rfc3339(view.real_time),
        "ahead_seconds": view.ahead // _SECOND,
    }
    show(shown, field_lines(shown), as_json=as_json)


def _show_fault(plan: FaultPlan | None, *, as_json: bool) -> None:
    view = {
        "fault": plan and plan.fault.value,
        "calls": plan and plan.calls,
        "delay_seconds": plan and plan.delay // _SECOND,
    }
    show(view, field_lines(view), as_json=as_json)
