"""`erase`, `accounts close` and `retention`: erase personal data, after showing what goes."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec import to_builtins

from countersign.base.cli import log_to_standard_error, room_command, with_room
from countersign.base.config import load_settings
from countersign.base.errors import InvalidArgument, OnHold
from countersign.base.values import rfc3339
from countersign.core.access.account import find_account
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.ending import end_evidence, list_ending, set_evidence_end
from countersign.core.privacy.erase import destroy_copies
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import requested
from countersign.core.privacy.retention import Retained, list_due, retain
from countersign.core.privacy.retention import run as keep_retaining
from countersign.core.privacy.room import Privacy
from countersign.staff.acts.accounts import ClosedAccount, close_account, preview_closing
from countersign.staff.acts.erasures import (
    ErasureDone,
    ErasureOrder,
    ErasurePreview,
    due_view,
    erase,
    preview_erasure,
)
from countersign_evidence.cli.support import command, confirm, say, show

_ENDS = ("keys", "webhook_endpoints", "origins", "checkout_sessions")
_STAYS = ("records", "records_with_personal_data")


@click.command("erase")
@click.argument("subject", metavar="ID")
@click.option(
    "--reason",
    type=click.Choice([reason.value for reason in ErasureReason]),
    default=ErasureReason.REQUEST.value,
    show_default=True,
    help="Why, for the record of the erasure.",
)
@click.option(
    "--with-acknowledgments",
    is_flag=True,
    help="For a buyer: also erase the acknowledgments that name the buyer, in every account.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@room_command(Privacy)
async def erase_command(
    privacy: Privacy, subject: str, *, reason: str, with_acknowledgments: bool, dry_run: bool
) -> None:
    """Permanently erase the personal data of an acknowledgment, a verification or a buyer.

    The record, its log entry and every proof stay valid. The erasure itself is recorded.
    """
    naming, why = with_acknowledgments, ErasureReason(reason)
    wanted = ErasureOrder(subject=subject, with_acknowledgments=naming, reason=why)
    plan = await preview_erasure(privacy, DEPLOYMENT, wanted)
    if plan.prevented_by is not None:
        raise OnHold(plan.prevented_by)
    found: ErasurePreview | ErasureDone = plan
    if plan.retention_ends_at is not None:
        say(f"warning: the retention period ends at {rfc3339(plan.retention_ends_at)}.")
    if not plan.records and not plan.buyer:
        say(f"{subject} was already erased.")
    elif dry_run:
        say(f"Would be erased: {_what(found)}.")
    else:
        confirm(f"Erase {_what(found)}? This cannot be undone.")
        found = await erase(privacy, DEPLOYMENT, wanted)
        say(f"Erased: {_what(found)}.")
    if found.kept:
        say(_kept_sentence(found))
    if isinstance(found, ErasureDone):
        _say_what_can_bring_it_back(remain=found.copies_remain)
    show(to_builtins(found), "\n".join(found.records))


@click.command("close")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@room_command(Privacy)
async def close_account_command(privacy: Privacy, account: str) -> None:
    """Close ACCOUNT for good: keys, webhook endpoints, origins, credentials and open sessions end.

    Its records stay for evidence, with their proofs, their holds and their periods, and operators
    find them as before.
    """
    database = privacy.access.database
    plan = await database.scan(preview_closing, DEPLOYMENT, account)
    say(f"Of {plan.name} ({plan.account_id}) end: {_counted(plan, _ENDS)}.")
    say(f"Stay for evidence: {_counted(plan, _STAYS)}.")
    confirm(f"Close {plan.name}? This cannot be undone.")
    closed = await database.write(close_account, privacy, DEPLOYMENT, account)
    say(f"{closed.name} is closed.")
    show(to_builtins(closed), closed.account_id)


def _counted(plan: ClosedAccount, names: Sequence[str]) -> str:
    return ", ".join(f"{getattr(plan, name)} {name.replace('_', ' ')}" for name in names)


def _what(found: ErasurePreview | ErasureDone) -> str:
    """The erased data, in words for a letter."""
    if not found.buyer:
        return f"the personal data of {found.subject} ({found.erased})"
    person = f"the buyer {found.subject}, with all its identifiers"
    return f"{person}, and the personal data of {found.erased}" if found.erased else person


def _kept_sentence(found: ErasurePreview | ErasureDone) -> str:
    holds = sorted({one.hold_id for one in found.kept})
    ids = ", ".join(one.record_id for one in found.kept)
    return (
        f"Kept by legal hold ({', '.join(holds)}): the personal data of {found.still_kept} "
        f"({ids}), which orders on hold need. It is erased when the hold is released."
    )


def _say_what_can_bring_it_back(*, remain: bool) -> None:
    if load_settings().database_url is not None:
        say(
            "Older dumps of the table shred_keys, physical backups and archived WAL still make "
            "the data readable: delete those made before this."
        )
        return
    say(
        "Older copies of shred-keys.db still make the data readable: make a new backup, and "
        "delete all copies of shred-keys.db but the newest."
    )
    if remain:
        say(
            "warning: countersign.db-wal still contains copies, since another process reads the "
            "database (a backup, a shell). When that process has ended, a running server "
            "empties the file within ten minutes. `countersign vault status` shows whether "
            "copies remain."
        )


@click.group()
def retention() -> None:
    """Retention periods of personal data."""


@retention.command("run")
@click.option("--dry-run", is_flag=True, help="Only show what is due.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@room_command(Privacy)
async def run(privacy: Privacy, *, dry_run: bool) -> None:
    """Erase personal data whose retention period has ended, except data on hold.

    Acknowledgments are kept for the `retention_years` of their notice version; without it,
    permanently. The evidence of a live verification is kept for COUNTERSIGN_EVIDENCE_DAYS after the
    verification is no longer valid, or for COUNTERSIGN_FAILED_EVIDENCE_DAYS if it did not succeed.
    Buyers stay verified.

    Buyers are erased who have asked for it, or whose last check ended a year ago and who have no
    order left; of a revoked one the revocation stays.

    A server with the embedded database does the same by itself, and so does `retention keep`.
    """
    found = [due_view(due) async for due in list_due(privacy, DEPLOYMENT)]
    asked = await privacy.access.database.scan(requested, privacy.access.secret, DEPLOYMENT)
    held = sum(due.hold_id is not None for due in found)
    lines = [
        f"{due.record_id}  ended {rfc3339(due.retention_ends_at)}"
        + (f"  on hold: {due.hold_id}" if due.hold_id else "")
        for due in found
    ]
    say(f"{len(found)} are due, {held} of them on hold; {len(asked)} buyers have asked for it.")
    done = Retained([], {}, {})
    if not dry_run:
        confirm(f"Erase {len(found) - held + len(asked)}? This cannot be undone.")
        done = await retain(privacy)
    if done.erased or done.requested:
        say(f"{len(done.erased)} were erased, {len(done.failed)} could not be.")
        _say_what_can_bring_it_back(remain=not await destroy_copies(privacy.access.database))
    requests = [{"cbid": one.cbid, "outcome": done.requested.get(one.cbid)} for one in asked]
    result = {"due": to_builtins(found), "erased": done.erased, "requested": requests}
    show(result | {"failed": [*done.failed]}, "\n".join(lines))
    for failure in done.failed.values():
        raise failure


@retention.command("keep")
@room_command(Privacy)
async def keep(privacy: Privacy) -> None:
    """Run retention every hour until stopped, for PostgreSQL: servers may not erase there.

    It takes no requests from the network. Give it a role of its own: `database grants --retention`.
    """
    log_to_standard_error()
    await keep_retaining(privacy)


@click.command("evidence-end")
@click.argument("account")
@click.option("--years", type=int, help="End it so many years after each order.")
@click.option("--never", is_flag=True, help="Keep it without an end, which is the default.")
@command
def evidence_end_command(account: str, *, years: int | None, never: bool) -> None:
    """Set when the evidence of ACCOUNT (id or name) ends, or show it.

    No notice may ask for more years than are given. Nothing is deleted automatically: `retention
    end` lists orders whose evidence has reached its end, and deletes them.
    """
    if never and years is not None:
        raise InvalidArgument("Give --years or --never, not both.")
    if never or years is not None:
        found = with_room(Privacy)(set_evidence_end)(account, years)
    else:
        found = with_room(Privacy)(lambda room: find_account(room.access, account))()
    said = f"{found.evidence_years} years" if found.evidence_years is not None else "never"
    show({"account_id": found.id, "evidence_years": found.evidence_years}, said)


@click.command("end")
@click.option("--dry-run", is_flag=True, help="Only show the orders that have reached their end.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@room_command(Privacy)
async def end_command(privacy: Privacy, *, dry_run: bool) -> None:
    """Delete the records of orders whose evidence has reached its end, except those on hold.

    Evidence has no end unless `accounts evidence-end` has set one. An order ends as a whole: when
    each of its records is that many years old, the `retention_years` of its notice are over, and no
    hold keeps any part of it. Its remaining personal data is erased first. Its entries in the
    log stay: the log verifies as before, and so does evidence that others hold.
    """
    found = [order async for order in list_ending(privacy)]
    free = [order for order in found if order.hold is None]
    records = sum(len(order.records) for order in free)
    lines = [
        f"{order.key}  {len(order.records)} records  ended {rfc3339(order.ended_at)}"
        + (f"  on hold: {order.hold}" if order.hold else "")
        for order in found
    ]
    say(f"{len(found)} orders have reached their end, {len(found) - len(free)} of them on hold.")
    ended = list[str]()

    def report(done: int) -> None:
        if len(free) > done:
            say(f"{done} of {len(free)}")

    if free and not dry_run:
        confirm(f"Delete {records} records of {len(free)} orders? This cannot be undone.")
        ended = await end_evidence(privacy, free, report)
        await destroy_copies(privacy.access.database)
        say(f"{len(ended)} of {records} records were deleted; their entries in the log stay.")
    views = [
        {
            "id": order.key,
            "account_id": order.account_id,
            "records": [record.record_id for record in order.records],
            "ended_at": rfc3339(order.ended_at),
            "hold_id": order.hold,
        }
        for order in found
    ]
    show({"due": views, "ended": ended}, "\n".join(lines))
