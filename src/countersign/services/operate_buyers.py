"""What operators do with buyers: look at them and at the evidence, revoke, reinstate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from countersign.domain.audit import AuditAction, AuditEntry
from countersign.domain.buyer import Buyer, BuyerStatus, status_at
from countersign.domain.instant import from_ns
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.ports import AuditStore, Clock, OperatedBuyerStore
from countersign.services.judge_session import EVIDENCE_TABLE
from countersign.services.operators import Audit
from countersign.services.test_clocks import TestClocks
from countersign.services.vault import Vault

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedEvidence:
    """The evidence of one verification, opened: it holds everything about a person."""

    verification_id: str
    account_id: str
    provider: str
    status: BuyerStatus
    at: datetime
    content: dict[str, Any]

    def __repr__(self) -> str:
        return f"<OpenedEvidence: {self.verification_id}>"


class OperateBuyers:
    """The acts of an operator on buyers; each is written down."""

    def __init__(
        self,
        *,
        store: OperatedBuyerStore,
        audit_store: AuditStore,
        vault: Vault,
        audit: Audit,
        clocks: TestClocks,
        clock: Clock,
    ) -> None:
        self._store = store
        self._clocks = clocks
        self._audit_store = audit_store
        self._vault = vault
        self._audit = audit
        self._clock = clock

    async def show(self, cbid: str) -> tuple[Buyer, BuyerStatus]:
        """A buyer, and its status now.

        Raises:
            UnknownSubject: there is no such buyer.
        """
        buyer = await self._store.get(cbid)
        if buyer is None:
            raise UnknownSubject(f"There is no buyer {cbid!r}.")
        clock = await self._clocks.of(buyer.account_id, buyer.mode)
        return buyer, status_at(buyer, clock.at(from_ns(self._clock.time_ns())))

    async def revoke(self, cbid: str, reason: str) -> Buyer:
        """Revoke a buyer and its documents, until it is reinstated.

        Raises:
            UnknownSubject: there is no such buyer.
            InvalidArgument: no reason is given.
        """
        entry = self._audit.entry(AuditAction.BUYER_REVOKED, cbid, reason=_checked(reason))
        return await self._store.revoke(cbid, entry)

    async def reinstate(self, cbid: str, reason: str) -> Buyer:
        """Undo a revocation.

        Raises:
            UnknownSubject: there is no such buyer.
            InvalidArgument: it is not revoked, or no reason is given.
        """
        entry = self._audit.entry(AuditAction.BUYER_REINSTATED, cbid, reason=_checked(reason))
        return await self._store.reinstate(cbid, entry)

    async def evidence(self, cbid: str, reason: str) -> AsyncIterator[OpenedEvidence]:
        """The evidence of a buyer's verifications, oldest first; that it was shown is kept first.

        Raises:
            UnknownSubject: there is no such buyer.
            InvalidArgument: no reason is given.
            WrongKeyEncryptionKey: it does not open.
        """
        buyer, _ = await self.show(cbid)
        entry = self._audit.entry(AuditAction.EVIDENCE_SHOWN, buyer.cbid, reason=_checked(reason))
        await self._audit_store.add(entry)
        for stored in await self._store.evidence(buyer.cbid):
            content = await self._vault.open(
                stored.payload,
                shred_key=stored.shred_key,
                table=EVIDENCE_TABLE,
                column="payload",
                account=stored.account_id,
                row_id=stored.verification_id,
            )
            yield OpenedEvidence(
                verification_id=stored.verification_id,
                account_id=stored.account_id,
                provider=stored.provider,
                status=stored.status,
                at=stored.at,
                content=_decode(content),
            )

    async def audit_log(self, subject: str | None) -> Sequence[AuditEntry]:
        """What operators did with a subject, or with all, oldest first."""
        return await self._audit_store.find(subject)


def _checked(reason: str) -> str:
    if not reason.strip():
        raise InvalidArgument("Say why: --reason TEXT.")
    return reason.strip()
