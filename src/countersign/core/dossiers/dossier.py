"""The dossier of an order: the records around an acknowledgment or a clearance in one file.

It is verified before it leaves, as its reader would: a changed or damaged database must not make
the service hand out evidence that fails in court.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from countersign.base.errors import InvalidRequest, NotFound
from countersign.base.http.schemas import Request
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import read_record, refusing_damage
from countersign.core.acknowledgments.model import ALL_FIELDS, NO_FIELD
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.clearances.clear import SHIPPING_FIELD, VERIFICATION_FIELD
from countersign.core.clearances.read import CARRIER_FIELD, TRACKING_FIELD
from countersign.core.dossiers import orders_sql
from countersign.core.dossiers.orders_sql import Stored, Within
from countersign.core.log import logs_sql
from countersign.core.log.model import Log, StoredCheckpoint, cosignatures, time_stamps
from countersign.core.log.record import missing, open_disclosures
from countersign.core.log.seal import with_cosignatures
from countersign.core.notices.registry import published_versions
from countersign_evidence.disclosure import read_disclosure
from countersign_evidence.dossier import (
    CLEARANCE,
    PDF,
    TYPES,
    VERIFY_HTML,
    VERIFY_PY,
    DossierContents,
    RecordFiles,
    evidence_of,
    read_container,
    verifier,
    write_dossier,
)
from countersign_evidence.errors import EvidenceError
from countersign_evidence.process import PROCESS
from countersign_evidence.proof import Proof, format_proof
from countersign_evidence.record import ACKNOWLEDGMENT, CBID_FIELD
from countersign_evidence.verification import dossier_of

FIELDS: Final = (
    *ALL_FIELDS,
    *(SHIPPING_FIELD, VERIFICATION_FIELD, CARRIER_FIELD, TRACKING_FIELD),
    *("provider_identity_session_id", "result", "evidence_sha256", "override"),
)
"""The personal fields of all records in a dossier."""
_FIELD: Final = f"({'|'.join(FIELDS)})"


class DossierQuery(Request, frozen=True, kw_only=True):
    """The disclosures and the checkpoint for a dossier."""

    disclose: (
        Annotated[
            str,
            Meta(
                description="The personal fields to show, over all records, separated by commas: "
                + ", ".join(f"`{name}`" for name in FIELDS)
                + f", or `{NO_FIELD}`. Left out: all of them.",
                examples=["initials_per_line,verification,shipping"],
                extra_json_schema={"pattern": f"^({NO_FIELD}|{_FIELD}(,{_FIELD})*)$"},
            ),
        ]
        | None
    ) = None
    size: Annotated[int, Meta(ge=1, le=2**53 - 1, examples=[815])] | None = None
    """The size of the checkpoint of the log to prove it by. Records that it does not hold are left
    out."""


class _Shown(NamedTuple):
    """A record with its shown disclosures, encoded, by name."""

    stored: Stored
    disclosures: Mapping[str, str]

    def value(self, name: str) -> Any:  # noqa: ANN401 - whatever is disclosed
        """A personal field that is shown; None otherwise."""
        encoded = self.disclosures.get(name)
        return None if encoded is None else read_disclosure(encoded)[2]


async def dossier(
    room: Acknowledgments,
    who: Principal,
    id_: str,
    wanted: DossierQuery,
    wait: float = 0.0,
    *,
    alone: bool = False,
) -> bytes:
    """The dossier of the order of an acknowledgment or clearance.

    Without a size, the checkpoint is the first that holds all records and is anchored as the policy
    asks. `wait` is in seconds, for sealing and for cosignatures. `alone`: only the acknowledgment,
    without the vendor's later decisions and reports.
    """
    fields = _fields_to_show(wanted.disclose)
    with refusing_damage(id_), room.checkpoints.patience(who.account_id, wait) as seconds:
        deadline = asyncio.get_running_loop().time() + seconds
        log = await _log(room, who, id_, seconds)
        within = Within(who, log.id, wanted.size, alone=alone)
        records, checkpoint = await _records(room, within, id_, fields, deadline)
        if checkpoint is None:
            last = max(one.stored.leaf_index or 0 for one in records)
            checkpoint = await room.checkpoints.over(log, last, deadline)
        draft = await _contents(room, log, checkpoint, records)
        owner = (who.account_id, who.mode, who.credential)  # an account's buyers apart
        return await room.certificates.run(lambda: _made(draft), owner)


def pdf_of(made: bytes) -> bytes:
    """The PDF in a dossier, which alone is called a certificate."""
    return read_container(made)[PDF]


def _fields_to_show(disclose: str | None) -> frozenset[str] | None:
    """The personal fields that the query parameter `disclose` names; None: all."""
    if disclose is None:
        return None
    names = frozenset(disclose.split(",")) if disclose != NO_FIELD else frozenset[str]()
    unknown = sorted(names.difference(FIELDS))
    if unknown:
        raise InvalidRequest(
            f"The query parameter disclose names {unknown[0][:64]!a}, which is not a personal "
            f"field. Use {', '.join(FIELDS)}, or {NO_FIELD}."
        )
    return names


def _made(draft: DossierContents) -> bytes:
    """The file with its PDF: it takes so long that it is no work for the event loop."""
    # A server starts without the code for documents: many never make one.
    from countersign.core.dossiers.pdf import dossier_pdf  # noqa: PLC0415

    data = write_dossier(draft)
    checked, evidence = dossier_of(data), evidence_of(read_container(data))
    made = write_dossier(replace(draft, pdf=dossier_pdf(checked, evidence)))
    if dossier_of(made) != checked:
        raise EvidenceError("the dossier says something else once it has its PDF")
    return made


async def _log(room: Acknowledgments, who: Principal, id_: str, seconds: float) -> Log:
    """The log that holds the record; waits for its sealing."""
    database = room.log.database
    if await database.read(orders_sql.find_record, who, id_) is None:
        raise await missing(database, who, id_, "record")
    log_id, _ = await room.log.seal.sealed(id_, seconds)
    return next(log for log in await database.read(logs_sql.all_logs) if log.id == log_id)


async def _records(
    room: Acknowledgments,
    within: Within,
    id_: str,
    fields: frozenset[str] | None,
    deadline: float,
) -> tuple[list[_Shown], StoredCheckpoint | None]:
    """All records of the order in the log, and the checkpoint if its size is given."""
    database, loop = room.log.database, asyncio.get_running_loop()
    checkpoint = None
    if within.size is not None and within.log_id is not None:
        checkpoint = await database.read(logs_sql.of_size, within.log_id, within.size)
        if checkpoint is None:
            raise NotFound(
                "The log of the record has no checkpoint of this size. A checkpoint that no third "
                "party has confirmed is kept for a day. Leave the size out for the first that is "
                "kept."
            )
    while True:
        found = await _gathered(room, within, id_, fields)
        if id_ not in {one.stored.id for one in found}:
            raise NotFound("The checkpoint of this size does not hold the record.")
        waiting = [one.stored.id for one in found if one.stored.leaf_index is None]
        if not waiting:
            return found, checkpoint
        # Records are sealed in the order in which they come.
        await room.log.seal.sealed(max(waiting), max(deadline - loop.time(), 0.0))


async def _gathered(
    room: Acknowledgments, within: Within, id_: str, fields: frozenset[str] | None
) -> list[_Shown]:
    """The records of the order in the order of a dossier, with their shown disclosures."""
    database = room.log.database
    order = await _opened(
        room, within.who, await database.read(orders_sql.find_order, within, id_), fields
    )
    found = order + await _checks(room, within, order, fields)
    around = await database.read(orders_sql.find_around, within, [one.stored for one in found])
    found += [_Shown(stored, {}) for stored in around]
    return sorted(found, key=lambda one: (TYPES.index(one.stored.type), one.stored.leaf_index or 0))


async def _checks(
    room: Acknowledgments, within: Within, order: Sequence[_Shown], fields: frozenset[str] | None
) -> list[_Shown]:
    """The identity checks that the shown data joins to the order."""
    database = room.log.database
    acknowledgment, clearance = (
        next((one for one in order if one.stored.type == kind), None)
        for kind in (ACKNOWLEDGMENT, CLEARANCE)
    )
    process = acknowledgment.value(PROCESS) if acknowledgment else None
    named = [
        clearance.value(VERIFICATION_FIELD) if clearance else None,
        (process or {}).get(VERIFICATION_FIELD),
    ]
    found = await database.read(orders_sql.find_checks, within, [id_ for id_ in named if id_])
    version = clearance and msgspec.json.decode(clearance.stored.body)["v"]
    if not found and version in {None, 1}:
        cbids = [one.value(CBID_FIELD) for one in (acknowledgment, clearance) if one]
        for cbid in filter(None, cbids):
            index = room.log.access.secret.blind_index(within.who.account_id, CBID_FIELD, cbid)
            found = found or await database.read(orders_sql.find_check_of, within, cbid, index)
        shown = await _opened(room, within.who, found, fields)
        return [one for one in shown if one.value(CBID_FIELD) in cbids]
    return await _opened(room, within.who, found, fields)


async def _opened(
    room: Acknowledgments,
    who: Principal,
    found: Collection[Stored],
    fields: frozenset[str] | None,
) -> list[_Shown]:
    """These records with their disclosures of these fields; None: of all."""
    vault, shown = room.log.vault.vault, []
    for one in found:
        sealed = (who.account_id, one.id, one.payload, one.shred_key)
        encoded = await open_disclosures(vault, *sealed)
        named = {read_disclosure(text)[1]: text for text in encoded}
        kept = {n: text for n, text in named.items() if fields is None or n in fields}
        shown.append(_Shown(one, kept))
    return shown


async def _contents(
    room: Acknowledgments, log: Log, checkpoint: StoredCheckpoint, records: Sequence[_Shown]
) -> DossierContents:
    """The dossier, without its PDF."""
    database = room.log.database
    anchors = await database.read(logs_sql.anchors_of, log.id, checkpoint.size)
    note = await room.log.seal.release(log, checkpoint)
    signed = with_cosignatures(note, cosignatures(anchors))
    indexes = [one.stored.leaf_index or 0 for one in records]
    found = await database.scan(orders_sql.paths, log.id, indexes, checkpoint.size)
    return DossierContents(
        records={
            one.stored.id: RecordFiles(
                one.stored.body,
                tuple(one.disclosures.values()),
                format_proof(Proof(one.stored.body, index, tuple(path), signed)),
            )
            for one, index, path in zip(records, indexes, found, strict=True)
        },
        notice=await _notice(room, records),
        policy=await room.log.policy.behind(log, checkpoint.note),
        timestamps={name: stamp.body for name, stamp in time_stamps(anchors).items()},
        pdf=b"",
        verify_py=verifier(VERIFY_PY),
        verify_html=verifier(VERIFY_HTML),
    )


async def _notice(room: Acknowledgments, records: Sequence[_Shown]) -> bytes | None:
    """The notice that was acknowledged."""
    for one in records:
        if one.stored.type == ACKNOWLEDGMENT:
            digest = read_record(one.stored.body).notice_digest
            for version in await room.log.database.read(published_versions):
                if version.digest == digest:
                    return version.body
            raise EvidenceError(f"there is no notice with the digest {digest}")
    return None
