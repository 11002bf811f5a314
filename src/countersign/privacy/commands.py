"""`erase`, `holds` and `retention`: erase personal data, and prevent that it is erased."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from countersign.access.account import Account, find_account, refuse_closed
from countersign.access.reach import DEPLOYMENT
from countersign.cli.deployment import with_room
from countersign.config import load_settings
from countersign.errors import OnHold
from countersign.instant import rfc3339
from countersign.privacy.closing import Closing, close, plan_closing
from countersign.privacy.erase import destroy_copies, erase_planned, kept_of_plan, plan_erasure
from countersign.privacy.held import HeldRecords
from countersign.privacy.model import Due, ErasureReason, Plan
from countersign.privacy.requests import (
    carry_out_request,
    carry_out_waiting,
    requested,
)
from countersign.privacy.retention import list_due
from countersign.privacy.room import Privacy
from countersign_evidence.cli.support import command, confirm, say, show

_PROGRESS_EVERY = 100
_ENDS = ("keys", "webhook_endpoints", "origins", "checkout_sessions")
_STAYS = ("records", "records_with_personal_data")


@click.command()
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
@command
def erase(
    subject: str,
    reason: str,
    *,
    with_acknowledgments: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Permanently erase the personal data of an acknowledgment, a verification or a buyer.

    The record, its log entry and every proof stay valid. The erasure itself is recorded.
    """
    plan = with_room(Privacy)(plan_erasure)(
        subject, DEPLOYMENT, with_acknowledgments=with_acknowledgments
    )
    ids = [record.record_id for record in plan.records]
    if not ids and not plan.buyer:
        say(f"{subject} was already erased.")
        show({"id": subject, "records": ids, "erased": True}, "", as_json=as_json)
        return
    if plan.kept_until is not None:
        say(f"warning: the retention period ends at {rfc3339(plan.kept_until)}.")
    held = with_room(Privacy)(kept_of_plan)(plan)
    going = [id_ for id_ in ids if id_ not in held]
    what = _what(subject, going, buyer=plan.buyer is not None)
    copies: dict[str, bool] = {}
    if dry_run:
        say(f"Would be erased: {what}.")
    else:
        confirm(f"Erase {what}? This cannot be undone.", yes=yes)
        held, destroyed = _erase(plan, ErasureReason(reason))
        going, copies = [id_ for id_ in ids if id_ not in held], {"copies_remain": not destroyed}
        say(f"Erased: {_what(subject, going, buyer=plan.buyer is not None)}.")
    if held:
        say(_kept_sentence(held))
    if copies:
        _say_what_can_bring_it_back(remain=copies["copies_remain"])
    views = [{"id": id_, "hold_id": hold} for id_, (hold, _) in sorted(held.items())]
    result = {"id": subject, "records": going, "erased": not dry_run, "kept": views, **copies}
    show(result, "\n".join(going), as_json=as_json)


@click.command("close")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def close_account_command(account: str, *, yes: bool, as_json: bool) -> None:
    """Close ACCOUNT for good: keys, webhook endpoints, origins, credentials and open sessions end.

    Its records stay for evidence, with their proofs, their holds and their periods, and operators
    find them as before.
    """
    found, plan = _closing(account)
    say(f"Of {found.name} ({found.id}) end: " + _counted(plan, _ENDS) + ".")
    say("Stay for evidence: " + _counted(plan, _STAYS) + ".")
    confirm(f"Close {found.name}? This cannot be undone.", yes=yes)
    closed = with_room(Privacy)(lambda room: room.access.database.write(close, room, found.id))()
    assert closed.closed_at is not None  # noqa: S101 - it was closed
    say(f"{closed.name} is closed.")
    view = {"account_id": closed.id, "name": closed.name, "closed_at": rfc3339(closed.closed_at)}
    show(view | asdict(plan), closed.id, as_json=as_json)


@with_room(Privacy)
async def _closing(privacy: Privacy, account: str) -> tuple[Account, Closing]:
    found = refuse_closed(await find_account(privacy.access, account))
    return found, await privacy.access.database.scan(plan_closing, found.id)


def _counted(plan: Closing, names: Sequence[str]) -> str:
    return ", ".join(f"{getattr(plan, name)} {name.replace('_', ' ')}" for name in names)


