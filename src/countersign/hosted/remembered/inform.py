"""Informing an account about a remembered buyer who has agreed to it, and writing that down.

The record is written in the transaction that applies the response, so information and record never
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from countersign.base.db.tables import remembered_uses, verifications
from countersign.base.errors import CheckoutSessionClosed
from countersign.base.ids import timed_id
from countersign.base.instant import from_ns
from countersign.base.mode import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.session_evidence import (
    VerificationAct,
    verification_id,
    write_verification,
)
from countersign.core.buyers.sql import StatusQuery, buyers_by_cbid
from countersign.core.buyers.started import REMEMBERED as PROVIDER
from countersign.core.buyers.started import judge, judge_known
from countersign.core.log.record import NewRecord
from countersign.hosted.remembered.model import KnownBy
from countersign.hosted.remembered.room import Remembered

_USE: Final = "use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Informing:
    """Information for an account; nothing is written before `write`."""

    room: Remembered
    query: StatusQuery
    check: IdentityCheck
    """Only the status `verified` informs the account; the buyer sees the others, too."""
    write_record: Callable[..., NewRecord] | None
    use: Mapping[str, object]
    shipping_zip: str | None
    at: datetime
    now: datetime
    """The same by the test clock."""

    def write(self, connection: Connection) -> None:
        """Write the record and the use, in the transaction of what follows from them.

        Raises CheckoutSessionClosed if the buyer was erased, revoked or joined to another one, or
        is for another reason no longer verified; the transaction is to be rolled back.
        """
        cbid, index = self.query.cbid, self.room.buyers.access.secret.blind_index
        buyer = buyers_by_cbid(connection, [cbid], to_change=True).get(cbid)
        if buyer is None:
            raise CheckoutSessionClosed("The buyer was erased.")
        if self.write_record is None:
            connection.execute(insert(remembered_uses), dict(self.use))
            return
        known = judge(connection, self.room.buyers, self.query, None, self.at, self.now)
        still = isinstance(known, IdentityCheck) and known.status is BuyerStatus.VERIFIED
        if not still or buyer.same_as is not None:
            raise CheckoutSessionClosed("The buyer is not verified for this account now.")
        connection.execute(insert(remembered_uses), dict(self.use))
        account_id, subject = self.query.account_id, None
        if self.query.mode is Mode.TEST:
            # In the sandbox the guesses of a session count: see `buyers.sandbox`.
            first = select(verifications.c.subject_index).where(verifications.c.cbid == cbid)
            subject = connection.execute(first.order_by(verifications.c.id).limit(1)).scalar()
        zip_ = self.shipping_zip
        self.write_record(
            connection,
            subject_index=subject or index(account_id, "buyer", cbid),
            zip_index=None if zip_ is None else index(account_id, "zip", zip5(zip_)),
        )


async def inform(
    room: Remembered, account_id: str, known: KnownBy, shipping_zip: str | None
) -> Informing:
    """Whether this buyer is verified for this account now.

    If so, there is a record of it to write, which the check names as its `verification`.
    """
    check = await judge_known(
        room.buyers, AccountReach(account_id, known.mode), known.cbid, shipping_zip
    )
    access = room.buyers.access
    clock = await access.test_clocks.of(account_id, known.mode)
    time_ns = access.clock.time_ns()
    at = from_ns(time_ns)
    write_record = None
    if check.status is BuyerStatus.VERIFIED and check.cbid is not None:
        key = await room.buyers.vault.data_key(account_id, time_ns)
        act = VerificationAct(account_id, known.mode, clock, time_ns, key)
        record_id = verification_id(access, time_ns)
        write_record = partial(
            write_verification,
            room=room.buyers,
            act=act,
            cbid=check.cbid,
            provider=PROVIDER,
            result=(check.status, ()),
            record_id=record_id,
            personal=() if known.mode is Mode.TEST else (("evidence_sha256", None),),
            members={"binding": known.kind.binding.value},
        )
        check = replace(check, verification=record_id)
    use = {
        "id": timed_id(_USE, time_ns, access.entropy(8)),
        "mode": known.mode,
        "cbid": known.cbid,
        "account_id": account_id,
        "kind": known.kind,
        "verified": write_record is not None,
        "at": at,
    }
    return Informing(
        room=room,
        query=StatusQuery(account_id, known.mode, check.cbid or known.cbid),
        check=check,
        write_record=write_record,
        use=use,
        shipping_zip=shipping_zip,
        at=at,
        now=clock.at(at),
    )
