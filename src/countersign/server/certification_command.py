"""`countersign certification`: a draft for the person who certifies."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import click

from countersign.access.audit import AuditAction
from countersign.acknowledgments.commands import operator_of
from countersign.acknowledgments.find import find_owner
from countersign.acknowledgments.proof import facts_of
from countersign.acknowledgments.room import Acknowledgments
from countersign.cli.support import command, say, show, with_room
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.evidence.bundle import BUNDLE_BYTES_MAX
from countersign.server.certification import KINDS, Exhibit, draft

_SEALING_SECONDS = 10.0


@click.command()
@click.argument("ack_id")
@click.option("--for", "kind", required=True, type=click.Choice(KINDS), help="The provision.")
@click.option(
    "--exhibit",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file that is offered, such as the bundle: its SHA-256 is filled in.",
)
@command
@with_room(Acknowledgments)
async def certification(
    room: Acknowledgments, ack_id: str, *, kind: str, file: Path | None, as_json: bool
) -> None:
    """Print a draft certification of one acknowledgment, for counsel's review.

    It is Markdown, filled in from this deployment. It is never signed, asserts nothing for a
    person, and shows no personal field.
    """
    exhibit = None if file is None else _exhibit(file)
    await room.log.seal.settle()
    found = await room.log.database.read(find_owner, ack_id)
    if found is None:
        raise UnknownSubject(f"The acknowledgment {ack_id!r} does not exist.")
    facts = await facts_of(room, operator_of(*found), ack_id, _SEALING_SECONDS)
    made = draft(kind, facts, exhibit)
    await room.log.access.audit.note(AuditAction.CERTIFICATION_DRAFTED, ack_id, provision=kind)
    view = {
        "ack_id": ack_id,
        "for": kind,
        "status": "draft for counsel's review, not signed",
        "facts": dict(made.facts),
        "blanks": list(made.blanks),
        "text": made.text,
    }
    say(f"This is a draft for counsel's review, with {len(made.blanks)} blanks. It is not signed.")
    show(view, made.text.rstrip("\n"), as_json=as_json)


def _exhibit(file: Path) -> Exhibit:
    try:
        with file.open("rb") as opened:
            data = opened.read(BUNDLE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidArgument(f"{file} cannot be read: {error.strerror}.") from None
    if len(data) > BUNDLE_BYTES_MAX:
        raise InvalidArgument(f"{file} has more than {BUNDLE_BYTES_MAX:,} bytes.")
    return Exhibit(file.name, sha256(data).hexdigest(), len(data))
