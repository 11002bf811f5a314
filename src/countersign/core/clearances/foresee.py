"""Reasons against an order before there are initials, shown to its buyer alone."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.base.errors import RateLimited
from countersign.core.access.key import Principal
from countersign.core.buyers.sql import followed_buyers
from countersign.core.buyers.zips import count_zip, own_zip_subject
from countersign.core.clearances.clear import PreparedOrder, case_of, prepare_order
from countersign.core.clearances.facts_sql import BatchFacts
from countersign.core.clearances.model import AcknowledgmentFacts, failed_checks, reasons_of
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import ClearanceRequest
from countersign.core.notices.model import NoticeEdition


async def foresee(
    room: Clearances, who: Principal, order: ClearanceRequest, notice: NoticeEdition, known: str
) -> tuple[str, ...]:
    """Why this order would not be cleared now, if its buyer had just initialed this notice.

    `known` is the buyer whose browser asks, by any of the buyer's identifiers: nothing is said of
    an order of somebody else. Nothing is written but the ZIP code that is tried, where the account
    does not see it.

    Raises:
        RateLimited: too many ZIP codes were tried for the buyer.
        InvalidRequest: no notice is about such a class of products.
    """
    item = await prepare_order(room, who, order)
    return await room.access.database.write(_foreseen, item, notice, known)


def _foreseen(
    connection: Connection, item: PreparedOrder, notice: NoticeEdition, known: str
) -> tuple[str, ...] | RateLimited:
    new, secret = item.new, item.room.access.secret
    facts = BatchFacts(connection, secret, [new]).of(new)
    person = followed_buyers(connection, [known]).get(known)
    if facts.buyer is None or person is None or person.cbid != facts.buyer.cbid:
        return ()
    initialed = AcknowledgmentFacts(
        accepted_at=new.clock_at,
        notice_id=notice.content.id,
        notice_version=notice.content.version,
        session_index=new.session_index,
        cbid_index=new.cbid_index,
        reference_index=None,
        erased=False,
    )
    case = case_of(item, replace(facts, acknowledgment=initialed))
    if not case.notice_in_force:
        return ()  # another one was published since the notices were read
    if case.zip_proved is not None:
        subject = own_zip_subject(secret, new.account_id, new.mode, person.cbid)
        refusal = count_zip(connection, subject, new.zip_index, new.at)
        if refusal is not None:
            return refusal
    return reasons_of(case, failed_checks(case))
