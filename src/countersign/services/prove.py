"""Prove an acknowledgment: what a stranger needs to check it without us."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Final

from countersign import offline
from countersign.domain.acknowledgment import NO_FIELD, PERSONAL_FIELDS
from countersign.domain.key import Principal
from countersign.domain.log import Anchor, Log, StoredCheckpoint
from countersign.errors import Erased, EvidencePending, InvalidRequest, NotFound
from countersign.evidence.bundle import BundleContents, write_bundle
from countersign.evidence.note import parse_cosignature, parse_note
from countersign.evidence.proof import Proof, format_proof
from countersign.ports import LogStore, NoticeStore
from countersign.services.anchor import TIMESTAMP, WITNESS
from countersign.services.certificate import CertificateFacts, Certificates
from countersign.services.find_acknowledgments import FindAcknowledgments, Found
from countersign.services.log_policy import LogPolicy
from countersign.services.seal_log import SealLog

_RETRY_SECONDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One acknowledgment with its proof; `shown` are the disclosures that go along."""

    ack_id: str
    record: bytes
    shown: tuple[str, ...]
    erased_at: datetime | None
    notice: bytes
    proof: bytes
    log: Log
    index: int
    checkpoint: StoredCheckpoint
    anchors: Sequence[Anchor]
    key_fingerprint: str

    @property
    def timestamps(self) -> Mapping[str, bytes]:
        """The RFC 3161 responses by the names of their files."""
        tokens = [anchor.body for anchor in self.anchors if anchor.kind == TIMESTAMP]
        return {f"timestamps/{number}.tsr": body for number, body in enumerate(tokens, 1)}


