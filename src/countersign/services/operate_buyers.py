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
from countersign.domain.verification import StoredEvidence
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.ports import AuditStore, Clock, OperatedBuyerStore
from countersign.services.acknowledge import CBID_FIELD
from countersign.services.judge_session import EVIDENCE_TABLE
from countersign.services.operators import Audit
from countersign.services.secrets import DeploymentSecret
from countersign.services.test_clocks import TestClocks
from countersign.services.vault import Vault

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedEvidence:
    """The evidence of one verification, opened: it holds everything about a person.

    `content` is None where it was erased.
    """

    verification_id: str
    account_id: str
    provider: str
    status: BuyerStatus
    at: datetime
    erased_at: datetime | None
    content: dict[str, Any] | None

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
        secret: DeploymentSecret,
        clocks: TestClocks,
        clock: Clock,
    ) -> None:
        self._store = store
        self._secret = secret
        self._clocks = clocks
        self._audit_store = audit_store
        self._vault = vault
        self._audit = audit
        self._clock = clock

    async def show(self, cbid: str) -> tuple[Buyer, BuyerStatus]:
        """A buyer, and its status now.

        Raises:
            UnknownSubject: there is no such buyer (any more).
        """
        buyer = await self._store.get(cbid)
        if buyer is None:
            raise await self._unknown(cbid)
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
            UnknownSubject: there is no such buyer (any more), or nothing but that it was revoked.
            InvalidArgument: no reason is given.
            WrongKeyEncryptionKey: it does not open.
        """
        buyer, _ = await self.show(cbid)
        entry = self._audit.entry(AuditAction.EVIDENCE_SHOWN, buyer.cbid, reason=_checked(reason))
        await self._audit_store.add(entry)
        found = await self._store.evidence(buyer.cbid)
        if not found and await self._was_erased(buyer.cbid):
            raise UnknownSubject(f"All of {buyer.cbid} was erased but that it was revoked.")
        for stored in found:
            yield OpenedEvidence(
                verification_id=stored.verification_id,
                account_id=stored.account_id,
                provider=stored.provider,
                status=stored.status,
                at=stored.at,
                erased_at=stored.erased_at,
                content=None if stored.erased_at else await self._opened(stored),
            )

    async def audit_log(self, subject: str | None) -> Sequence[AuditEntry]:
        """What operators did with a subject, or with all, oldest first.

        Of a buyer that goes on under another identifier, also what was done under that one.
        """
        found = await self._audit_store.find(subject)
        buyer = None if subject is None else await self._store.get(subject)
        if buyer is None or buyer.cbid == subject:
            return found
        later = await self._audit_store.find(buyer.cbid)
        return sorted((*found, *later), key=lambda entry: entry.id)

    async def _opened(self, stored: StoredEvidence) -> dict[str, Any]:
        content = await self._vault.open(
            stored.payload,
            shred_key=stored.shred_key,
            table=EVIDENCE_TABLE,
            column="payload",
            account=stored.account_id,
            row_id=stored.verification_id,
        )
        return _decode(content)

    async def _unknown(self, cbid: str) -> UnknownSubject:
        if await self._was_erased(cbid):
            return UnknownSubject(f"The buyer {cbid} was erased: nothing is left of it.")
        return UnknownSubject(f"There is no buyer {cbid!r}.")

    async def _was_erased(self, cbid: str) -> bool:
        return await self._store.was_erased(
            cbid, lambda scope, value: self._secret.blind_index(scope, CBID_FIELD, value)
        )


def _checked(reason: str) -> str:
    if not reason.strip():
        raise InvalidArgument("Say why: --reason TEXT.")
    return reason.strip()
