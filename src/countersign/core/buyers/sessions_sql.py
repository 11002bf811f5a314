"""Provider sessions: the buyer of each, and undecided ones to poll.

A session leads to a buyer by itself, by its document and by its reference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    delete,
    insert,
    literal,
    or_,
    select,
    update,
)

from countersign.base.db.statements import rows
from countersign.base.db.tables import (
    buyer_blocks,
    buyer_documents,
    buyers,
    pending_sessions,
    provider_messages,
    provider_sessions,
    shred_keys,
    started_checks,
    verification_evidence,
    verifications,
)
from countersign.base.values import Mode, Reason
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.buyers.identity_check import FOLLOWED, state_of
from countersign.core.buyers.model import (
    Buyer,
    BuyerStatus,
    after_revocation,
)
from countersign.core.buyers.sql import buyers_by_cbid, write_change, write_status_event
from countersign.core.buyers.started_sql import give_up


class PendingSession(Struct, frozen=True, kw_only=True):
    """A session that the provider has not decided, stored until the next poll."""

    id: str
    """Its shred key is found under this id."""
    account_id: str
    mode: Mode
    session_index: bytes
    asked_index: bytes
    """The session, or the session and the reference of the request."""
    cbid: str | None
    """None: a session that we started, and whose buyer is unknown."""
    request: bytes
    """The request, sealed by the vault."""
    shred_key: bytes | None
    polls: int = 0
    created_at: datetime
    next_poll_at: datetime

    @property
    def reach(self) -> AccountReach:
        """The account that asks."""
        return AccountReach(self.account_id, self.mode)


_SELECT: Final = select(
    *(pending_sessions.c[n] for n in PendingSession.__struct_fields__ if n != "shred_key"),
    shred_keys.c.key.label("shred_key"),
).outerjoin(shred_keys, shred_keys.c.record_id == pending_sessions.c.id)
# Built once: both are needed all the time.
_DUE: Final = (
    _SELECT.where(
        pending_sessions.c.next_poll_at <= bindparam("now"),
        pending_sessions.c.account_id.not_in(bindparam("but_of", expanding=True)),
    )
    .order_by(pending_sessions.c.next_poll_at)
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeys:
    """Identifies a session, its subject and its document, by keyed hashes.

    Until the provider has named the reference, each given reference leads to a separate buyer:
    otherwise a stranger's reference would lead to the session's real buyer.
    """

    mode: Mode
    session: bytes
    reference: bytes | None
    """The subject reference of the request."""
    with_reference: bytes | None
    """The session and that reference, together."""
    provider_reference: bytes | None
    """The subject reference that the provider names."""
    fingerprint: bytes | None
    """Of the document."""
    verifies: bool
    """Whether the attempt succeeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSubject:
    """The buyers found by session and document."""

    bound: bool = True
    """False: the session's reference differs from that of the request."""
    kept_under: bytes
    """The key in the table: the session, or until its reference is known, session and reference of
    the request."""
    kept: bool
    """Whether the session was kept before."""
    cbid: str | None
    """None: a new buyer."""
    others: tuple[str, ...] = ()
    """Further buyers found by session and document."""
    document_known: bool = False
    revoked: bool = False
    """Whether one of these buyers is."""
    first_verified_at: datetime | None = None
    """When this session first verified somebody."""


def person_to_change(
    connection: Connection, keys: SessionKeys
) -> tuple[SessionSubject, Buyer | None]:
    """The subject of a session, and the buyer as stored, locked."""
    while True:
        person = _find(connection, keys)
        known = [] if person.cbid is None else [person.cbid]
        before = buyers_by_cbid(connection, known, to_change=True)
        # PostgreSQL may have waited for the lock, while another server changed the buyers.
        if connection.dialect.name == "sqlite" or _find(connection, keys) == person:
            return person, before.get(person.cbid or "")


def _find(connection: Connection, keys: SessionKeys) -> SessionSubject:
    session = _session(connection, keys.mode, keys.session)
    reference = keys.provider_reference or (session and session.reference_index)
    before = None
    if keys.with_reference is not None:
        before = _session(connection, keys.mode, keys.with_reference)
    if keys.reference is not None and reference is None:
        # Whether the session is about this reference is not known yet: apart from others.
        return SessionSubject(
            kept_under=keys.with_reference or keys.session,
            kept=before is not None,
            cbid=before.cbid if before else None,
        )
    provisional = before.cbid if before else None
    of_session = session.cbid if session else provisional
    document = select(buyer_documents.c.cbid)
    document = document.filter_by(mode=keys.mode, fingerprint=keys.fingerprint)
    of_document = connection.execute(document).scalar() if keys.fingerprint else None
    known = [cbid for cbid in (of_session, of_document, provisional) if cbid is not None]
    statuses = {cbid: buyer.status for cbid, buyer in buyers_by_cbid(connection, known).items()}
    # One session never creates two buyers, and a failed attempt removes nothing.
    its_status = statuses.get(of_session or "")
    revoked = its_status is BuyerStatus.REVOKED
    stays = (session is not None and session.verified_at is not None) or (
        not keys.verifies and (revoked or its_status is BuyerStatus.VERIFIED)
    )
    cbid = of_session if stays else of_document or of_session
    # Nor does it revoke anyone: only a verification identifies a person.
    apart = revoked and not keys.verifies
    return SessionSubject(
        bound=keys.reference is None or reference == keys.reference,
        kept_under=keys.session,
        kept=session is not None,
        cbid=cbid,
        others=() if apart else tuple(dict.fromkeys(other for other in known if other != cbid)),
        document_known=of_document is not None,
        revoked=BuyerStatus.REVOKED
        in (statuses.values() if keys.verifies else {statuses.get(cbid or "")}),
        first_verified_at=session.verified_at if session else None,
    )


