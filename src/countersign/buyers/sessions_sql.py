"""Sessions that a provider has not decided: kept so that they are asked about again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from countersign.buyers.model import Attempt, Buyer, BuyerStatus, after_attempt
from countersign.buyers.sql import buyers_by_cbid, tell_of_buyer, write_buyer
from countersign.buyers.verification import Following, LiveVerification, Pending
from countersign.db.database import Database
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
    pending_sessions.c.mode == bindparam("mode"),
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


class _Claim(NamedTuple):
    pending: Pending
    next_poll_at: datetime


class _Drop(NamedTuple):
    pending: Pending
    at: datetime


class _Message(NamedTuple):
    account_id: str
    mode: Mode
    session_index: bytes
    message_index: bytes
    at: datetime


class PendingSessions:
    """See `ports.PendingSessionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(
        self, now: datetime, limit: int, but_of: Collection[str] = ()
    ) -> Sequence[Pending]:
        """The sessions to ask about by now, those that have waited longest first."""
        return await self._database.scan(_due, (now, limit, but_of))

    async def waiting(self) -> tuple[int, datetime | None]:
        """How many sessions are followed, and since when the oldest one is."""
        return await self._database.scan(_waiting, None)

    async def claim(self, pending: Pending, next_poll_at: datetime) -> bool:
        """Take the next poll of a session; False if another process did, or it is decided."""
        return await self._database.write(_claim, _Claim(pending, next_poll_at))

    async def hurry(
        self,
        account_id: str,
        mode: Mode,
        session_index: bytes,
        message_index: bytes,
        at: datetime,
    ) -> bool:
        """Ask about a session at once, because of a message; False if it was acted upon before."""
        message = _Message(account_id, mode, session_index, message_index, at)
        return await self._database.write(_hurry, message)

    async def drop(self, pending: Pending, at: datetime) -> None:
        """Follow a session no longer; a buyer who waits for nothing else has to verify anew."""
        await self._database.write(_drop, _Drop(pending, at))


def follow(
    connection: Connection, new: LiveVerification, following: Following, asked_index: bytes
) -> None:
    """Follow a session from now on, with what was asked last; its polls go on counting."""
    known = _id_of(connection, new.account_id, new.mode, asked_index)
    if known is not None:
        # What was asked may be another ZIP code now; the key that it was sealed with goes too.
        connection.execute(delete(shred_keys).where(shred_keys.c.record_id == known))
        connection.execute(
            update(pending_sessions)
            .where(pending_sessions.c.id == known)
            .values(id=following.id, request=following.request, cbid=new.cbid)
        )
    else:
        connection.execute(
            insert(pending_sessions),
            {
                "id": following.id,
                "account_id": new.account_id,
                "mode": new.mode,
                "session_index": new.session.session,
                "asked_index": asked_index,
                "cbid": new.cbid,
                "request": following.request,
                "polls": 0,
                "created_at": new.at,
                "next_poll_at": following.next_poll_at,
            },
        )
    connection.execute(insert(shred_keys), {"record_id": following.id, "key": following.shred_key})


def is_followed(connection: Connection, id_: str) -> bool:
    """Whether this session is followed still, as it was asked about then."""
    query = select(pending_sessions.c.id).where(pending_sessions.c.id == id_).with_for_update()
    return connection.execute(query).first() is not None


def unfollow(connection: Connection, account_id: str, mode: Mode, asked_index: bytes) -> None:
    """Follow a session no longer, if it was followed."""
    known = _id_of(connection, account_id, mode, asked_index)
    if known is not None:
        _forget(connection, known)


def _id_of(connection: Connection, account_id: str, mode: Mode, asked_index: bytes) -> str | None:
    key = {"account_id": account_id, "mode": mode, "asked_index": asked_index}
    found: str | None = connection.execute(_BY_SESSION, key).scalar_one_or_none()
    return found


def _forget(connection: Connection, id_: str) -> bool:
    gone = connection.execute(delete(pending_sessions).where(pending_sessions.c.id == id_))
    connection.execute(delete(shred_keys).where(shred_keys.c.record_id == id_))
    return gone.rowcount == 1


def _due(connection: Connection, item: tuple[datetime, int, Collection[str]]) -> Sequence[Pending]:
    now, limit, but_of = item
    query = (
        _SELECT.where(
            pending_sessions.c.next_poll_at <= now, pending_sessions.c.account_id.not_in(but_of)
        )
        .order_by(pending_sessions.c.next_poll_at)
        .limit(limit)
    )
    return [_pending(row) for row in connection.execute(query)]


def _waiting(connection: Connection, _: None) -> tuple[int, datetime | None]:
    number, oldest = connection.execute(_COUNT).one()
    return number, oldest


def _claim(connection: Connection, claim: _Claim) -> bool:
    pending = claim.pending
    done = connection.execute(
        _CLAIM,
        {
            "key": pending.id,
            "seen": pending.polls,
            "due": pending.next_poll_at,
            "polls": pending.polls + 1,
            "next_poll_at": claim.next_poll_at,
        },
    )
    return done.rowcount == 1


def _hurry(connection: Connection, message: _Message) -> bool:
    key = {"account_id": message.account_id, "message_index": message.message_index}
    seen = select(provider_messages.c.at).where(
        provider_messages.c.account_id == message.account_id,
        provider_messages.c.message_index == message.message_index,
    )
    if connection.execute(seen).first() is not None:
        return False
    connection.execute(insert(provider_messages), key | {"at": message.at})
    connection.execute(
        update(pending_sessions)
        .where(
            pending_sessions.c.account_id == message.account_id,
            pending_sessions.c.mode == message.mode,
            pending_sessions.c.session_index == message.session_index,
        )
        .values(next_poll_at=message.at)
    )
    return True


def _drop(connection: Connection, drop: _Drop) -> None:
    pending = drop.pending
    before = buyers_by_cbid(connection, [pending.cbid], to_change=True).get(pending.cbid)
    # It may have been decided, or asked about anew, since it was read.
    dropped = _forget(connection, pending.id)
    if not dropped or before is None or not _waits(connection, before):
        return
    # Else the buyer would be told to wait for ever.
    undecided = Attempt(
        status=BuyerStatus.REQUIRES_INPUT,
        at=drop.at,
        reasons=(Reason.SESSION_UNDECIDED,),
        account_id=pending.account_id,
    )
    after = after_attempt(before, undecided)
    write_buyer(connection, before, after)
    if after != before:
        tell_of_buyer(connection, after, drop.at)


def _waits(connection: Connection, buyer: Buyer) -> bool:
    """Whether the buyer is told to wait or to go on, in a session that is followed no longer."""
    if (
        buyer.status is not BuyerStatus.PENDING
        and Reason.IDENTITY_REQUIRES_INPUT not in buyer.reasons
    ):
        return False
    others = select(pending_sessions.c.id).where(pending_sessions.c.cbid == buyer.cbid).limit(1)
    return connection.execute(others).first() is None


def _pending(row: Row[*tuple[Any, ...]]) -> Pending:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name
    return Pending(**values | {"mode": Mode(row.mode)})
