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
from countersign.base.values import Mode, from_ns
from countersign.core.access.key import AccountReach
from countersign.core.buyers.identity_check import IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.sql import StatusQuery, buyers_by_cbid, write_verification
from countersign.core.buyers.started import REMEMBERED as PROVIDER
from countersign.core.buyers.started import judge, judge_known
from countersign.core.buyers.verification_record import (
    VerificationAct,
    verification_id,
    verification_record,
)
from countersign.core.log.record import NewRecord
from countersign.core.parties import Bound, bound_now
from countersign.hosted.remembered.model import KnownBy
from countersign.hosted.remembered.room import Remembered
from countersign_evidence.canonical import Json

_USE: Final = "use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Informing:
    """Information for an account; nothing is written before `write`."""

    room: Remembered
    query: StatusQuery
    check: IdentityCheck
    """Only the status `verified` informs the account; the buyer sees the others, too."""
    make_record: Callable[[Bound], NewRecord] | None
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
        if self.make_record is None:
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
        record = self.make_record(bound_now(connection, account_id, self.query.mode))
        write_verification(
            connection,
            record,
            cbid=cbid,
            provider=PROVIDER,
            result=(BuyerStatus.VERIFIED, ()),
            subject_index=subject or index(account_id, "buyer", cbid),
            zip_index=None if zip_ is None else index(account_id, "zip", zip5(zip_)),
        )
        self.room.buyers.journal.write(connection, [record])


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
    make_record = None
    if check.status is BuyerStatus.VERIFIED and check.cbid is not None:
        key = await room.buyers.vault.data_key(account_id, time_ns)
        act = VerificationAct(account_id, known.mode, clock, time_ns, key)
        record_id = verification_id(access, time_ns)
        verified = (check.cbid, record_id, PROVIDER, None, (check.status, ()))
        personal = () if known.mode is Mode.TEST else (("evidence_sha256", None),)
        members: dict[str, Json] = {"binding": known.kind.binding.value}
        make_record = partial(verification_record, access, act, *verified, personal, members)
        check = replace(check, verification=record_id)
    use = {
        "id": timed_id(_USE, time_ns, access.entropy(8)),
        "mode": known.mode,
        "cbid": known.cbid,
        "account_id": account_id,
        "kind": known.kind,
        "verified": make_record is not None,
        "at": at,
    }
    return Informing(
        room=room,
        query=StatusQuery(account_id, known.mode, check.cbid or known.cbid),
        check=check,
        make_record=make_record,
        use=use,
        shipping_zip=shipping_zip,
        at=at,
        now=clock.at(at),
    )
