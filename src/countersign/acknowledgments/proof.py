"""Prove an acknowledgment: proofs, certificates and bundles that anyone can check.

What leaves as evidence is verified first, as its reader would: a database that was changed behind
the service's back, or that a disk has damaged, must not make it hand out what fails in court.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from countersign import offline
from countersign.access.account import read_account
from countersign.access.key import Principal
from countersign.acknowledgments.certificate import readme
from countersign.acknowledgments.certificate_facts import CertificateFacts, Review
from countersign.acknowledgments.find import opened, read_record, refusing_damage, stored
from countersign.acknowledgments.model import HOSTED_FIELDS, NO_FIELD, StoredAcknowledgment
from countersign.acknowledgments.room import Acknowledgments
from countersign.errors import Erased, InvalidRequest
from countersign.evidence.bundle import BundleContents, write_bundle
from countersign.evidence.checkpoint import cosigned_at
from countersign.evidence.contents import BOUND, check_disclosures, check_notice
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_cosignature
from countersign.evidence.proof import Proof, format_proof
from countersign.evidence.timestamp import read_timestamp
from countersign.evidence.verification import Verdict, verify_file
from countersign.instant import parse_rfc3339
from countersign.log import logs_sql, tree_sql
from countersign.log.model import Anchor, Log, StoredCheckpoint, cosignatures, time_stamps
from countersign.log.seal import with_cosignatures
from countersign.notices.model import LifecycleEvent, PublishedVersion
from countersign.notices.registry import published_versions
from countersign.parties.sql import record_ids

_REVIEWS: Final = {LifecycleEvent.REVIEWED, LifecycleEvent.REINSTATED}


class _Entry(NamedTuple):
    """The place of a record in its log, and what proves it."""

    log: Log
    leaf_index: int
    checkpoint: StoredCheckpoint
    anchors: Sequence[Anchor]
    proof: bytes
    verdict: Verdict


async def proof(room: Acknowledgments, who: Principal, ack_id: str, wait: float = 0.0) -> bytes:
    """The proof that the log holds the record (c2sp.org/tlog-proof).

    `wait` is how many seconds to wait for sealing, and for the cosignatures that a quorum asks for.
    """
    with refusing_damage(ack_id):
        found = await stored(room, who, ack_id)
        return (await _entry(room, found, wait)).proof


def line_of(who: Principal) -> Hashable:
    """Who stand in one line for what is made on paper: an account in a mode, its buyers apart."""
    return (who.account_id, who.mode, who.credential)


async def certificate(
    room: Acknowledgments, who: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
) -> bytes:
    """The certificate, a PDF; Overloaded if too many are being made."""
    facts, _ = await _evidence(room, who, ack_id, disclose, wait)
    return await room.certificates.make(facts, line_of(who))


async def bundle(
    room: Acknowledgments, who: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
) -> bytes:
    """Everything in one ZIP file: the same facts give the same bytes."""
    facts, entry = await _evidence(room, who, ack_id, disclose, wait)
    return write_bundle(
        BundleContents(
            record=facts.record,
            disclosures=facts.shown,
            notice=facts.notice,
            proof=facts.proof,
            policy=await room.log.policy.behind(entry.log, entry.checkpoint.note),
            timestamps={name: stamp.body for name, stamp in time_stamps(entry.anchors).items()},
            certificate=await room.certificates.make(facts, line_of(who)),
            verify_py=_offline("verify.py"),
            verify_html=_offline("verify.html"),
            readme=readme(facts),
        )
    )


def fields_to_show(
    disclose: str | None, known: Sequence[str] = HOSTED_FIELDS
) -> frozenset[str] | None:
    """The personal fields that the query parameter `disclose` names; None: all."""
    if disclose is None:
        return None
    names = frozenset(disclose.split(",")) if disclose != NO_FIELD else frozenset[str]()
    unknown = sorted(names - set(known))
    if unknown:
        raise InvalidRequest(
            f"The query parameter disclose names {unknown[0][:64]!a}, which is not a personal "
            f"field. Use {', '.join(known)}, or {NO_FIELD}."
        )
    return names


async def _evidence(
    room: Acknowledgments, who: Principal, ack_id: str, disclose: str | None, wait: float
) -> tuple[CertificateFacts, _Entry]:
    """One acknowledgment with its proof, and the personal fields to show."""
    fields = fields_to_show(disclose)
    with refusing_damage(ack_id):
        found = await stored(room, who, ack_id)
        shown = await _shown(room, found, fields)
        entry = await _entry(room, found, wait)
        notice = await _notice(room, read_record(found.record).notice_digest)
        record = entry.verdict.record
        check_notice(notice.body, record, check_disclosures(shown, record))
        account = await room.log.database.read(read_account, who.account_id)
        witnesses = [parse_cosignature(each.body) for each in cosignatures(entry.anchors)]
        stamps = time_stamps(entry.anchors).values()
        facts = CertificateFacts(
            record=found.record,
            parties=await _parties(room, record),
            shown=shown,
            erased_at=found.erased_at,
            notice=notice.body,
            review=_review(notice, found.accepted_at),
            account_name=None if account is None else account.name,
            proof=entry.proof,
            origin=entry.log.origin,
            index=entry.leaf_index,
            size=entry.checkpoint.size,
            root=entry.checkpoint.root,
            checkpoint_at=entry.checkpoint.at,
            key_fingerprint=entry.verdict.facts["key_fingerprint"],
            witnesses=tuple((w.name, cosigned_at(w.time)) for w in witnesses),
            timestamps=tuple((stamp.name, _stamped_at(stamp.body)) for stamp in stamps),
            verify_url=room.verify_url,
        )
        return facts, entry


async def facts_of(
    room: Acknowledgments, who: Principal, ack_id: str, wait: float = 0.0
) -> CertificateFacts:
    """What a certificate says of one acknowledgment, without its personal fields."""
    facts, _ = await _evidence(room, who, ack_id, NO_FIELD, wait)
    return facts


async def _parties(room: Acknowledgments, record: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The records of parties that this record binds."""
    named = [record[member] for member in BOUND if record.get(member)]
    if not named:
        return ()
    ids = await room.log.database.read(record_ids, named)
    bodies = await room.log.database.read(tree_sql.record_bodies, ids)
    return tuple(bodies[id_] for id_ in ids if id_ in bodies)


