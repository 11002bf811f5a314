"""Prove an acknowledgment: proofs, certificates and bundles that anyone can check.

What leaves as evidence is verified first, as its reader would: a database that was changed behind
the service's back, or that a disk has damaged, must not make it hand out what fails in court.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Final

from countersign import offline
from countersign.access.account import read_account
from countersign.access.key import Principal
from countersign.acknowledgments.certificate import readme
from countersign.acknowledgments.certificate_claims import CertificateFacts, Review
from countersign.acknowledgments.find import opened, read_record, refusing_damage, stored
from countersign.acknowledgments.model import NO_FIELD, PERSONAL_FIELDS, StoredAcknowledgment
from countersign.acknowledgments.room import Acknowledgments
from countersign.errors import Erased, InvalidRequest
from countersign.evidence.bundle import BundleContents, write_bundle
from countersign.evidence.contents import check_disclosures, check_notice
from countersign.evidence.cosignature import cosigned_at
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_cosignature
from countersign.evidence.policy import Policy
from countersign.evidence.proof import Proof, format_proof
from countersign.evidence.verification import Verdict, verify_file
from countersign.log import checkpoints_sql, epochs_sql, tree_sql
from countersign.log.anchor import stamped_at
from countersign.log.model import TIMESTAMP, WITNESS, Anchor, Log, StoredCheckpoint
from countersign.log.seal import with_cosignatures
from countersign.notices import sql as notices_sql
from countersign.notices.model import LifecycleEvent, PublishedVersion

_REVIEWS: Final = {LifecycleEvent.REVIEWED, LifecycleEvent.REINSTATED}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The place of a record in its log, and what proves it."""

    log: Log
    index: int
    checkpoint: StoredCheckpoint
    anchors: Sequence[Anchor]
    proof: bytes
    verdict: Verdict

    @property
    def timestamps(self) -> Mapping[str, bytes]:
        """The RFC 3161 responses by the names of their files."""
        tokens = [anchor.body for anchor in self.anchors if anchor.kind == TIMESTAMP]
        return {f"timestamps/{number}.tsr": body for number, body in enumerate(tokens, 1)}


async def proof(room: Acknowledgments, who: Principal, ack_id: str, wait: float = 0.0) -> bytes:
    """The proof that the log holds the record (c2sp.org/tlog-proof).

    Args:
        room: of acknowledgments.
        who: the key that asks.
        ack_id: the acknowledgment.
        wait: seconds to wait for sealing, and for the cosignatures that a quorum asks for.

    Raises:
        NotFound: this account has no such acknowledgment in this mode.
        EvidencePending: the record has no entry in the log yet.
        EvidenceDamaged: what is stored does not verify.
    """
    with refusing_damage(ack_id):
        found = await stored(room, who, ack_id)
        return (await _entry(room, found, wait)).proof


async def certificate(
    room: Acknowledgments, who: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
) -> bytes:
    """The certificate, a PDF.

    Raises:
        NotFound, EvidencePending, EvidenceDamaged: as for `proof`.
        InvalidRequest: `disclose` names an unknown field.
        Erased: `disclose` asks for what was erased.
        Overloaded: too many certificates are being made.
    """
    fields = fields_to_show(disclose)
    with refusing_damage(ack_id):
        facts, _ = await _evidence(room, who, ack_id, fields, wait)
    return await room.certificates.make(facts, who.account_id)


async def bundle(
    room: Acknowledgments, who: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
) -> bytes:
    """Everything in one ZIP file: the same facts give the same bytes.

    Raises:
        NotFound, EvidencePending, EvidenceDamaged, InvalidRequest, Erased, Overloaded: as for
            `certificate`.
    """
    fields = fields_to_show(disclose)
    with refusing_damage(ack_id):
        facts, entry = await _evidence(room, who, ack_id, fields, wait)
    return write_bundle(
        BundleContents(
            record=facts.record,
            disclosures=facts.shown,
            notice=facts.notice,
            proof=facts.proof,
            policy=await room.log.policy.behind(entry.log, entry.checkpoint.note),
            timestamps=entry.timestamps,
            certificate=await room.certificates.make(facts, who.account_id),
            verify_py=_offline("verify.py"),
            verify_html=_offline("verify.html"),
            readme=readme(facts),
        )
    )


def fields_to_show(disclose: str | None) -> frozenset[str] | None:
    """The personal fields that the query parameter `disclose` names; None: all.

    Raises:
        InvalidRequest: it names an unknown field.
    """
    if disclose is None:
        return None
    names = frozenset(disclose.split(",")) if disclose != NO_FIELD else frozenset[str]()
    unknown = sorted(names - set(PERSONAL_FIELDS))
    if unknown:
        msg = (
            f"The query parameter disclose names {unknown[0][:64]!a}, which is not a personal "
            f"field. Use {', '.join(PERSONAL_FIELDS)}, or {NO_FIELD}."
        )
        raise InvalidRequest(msg)
    return names


