"""`countersign test`: change an account's sandbox, as test keys can through the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

import click
from msgspec import Struct, to_builtins

from countersign.access.account import find_account
from countersign.buyers import sandbox as faults
from countersign.buyers.model import BuyerStatus
from countersign.buyers.sandbox import CALLS_MAX, DELAY_SECONDS_MAX, Fault, PlannedFault
from countersign.cli.support import Duration, command, field_lines, say, show, with_room
from countersign.errors import InvalidArgument
from countersign.events.model import EventType
from countersign.instant import parse_rfc3339, rfc3339
from countersign.reason import Reason
from countersign.sandbox.helpers import (
    SandboxRoom,
    advance_clock,
    move_buyer,
    reset_clock,
    show_clock,
    trigger_event,
)

T = TypeVar("T")

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
    _show(_do(account, show_clock), as_json=as_json)


@clock.command("advance")
@click.argument("account")
@click.option("--by", type=Duration(), help="The time to advance by, such as 30d.")
@click.option("--to", "to_text", help="The time to advance to, such as 2027-01-01T00:00:00Z.")
@command
def advance(account: str, *, by: timedelta | None, to_text: str | None, as_json: bool) -> None:
    """Advance the test clock of ACCOUNT; every running server uses it afterwards."""
    to = _time(to_text)
    view = _do(account, lambda room, account_id: advance_clock(room, account_id, by=by, to=to))
    say("Events were written for sandbox buyers that have expired.")
    _show(view, as_json=as_json)


@clock.command("reset")
@click.argument("account")
@command
def reset(account: str, *, as_json: bool) -> None:
    """Reset the test clock of ACCOUNT to real time.

    Existing objects keep their times, even times in the future.
    """
    _show(_do(account, reset_clock), as_json=as_json)


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
    new, why = BuyerStatus(status), tuple(Reason(reason) for reason in reasons)
    moved = _do(account, lambda room, account_id: move_buyer(room, account_id, cbid, new, why))
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
    kind = EventType(type_)
    view = _do(account, lambda room, account_id: trigger_event(room, account_id, kind, object_id))
    show(view.message, view.id, as_json=as_json)


@test_helpers.group()
def fault() -> None:
    """Simulated faults of the identity provider in the sandbox."""


@fault.command("show")
@click.argument("account")
@command
def show_fault(account: str, *, as_json: bool) -> None:
    """Show the planned fault of ACCOUNT, and for how many calls."""
    planned = _do(account, lambda room, account_id: faults.planned_fault(room.buyers, account_id))
    _show(planned, as_json=as_json)


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
    seconds = int(delay.total_seconds()) if delay else 0
    if seconds > DELAY_SECONDS_MAX:
        raise InvalidArgument(f"--delay can be at most {DELAY_SECONDS_MAX} seconds.")
    plan = PlannedFault(fault=Fault(kind), calls=calls, delay_seconds=seconds)
    _do(account, lambda room, account_id: faults.plan_fault(room.buyers, account_id, plan))
    _show(plan, as_json=as_json)


@fault.command("clear")
@click.argument("account")
@command
def clear_fault(account: str, *, as_json: bool) -> None:
    """Remove the planned fault of ACCOUNT."""
    cleared = _do(account, lambda room, account_id: faults.clear_fault(room.buyers, account_id))
    _show(cleared, as_json=as_json)


@with_room(SandboxRoom)
async def _do(
    room: SandboxRoom, account: str, act: Callable[[SandboxRoom, str], Awaitable[T]]
) -> T:
    """Do this in the sandbox of the account of this id or name."""
    return await act(room, (await find_account(room.buyers.access, account)).id)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_rfc3339(text)
    except ValueError as error:
        raise InvalidArgument(f"--to: {error}.") from None


def _show(shown: Struct, *, as_json: bool) -> None:
    view = to_builtins(shown)
    show(view, field_lines(view), as_json=as_json)
