"""What operators do with buyers: look at them and at the evidence, revoke, reinstate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import msgspec

from countersign.access.audit import Audit, AuditAction, AuditEntry, find_audit, write_audit
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clocks import TestClocks
from countersign.buyers.erased import erased_name
from countersign.buyers.evaluate_session import EVIDENCE_TABLE, JudgeSession, SessionRequest
from countersign.buyers.model import Buyer, BuyerStatus, status_at
from countersign.buyers.settings import ManageVerification
from countersign.buyers.verification import Override, StoredEvidence
from countersign.db.database import Database
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.identity.model import (
    Address,
    Check,
    Document,
    Outcome,
    ProviderResult,
    Source,
    Tri,
)
from countersign.identity.postal_code import is_zip
from countersign.instant import from_ns
from countersign.ports import Clock, OperatedBuyerStore
from countersign.vault.vault import Vault

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
        database: Database,
        vault: Vault,
        manage: ManageVerification,
        judge: JudgeSession,
        audit: Audit,
        secret: DeploymentSecret,
        clocks: TestClocks,
        clock: Clock,
    ) -> None:
        self._store = store
        self._secret = secret
        self._clocks = clocks
        self._database = database
        self._vault = vault
        self._manage = manage
        self._judge = judge
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

    async def accept_zip(self, cbid: str, zip_: str, *, document: str, reason: str) -> Buyer:
        """Accept another ZIP code for a buyer whom a provider approved, on sight of a document.

        All other rules are applied again, to what the provider said then. It counts at accounts
        whose rules name `operator` among the sources of an address.

        Raises:
            UnknownSubject: there is no such buyer (any more).
            InvalidArgument: it is revoked, no provider approved it, the evidence is gone, the
                account's rules forbid it, or a rule other than that of the ZIP code fails.
        """
        if not is_zip(zip_):
            raise InvalidArgument("A ZIP code must have five digits, or be ZIP+4.")
        document, reason = _checked(document, "--document"), _checked(reason)
        buyer, _ = await self.show(cbid)
        if buyer.status is BuyerStatus.REVOKED:
            raise InvalidArgument(f"The buyer {buyer.cbid} is revoked.")
        basis, content = await self._approved(buyer)
        ready = await self._manage.ready(basis.account_id)
        place = (content["provider"], content["base_url"])
        if ready is None or place != (ready.settings.provider, ready.settings.base_url):
            raise InvalidArgument("The account no longer uses the provider of that verification.")
        if Source.OPERATOR not in ready.rules.zip_sources:
            msg = (
                f"The rules of {basis.account_id} do not accept an operator's confirmation of "
                "an address. To accept it, repeat the account's rules with one more source: "
                "countersign accounts verification set … --zip-source operator"
            )
            raise InvalidArgument(msg)
        details = {"reason": reason, "document": document, "verification": basis.verification_id}
        override = Override(
            verification_id=basis.verification_id,
            document=document,
            reason=reason,
            audit=self._audit.entry(AuditAction.BUYER_ZIP_ACCEPTED, buyer.cbid, **details),
        )
        asked = msgspec.convert(content["request"] | {"shipping_zip": zip_}, SessionRequest)
        await self._judge.override(ready, asked, remembered(content, zip_), override)
        return (await self.show(cbid))[0]

    async def evidence(self, cbid: str, reason: str) -> AsyncIterator[OpenedEvidence]:
        """The evidence of a buyer's verifications, oldest first; that it was shown is kept first.

        Raises:
            UnknownSubject: there is no such buyer (any more), or nothing but that it was revoked.
            InvalidArgument: no reason is given.
            WrongKeyEncryptionKey: it does not open.
        """
        buyer, _ = await self.show(cbid)
        entry = self._audit.entry(AuditAction.EVIDENCE_SHOWN, buyer.cbid, reason=_checked(reason))
        await self._database.write(write_audit, entry)
        found = await self._store.evidence(buyer.cbid)
        if not found and await self._was_erased(buyer.cbid):
            raise UnknownSubject(f"The buyer {buyer.cbid} was erased; only the revocation remains.")
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
        found = await self._database.scan(find_audit, subject)
        buyer = None if subject is None else await self._store.get(subject)
        if buyer is None or buyer.cbid == subject:
            return found
        later = await self._database.scan(find_audit, buyer.cbid)
        return sorted((*found, *later), key=lambda entry: entry.id)

    async def _approved(self, buyer: Buyer) -> tuple[StoredEvidence, dict[str, Any]]:
        """The newest verification in which a provider approved the person, opened."""
        for stored in reversed(await self._store.evidence(buyer.cbid)):
            if stored.erased_at is None:
                content = await self._opened(stored)
                read = content["read"]
                if read["outcome"] == Outcome.VERIFIED and not content.get("override"):
                    return stored, content
        raise InvalidArgument(
            f"No provider has approved {buyer.cbid}, or the evidence of the approval was "
            "erased: the buyer needs an identity session."
        )

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
            return UnknownSubject(f"The buyer {cbid} was erased completely.")
        return UnknownSubject(f"The buyer {cbid!r} does not exist.")

    async def _was_erased(self, cbid: str) -> bool:
        return await self._store.was_erased(erased_name(self._secret, cbid))


def remembered(content: dict[str, Any], zip_: str) -> ProviderResult:
    """What a provider said, from the evidence of it, and the address that an operator accepts."""
    read, request = content["read"], content["request"]
    document = None
    if read["document_type"] is not None or read["document_expires_on"] is not None:
        expires_on = msgspec.convert(read["document_expires_on"], date | None)
        document = Document(
            type=read["document_type"],
            issuing_country=None,
            issuing_region=None,
            expires_on=expires_on,
        )
    return ProviderResult(
        provider=content["provider"],
        session_id=request["session_id"],
        outcome=Outcome(read["outcome"]),
        provider_status=read["provider_status"],
        reason_code=read["reason_code"],
        live=read["live"],
        subject_reference=read["subject_reference"],
        decided_at=msgspec.convert(read["decided_at"], datetime | None),
        date_of_birth=msgspec.convert(read["date_of_birth"], date | None),
        date_of_birth_source=Source(read["date_of_birth_source"]),
        addresses=(
            *(Address(**a | {"source": Source(a["source"])}) for a in read["addresses"]),
            Address(postal_code=zip_, country="US", source=Source.OPERATOR),
        ),
        document=document,
        checks=tuple(
            Check(name=c["name"], verdict=Tri(c["verdict"]), raw=c["raw"]) for c in read["checks"]
        ),
    )


def _checked(text: str, option: str = "--reason") -> str:
    if not text.strip():
        raise InvalidArgument(f"Give a reason: {option} TEXT.")
    return text.strip()