async def _evidence(
    room: Acknowledgments, who: Principal, ack_id: str, fields: frozenset[str] | None, wait: float
) -> tuple[CertificateFacts, _Entry]:
    """One acknowledgment with its proof; `fields` are the personal ones to show, None: all."""
    found = await stored(room, who, ack_id)
    shown = await _shown(room, found, fields)
    entry = await _entry(room, found, wait)
    notice = await _notice(room, read_record(found.record).notice_digest)
    record = entry.verdict.record
    check_notice(notice.body, record, check_disclosures(shown, record))
    account = await room.database.read(read_account, who.account_id)
    witnesses = [parse_cosignature(a.body) for a in entry.anchors if a.kind == WITNESS]
    facts = CertificateFacts(
        record=found.record,
        shown=shown,
        erased_at=found.erased_at,
        notice=notice.body,
        review=_review(notice, found.accepted_at),
        account_name=None if account is None else account.name,
        proof=entry.proof,
        origin=entry.log.origin,
        index=entry.index,
        size=entry.checkpoint.size,
        root=entry.checkpoint.root,
        checkpoint_at=entry.checkpoint.at,
        key_fingerprint=entry.verdict.facts["key_fingerprint"],
        witnesses=tuple((w.name, cosigned_at(w.time)) for w in witnesses),
        timestamps=tuple(
            (a.name, stamped_at(a.body)) for a in entry.anchors if a.kind == TIMESTAMP
        ),
        verify_url=room.verify_url,
    )
    return facts, entry


async def _shown(
    room: Acknowledgments, found: StoredAcknowledgment, fields: frozenset[str] | None
) -> tuple[str, ...]:
    """The encoded disclosures of these fields; None: of all.

    Raises:
        Erased: some are asked for by name, and they were erased.
    """
    disclosures = await opened(room, found)
    if disclosures is None:
        if fields:
            raise Erased
        return ()
    named = {read_disclosure(encoded)[1]: encoded for encoded in disclosures}
    return tuple(encoded for name, encoded in named.items() if fields is None or name in fields)


async def _entry(room: Acknowledgments, found: StoredAcknowledgment, wait: float) -> _Entry:
    """The entry of a record, as soon as it has one, with its proof."""
    database, seal = room.database, room.log.seal
    with room.checkpoints.patience(found.account_id, wait) as seconds:
        deadline = asyncio.get_running_loop().time() + seconds
        log_id, sealed = await seal.sealed(found.ack_id, seconds)
        log = next(log for log in await database.read(epochs_sql.all_logs) if log.id == log_id)
        checkpoint = await room.checkpoints.over(log, sealed.index, deadline)
    anchors = await database.read(checkpoints_sql.anchors_of, log.id, checkpoint.size)
    note = await seal.release(log, checkpoint)
    path = await database.scan(tree_sql.inclusion, log_id, sealed.index, checkpoint.size)
    written = format_proof(
        Proof(
            extra=found.record,
            index=sealed.index,
            path=tuple(path),
            checkpoint=with_cosignatures(note, anchors),
        )
    )
    return _Entry(
        log=log,
        index=sealed.index,
        checkpoint=checkpoint,
        anchors=anchors,
        proof=written,
        verdict=_verified(written, await room.log.policy.without_quorum(log.mode)),
    )


def _verified(proof: bytes, policy: Policy) -> Verdict:
    """The verdict on a proof with the record in it; the policy is one without a quorum.

    Raises:
        EvidenceError: it does not verify.
    """
    verdict = verify_file(proof, policy)
    if not verdict.ok:
        raise EvidenceError(verdict.line())
    return verdict


async def _notice(room: Acknowledgments, digest: str) -> PublishedVersion:
    for version in await room.database.read(notices_sql.versions):
        if version.digest == digest:
            return version
    msg = f"there is no notice with the digest {digest}"
    raise EvidenceError(msg)


def _review(notice: PublishedVersion, accepted_at: datetime) -> Review | None:
    """Who had compared the text with the official one when it was acknowledged."""
    found = [e for e in notice.events if e.type in _REVIEWS and e.at <= accepted_at]
    if not found:
        return None
    last = found[-1]
    return Review(by=last.details["by"], against=last.details["against"], at=last.at)


@cache
def _offline(name: str) -> bytes:
    return (resources.files(offline) / name).read_bytes()
