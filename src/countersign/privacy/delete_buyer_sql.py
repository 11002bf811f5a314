"""Forgetting a buyer: everything about it that is not a record."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, delete, select, update

from countersign.buyers.model import BuyerStatus
from countersign.db.tables import (
    acknowledgment_uses,
    buyer_documents,
    buyers,
    events,
    pending_sessions,
    provider_sessions,
    shred_keys,
    verification_evidence,
    verifications,
    zip_attempts,
)

_SELECT_ALIASES: Final = select(buyers.c.cbid).where(buyers.c.same_as == bindparam("cbid"))
_SELECT_GOES_ON_AS: Final = select(buyers.c.same_as).where(buyers.c.cbid == bindparam("cbid"))


def identifiers_of(connection: Connection, cbid: str) -> list[str]:
    """All identifiers of the person that this one names, the one it goes on as first."""
    primary = connection.execute(_SELECT_GOES_ON_AS, {"cbid": cbid}).scalar() or cbid
    return [primary, *connection.execute(_SELECT_ALIASES, {"cbid": primary}).scalars()]


def forget_buyer(connection: Connection, cbid: str) -> None:
    """Destroy what is known of a buyer, under each of its identifiers.

    That it was revoked is not forgotten, or erasing would be a way around a revocation: then its
    identifiers, and the keyed hashes of its documents and sessions, stay with nothing else.
    """
    cbids = identifiers_of(connection, cbid)
    status = select(buyers.c.status).where(buyers.c.cbid == cbids[0])
    revoked = connection.execute(status).scalar() == BuyerStatus.REVOKED
    own = select(verifications.c.id).where(verifications.c.cbid.in_(cbids))
    guesses = select(verifications.c.subject_index).where(verifications.c.cbid.in_(cbids))
    pending = select(pending_sessions.c.id).where(pending_sessions.c.cbid.in_(cbids))
    askers = select(verifications.c.account_id).where(verifications.c.cbid.in_(cbids))
    for doomed in (
        # That something happened stays for as long as events do; why does not.
        update(events)
        .where(events.c.account_id.in_(askers), events.c.object_id.in_(cbids))
        .values(reasons=None),
        delete(verification_evidence).where(verification_evidence.c.record_id.in_(own)),
        delete(shred_keys).where(shred_keys.c.record_id.in_(own)),
        delete(shred_keys).where(shred_keys.c.record_id.in_(pending)),
        delete(pending_sessions).where(pending_sessions.c.cbid.in_(cbids)),
        delete(zip_attempts).where(zip_attempts.c.subject_index.in_(guesses)),
        delete(verifications).where(verifications.c.cbid.in_(cbids)),
    ):
        connection.execute(doomed)
    if revoked:
        bare = {
            "reasons": "[]",
            "attempted_by": None,
            "proofs": "[]",
            "verified_at": None,
            "expires_at": None,
        }
        connection.execute(update(buyers).where(buyers.c.cbid.in_(cbids)).values(bare))
    else:
        for table in (buyer_documents, provider_sessions, buyers):
            connection.execute(delete(table).where(table.c.cbid.in_(cbids)))
    # What an acknowledgment was used for stays: it must not be used once more.
    connection.execute(
        update(acknowledgment_uses).where(acknowledgment_uses.c.cbid.in_(cbids)).values(cbid=None)
    )
