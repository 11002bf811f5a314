"""`countersign test`: change an account's sandbox, as test keys can through the API."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import click

from countersign.access.account import Account, find_account
from countersign.access.sandbox_state import CALLS_MAX, DELAY_MAX, Fault, FaultPlan
from countersign.access.test_clocks import ClockView
from countersign.bootstrap import Deployment
from countersign.buyers.model import BuyerStatus, Standing
from countersign.cli.support import Duration, command, field_lines, say, show, with_deployment
from countersign.errors import InvalidArgument
from countersign.events.model import EventType, EventView
from countersign.instant import parse_rfc3339, rfc3339
from countersign.reason import Reason

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
    standing = _move(
        account, cbid, BuyerStatus(status), tuple(Reason(reason) for reason in reasons)
    )
    view = {
        "cbid": cbid,
        "livemode": False,
        "status": standing.status.value,
        "reasons": [reason.value for reason in standing.reasons],
        "verified_at": standing.verified_at and rfc3339(standing.verified_at),
        "expires_at": standing.expires_at and rfc3339(standing.expires_at),
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


@with_deployment
async def _read(deployment: Deployment, account: str) -> ClockView:
    return await deployment.sandbox.clock.show((await _account(deployment, account)).id)


@with_deployment
async def _advance(
    deployment: Deployment, account: str, by: timedelta | None, to: datetime | None
) -> ClockView:
    account_id = (await _account(deployment, account)).id
    return await deployment.sandbox.clock.advance(account_id, by=by, to=to)


@with_deployment
async def _reset(deployment: Deployment, account: str) -> ClockView:
    return await deployment.sandbox.clock.reset((await _account(deployment, account)).id)


@with_deployment
async def _move(
    deployment: Deployment,
    account: str,
    cbid: str,
    status: BuyerStatus,
    reasons: tuple[Reason, ...],
) -> Standing:
    account_id = (await _account(deployment, account)).id
    return await deployment.sandbox.move_buyer(account_id, cbid, status, reasons)


@with_deployment
async def _trigger(
    deployment: Deployment, account: str, type_: EventType, object_id: str | None
) -> EventView:
    account_id = (await _account(deployment, account)).id
    return await deployment.sandbox.trigger_event(account_id, type_, object_id)


@with_deployment
async def _planned(deployment: Deployment, account: str) -> FaultPlan | None:
    return await deployment.buyers.faults.planned((await _account(deployment, account)).id)


@with_deployment
async def _plan(deployment: Deployment, account: str, plan: FaultPlan) -> None:
    await deployment.buyers.faults.plan((await _account(deployment, account)).id, plan)


@with_deployment
async def _clear(deployment: Deployment, account: str) -> None:
    await deployment.buyers.faults.clear((await _account(deployment, account)).id)


async def _account(deployment: Deployment, account: str) -> Account:
    return await find_account(deployment.access, account)


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
