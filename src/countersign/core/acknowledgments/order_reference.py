"""The vendor's own reference of an order."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from countersign.base.db.tables import checkout_sessions
from countersign.base.errors import OrderReferenceMismatch
from countersign.core.access.key import Principal
from countersign.core.access.room import Access
from countersign.core.access.secrets import DeploymentSecret
from countersign_evidence.record import REFERENCE_FIELD

CHECKOUT_FIELD: Final = "checkout_session.session_id"
"""Domain of the blind indexes of checkout sessions."""


def reference_index(
    secret: DeploymentSecret, account_id: str, reference: str | None
) -> bytes | None:
    """The blind index of this reference; None without one."""
    if reference is None:
        return None
    return secret.blind_index(account_id, REFERENCE_FIELD, reference)


async def require_same_reference(
    access: Access, who: Principal, session_id: str | None, reference: str | None
) -> None:
    """Check that an object given for a vendor's session belongs to the session's order.

    Without a reference nothing is looked up.

    Raises:
        OrderReferenceMismatch: checkout sessions were made for it, all with another reference.
    """
    if await of_another_order(access, who, session_id, reference):
        raise OrderReferenceMismatch("The checkout session has another order_reference.")


async def of_another_order(
    access: Access, who: Principal, session_id: str | None, reference: str | None
) -> bool:
    """Whether checkout sessions were made for it, all with another reference."""
    if session_id is None or reference is None:
        return False
    own = reference_index(access.secret, who.account_id, reference)
    session = access.secret.blind_index(who.account_id, CHECKOUT_FIELD, session_id)
    known = await access.database.read(_references_of, who, session)
    return bool(known) and own not in known


def _references_of(connection: Connection, who: Principal, session_index: bytes) -> set[bytes]:
    c = checkout_sessions.c
    wanted = select(c.reference_index).where(
        c.session_index == session_index,
        c.account_id == who.account_id,
        c.mode == who.mode,
        c.reference_index.is_not(None),
    )
    return {*connection.execute(wanted).scalars()}
