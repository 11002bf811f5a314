"""`countersign audit`, which is also `countersign buyers audit`: what operators did."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec

from countersign.access.audit import AuditEntry
from countersign.buyers.room import Buyers
from countersign.cli.support import command, json_text, say, show, with_room
from countersign.instant import rfc3339


@click.command()
@click.argument("subject", required=False)
@command
def audit(subject: str | None, *, as_json: bool) -> None:
    """List what operators did from the command line, oldest first: who, when, what and why."""
    found = _audit(subject)
    view = [msgspec.to_builtins(entry) | {"at": rfc3339(entry.at)} for entry in found]
    lines = [
        f"{rfc3339(entry.at)}  {entry.actor}  {entry.action}  {entry.subject}  "
        f"{json_text(entry.details)}"
        for entry in found
    ]
    if found or as_json:
        show(view, "\n".join(lines), as_json=as_json)
    else:
        say("No entries.")


@with_room(Buyers)
async def _audit(room: Buyers, subject: str | None) -> Sequence[AuditEntry]:
    return await room.admin.audit_log(subject)
