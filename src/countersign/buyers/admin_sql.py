"""What operators do with buyers: look at the evidence, revoke, reinstate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, and_, or_, select

from countersign.access.audit import AuditEntry, write_audit
from countersign.buyers.model import Buyer, BuyerStatus, after_revocation, reinstated
from countersign.buyers.sql import buyers_by_cbid, tell_of_buyer, write_buyer
from countersign.buyers.verification import StoredEvidence
from countersign.db.database import Database
from countersign.db.tables import (
    deployment,
    erasures,
    records,
    shred_keys,
    verification_evidence,
    verifications,
)
from countersign.errors import InvalidArgument, UnknownSubject
from countersign.mode import Mode


class _Change(NamedTuple):
    cbid: str
    revoke: bool
    audit: AuditEntry


class OperatedBuyers:
    """See `ports.OperatedBuyerStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, cbid: str) -> Buyer | None:
        """A buyer of whichever mode and account; the one it goes on as, where it does."""
        return await self._database.read(_get, cbid)

    async def revoke(self, cbid: str, audit: AuditEntry) -> Buyer:
        """Revoke a buyer, and so its documents; gives it as it is then.

        Raises:
            UnknownSubject: there is no such buyer.
        """
        return await self._database.write(_change, _Change(cbid, revoke=True, audit=audit))

    async def reinstate(self, cbid: str, audit: AuditEntry) -> Buyer:
        """Undo a revocation; gives the buyer as it is then.

        Raises:
            UnknownSubject: there is no such buyer.
            InvalidArgument: it is not revoked.
        """
        return await self._database.write(_change, _Change(cbid, revoke=False, audit=audit))

    async def evidence(self, cbid: str) -> Sequence[StoredEvidence]:
        """The evidence of a buyer's verifications, oldest first; without content where erased."""
        return await self._database.scan(_evidence, cbid)

    async def was_erased(self, name: str) -> bool:
        """Whether the buyer with this name of `erased_name` was erased."""
        return await self._database.read(_was_erased, name)


def _get(connection: Connection, cbid: str) -> Buyer | None:
    return _find(connection, cbid)


def _find(connection: Connection, cbid: str, *, to_change: bool = False) -> Buyer | None:
    buyer = buyers_by_cbid(connection, [cbid], to_change=to_change).get(cbid)
    if buyer is None or buyer.same_as is None:
        return buyer
    return buyers_by_cbid(connection, [buyer.same_as], to_change=to_change).get(buyer.same_as)


def _change(connection: Connection, change: _Change) -> Buyer | UnknownSubject | InvalidArgument:
    before = _find(connection, change.cbid, to_change=True)
    if before is None:
        return UnknownSubject(f"The buyer {change.cbid!r} does not exist.")
    if not change.revoke and before.status is not BuyerStatus.REVOKED:
        return InvalidArgument(f"The buyer {before.cbid} is not revoked.")
    after = after_revocation(before) if change.revoke else reinstated(before)
    write_buyer(connection, before, after)
    if after != before:
        tell_of_buyer(connection, after, change.audit.at)
    write_audit(connection, replace(change.audit, subject=before.cbid))
    return after


def _evidence(connection: Connection, cbid: str) -> Sequence[StoredEvidence]:
    query = (
        select(
            verifications.c.id,
            verifications.c.account_id,
            verifications.c.mode,
            verifications.c.provider,
            verifications.c.status,
            verifications.c.at,
            verification_evidence.c.payload,
            shred_keys.c.key.label("shred_key"),
            erasures.c.at.label("erased_at"),
        )
        .join(records, records.c.id == verifications.c.id)
        .outerjoin(verification_evidence, verification_evidence.c.record_id == verifications.c.id)
        .outerjoin(shred_keys, shred_keys.c.record_id == verifications.c.id)
        .outerjoin(erasures, erasures.c.record_id == verifications.c.id)
        .where(
            verifications.c.cbid == cbid,
            # Simulated verifications have no evidence, and never had any.
            verifications.c.session_index.is_not(None),
            or_(
                erasures.c.at.is_not(None),
                and_(verification_evidence.c.payload.is_not(None), shred_keys.c.key.is_not(None)),
            ),
        )
        .order_by(verifications.c.id)
    )
    return [
        StoredEvidence(
            verification_id=row.id,
            account_id=row.account_id,
            mode=Mode(row.mode),
            provider=row.provider,
            status=BuyerStatus(row.status),
            at=row.at,
            payload=row.payload or b"",
            shred_key=row.shred_key or b"",
            erased_at=row.erased_at,
        )
        for row in connection.execute(query)
    ]


def _was_erased(connection: Connection, name: str) -> bool:
    found = connection.execute(select(deployment.c.name).where(deployment.c.name == name))
    return found.first() is not None
