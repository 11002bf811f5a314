"""Erase what is personal and keep the proof; legal holds; what retention makes due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from countersign.access.audit import Audit
from countersign.access.audit_entry import AuditAction
from countersign.access.secrets import DeploymentSecret
from countersign.db.database import Database
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.evidence.record import CBID_FIELD
from countersign.ids import (
    ACKNOWLEDGMENT,
    BUYER,
    FACT,
    SANDBOX_BUYER,
    VERIFICATION,
    is_id,
    timed_id,
)
from countersign.instant import from_ns
from countersign.log.append_record import Recorder
from countersign.log.record import RecordType
from countersign.mode import Mode
from countersign.notices import sql as notices_sql
from countersign.notices.room import Notices
from countersign.ports import AccountStore, Clock, Entropy, ErasureStore
from countersign.privacy.model import (
    Erasable,
    ErasureReason,
    Hold,
    RecordErasure,
    years_after,
)
from countersign.privacy.sql import delete_noted_copies
from countersign.vault.data_keys_sql import noted_copies

HOLD: Final = "hold"
_PAGE: Final = 500


class _Digest(msgspec.Struct):
    notice_digest: str


class _Retention(msgspec.Struct):
    retention_years: int | None = None


_read_digest: Final = msgspec.json.Decoder(_Digest).decode
_read_retention: Final = msgspec.json.Decoder(_Retention).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What erasing a subject would destroy.

    `buyer` is the account and mode of the buyer that goes; `kept_until` is when the longest
    retention of the acknowledgments among the records ends.
    """

    subject: str
    buyer: tuple[str, Mode] | None
    records: tuple[Erasable, ...]
    kept_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRetention:
    """How long the evidence of live verifications is kept."""

    verified: timedelta
    """From the verification: as long as it can count, and the days after that."""
    other: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A record whose retention has ended; `hold` keeps it nevertheless."""

    record_id: str
    account_id: str
    mode: Mode
    at: datetime
    retention_ended_at: datetime
    hold: str | None


class Erase:
    """The acts of erasing and of keeping from it."""

    def __init__(
        self,
        *,
        store: ErasureStore,
        accounts: AccountStore,
        notices: Notices,
        secret: DeploymentSecret,
        recorder: Recorder,
        audit: Audit,
        evidence_retention: EvidenceRetention,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._evidence_retention = evidence_retention
        self._accounts = accounts
        self._notices = notices
        self._secret = secret
        self._recorder = recorder
        self._audit = audit
        self._clock = clock
        self._entropy = entropy

    async def plan(self, subject: str, *, with_acknowledgments: bool = False) -> Plan:
        """What would be destroyed.

        Args:
            subject: an acknowledgment, a verification or a buyer.
            with_acknowledgments: of a buyer, also the acknowledgments that name it, of all
                accounts.

        Raises:
            UnknownSubject: there is none.
        """
        missing = UnknownSubject(
            f"The acknowledgment, verification or buyer {subject!r} does not exist, or was erased."
        )
        if is_id(ACKNOWLEDGMENT, subject) or is_id(VERIFICATION, subject):
            found = await self._store.record(subject)
            if found is None:
                raise missing
            orders = await self._store.of_orders([subject])
            return await self._planned(subject, None, [found, *orders])
        is_buyer = is_id(BUYER, subject) or is_id(SANDBOX_BUYER, subject)
        buyer = await self._store.of_buyer(subject) if is_buyer else None
        if buyer is None:
            raise missing
        named = await self._naming(buyer.cbids) if with_acknowledgments else []
        owner = (buyer.account_id, buyer.mode)
        return await self._planned(subject, owner, [*buyer.verifications, *named])

    async def _planned(
        self, subject: str, buyer: tuple[str, Mode] | None, records: Sequence[Erasable]
    ) -> Plan:
        return Plan(
            subject=subject,
            buyer=buyer,
            records=tuple(record for record in records if record.erased_at is None),
            kept_until=await self._kept_until(records),
        )

    async def __call__(self, plan: Plan, reason: ErasureReason) -> int:
        """Destroy it for good, and write that down; gives how many records lost their disclosures.

        The records themselves, their entries in the log and every proof stay valid. Each erasure
        gets a record of its own, and they stand in no order: one that named all that a buyer did
        would tell for ever that it was one buyer.

        Raises:
            OnHold: a legal hold keeps something of it; nothing was destroyed.
        """
        parts = [
            await self._part(record.account_id, record.mode, [record.record_id], reason)
            for record in sorted(plan.records, key=lambda _: self._entropy(8))
        ]
        if plan.buyer and plan.buyer not in {(r.account_id, r.mode) for r in plan.records}:
            parts.append(await self._part(*plan.buyer, [], reason))
        if parts:
            cbid = plan.subject if plan.buyer else None
            audit = self._audit.entry(
                AuditAction.ERASED, plan.subject, reason=reason.value, records=len(plan.records)
            )
            await self._store.erase(parts, cbid, self._cbid_index, audit)
        return len(plan.records)

    async def _part(
        self, account_id: str, mode: Mode, ids: Sequence[str], reason: ErasureReason
    ) -> RecordErasure:
        erasure = await self._recorder.of_account(
            RecordType.ERASURE,
            record_id=timed_id(FACT, self._clock.time_ns(), self._entropy(8)),
            account_id=account_id,
            mode=mode,
            members={"erased": [*ids], "reason": reason.value},
        )
        return RecordErasure(ids, erasure)

    async def due(self) -> AsyncIterator[Due]:
        """What has outlived its retention, held or not: acknowledgments, then verifications.

        Of each, the oldest come first.
        """
        now = from_ns(self._clock.time_ns())
        async for due in self._due_acknowledgments(now):
            yield due
        async for due in self._due_evidence(now):
            yield due

    async def _due_acknowledgments(self, now: datetime) -> AsyncIterator[Due]:
        years = await self._retention()
        after = ""
        while years:
            page = await self._store.older(years_after(now, -min(years.values())), after, _PAGE)
            held = await self._store.held([record.record_id for record in page], self._cbid_index)
            for record in page:
                own = years.get(_read_digest(record.body).notice_digest)
                ended = None if own is None else years_after(record.at, own)
                if ended is not None and ended <= now:
                    yield _due(record, ended, held)
            if len(page) < _PAGE:
                return
            after = page[-1].record_id

    async def _due_evidence(self, now: datetime) -> AsyncIterator[Due]:
        kept, after = self._evidence_retention, ""
        while True:
            page = await self._store.old_evidence(
                now - kept.verified, now - kept.other, after, _PAGE
            )
            held = await self._store.held([old.record.record_id for old in page], self._cbid_index)
            for old in page:
                ended = old.record.at + (kept.verified if old.verified else kept.other)
                yield _due(old.record, ended, held)
            if len(page) < _PAGE:
                return
            after = page[-1].record.record_id

    async def find(self, ack_id: str) -> Erasable | None:
        """One acknowledgment, of whichever account and mode."""
        return await self._store.record(ack_id) if is_id(ACKNOWLEDGMENT, ack_id) else None

    async def hold(self, subject: str, reason: str) -> Hold:
        """Keep from being erased: an acknowledgment, or all of a buyer or an account.

        On a buyer, it keeps the acknowledgments that name it too, of whichever account.

        Raises:
            UnknownSubject: there is nothing with this identifier.
            InvalidArgument: no reason is given.
        """
        if not reason.strip():
            msg = "Give a reason: --reason TEXT."
            raise InvalidArgument(msg)
        time_ns = self._clock.time_ns()
        placed = Hold(
            id=timed_id(HOLD, time_ns, self._entropy(8)),
            subject=subject,
            reason=reason.strip(),
            placed_at=from_ns(time_ns),
            released_at=None,
        )
        entry = self._audit.entry(
            AuditAction.HOLD_PLACED, subject, hold_id=placed.id, reason=placed.reason
        )
        await self._store.place_hold(placed, entry)
        return placed

    async def release(self, hold_id: str) -> None:
        """End a hold.

        Raises:
            UnknownSubject: there is no such hold.
        """
        hold = next((hold for hold in await self._store.holds() if hold.id == hold_id), None)
        if hold is None:
            raise UnknownSubject(
                f"The hold {hold_id!r} does not exist; `countersign holds list` shows all holds."
            )
        entry = self._audit.entry(AuditAction.HOLD_RELEASED, hold.subject, hold_id=hold_id)
        await self._store.release_hold(hold_id, from_ns(self._clock.time_ns()), entry)

    async def holds(self) -> Sequence[Hold]:
        """Every hold, oldest first."""
        return await self._store.holds()

    async def _naming(self, cbids: Sequence[str]) -> Sequence[Erasable]:
        accounts = await self._accounts.list()
        indexes = [self._cbid_index(account.id, cbid) for account in accounts for cbid in cbids]
        named = await self._store.naming(indexes)
        acks = [r.record_id for r in named if is_id(ACKNOWLEDGMENT, r.record_id)]
        orders = await self._store.of_orders(acks)
        return [*{record.record_id: record for record in (*named, *orders)}.values()]

    def _cbid_index(self, account_id: str, cbid: str) -> bytes:
        return self._secret.blind_index(account_id, CBID_FIELD, cbid)

    async def _kept_until(self, records: Sequence[Erasable]) -> datetime | None:
        years = await self._retention()
        ends = [
            years_after(record.at, own)
            for record in records
            if is_id(ACKNOWLEDGMENT, record.record_id)
            and (own := years.get(_read_digest(record.body).notice_digest)) is not None
        ]
        return max(ends, default=None)

    async def _retention(self) -> dict[str, int]:
        """The years that acknowledgments are to be kept, by the digest of the notice."""
        versions = await self._notices.database.read(notices_sql.versions)
        found = {v.digest: _read_retention(v.body) for v in versions}
        return {d: r.retention_years for d, r in found.items() if r.retention_years is not None}


def _due(record: Erasable, ended: datetime, held: Mapping[str, tuple[str, str]]) -> Due:
    hold, _ = held.get(record.record_id, (None, None))
    return Due(
        record_id=record.record_id,
        account_id=record.account_id,
        mode=record.mode,
        at=record.at,
        retention_ended_at=ended,
        hold=hold,
    )


async def destroy_copies(database: Database) -> bool:
    """Destroy copies of what was erased; False if another process keeps some of them.

    They are pages in the write-ahead log of the embedded database. On PostgreSQL vacuum and
    archiving decide: nothing is known of copies here.
    """
    noted = await database.read(noted_copies)
    if noted is None:
        return True
    if not await database.empty_log():
        return False
    # Only what was noted before: something may have been erased since.
    await database.write(delete_noted_copies, noted)
    return True