def _session(
    connection: Connection, mode: Mode, index: bytes
) -> Row[str, bytes | None, datetime] | None:
    s = provider_sessions.c
    known = select(s.cbid, s.reference_index, s.verified_at)
    return connection.execute(known.filter_by(mode=mode, session_index=index)).one_or_none()


def link(  # noqa: PLR0917 - all that is known
    connection: Connection,
    keys: SessionKeys,
    person: SessionSubject,
    buyer: Buyer,
    at: datetime,
    shown: datetime,
) -> None:
    """Keep session and document of the buyer, and that two turned out to be one.

    `shown` is the time by the account's clock, which in a sandbox can be ahead.

    It comes after the buyer's own event, so that an account gets one event: under the name that it
    knows, and not also under a name that is joined to another.
    """
    if not person.kept:
        new = {"mode": keys.mode, "session_index": person.kept_under, "cbid": buyer.cbid}
        connection.execute(insert(provider_sessions), new)
    kept = update(provider_sessions)
    kept = kept.filter_by(mode=keys.mode, session_index=person.kept_under)
    if keys.provider_reference is not None:
        connection.execute(kept.values(reference_index=keys.provider_reference))
    for other in person.others:
        join(connection, other, buyer, at, revoked=person.revoked, shown=shown)
    if keys.fingerprint is not None and not person.document_known:
        of = {"mode": keys.mode, "fingerprint": keys.fingerprint, "cbid": buyer.cbid}
        connection.execute(insert(buyer_documents), of)
    if keys.verifies:
        first = kept.where(provider_sessions.c.verified_at.is_(None))
        connection.execute(first.values(verified_at=shown))


def join(
    connection: Connection,
    other: str,
    buyer: Buyer,
    at: datetime,
    *,
    revoked: bool,
    shown: datetime | None = None,
) -> None:
    """Continue the buyer `other` as this one, unless it has a document, and so an identity, too."""
    documents = select(buyer_documents.c.cbid).where(buyer_documents.c.cbid == other).limit(1)
    if connection.execute(documents).first() is not None:
        if revoked:
            for before in buyers_by_cbid(connection, [other], to_change=True).values():
                write_change(connection, before, after_revocation(before), at)
        return
    if not buyer.contradicted:  # which concerns one account, by the other name
        # Accounts that know it by this name get the event under this name.
        write_status_event(connection, replace(buyer, cbid=other), at, shown=shown)
    names = or_(buyers.c.cbid == other, buyers.c.same_as == other)
    connection.execute(update(buyers).where(names).values(same_as=buyer.cbid))
    for table in (provider_sessions, pending_sessions, started_checks, verifications):
        connection.execute(update(table).where(table.c.cbid == other).values(cbid=buyer.cbid))
    b = buyer_blocks.c
    already = select(b.account_id).where(b.cbid == buyer.cbid)
    moved = select(b.account_id, b.mode, literal(buyer.cbid), b.at)
    moved = moved.where(b.cbid == other, b.account_id.not_in(already))
    columns = ["account_id", "mode", "cbid", "at"]
    connection.execute(insert(buyer_blocks).from_select(columns, moved))
    connection.execute(delete(buyer_blocks).where(b.cbid == other))


def follow(connection: Connection, new: PendingSession) -> None:
    """Poll a session from now on, with the request of last; its polls go on counting."""
    known = _id_of(connection, new.account_id, new.mode, new.asked_index)
    if known is not None:
        # The request may have another ZIP code now; the key that it was sealed with goes too.
        connection.execute(delete(shred_keys).where(shred_keys.c.record_id == known))
        renewed = {"id": new.id, "request": new.request, "cbid": new.cbid}
        connection.execute(update(pending_sessions).filter_by(id=known).values(renewed))
    else:
        row = asdict(new)
        del row["shred_key"]
        connection.execute(insert(pending_sessions), row)
    connection.execute(insert(shred_keys), {"record_id": new.id, "key": new.shred_key})


