"""`countersign dossier`: write the evidence of one order."""

from __future__ import annotations

from pathlib import Path

import click

from countersign.access.audit import AuditAction
from countersign.acknowledgments.commands import SEALING_SECONDS, operator_of, say_how_to_check
from countersign.acknowledgments.room import Acknowledgments
from countersign.cli.deployment import with_room
from countersign.dossiers.dossier import dossier as make_dossier
from countersign.dossiers.orders_sql import find_order_owner
from countersign.dossiers.schemas import DossierQuery
from countersign.errors import UnknownSubject
from countersign_evidence.cli.files import written
from countersign_evidence.cli.support import command, show


@click.command()
@click.argument("order_id", metavar="ID")
@click.option("--disclose", help="Personal fields to show, separated by commas, or `none`.")
@click.option("--size", type=click.IntRange(min=1), help="Size of the checkpoint to prove it by.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write. Left out: ID-dossier.zip.",
)
@command
@with_room(Acknowledgments)
async def dossier(
    room: Acknowledgments,
    order_id: str,
    disclose: str | None,
    size: int | None,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write all evidence of one order: the file to give to a court.

    ID is an acknowledgment or a clearance, of any account.
    """
    await room.log.seal.settle()
    found = await room.log.database.read(find_order_owner, order_id)
    if found is None:
        raise UnknownSubject(f"The acknowledgment or clearance {order_id!r} does not exist.")
    account_id, mode = found
    await room.log.access.audit.note(
        AuditAction.DOSSIER_WRITTEN, order_id, account_id=account_id, disclose=disclose
    )
    who = operator_of(account_id, mode)
    data = await make_dossier(
        room, who, order_id, DossierQuery(disclose=disclose, size=size), SEALING_SECONDS
    )
    target = output or Path(f"{order_id}-dossier.zip")
    with written(target) as file:
        file.write(data)
    say_how_to_check(target, mode)
    show({"id": order_id, "output": str(target), "bytes": len(data)}, str(target), as_json=as_json)
