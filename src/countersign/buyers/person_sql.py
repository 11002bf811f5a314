"""Which buyer a provider session is about: by the session, its document and its reference."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, insert, or_, select, update

from countersign.buyers.model import Buyer, BuyerStatus, after_revocation
from countersign.buyers.sql import buyers_by_cbid, write_buyer, write_status_event
from countersign.db.tables import (
    buyer_documents,
    buyers,
    pending_sessions,
    provider_sessions,
    verifications,
)
from countersign.mode import Mode

_DOCUMENT: Final = select(buyer_documents.c.cbid).where(
    buyer_documents.c.mode == Mode.LIVE, buyer_documents.c.fingerprint == bindparam("fingerprint")
)
_SESSION: Final = select(
    provider_sessions.c.cbid, provider_sessions.c.reference_index, provider_sessions.c.verified_at
).where(
    provider_sessions.c.mode == Mode.LIVE,
    provider_sessions.c.session_index == bindparam("session_index"),
)
_HAS_DOCUMENT: Final = (
    select(buyer_documents.c.cbid).where(buyer_documents.c.cbid == bindparam("cbid")).limit(1)
)
_OF_SESSION: Final = update(provider_sessions).where(
    provider_sessions.c.mode == Mode.LIVE,
    provider_sessions.c.session_index == bindparam("key_index"),
)
_SET_VERIFIED: Final = _OF_SESSION.where(provider_sessions.c.verified_at.is_(None)).values(
    verified_at=bindparam("at")
)
_SET_REFERENCE: Final = _OF_SESSION.values(reference_index=bindparam("reference"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeys:
    """What identifies a session, its subject and its document: keyed hashes.

    Until the provider has named the reference, each given reference leads to a buyer of its own:
    otherwise a stranger's reference would lead to the buyer that the session turns out to be about.
    """

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
    """The buyers to whom session and document lead."""

    bound: bool = True
    """False: the session is about another reference than that of the request."""
    kept_under: bytes
    """The session, or until its reference is known, the session and the one asked for."""
    kept: bool
    """Whether the session was kept before."""
    cbid: str | None
    """None: a new buyer."""
    others: tuple[str, ...] = ()
    """Further buyers to whom session and document lead."""
    document_known: bool = False
    revoked: bool = False
    """Whether one of these buyers is."""
    first_verified_at: datetime | None = None
    """When this session first verified somebody."""


class _Session(NamedTuple):
    cbid: str
    reference: bytes | None
    verified_at: datetime | None


def person_to_change(
    connection: Connection, keys: SessionKeys
) -> tuple[SessionSubject, Buyer | None]:
    """The person whom a session is about, and the buyer as stored, locked."""
    while True:
        person = _find(connection, keys)
        known = [] if person.cbid is None else [person.cbid]
        before = buyers_by_cbid(connection, known, to_change=True)
        # PostgreSQL may have waited for the lock, until another server had changed who is who.
        if connection.dialect.name == "sqlite" or _find(connection, keys) == person:
            return person, before.get(person.cbid or "")


def _find(connection: Connection, keys: SessionKeys) -> SessionSubject:
    session = _session(connection, keys.session)
    reference = keys.provider_reference or (session and session.reference)
    if keys.reference is not None and reference is None:
        # Whether the session is about this reference is not known yet: apart from others.
        return _unreferenced(connection, keys)
    before = _session(connection, keys.with_reference) if keys.with_reference else None
    provisional = before.cbid if before else None
    of_session = session.cbid if session else provisional
    of_document = _of_document(connection, keys.fingerprint) if keys.fingerprint else None
    known = [cbid for cbid in (of_session, of_document, provisional) if cbid is not None]
    statuses = {cbid: buyer.status for cbid, buyer in buyers_by_cbid(connection, known).items()}
    # One session never makes two buyers, and a failed attempt takes nothing away.
    its_status = statuses.get(of_session or "")
    revoked = its_status is BuyerStatus.REVOKED
    stays = (session is not None and session.verified_at is not None) or (
        not keys.verifies and (revoked or its_status is BuyerStatus.VERIFIED)
    )
    cbid = of_session if stays else of_document or of_session
    # Nor does it revoke anybody: who is who, is known only of who is verified.
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


def _unreferenced(connection: Connection, keys: SessionKeys) -> SessionSubject:
    index = keys.with_reference or keys.session
    known = _session(connection, index)
    return SessionSubject(
        kept_under=index, kept=known is not None, cbid=known.cbid if known else None
    )


def _session(connection: Connection, index: bytes) -> _Session | None:
    row = connection.execute(_SESSION, {"session_index": index}).one_or_none()
    if row is None:
        return None
    reference = row.reference_index
    return _Session(row.cbid, None if reference is None else bytes(reference), row.verified_at)


def _of_document(connection: Connection, fingerprint: bytes) -> str | None:
    found: str | None = connection.execute(
        _DOCUMENT, {"fingerprint": fingerprint}
    ).scalar_one_or_none()
    return found


def link(
    connection: Connection,
    keys: SessionKeys,
    person: SessionSubject,
    buyer: Buyer,
    at: datetime,
    *,
    verified: bool,
) -> None:
    """Keep session and document of the buyer, and that two turned out to be one.

    After the buyer's own event, so that an account gets it once: by the name it knows, and not
    also by one that becomes another.
    """
    if not person.kept:
        connection.execute(
            insert(provider_sessions),
            {"mode": Mode.LIVE, "session_index": person.kept_under, "cbid": buyer.cbid},
        )
    key = {"key_index": person.kept_under}
    if keys.provider_reference is not None:
        connection.execute(_SET_REFERENCE, key | {"reference": keys.provider_reference})
    for other in person.others:
        join(connection, other, buyer, at, revoked=person.revoked)
    if keys.fingerprint is not None and not person.document_known:
        connection.execute(
            insert(buyer_documents),
            {"mode": Mode.LIVE, "fingerprint": keys.fingerprint, "cbid": buyer.cbid},
        )
    if verified:
        connection.execute(_SET_VERIFIED, key | {"at": at})


def join(connection: Connection, other: str, buyer: Buyer, at: datetime, *, revoked: bool) -> None:
    """Continue the buyer `other` as this one, unless it has a document, and so an identity, too."""
    if connection.execute(_HAS_DOCUMENT, {"cbid": other}).first() is not None:
        if revoked:
            _revoke(connection, other, at)
        return
    # Accounts that know it by this name get the event under this name.
    write_status_event(connection, replace(buyer, cbid=other), at)
    names = or_(buyers.c.cbid == other, buyers.c.same_as == other)
    connection.execute(update(buyers).where(names).values(same_as=buyer.cbid))
    for table in (provider_sessions, pending_sessions, verifications):
        connection.execute(update(table).where(table.c.cbid == other).values(cbid=buyer.cbid))


def _revoke(connection: Connection, cbid: str, at: datetime) -> None:
    before = buyers_by_cbid(connection, [cbid], to_change=True).get(cbid)
    if before is not None and before.status is not BuyerStatus.REVOKED:
        after = after_revocation(before)
        write_buyer(connection, before, after)
        write_status_event(connection, after, at)