def _what(subject: str, ids: Sequence[str], *, buyer: bool) -> str:
    """What is erased, as it can stand in a letter."""
    records = f"{len(ids)} record{'' if len(ids) == 1 else 's'}"
    if not buyer:
        return f"the personal data of {subject} ({records})"
    person = f"the buyer {subject}, with all its identifiers"
    return f"{person}, and the personal data of {records}" if ids else person


def _kept_sentence(kept: HeldRecords) -> str:
    holds = sorted({hold for hold, _ in kept.values()})
    return (
        f"Kept by legal hold ({', '.join(holds)}): the personal data of {', '.join(sorted(kept))}, "
        "which orders on hold need. It is erased when the hold is released."
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
@command
def run(*, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase personal data whose retention period has ended, except data on hold.

    Acknowledgments are kept for the `retention_years` of their notice version; without it,
    permanently. The evidence of a live verification is kept for COUNTERSIGN_EVIDENCE_DAYS after the
    verification is no longer valid, or for COUNTERSIGN_FAILED_EVIDENCE_DAYS if it did not succeed.
    Buyers stay verified.

    Buyers who have asked to be erased are erased, too.
    """
    found, asked = _due(), _requested()
    free = [due for due in found if due.hold is None]
    lines = [
        f"{due.record_id}  ended {rfc3339(due.retention_ended_at)}"
        + (f"  on hold: {due.hold}" if due.hold else "")
        for due in found
    ]
    say(f"{len(found)} are due, {len(found) - len(free)} of them on hold.")
    if asked:
        say(f"{len(asked)} buyers have asked to be erased.")
    erased, outcomes = list[str](), dict[str, str]()
    waited = [] if dry_run else with_room(Privacy)(carry_out_waiting)(DEPLOYMENT)
    if waited:
        say(f"Erased, as was asked before: the personal data of {', '.join(waited)}.")
    if (free or asked) and not dry_run:
        what = f"the disclosures of {len(free)} records, and {len(asked)} buyers"
        confirm(f"Erase {what}? This cannot be undone.", yes=yes)
        outcomes = _carry_out(asked)
        erased, destroyed = _erase_due(free)
        _say_what_can_bring_it_back(remain=not destroyed)
        if len(erased) < len(free):
            say(
                f"{len(erased)} were erased; {len(free) - len(erased)} were put on hold in the "
                "meantime."
            )
    views = [
        {"id": d.record_id, "retention_ended_at": rfc3339(d.retention_ended_at), "hold_id": d.hold}
        for d in found
    ]
    requests = [{"cbid": cbid, "outcome": outcomes.get(cbid)} for cbid in asked]
    result = {"due": views, "erased": [*waited, *erased], "requested": requests}
    show(result, "\n".join(lines), as_json=as_json)


@with_room(Privacy)
async def _requested(privacy: Privacy) -> Sequence[str]:
    asked = await privacy.access.database.read(requested, privacy.access.secret, DEPLOYMENT)
    return [one.cbid for one in asked]


@with_room(Privacy)
async def _carry_out(privacy: Privacy, asked: Sequence[str]) -> dict[str, str]:
    return {cbid: (await carry_out_request(privacy, cbid, DEPLOYMENT)).value for cbid in asked}


@with_room(Privacy)
async def _erase(privacy: Privacy, plan: Plan, reason: ErasureReason) -> tuple[HeldRecords, bool]:
    kept = await erase_planned(privacy, plan, reason)
    return kept, await destroy_copies(privacy.access.database)


@with_room(Privacy)
async def _due(privacy: Privacy) -> list[Due]:
    return [due async for due in list_due(privacy, DEPLOYMENT)]


@with_room(Privacy)
async def _erase_due(privacy: Privacy, found: Sequence[Due]) -> tuple[list[str], bool]:
    erased = []
    for number, due in enumerate(found, 1):
        plan = await plan_erasure(privacy, due.record_id, DEPLOYMENT)
        try:
            await erase_planned(privacy, plan, ErasureReason.RETENTION)
        except OnHold as error:  # placed while this was running
            say(f"{due.record_id}: {error.message}")
        else:
            erased.append(due.record_id)
        if number % _PROGRESS_EVERY == 0:
            say(f"{number} of {len(found)}")
    return erased, await destroy_copies(privacy.access.database)