async def _shown(
    room: Acknowledgments, found: StoredAcknowledgment, fields: frozenset[str] | None
) -> tuple[str, ...]:
    """The encoded disclosures of these fields; None: of all. Erased if they are, and named."""
    disclosures = await opened(room, found)
    if disclosures is None:
        if fields:
            raise Erased
        return ()
    named = {read_disclosure(encoded)[1]: encoded for encoded in disclosures}
    return tuple(encoded for name, encoded in named.items() if fields is None or name in fields)


async def _entry(room: Acknowledgments, found: StoredAcknowledgment, wait: float) -> _Entry:
    database, seal = room.log.database, room.log.seal
    with room.checkpoints.patience(found.account_id, wait) as seconds:
        deadline = asyncio.get_running_loop().time() + seconds
        log_id, sealed = await seal.sealed(found.ack_id, seconds)
        log = next(log for log in await database.read(logs_sql.all_logs) if log.id == log_id)
        checkpoint = await room.checkpoints.over(log, sealed.index, deadline)
    anchors = await database.read(logs_sql.anchors_of, log.id, checkpoint.size)
    note = await seal.release(log, checkpoint)
    path = await database.scan(tree_sql.inclusion, log_id, sealed.index, checkpoint.size)
    signed = with_cosignatures(note, cosignatures(anchors))
    written = format_proof(Proof(found.record, sealed.index, tuple(path), signed))
    verdict = verify_file(written, await room.log.policy.without_quorum(log.mode))
    if not verdict.ok:
        raise EvidenceError(verdict.line())
    return _Entry(log, sealed.index, checkpoint, anchors, written, verdict)


async def _notice(room: Acknowledgments, digest: str) -> PublishedVersion:
    for version in await room.log.database.read(published_versions):
        if version.digest == digest:
            return version
    raise EvidenceError(f"there is no notice with the digest {digest}")


def _review(notice: PublishedVersion, accepted_at: datetime) -> Review | None:
    """Who had compared the text with the official one when it was acknowledged."""
    found = [e for e in notice.events if e.type in _REVIEWS and e.at <= accepted_at]
    if not found:
        return None
    last = found[-1]
    return Review(by=last.details["by"], against=last.details["against"], at=last.at)


def _stamped_at(token: bytes) -> datetime | None:
    """The time that an RFC 3161 response states; None if it cannot be read."""
    try:
        return parse_rfc3339(read_timestamp(token).at)
    except ValueError:  # an EvidenceError is a ValueError
        return None


@cache
def _offline(name: str) -> bytes:
    return (resources.files(offline) / name).read_bytes()
