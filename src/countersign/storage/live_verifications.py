"""Verifications by identity providers: whom a session is about, and what judging it writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, insert, select, update

from countersign.domain.buyer import (
    Attempt,
    Buyer,
    BuyerStatus,
    after_attempt,
    first_verification,
)
from countersign.domain.mode import Mode
from countersign.domain.record import NewRecord
from countersign.domain.verification import LiveVerification, Resolution
from countersign.errors import CountersignError
from countersign.storage.buyers import (
    buyers_by_cbid,
    encoded_reasons,
    tell_of_buyer,
    write_buyer,
    write_verification,
)
from countersign.storage.database import Database
from countersign.storage.idempotency import keep_answers
from countersign.storage.journal import Journal
from countersign.storage.pending_sessions import follow, unfollow
from countersign.storage.tables import (
    buyer_documents,
    buyers,
    pending_sessions,
    provider_sessions,
    verification_evidence,
    verifications,
)
from countersign.storage.zip_attempts import count_zip

_SELECT_DOCUMENT: Final = select(buyer_documents.c.cbid, buyer_documents.c.revoked).where(
    buyer_documents.c.mode == bindparam("mode"),
    buyer_documents.c.fingerprint == bindparam("fingerprint"),
)
_SELECT_SESSION: Final = select(provider_sessions.c.cbid, provider_sessions.c.verified_at).where(
    provider_sessions.c.mode == bindparam("mode"),
    provider_sessions.c.session_index == bindparam("session_index"),
)
_SELECT_HAS_DOCUMENT: Final = (
    select(buyer_documents.c.cbid).where(buyer_documents.c.cbid == bindparam("cbid")).limit(1)
)
_SELECT_LAST: Final = (
    select(verifications.c.status, verifications.c.reasons, verifications.c.zip_index)
    .where(
        verifications.c.cbid == bindparam("cbid"),
        verifications.c.account_id == bindparam("account_id"),
        verifications.c.session_index == bindparam("session_index"),
    )
    .order_by(verifications.c.id.desc())
    .limit(1)
)
_INSERT_EVIDENCE: Final = insert(verification_evidence)
_FIRST_VERIFIED: Final = (
    update(provider_sessions)
    .where(
        provider_sessions.c.mode == bindparam("key_mode"),
        provider_sessions.c.session_index == bindparam("key_index"),
        provider_sessions.c.verified_at.is_(None),
    )
    .values(verified_at=bindparam("at"))
)


class _Asked(NamedTuple):
    mode: Mode
    session_index: bytes
    fingerprint: bytes | None


class _Found(NamedTuple):
    """Whom the session and the document lead to."""

    cbid: str | None
    session: str | None
    """The buyer of the session, if it was here before."""
    document_known: bool
    revoked: bool
    """Whether the document is."""
    first_verified_at: datetime | None


class LiveVerifications:
    """See `ports.LiveVerificationStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def resolve(
        self, mode: Mode, session_index: bytes, fingerprint: bytes | None
    ) -> Resolution:
        """Whom a session is about: the buyer of its document, else that of the session."""
        return await self._database.read(_resolve, _Asked(mode, session_index, fingerprint))

    async def judge(self, new: LiveVerification) -> Buyer | Resolution:
        """Write a verification and the buyer that it makes.

        Gives a Resolution, and writes nothing, if meanwhile the session is about somebody else
        than `new.cbid`.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this buyer today.
        """
        return await self._database.write(self._judge, new)

    def _judge(
        self, connection: Connection, items: Sequence[LiveVerification]
    ) -> Sequence[Buyer | Resolution | CountersignError]:
        written: list[LiveVerification] = []
        outcomes = [_judge_one(connection, new, written) for new in items]
        records: list[NewRecord] = [new.record for new in written]
        self._journal.write(connection, records)
        if written:
            # After the records, which it belongs to.
            connection.execute(
                _INSERT_EVIDENCE,
                [
                    {
                        "record_id": new.record.id,
                        "account_id": new.account_id,
                        "mode": new.mode,
                        "payload": new.evidence,
                    }
                    for new in written
                ],
            )
        return outcomes


def _resolve(connection: Connection, asked: Sequence[_Asked]) -> list[Resolution]:
    return [_resolution(_find(connection, one)) for one in asked]


def _resolution(found: _Found) -> Resolution:
    return Resolution(cbid=found.cbid, first_verified_at=found.first_verified_at)


def _find(connection: Connection, asked: _Asked) -> _Found:
    session = connection.execute(
        _SELECT_SESSION, {"mode": asked.mode, "session_index": asked.session_index}
    ).one_or_none()
    document = None
    if asked.fingerprint is not None:
        document = connection.execute(
            _SELECT_DOCUMENT, {"mode": asked.mode, "fingerprint": asked.fingerprint}
        ).one_or_none()
    of_session = session.cbid if session else None
    of_document = document.cbid if document else None
    if of_session is not None and of_document not in {None, of_session}:
        # A revoked buyer does not get away by showing another document.
        known = buyers_by_cbid(connection, [of_session]).get(of_session)
        if known is not None and known.status is BuyerStatus.REVOKED:
            of_document = None
    return _Found(
        cbid=of_document or of_session,
        session=of_session,
        document_known=document is not None,
        revoked=bool(document and document.revoked),
        first_verified_at=session.verified_at if session else None,
    )


def _judge_one(
    connection: Connection, new: LiveVerification, written: list[LiveVerification]
) -> Buyer | Resolution | CountersignError:
    before = buyers_by_cbid(connection, [new.cbid], to_change=True).get(new.cbid)
    found = _find(connection, _Asked(new.mode, new.session_index, new.fingerprint))
    if found.cbid not in {None, new.cbid}:
        return _resolution(found)
    refusal = count_zip(
        connection,
        account_id=new.account_id,
        mode=new.mode,
        subject_index=new.subject_index,
        zip_index=new.zip_index,
        at=new.at,
    )
    if refusal is not None:
        return refusal
    buyer = _after(before, new, revoked=found.revoked)
    write_buyer(connection, before, buyer)
    _link(connection, new, found, buyer)
    if new.attempt.status is BuyerStatus.VERIFIED:
        connection.execute(
            _FIRST_VERIFIED,
            {"key_mode": new.mode, "key_index": new.session_index, "at": new.at},
        )
    if buyer != before or not _told_already(connection, new):
        written.append(new)
        write_verification(connection, new, session_index=new.session_index)
    if buyer != before:
        tell_of_buyer(connection, buyer, new.at)
    if new.following is None:
        unfollow(connection, new.account_id, new.mode, new.session_index)
    else:
        follow(connection, new, new.following)
    if new.remember is not None:
        keep_answers(connection, [new.remember(buyer)])
    return buyer


def _after(before: Buyer | None, new: LiveVerification, *, revoked: bool) -> Buyer:
    if before is not None:
        return after_attempt(before, new.attempt)
    buyer = first_verification(
        cbid=new.cbid,
        account_id=new.account_id,
        mode=new.mode,
        simulated=False,
        attempt=new.attempt,
    )
    if not revoked:
        return buyer
    # The buyer was erased; that it was revoked was not.
    return after_attempt(buyer, Attempt(status=BuyerStatus.REVOKED, at=new.at))


def _link(connection: Connection, new: LiveVerification, found: _Found, buyer: Buyer) -> None:
    """Remember session and document of the buyer, and that two turned out to be one."""
    if found.session is None:
        connection.execute(
            insert(provider_sessions),
            {"mode": new.mode, "session_index": new.session_index, "cbid": new.cbid},
        )
    elif found.session != new.cbid:
        _join(connection, found.session, buyer, new.at)
    if new.fingerprint is not None and not found.document_known:
        document = {"mode": new.mode, "fingerprint": new.fingerprint, "cbid": new.cbid}
        connection.execute(insert(buyer_documents), document | {"revoked": False})


def _join(connection: Connection, other: str, buyer: Buyer, at: datetime) -> None:
    """The buyer `other` goes on as this one, unless it has a document, and so an identity, too."""
    if connection.execute(_SELECT_HAS_DOCUMENT, {"cbid": other}).first() is not None:
        return
    # Whoever knows it by this name is told by this name.
    tell_of_buyer(connection, msgspec.structs.replace(buyer, cbid=other), at)
    connection.execute(update(buyers).where(buyers.c.cbid == other).values(same_as=buyer.cbid))
    for table in (provider_sessions, pending_sessions, verifications):
        connection.execute(update(table).where(table.c.cbid == other).values(cbid=buyer.cbid))


def _told_already(connection: Connection, new: LiveVerification) -> bool:
    """Whether the last verdict on this session for this account was the same."""
    last = connection.execute(
        _SELECT_LAST,
        {
            "cbid": new.cbid,
            "account_id": new.account_id,
            "session_index": new.session_index,
        },
    ).one_or_none()
    return last is not None and tuple(last) == (
        new.attempt.status,
        encoded_reasons(new.attempt),
        new.zip_index,
    )