def is_followed(connection: Connection, id_: str) -> bool:
    """Whether this session is still followed by the same request."""
    query = select(pending_sessions.c.id).where(pending_sessions.c.id == id_).with_for_update()
    return connection.execute(query).first() is not None


def unfollow(connection: Connection, account_id: str, mode: Mode, asked_index: bytes) -> None:
    """Follow a session no longer, if it was followed."""
    known = _id_of(connection, account_id, mode, asked_index)
    if known is not None:
        _forget(connection, known)


def _id_of(connection: Connection, account_id: str, mode: Mode, asked_index: bytes) -> str | None:
    known = select(pending_sessions.c.id)
    known = known.filter_by(account_id=account_id, mode=mode, asked_index=asked_index)
    return connection.execute(known).scalar_one_or_none()


def _forget(connection: Connection, id_: str) -> bool:
    gone = connection.execute(delete(pending_sessions).where(pending_sessions.c.id == id_))
    connection.execute(delete(shred_keys).where(shred_keys.c.record_id == id_))
    return gone.rowcount == 1


def due(
    connection: Connection, now: datetime, limit: int, but_of: Collection[str] = ()
) -> Sequence[PendingSession]:
    """The sessions due for polling, longest-waiting first.

    Sessions of the accounts in `but_of` are left out.
    """
    values = {"now": now, "but_of": [*but_of], "limit": limit}
    return rows(connection, _DUE, PendingSession, values)


def claim(connection: Connection, pending: PendingSession, next_poll_at: datetime) -> bool:
    """Take the next poll of a session; False if another process did, or it is decided."""
    claimed = (
        update(pending_sessions)
        .filter_by(id=pending.id, polls=pending.polls, next_poll_at=pending.next_poll_at)
        .values(polls=pending.polls + 1, next_poll_at=next_poll_at)
    )
    return connection.execute(claimed).rowcount == 1


def hurry(  # noqa: PLR0917 - the columns
    connection: Connection,
    account_id: str,
    mode: Mode,
    session_index: bytes,
    message_index: bytes,
    at: datetime,
    again: PendingSession | None,
) -> bool:
    """Poll a session at once, because of a message; False if it was acted on before.

    `again` is the request for a session that is not followed.
    """
    message = {"account_id": account_id, "message_index": message_index}
    seen = select(provider_messages.c.at).filter_by(**message)
    if connection.execute(seen).first() is not None:
        return False
    connection.execute(insert(provider_messages), message | {"at": at})
    due = (
        update(pending_sessions)
        .filter_by(account_id=account_id, mode=mode, session_index=session_index)
        .values(next_poll_at=at)
    )
    if connection.execute(due).rowcount == 0 and again is not None:
        follow(connection, again)
        connection.execute(due)
    return True


def grounds(
    connection: Connection, reach: Reach, session_index: bytes
) -> Row[str, str, bytes, bytes] | None:
    """The verification by which accounts in reach last verified somebody with a session.

    Its identifier, the buyer's, its evidence, sealed, and the shred key; None: there is none, or
    its evidence is gone.
    """
    known, evidence = verifications.c, verification_evidence.c
    # The buyer of the session leads to its verifications: they have no index by session.
    of_session = select(provider_sessions.c.cbid).where(
        provider_sessions.c.mode == known.mode, provider_sessions.c.session_index == session_index
    )
    return connection.execute(
        select(known.id, known.cbid, evidence.payload, shred_keys.c.key)
        .join(verification_evidence, evidence.record_id == known.id)
        .join(shred_keys, shred_keys.c.record_id == known.id)
        .where(
            reach.rows(verifications),
            known.cbid.in_(of_session),
            known.session_index == session_index,
            known.status == BuyerStatus.VERIFIED,
        )
        .order_by(known.id.desc())
        .limit(1)
    ).one_or_none()


def drop(connection: Connection, pending: PendingSession, at: datetime) -> None:
    """Stop following a session; a buyer who waits for nothing else has to verify again."""
    known = [] if pending.cbid is None else [pending.cbid]
    before = buyers_by_cbid(connection, known, to_change=True).get(pending.cbid or "")
    # It may have been decided, or asked about again, since it was read.
    dropped = _forget(connection, pending.id)
    if dropped:
        give_up(connection, pending.reach, pending.session_index, at)
    if not dropped or before is None or state_of(before.status, before.reasons) not in FOLLOWED:
        return
    others = select(pending_sessions.c.id).where(pending_sessions.c.cbid == before.cbid).limit(1)
    if connection.execute(others).first() is not None:
        return
    # Otherwise the buyer would be asked to wait forever.
    undecided = {"status": BuyerStatus.REQUIRES_INPUT, "reasons": (Reason.SESSION_UNDECIDED,)}
    after = replace(before, **undecided, attempted_by=pending.account_id)
    write_change(connection, before, after, at)
