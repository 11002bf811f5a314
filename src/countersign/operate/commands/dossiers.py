"""`countersign dossier`, `acknowledgments certificate`, `subject export`: write one file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from countersign.base.cli import A_FILE, room_command
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.dossiers.dossier import DossierQuery, pdf_of
from countersign.core.dossiers.dossier import dossier as make_dossier
from countersign.core.privacy.export import all_about, packed
from countersign.core.privacy.room import Privacy
from countersign.hosted.toolkit.screens import LOCALES
from countersign.operate.commands.acknowledgments import (
    SEALING_SECONDS,
    reader_of,
    say_how_to_check,
)
from countersign_evidence.cli.files import written
from countersign_evidence.cli.support import show

_DISCLOSE: Final = click.option(
    "--disclose", help="Personal fields to show, separated by commas, or `none`."
)


@click.command()
@click.argument("order_id", metavar="ID")
@_DISCLOSE
@click.option("--size", type=click.IntRange(min=1), help="Size of the checkpoint to prove it by.")
@click.option("--output", type=A_FILE, help="The file to write. Left out: ID-dossier.zip.")
@room_command(Acknowledgments)
async def dossier(
    room: Acknowledgments,
    order_id: str,
    disclose: str | None,
    size: int | None,
    output: Path | None,
) -> None:
    """Write all evidence of one order: the file to give to a court.

    ID is an acknowledgment or a clearance, of any account.
    """
    query = DossierQuery(disclose=disclose, size=size)
    data, mode = await _made(room, order_id, query, AuditAction.DOSSIER_WRITTEN)
    target = output or Path(f"{order_id}-dossier.zip")
    _write(order_id, data, target)
    say_how_to_check(target, mode)


@click.command("certificate")
@click.argument("ack_id", metavar="ACK_ID")
@_DISCLOSE
@click.option("--output", type=A_FILE, help="The file to write. Left out: ACK_ID.pdf.")
@room_command(Acknowledgments)
async def certificate(
    room: Acknowledgments, ack_id: str, disclose: str | None, output: Path | None
) -> None:
    """Write the certificate of an acknowledgment: a PDF to read, print and sign.

    It is the certificate in the dossier, which also contains the evidence to verify.
    """
    query = DossierQuery(disclose=disclose)
    made, _ = await _made(room, ack_id, query, AuditAction.CERTIFICATE_WRITTEN)
    _write(ack_id, pdf_of(made), output or Path(f"{ack_id}.pdf"))


@click.group()
def subject() -> None:
    """Data subject access requests of buyers."""


@subject.command("export")
@click.argument("cbid")
@click.option("--reason", default="asked by the buyer", help="Why, for the audit.")
@click.option("--language", type=click.Choice(LOCALES), default="en", help="Of the page.")
@click.option("--output", type=A_FILE, help="The file to write. Left out: CBID.zip.")
@room_command(Privacy)
async def export(
    privacy: Privacy, cbid: str, *, reason: str, language: str, output: Path | None
) -> None:
    """Export all data of a buyer, of every account, to a ZIP file for the buyer.

    It has a page to read, index.html, and the same data as JSON, data.json. The audit notes it.
    """
    data = await packed(await all_about(privacy, cbid, DEPLOYMENT), language)
    await privacy.access.audit.note(AuditAction.SUBJECT_EXPORTED, cbid, reason=reason)
    _write(cbid, data, output or Path(f"{cbid}.zip"))


async def _made(
    room: Acknowledgments, order_id: str, query: DossierQuery, action: AuditAction
) -> tuple[bytes, Mode]:
    """The dossier of an order of any account, and its mode; the audit says that it was made."""
    who = await reader_of(room, order_id)
    await room.log.access.audit.note(
        action, order_id, who.reach, account_id=who.account_id, disclose=query.disclose
    )
    return await make_dossier(room, who, order_id, query, SEALING_SECONDS), who.mode


def _write(order_id: str, data: bytes, target: Path) -> None:
    with written(target) as file:
        file.write(data)
    show({"id": order_id, "output": str(target), "bytes": len(data)}, str(target))