class ProveAcknowledgment:
    """Proofs, certificates and bundles of an account's acknowledgments."""

    def __init__(
        self,
        *,
        find: FindAcknowledgments,
        store: LogStore,
        notices: NoticeStore,
        seal_log: SealLog,
        policy: LogPolicy,
        certificates: Certificates,
        public_url: str,
    ) -> None:
        self._find = find
        self._store = store
        self._notices = notices
        self._seal_log = seal_log
        self._policy = policy
        self._certificates = certificates
        self._verify_url = f"{public_url}/verify"

    async def proof(self, principal: Principal, ack_id: str, wait: float = 0.0) -> bytes:
        """The proof that the log holds the record (c2sp.org/tlog-proof).

        Args:
            principal: who asks.
            ack_id: the acknowledgment.
            wait: seconds to wait for sealing.

        Raises:
            NotFound: this account has no such acknowledgment in this mode.
            EvidencePending: the record has no entry in the log yet.
        """
        return (await self.evidence(principal, ack_id, frozenset(), wait)).proof

    async def certificate(
        self, principal: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
    ) -> bytes:
        """The certificate, a PDF.

        Raises:
            NotFound, EvidencePending: as for `proof`.
            InvalidRequest: `disclose` names a field that there is not.
            Erased: `disclose` asks for what was erased.
            Overloaded: too many certificates are being made.
        """
        evidence = await self.evidence(principal, ack_id, _fields(disclose), wait)
        return await self._certificates.make(self._facts(evidence))

    async def bundle(
        self, principal: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
    ) -> bytes:
        """Everything in one ZIP file, the same bytes each time.

        Raises:
            NotFound, EvidencePending, InvalidRequest, Erased, Overloaded: as for `certificate`.
        """
        evidence = await self.evidence(principal, ack_id, _fields(disclose), wait)
        return write_bundle(
            BundleContents(
                record=evidence.record,
                disclosures=evidence.shown,
                notice=evidence.notice,
                proof=evidence.proof,
                policy=await self._policy.text(evidence.log.mode),
                timestamps=evidence.timestamps,
                certificate=await self._certificates.make(self._facts(evidence)),
                verify_py=_offline("verify.py"),
                verify_html=_offline("verify.html"),
            )
        )

    async def evidence(
        self, principal: Principal, ack_id: str, fields: frozenset[str] | None, wait: float
    ) -> Evidence:
        """One acknowledgment with its proof; `fields` are the personal ones to show, None: all.

        Raises:
            NotFound, EvidencePending, Erased: as above.
        """
        found = await self._find.found(principal, ack_id)
        log_id, sealed = await self._seal_log.sealed(ack_id, wait)
        log = next(log for log in await self._store.logs() if log.id == log_id)
        checkpoint, anchors = await self._checkpoint(log, sealed.index)
        note = await self._seal_log.release(log, checkpoint)
        path = await self._store.inclusion(log_id, sealed.index, checkpoint.size)
        proof = Proof(
            extra=found.record,
            index=sealed.index,
            path=tuple(path),
            checkpoint=note + b"".join(a.body for a in anchors if a.kind == WITNESS),
        )
        return Evidence(
            ack_id=ack_id,
            record=found.record,
            shown=_shown(found, fields),
            erased_at=found.erased_at,
            notice=await self._notice(found.notice_digest),
            proof=format_proof(proof),
            log=log,
            index=sealed.index,
            checkpoint=checkpoint,
            anchors=anchors,
            key_fingerprint=await self._fingerprint(log, note),
        )

    async def _checkpoint(self, log: Log, index: int) -> tuple[StoredCheckpoint, Sequence[Anchor]]:
        """The oldest checkpoint over an entry for which someone else vouches; else the oldest.

        So the proof of an acknowledgment stays the same, except when there comes to be a better
        one.
        """
        for kind in (WITNESS, TIMESTAMP, None):
            found = await self._store.covering(log.id, index, kind)
            if found is not None:
                return found, await self._store.anchors(log.id, found.size)
        raise EvidencePending(retry_after=_RETRY_SECONDS)

    async def _notice(self, digest: str) -> bytes:
        for version in await self._notices.versions():
            if version.digest == digest:
                return version.body
        raise NotFound

    def _facts(self, evidence: Evidence) -> CertificateFacts:
        checkpoint = evidence.checkpoint
        witnesses = [parse_cosignature(a.body) for a in evidence.anchors if a.kind == WITNESS]
        stamps = [(a.name, None) for a in evidence.anchors if a.kind == TIMESTAMP]
        return CertificateFacts(
            record=evidence.record,
            shown=evidence.shown,
            erased_at=evidence.erased_at,
            notice=evidence.notice,
            proof=evidence.proof,
            origin=evidence.log.origin,
            index=evidence.index,
            size=checkpoint.size,
            root=checkpoint.root,
            checkpoint_at=checkpoint.at,
            key_fingerprint=evidence.key_fingerprint,
            witnesses=tuple((w.name, datetime.fromtimestamp(w.time, UTC)) for w in witnesses),
            timestamps=tuple(stamps),
            verify_url=self._verify_url,
        )

    async def _fingerprint(self, log: Log, note: bytes) -> str:
        """Hex SHA-256 of the public key of the log that signed this checkpoint."""
        keys = {key.key_id: key for key in await self._policy.keys(log.mode)}
        lines = parse_note(note).signatures
        signed = next(keys[line.key_id] for line in lines if line.key_id in keys)
        return sha256(signed.public_key).hexdigest()


def _fields(disclose: str | None) -> frozenset[str] | None:
    if disclose is None:
        return None
    names = frozenset(disclose.split(",")) if disclose != NO_FIELD else frozenset[str]()
    unknown = sorted(names - set(PERSONAL_FIELDS))
    if unknown:
        msg = (
            f"The query parameter disclose names {unknown[0][:64]!a}, which is no personal field; "
            f"there are: {', '.join(PERSONAL_FIELDS)}, or {NO_FIELD}."
        )
        raise InvalidRequest(msg)
    return names


def _shown(found: Found, fields: frozenset[str] | None) -> tuple[str, ...]:
    if found.disclosures is None:
        if fields:
            raise Erased
        return ()
    return tuple(
        encoded for name, encoded in found.disclosures.items() if fields is None or name in fields
    )


@cache
def _offline(name: str) -> bytes:
    return (resources.files(offline) / name).read_bytes()
