"""The events of buyers, for every account that is concerned."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, bindparam, select

from countersign.buyers.model import Buyer, reasons_for
from countersign.db.tables import acknowledgment_uses, buyers, verifications
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.mode import Mode

_VERIFIED: Final = (
    select(verifications.c.account_id).where(verifications.c.cbid == bindparam("cbid")).distinct()
)
_CLEARED: Final = (
    select(acknowledgment_uses.c.account_id, acknowledgment_uses.c.cbid)
    .where(
        acknowledgment_uses.c.cbid.in_(bindparam("cbids", expanding=True)),
        acknowledgment_uses.c.clearance_id.is_not(None),
    )
    .distinct()
)
_ALIASES: Final = select(buyers.c.account_id, buyers.c.cbid).where(
    buyers.c.same_as == bindparam("cbid")
)


def write_buyer_events(  # noqa: PLR0917 - the columns
    connection: Connection,
    type_: EventType,
    mode: Mode,
    cbid: str,
    at: datetime,
    buyer: Buyer | None = None,
) -> None:
    """Write an event of a buyer for every account that has verified or cleared the buyer.

    `buyer` is given where there can be reasons: only the account that made the attempt gets them.
    An account that knows the buyer by another identifier of the same person gets the event under
    that identifier: no account learns an identifier that it did not have.
    """
    aliases = connection.execute(_ALIASES, {"cbid": cbid}).all()
    cleared = connection.execute(
        _CLEARED, {"cbids": [cbid, *(alias.cbid for alias in aliases)]}
    ).all()
    verified = connection.execute(_VERIFIED, {"cbid": cbid}).scalars()
    known = {(account_id, cbid) for account_id in verified}
    known |= {(alias.account_id, alias.cbid) for alias in aliases}
    known |= {(use.account_id, use.cbid) for use in cleared}
    write_events(
        connection,
        [
            NewEvent(
                *(account_id, mode, type_, name, at),
                reasons=() if buyer is None else reasons_for(buyer, account_id),
            )
            for account_id, name in sorted(known)
        ],
    )
