"""Sessions that a provider has not decided: kept so that they are asked about again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from countersign.buyers.model import Buyer, BuyerStatus, VerificationAttempt, after_attempt
from countersign.buyers.sql import buyers_by_cbid, write_buyer, write_status_event
from countersign.db.tables import pending_sessions, provider_messages, shred_keys
from countersign.mode import Mode
from countersign.reason import Reason

_SELECT: Final = select(
    pending_sessions.c.id,
    pending_sessions.c.account_id,
    pending_sessions.c.mode,
    pending_sessions.c.cbid,
    pending_sessions.c.request,
    shred_keys.c.key.label("shred_key"),
    pending_sessions.c.polls,
    pending_sessions.c.created_at,
    pending_sessions.c.next_poll_at,
).outerjoin(shred_keys, shred_keys.c.record_id == pending_sessions.c.id)
_BY_SESSION: Final = select(pending_sessions.c.id).where(
    pending_sessions.c.account_id == bindparam("account_id"),
    pending_sessions.c.mode == Mode.LIVE,
    pending_sessions.c.asked_index == bindparam("asked_index"),
)
_COUNT: Final = select(func.count(), func.min(pending_sessions.c.created_at))
_CLAIM: Final = (
    update(pending_sessions)
    .where(
        pending_sessions.c.id == bindparam("key"),
        pending_sessions.c.polls == bindparam("seen"),
        pending_sessions.c.next_poll_at == bindparam("due"),
    )
    .values(polls=bindparam("polls"), next_poll_at=bindparam("next_poll_at"))
)


class PendingSession(Struct, frozen=True, kw_only=True):
    """A session that the provider has not decided, as kept until it is asked again."""

    id: str
    """Its shred key is found under this id."""
    account_id: str
    mode: Mode
    cbid: str
    request: bytes
    """What is asked, sealed by the vault."""
    shred_key: bytes | None
    polls: int = 0
    created_at: datetime
    next_poll_at: datetime


def follow(
    connection: Connection, new: PendingSession, *, session_index: bytes, asked_index: bytes
) -> None:
    """Poll a session from now on, with the request of last; its polls go on counting."""
    known = _id_of(connection, new.account_id, asked_index)
    if known is not None:
        # The request may have another ZIP code now; the key that it was sealed with goes too.
        connection.execute(delete(shred_keys).where(shred_keys.c.record_id == known))
        connection.execute(
            update(pending_sessions)
            .where(pending_sessions.c.id == known)
            .values(id=new.id, request=new.request, cbid=new.cbid)
        )
    else:
        connection.execute(
            insert(pending_sessions),
            {
                "id": new.id,
                "account_id": new.account_id,
                "mode": new.mode,
                "session_index": session_index,
                "asked_index": asked_index,
                "cbid": new.cbid,
                "request": new.request,
                "polls": 0,
                "created_at": new.created_at,
                "next_poll_at": new.next_poll_at,
            },
        )
    connection.execute(insert(shred_keys), {"record_id": new.id, "key": new.shred_key})


def is_followed(connection: Connection, id_: str) -> bool:
    """Whether this session is still followed, as it was asked about at that time."""
    query = select(pending_sessions.c.id).where(pending_sessions.c.id == id_).with_for_update()
    return connection.execute(query).first() is not None


def unfollow(connection: Connection, account_id: str, asked_index: bytes) -> None:
    """Follow a session no longer, if it was followed."""
    known = _id_of(connection, account_id, asked_index)
    if known is not None:
        _forget(connection, known)


def _id_of(connection: Connection, account_id: str, asked_index: bytes) -> str | None:
    key = {"account_id": account_id, "asked_index": asked_index}
    found: str | None = connection.execute(_BY_SESSION, key).scalar_one_or_none()
    return found


def _forget(connection: Connection, id_: str) -> bool:
    gone = connection.execute(delete(pending_sessions).where(pending_sessions.c.id == id_))
    connection.execute(delete(shred_keys).where(shred_keys.c.record_id == id_))
    return gone.rowcount == 1


def due(
    connection: Connection, now: datetime, limit: int, but_of: Collection[str] = ()
) -> Sequence[PendingSession]:
    """The sessions to poll by now, those that have waited longest first.

    Sessions of the accounts in `but_of` are left out.
    """
    query = (
        _SELECT.where(
            pending_sessions.c.next_poll_at <= now, pending_sessions.c.account_id.not_in(but_of)
        )
        .order_by(pending_sessions.c.next_poll_at)
        .limit(limit)
    )
    return [_pending(row) for row in connection.execute(query)]


def waiting(connection: Connection) -> tuple[int, datetime | None]:
    """How many sessions are followed, and since when the oldest one is."""
    number, oldest = connection.execute(_COUNT).one()
    return number, oldest


def claim(connection: Connection, pending: PendingSession, next_poll_at: datetime) -> bool:
    """Take the next poll of a session; False if another process did, or it is decided."""
    claimed = connection.execute(
        _CLAIM,
        {
            "key": pending.id,
            "seen": pending.polls,
            "due": pending.next_poll_at,
            "polls": pending.polls + 1,
            "next_poll_at": next_poll_at,
        },
    )
    return claimed.rowcount == 1


def hurry(
    connection: Connection,
    account_id: str,
    session_index: bytes,
    message_index: bytes,
    at: datetime,
) -> bool:
    """Poll a session at once, because of a message; False if it was acted upon before."""
    key = {"account_id": account_id, "message_index": message_index}
    seen = select(provider_messages.c.at).where(
        provider_messages.c.account_id == account_id,
        provider_messages.c.message_index == message_index,
    )
    if connection.execute(seen).first() is not None:
        return False
    connection.execute(insert(provider_messages), key | {"at": at})
    connection.execute(
        update(pending_sessions)
        .where(
            pending_sessions.c.account_id == account_id,
            pending_sessions.c.mode == Mode.LIVE,
            pending_sessions.c.session_index == session_index,
        )
        .values(next_poll_at=at)
    )
    return True


def drop(connection: Connection, pending: PendingSession, at: datetime) -> None:
    """Follow a session no longer; a buyer who waits for nothing else has to verify again."""
    before = buyers_by_cbid(connection, [pending.cbid], to_change=True).get(pending.cbid)
    # It may have been decided, or asked about again, since it was read.
    dropped = _forget(connection, pending.id)
    if not dropped or before is None or not _waits(connection, before):
        return
    # Otherwise the buyer would be asked to wait without end.
    undecided = VerificationAttempt(
        status=BuyerStatus.REQUIRES_INPUT,
        at=at,
        reasons=(Reason.SESSION_UNDECIDED,),
        account_id=pending.account_id,
    )
    after = after_attempt(before, undecided)
    write_buyer(connection, before, after)
    if after != before:
        write_status_event(connection, after, at)


def _waits(connection: Connection, buyer: Buyer) -> bool:
    """Whether the buyer waits for, or should go on in, a session that is followed no longer."""
    if (
        buyer.status is not BuyerStatus.PENDING
        and Reason.IDENTITY_REQUIRES_INPUT not in buyer.reasons
    ):
        return False
    others = select(pending_sessions.c.id).where(pending_sessions.c.cbid == buyer.cbid).limit(1)
    return connection.execute(others).first() is None


def _pending(row: Row[*tuple[Any, ...]]) -> PendingSession:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name
    return PendingSession(**values | {"mode": Mode(row.mode)})
