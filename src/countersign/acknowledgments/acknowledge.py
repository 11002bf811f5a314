"""Acknowledge a notice: judge the initials, write the record, keep it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clock import TestClock
from countersign.access.test_clocks import TestClocks
from countersign.acknowledgments.initials import check_initials
from countersign.acknowledgments.model import (
    PERSONAL_FIELDS,
    Capture,
    NewAcknowledgment,
    Receipt,
    VersionSource,
)
from countersign.acknowledgments.origin import Origin
from countersign.errors import NoticeVersionMismatch
from countersign.evidence.disclosure import Disclosure
from countersign.evidence.record import Draft, Subject, bullet_digests, entropy_needed, make_records
from countersign.ids import ACKNOWLEDGMENT, timed_id
from countersign.instant import from_ms, rfc3339_ms
from countersign.log.append_record import SEAL_ENTROPY, seal_disclosures
from countersign.log.record import NewRecord, RecordType, SealedDisclosures
from countersign.notices.model import NoticeVersion
from countersign.ports import AcknowledgmentStore, Clock, Entropy
from countersign.vault.vault import DataKey, Vault

SESSION_FIELD: Final = "session_id"
CBID_FIELD: Final = "cbid"
_ID_ENTROPY: Final = 8
_ENTROPY: Final = _ID_ENTROPY + entropy_needed(len(PERSONAL_FIELDS)) + SEAL_ENTROPY


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller submits for one notice."""

    initials_per_line: Sequence[str]
    session_id: str | None
    cbid: str | None
    notice_version: str | None
    origin: Origin


class _Act(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledgment that was found to be in order, on its way into the store."""

    receipt: Receipt
    principal: Principal
    notice: NoticeVersion
    submission: Submission
    at_ms: int
    clock: TestClock
    key: DataKey
    entropy: bytes
    remember: Callable[[Receipt], IdempotencyEntry] | None


class Acknowledge:
    """The act of acknowledging."""

    def __init__(
        self,
        *,
        store: AcknowledgmentStore,
        secret: DeploymentSecret,
        vault: Vault,
        clocks: TestClocks,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._secret = secret
        self._vault = vault
        self._clocks = clocks
        self._clock = clock
        self._entropy = entropy
        self._bullets: dict[str, msgspec.Raw] = {}

    async def __call__(
        self,
        principal: Principal,
        notice: NoticeVersion,
        submission: Submission,
        remember: Callable[[Receipt], IdempotencyEntry] | None = None,
    ) -> Receipt:
        """Store an acknowledgment of this notice version; durable when this returns.

        Raises:
            NoticeVersionMismatch: `notice_version` was given and is not this version.
            InitialsCountMismatch, EmptyInitials: see `check_initials`.
        """
        content = notice.content
        shown = submission.notice_version
        if shown is not None and shown != content.version:
            msg = f"The version in force is {content.version}, not {shown}."
            raise NoticeVersionMismatch(msg)
        check_initials(submission.initials_per_line, len(content.bullets))

        clock = await self._clocks.of(principal.account_id, principal.mode)
        time_ns = self._clock.time_ns()
        key = self._vault.cached(principal.account_id, time_ns)
        if key is None:
            key = await self._vault.data_key(principal.account_id, time_ns)
        entropy = self._entropy(_ENTROPY)
        receipt = Receipt(
            timed_id(ACKNOWLEDGMENT, time_ns, entropy[:_ID_ENTROPY]), content.id, content.version
        )
        await self._store.add(
            _Act(
                receipt=receipt,
                principal=principal,
                notice=notice,
                submission=submission,
                at_ms=time_ns // 1_000_000,
                clock=clock,
                key=key,
                entropy=entropy,
                remember=remember,
            ),
            self._write_down,
        )
        return receipt

    def _write_down(self, acts: Sequence[_Act]) -> list[NewAcknowledgment]:
        """The records of acts that are stored together.

        Made one by one, each between two requests, they take half as long again.
        """
        moments = {ms: from_ms(ms) for ms in {act.at_ms for act in acts}}
        texts = {ms: rfc3339_ms(moment) for ms, moment in moments.items()}
        written = make_records(
            [
                Draft(
                    Subject(
                        id=act.receipt.ack_id,
                        account=act.principal.account_id,
                        mode=act.principal.mode,
                        notice_id=act.receipt.notice_id,
                        notice_version=act.receipt.notice_version,
                        notice_digest=act.notice.digest,
                        notice_version_source=VersionSource.ASSUMED
                        if act.submission.notice_version is None
                        else VersionSource.ASSERTED,
                        bullets=self._bullet_digests(act.notice),
                        capture=Capture.VENDOR_API,
                        credential=act.principal.credential,
                        accepted_at=texts[act.at_ms],
                        test_clock=act.clock.text(moments[act.at_ms]) or msgspec.UNSET,
                    ),
                    _personal(act.submission),
                    act.entropy[_ID_ENTROPY:-SEAL_ENTROPY],
                )
                for act in acts
            ]
        )
        return [
            NewAcknowledgment(
                receipt=act.receipt,
                record=NewRecord(
                    id=act.receipt.ack_id,
                    account_id=act.principal.account_id,
                    mode=act.principal.mode,
                    type=RecordType.ACKNOWLEDGMENT,
                    notice_id=act.receipt.notice_id,
                    at=moments[act.at_ms],
                    body=record.body,
                    digest=record.digest,
                    disclosures=self._seal(act, record.disclosures),
                ),
                remember=act.remember,
            )
            for act, record in zip(acts, written, strict=True)
        ]

    def _seal(self, act: _Act, disclosures: Sequence[Disclosure]) -> SealedDisclosures:
        return seal_disclosures(
            act.key,
            act.receipt.ack_id,
            disclosures,
            act.entropy[-SEAL_ENTROPY:],
            account_id=act.principal.account_id,
            session_index=self._index(act.principal, SESSION_FIELD, act.submission.session_id),
            cbid_index=self._index(act.principal, CBID_FIELD, act.submission.cbid),
        )

    def _index(self, principal: Principal, field: str, value: str | None) -> bytes | None:
        if value is None:
            return None
        return self._secret.blind_index(principal.account_id, field, value)

    def _bullet_digests(self, notice: NoticeVersion) -> msgspec.Raw:
        known = self._bullets.get(notice.digest)
        if known is None:
            known = bullet_digests([(bullet.id, bullet.text) for bullet in notice.content.bullets])
            self._bullets[notice.digest] = known
        return known


def _personal(submission: Submission) -> tuple[tuple[str, object], ...]:
    """The personal fields of a record, each one disclosure; see spec/evidence-format.md."""
    origin = submission.origin
    return (
        ("initials_per_line", submission.initials_per_line),
        (SESSION_FIELD, submission.session_id),
        (CBID_FIELD, submission.cbid),
        (
            "ip",
            {
                "ip": origin.ip,
                "source": origin.ip_source,
                "peer_ip": origin.peer_ip,
                "forwarded": origin.forwarded,
                "truncated": origin.forwarded_truncated,
            },
        ),
        (
            "user_agent",
            {
                "user_agent": origin.user_agent,
                "source": origin.user_agent_source,
                "truncated": origin.user_agent_truncated,
            },
        ),
    )
