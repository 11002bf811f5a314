"""`accounts evidence-end` and `retention end`: when an account's evidence ends, and its end."""

from __future__ import annotations

import click

from countersign.base.cli import with_room
from countersign.base.errors import InvalidArgument
from countersign.base.values import rfc3339
from countersign.core.access.account import find_account
from countersign.core.privacy.ending import end_evidence, list_ending, set_evidence_end
from countersign.core.privacy.erase import destroy_copies
from countersign.core.privacy.room import Privacy
from countersign_evidence.cli.support import command, confirm, say, show


@click.command("evidence-end")
@click.argument("account")
@click.option("--years", type=int, help="End it so many years after each order.")
@click.option("--never", is_flag=True, help="Keep it without an end, which is the default.")
@command
def evidence_end_command(account: str, *, years: int | None, never: bool, as_json: bool) -> None:
    """Set when the evidence of ACCOUNT (id or name) ends, or show it.

    No notice may ask for more years than are given. Nothing ends by itself: `retention end` lists
    what has reached its end, and ends it.
    """
    if never and years is not None:
        raise InvalidArgument("Give --years or --never, not both.")
    if never or years is not None:
        found = with_room(Privacy)(set_evidence_end)(account, years)
    else:
        found = with_room(Privacy)(lambda room: find_account(room.access, account))()
    said = f"{found.evidence_years} years" if found.evidence_years is not None else "never"
    show({"account_id": found.id, "evidence_years": found.evidence_years}, said, as_json=as_json)


@click.command("end")
@click.option("--dry-run", is_flag=True, help="Only show what has reached its end.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
@with_room(Privacy)
async def end_command(privacy: Privacy, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete the records of orders whose evidence has reached its end, except those on hold.

    Evidence has no end unless `accounts evidence-end` has set one. An order ends as a whole: when
    each of its records is that many years old, the `retention_years` of its notice are over, and no
    hold keeps any of it. What is left of its personal data is erased first. Its entries in the log
    stay: the log verifies as before, and so does evidence that others hold.
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
        question = f"Delete {records} records of {len(free)} orders? This cannot be undone."
        confirm(question, yes=yes)
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
    show({"due": views, "ended": ended}, "\n".join(lines), as_json=as_json)
