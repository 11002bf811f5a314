"""`countersign acknowledgments list`, `show`: find an order and read its acknowledgment."""

from __future__ import annotations

import click
import msgspec

from countersign.base.cli import A_MODE, with_room
from countersign.base.errors import InvalidArgument, UnknownSubject
from countersign.base.ids import ACKNOWLEDGMENT, is_id
from countersign.base.values import Mode, rfc3339
from countersign.core.access.account import all_accounts, find_account
from countersign.core.access.audit import AuditAction
from countersign.core.access.key import AccountReach
from countersign.core.acknowledgments.find import find_many, find_order_owner
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.routes import get_acknowledgment
from countersign.core.acknowledgments.schemas import AcknowledgmentsQuery
from countersign.operate.commands.acknowledgments import operator_of
from countersign_evidence.cli.support import command, field_lines, show, show_all

_LIMIT = 100
_ALL = "acknowledgments"
"""What the audit names in the place of an account."""


@click.command("list")
@click.option("--order-reference", help="What the vendor calls the order.")
@click.option("--session", help="The vendor's checkout session.")
@click.option("--account", help="Id or name. Left out: all accounts.")
@click.option("--mode", type=A_MODE, help="Left out: both.")
@command
@with_room(Acknowledgments)
async def list_command(
    room: Acknowledgments,
    order_reference: str | None,
    session: str | None,
    account: str | None,
    mode: str | None,
    *,
    as_json: bool,
) -> None:
    """Find the acknowledgments of an order, newest first: of each account at most 100."""
    if order_reference is None and session is None:
        raise InvalidArgument("Give --order-reference or --session.")
    for option, text in (("--order-reference", order_reference), ("--session", session)):
        # What is not UTF-8 comes with surrogates.
        if text is not None and (not text or any("\ud800" <= c <= "\udfff" for c in text)):
            raise InvalidArgument(f"{option} must be UTF-8 text that is not empty.")
    search = AcknowledgmentsQuery(order_reference=order_reference, session_id=session, limit=_LIMIT)
    access = room.log.access
    if account is None:
        subject, owners = _ALL, await access.database.read(all_accounts)
    else:
        owners = [await find_account(access, account)]
        subject = owners[0].id
    await access.audit.note(AuditAction.ACKNOWLEDGMENTS_LISTED, subject, mode=mode)
    found = [
        {
            "ack_id": one.ack_id,
            "account": owner.name,
            "mode": of_mode.value,
            "accepted_at": rfc3339(one.accepted_at),
            "order_reference": one.order_reference,
            "session_id": one.session_id,
            "clearance_id": one.clearance_id,
        }
        for owner in owners
        for of_mode in ([Mode(mode)] if mode else Mode)
        for one in (await find_many(room, operator_of(owner.id, of_mode), search))[0]
    ]
    lines = ["  ".join(value or "-" for value in one.values()) for one in found]
    show_all(found, lines, "No acknowledgment was found.", as_json=as_json)


@click.command("show")
@click.argument("ack_id")
@command
@with_room(Acknowledgments)
async def show_command(room: Acknowledgments, ack_id: str, *, as_json: bool) -> None:
    """Show an acknowledgment of any account, with its personal fields."""
    is_one = is_id(ACKNOWLEDGMENT, ack_id)  # a clearance has an owner, too
    found = await room.log.database.read(find_order_owner, ack_id) if is_one else None
    if found is None:
        raise UnknownSubject(f"The acknowledgment {ack_id!r} does not exist.")
    account_id, mode = found
    await room.log.access.audit.note(
        AuditAction.ACKNOWLEDGMENT_SHOWN, ack_id, AccountReach(*found), account_id=account_id
    )
    shown = await get_acknowledgment(room, operator_of(account_id, mode), ack_id)
    view = {"account_id": account_id, **msgspec.to_builtins(shown)}
    show(view, field_lines(view), as_json=as_json)
