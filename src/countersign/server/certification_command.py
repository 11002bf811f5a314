"""`countersign certification`: a draft for the person who certifies."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import click

from countersign.base.cli import A_FILE, room_command
from countersign.base.errors import InvalidArgument
from countersign.base.values import ACKNOWLEDGMENT, Mode, is_id
from countersign.core.access.audit import AuditAction
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import stored
from countersign.core.acknowledgments.model import NO_FIELD
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.dossiers.dossier import DossierQuery, dossier
from countersign.core.log import logs_sql
from countersign.operate.commands.acknowledgments import SEALING_SECONDS, reader_of
from countersign.server.certification import (
    KINDS,
    CertificationFacts,
    Exhibit,
    ExhibitRecord,
    draft,
)
from countersign_evidence.cli.files import read_file
from countersign_evidence.cli.support import say, show
from countersign_evidence.dossier import CONTAINER_BYTES_MAX
from countersign_evidence.proof import parse_proof
from countersign_evidence.verification import Verdict, dossier_of, verify_file


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--for", "kind", required=True, type=click.Choice(KINDS), help="The provision.")
@click.option(
    "--exhibit",
    "file",
    type=A_FILE,
    help="The dossier or proof that is offered. It is verified, and has to hold the record; the "
    "SHA-256 of the file and of each record in it are filled in.",
)
@room_command(Acknowledgments)
async def certification(room: Acknowledgments, id_: str, *, kind: str, file: Path | None) -> None:
    """Print a draft certification of one record, for counsel's review.

    ID is an acknowledgment or a clearance. The draft is Markdown, filled in from this deployment.
    It is never signed, asserts nothing for a person, and shows no personal field.
    """
    who = await reader_of(room, id_)
    exhibit = None if file is None else await _exhibit(room, who.mode, id_, file)
    made = draft(kind, await _facts_of(room, who, id_), exhibit)
    await room.log.access.audit.note(
        AuditAction.CERTIFICATION_DRAFTED, id_, who.reach, provision=kind
    )
    view = {
        "id": id_,
        "for": kind,
        "status": "draft for counsel's review, not signed",
        "facts": dict(made.facts),
        "exhibit_records": [one._asdict() for one in exhibit.records] if exhibit else [],
        "blanks": list(made.blanks),
        "text": made.text,
    }
    say(f"This is a draft for counsel's review, with {len(made.blanks)} blanks. It is not signed.")
    show(view, made.text.rstrip("\n"))


async def _exhibit(room: Acknowledgments, mode: Mode, id_: str, file: Path) -> Exhibit:
    """The file, if this deployment's keys verify it and it holds the record."""
    data = read_file(file, CONTAINER_BYTES_MAX)
    if len(data) > CONTAINER_BYTES_MAX:
        raise InvalidArgument(f"{file} has more than {CONTAINER_BYTES_MAX:,} bytes.")
    # By the keys alone: the quorum of today may be later than the exhibit.
    verdict = verify_file(data, await room.log.policy.without_quorum(mode))
    if not verdict.ok:
        raise InvalidArgument(
            f"{file} is no evidence that can be offered for {id_}. {verdict.line()}. Give the "
            "dossier or the proof that this deployment wrote."
        )
    records = _records(data, verdict)
    if id_ not in {one.id for one in records}:
        held = ", ".join(one.id for one in records)
        raise InvalidArgument(f"{file} does not hold {id_}, but {held}.")
    return Exhibit(file.name, sha256(data).hexdigest(), len(data), verdict.line(), records)


def _records(data: bytes, verdict: Verdict) -> list[ExhibitRecord]:
    """Every record in evidence that was verified."""
    if verdict.dossier is not None:
        return [ExhibitRecord(one.id, one.type, one.digest) for one in verdict.dossier.records]
    record, body = verdict.record, parse_proof(data).extra
    return [ExhibitRecord(record["id"], record["type"], sha256(body).hexdigest())]


async def _facts_of(room: Acknowledgments, who: Principal, id_: str) -> CertificationFacts:
    """The facts in the record's dossier, which is verified as its reader would."""
    wanted = DossierQuery(disclose=NO_FIELD)
    made = dossier_of(await dossier(room, who, id_, wanted, SEALING_SECONDS))
    (subject,) = [one for one in made.records if one.id == id_]
    database = room.log.database
    log = next(one for one in await database.read(logs_sql.all_logs) if one.origin == made.origin)
    checkpoint = await database.read(logs_sql.of_size, log.id, made.size)
    assert checkpoint is not None  # noqa: S101 - the dossier is proved by it
    erased_at = (await stored(room, who, id_)).erased_at if is_id(ACKNOWLEDGMENT, id_) else None
    return CertificationFacts(subject, made, checkpoint.at, erased_at)
