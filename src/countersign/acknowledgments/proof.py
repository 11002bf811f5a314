"""Prove an acknowledgment: what a stranger needs to check it without us."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Final

from countersign import offline
from countersign.access.account import read_account
from countersign.access.key import Principal
from countersign.acknowledgments.certificate import CertificateFacts, Certificates
from countersign.acknowledgments.certificate_facts import Review
from countersign.acknowledgments.compare_certificate import readme
from countersign.acknowledgments.disclose import fields_to_show, shown_of
from countersign.acknowledgments.evidence_report import check_proof, check_words, explained
from countersign.acknowledgments.find import FindAcknowledgments
from countersign.errors import EvidencePending
from countersign.evidence.bundle import BundleContents, write_bundle
from countersign.evidence.cosignature import cosigned_at
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import parse_cosignature
from countersign.evidence.policy import Policy
from countersign.evidence.proof import Proof, format_proof
from countersign.evidence.verification import Verdict
from countersign.log import checkpoints_sql, epochs_sql, tree_sql
from countersign.log.anchor import stamped_at
from countersign.log.model import TIMESTAMP, WITNESS, Anchor, Log, StoredCheckpoint
from countersign.log.room import LogRoom
from countersign.log.seal import with_cosignatures
from countersign.mode import Mode
from countersign.notices.model import LifecycleEvent, PublishedVersion
from countersign.ports import NoticeStore
from countersign.shared_question import SharedQuestion

_RETRY_SECONDS: Final = 2
_POLL_SECONDS: Final = 0.25
WAITING_MAX: Final = 100
"""How many requests of one account may wait at once; the others are answered as things are."""
_STAMPED_WITHIN: Final = timedelta(days=1)
"""A cosigned checkpoint with a time-stamp is better than one without, unless it is far later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The place of a record in its log, and what vouches for it."""

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


class ProveAcknowledgment:
    """Proofs, certificates and bundles of an account's acknowledgments."""

    def __init__(
        self,
        *,
        find: FindAcknowledgments,
        log: LogRoom,
        notices: NoticeStore,
        certificates: Certificates,
        public_url: str,
    ) -> None:
        self._find = find
        self._log = log
        self._notices = notices
        self._certificates = certificates
        self._verify_url = f"{public_url}/verify"
        self._waiting: Counter[str] = Counter()
        self._cosigned_soon = SharedQuestion(self._cosigned_sizes, _POLL_SECONDS)

    async def proof(self, principal: Principal, ack_id: str, wait: float = 0.0) -> bytes:
        """The proof that the log holds the record (c2sp.org/tlog-proof).

        Args:
            principal: who asks.
            ack_id: the acknowledgment.
            wait: seconds to wait for sealing, and for the cosignatures that a quorum asks for.

        Raises:
            NotFound: this account has no such acknowledgment in this mode.
            EvidencePending: the record has no entry in the log yet.
            EvidenceDamaged: what is stored does not verify.
        """
        with explained(ack_id):
            record = await self._find.record(principal, ack_id)
            return (await self._entry(principal, ack_id, record, wait)).proof

    async def certificate(
        self, principal: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
    ) -> bytes:
        """The certificate, a PDF.

        Raises:
            NotFound, EvidencePending, EvidenceDamaged: as for `proof`.
            InvalidRequest: `disclose` names a field that there is not.
            Erased: `disclose` asks for what was erased.
            Overloaded: too many certificates are being made.
        """
        fields = fields_to_show(disclose)
        with explained(ack_id):
            facts, _ = await self._evidence(principal, ack_id, fields, wait)
        return await self._certificates.make(facts, principal.account_id)

    async def bundle(
        self, principal: Principal, ack_id: str, disclose: str | None, wait: float = 0.0
    ) -> bytes:
        """Everything in one ZIP file: the same facts give the same bytes.

        Raises:
            NotFound, EvidencePending, EvidenceDamaged, InvalidRequest, Erased, Overloaded: as for
                `certificate`.
        """
        fields = fields_to_show(disclose)
        with explained(ack_id):
            facts, entry = await self._evidence(principal, ack_id, fields, wait)
        return write_bundle(
            BundleContents(
                record=facts.record,
                disclosures=facts.shown,
                notice=facts.notice,
                proof=facts.proof,
                policy=await self._log.policy.behind(entry.log, entry.checkpoint.note),
                timestamps=entry.timestamps,
                certificate=await self._certificates.make(facts, principal.account_id),
                verify_py=_offline("verify.py"),
                verify_html=_offline("verify.html"),
                readme=readme(facts),
            )
        )

    async def _evidence(
        self, principal: Principal, ack_id: str, fields: frozenset[str] | None, wait: float
    ) -> tuple[CertificateFacts, _Entry]:
        """One acknowledgment with its proof; `fields` are the personal ones to show, None: all."""
        found = await self._find.found(principal, ack_id)
        shown = shown_of(found, fields)
        entry = await self._entry(principal, ack_id, found.record, wait)
        notice = await self._notice(found.notice_digest)
        check_words(entry.verdict, shown, notice.body)
        account = await self._log.database.read(read_account, principal.account_id)
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
            verify_url=self._verify_url,
        )
        return facts, entry

    async def _entry(self, principal: Principal, ack_id: str, record: bytes, wait: float) -> _Entry:
        """The entry of a record, as soon as it has one, with its proof."""
        read = self._log.database.read
        with self._place(principal.account_id, wait) as seconds:
            deadline = asyncio.get_running_loop().time() + seconds
            log_id, sealed = await self._log.seal.sealed(ack_id, seconds)
            log = next(log for log in await read(epochs_sql.all_logs) if log.id == log_id)
            checkpoint = await self._checkpoint(log, sealed.index, deadline)
        anchors = await read(checkpoints_sql.anchors_of, log.id, checkpoint.size)
        note = await self._log.seal.release(log, checkpoint)
        database = self._log.database
        path = await database.scan(tree_sql.inclusion, log_id, sealed.index, checkpoint.size)
        proof = Proof(
            extra=record,
            index=sealed.index,
            path=tuple(path),
            checkpoint=with_cosignatures(note, anchors),
        )
        written = format_proof(proof)
        return _Entry(
            log=log,
            index=sealed.index,
            checkpoint=checkpoint,
            anchors=anchors,
            proof=written,
            verdict=check_proof(written, await self._log.policy.without_quorum(log.mode)),
        )

    async def _checkpoint(self, log: Log, index: int, deadline: float) -> StoredCheckpoint:
        """The oldest checkpoint over an entry that others vouch for as far as is asked.

        So the proof of an acknowledgment stays the same, except when there comes to be a better
        one. Where the quorum is not met when the time is up, the best that there is goes out:
        a proof that leaves early is worth more than one that waits for a witness.
        """
        found = await self._cosigned(log, index)
        if found is None and await self._is_cosigned(log, index, deadline):
            found = await self._cosigned(log, index)
        for kind in (WITNESS, TIMESTAMP) if found is None else ():
            found = found or await self._covering(log, index, frozenset({kind}), None)
        found = found or await self._covering(log, index, frozenset(), None)
        if found is None:
            raise EvidencePending(retry_after=_RETRY_SECONDS)
        return found

    @contextmanager
    def _place(self, account: str, wait: float) -> Iterator[float]:
        """How long a caller may wait: not at all where too many of its account do already."""
        if wait <= 0 or self._waiting[account] >= WAITING_MAX:
            yield 0.0
            return
        self._waiting[account] += 1
        try:
            yield wait
        finally:
            self._waiting -= Counter([account])  # which forgets those that have none left

    async def _is_cosigned(self, log: Log, index: int, deadline: float) -> bool:
        """Wait until a checkpoint over an entry meets the quorum, if one is asked for."""
        while self._log.policy.quorum(log.mode) and asyncio.get_running_loop().time() < deadline:
            newest = (await self._log.seal.current()).get(log.mode, log)
            if newest.id != log.id:
                break  # no witness is asked to cosign a log of the past
            if (await self._cosigned_soon((log.mode, log.id)) or 0) > index:
                return True
        return False

    async def _cosigned_sizes(
        self, logs: Sequence[tuple[Mode, int]]
    ) -> Mapping[tuple[Mode, int], int]:
        """Of each log the size of the newest checkpoint that meets the quorum."""
        sizes: dict[tuple[Mode, int], int] = {}
        for mode, log_id in logs:
            quorum = self._log.policy.quorum(mode)
            newest = quorum and await self._log.seal.cosigned(log_id, quorum)
            if newest:
                sizes[mode, log_id] = newest.size
        return sizes

    async def _cosigned(self, log: Log, index: int) -> StoredCheckpoint | None:
        """The oldest checkpoint that meets the quorum; where there is none: that has a witness."""
        quorum = self._log.policy.quorum(log.mode)
        first = await self._covering(log, index, frozenset({WITNESS}), quorum)
        if first is None:
            return None
        both = await self._covering(log, index, frozenset({WITNESS, TIMESTAMP}), quorum)
        return both if both is not None and both.at - first.at <= _STAMPED_WITHIN else first

    async def _covering(
        self, log: Log, index: int, kinds: frozenset[str], quorum: Policy | None
    ) -> StoredCheckpoint | None:
        scan = self._log.database.scan
        return await scan(checkpoints_sql.covering, log.id, index, kinds, quorum)

    async def _notice(self, digest: str) -> PublishedVersion:
        for version in await self._notices.versions():
            if version.digest == digest:
                return version
        msg = f"there is no notice with the digest {digest}"
        raise EvidenceError(msg)


def _review(notice: PublishedVersion, accepted_at: datetime) -> Review | None:
    """Who had compared the text with the official one when it was acknowledged."""
    found = [
        event
        for event in notice.events
        if event.type in {LifecycleEvent.REVIEWED, LifecycleEvent.REINSTATED}
        and event.at <= accepted_at
    ]
    if not found:
        return None
    last = found[-1]
    return Review(by=last.details["by"], against=last.details["against"], at=last.at)


@cache
def _offline(name: str) -> bytes:
    return (resources.files(offline) / name).read_bytes()
