"""Verifications by identity providers: whom a session is about, and what judging it writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, insert, or_, select, update

from countersign.access.audit import write_audit
from countersign.access.idempotency import keep_answers
from countersign.buyers.model import (
    Buyer,
    BuyerStatus,
    after_attempt,
    after_revocation,
    first_verification,
)
from countersign.buyers.sessions_sql import follow, is_followed, unfollow
from countersign.buyers.sql import (
    buyers_by_cbid,
    encoded_reasons,
    tell_of_buyer,
    write_buyer,
    write_verification,
)
from countersign.buyers.verification import AskedSession, LiveVerification, Resolution
from countersign.buyers.zip_attempts_sql import ZipTries, tries_of
from countersign.db.database import Database
from countersign.db.tables import (
    buyer_documents,
    buyers,
    pending_sessions,
    provider_sessions,
    verification_evidence,
    verifications,
)
from countersign.errors import CountersignError, ProviderSessionNotFound, UnknownSubject
from countersign.log.journal import Journal
from countersign.log.record import NewRecord
from countersign.mode import Mode

_SELECT_DOCUMENT: Final = select(buyer_documents.c.cbid).where(
    buyer_documents.c.mode == bindparam("mode"),
    buyer_documents.c.fingerprint == bindparam("fingerprint"),
)
_SELECT_SESSION: Final = select(
    provider_sessions.c.cbid, provider_sessions.c.reference_index, provider_sessions.c.verified_at
).where(
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
_TOLD: Final = (
    update(provider_sessions)
    .where(
        provider_sessions.c.mode == bindparam("key_mode"),
        provider_sessions.c.session_index == bindparam("key_index"),
    )
    .values(reference_index=bindparam("reference"))
)


class _Session(NamedTuple):
    """A provider session, as kept."""

    cbid: str
    reference: bytes | None
    verified_at: datetime | None


class _Found(NamedTuple):
    """Whom the session and the document lead to."""

    bound: bool
    kept_under: bytes
    """The session, or until its reference is known, the session and the one asked for."""
    kept: bool
    """Whether it is already."""
    cbid: str | None
    others: tuple[str, ...]
    """Further buyers to whom session and document lead."""
    document_known: bool
    revoked: bool
    """Whether one of these buyers is."""
    first_verified_at: datetime | None


class LiveVerifications:
    """See `ports.LiveVerificationStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def resolve(self, mode: Mode, session: AskedSession) -> Resolution:
        """Whom a session is about: the buyer of its document, else that of the session."""
        return await self._database.read_batched(_resolve, (mode, session))

    async def judge(self, new: LiveVerification) -> Buyer | Resolution:
        """Write a verification and the buyer that it makes.

        Gives a Resolution, and writes nothing, if meanwhile the session is about somebody else
        than `new.cbid`.

        Raises:
            RateLimited: the account has tried too many ZIP codes for this buyer today.
        """
        return await self._database.write_batched(self._judge, new)

    def _judge(
        self, connection: Connection, items: Sequence[LiveVerification]
    ) -> Sequence[Buyer | Resolution | CountersignError]:
        written: list[LiveVerification] = []
        tries = tries_of(connection, items)
        outcomes = [_judge_one(connection, new, tries, written) for new in items]
        tries.write()
        for new, outcome in zip(items, outcomes, strict=True):
            if new.audit is not None and isinstance(outcome, Buyer):
                write_audit(connection, new.audit)
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


def _resolve(
    connection: Connection, asked: Sequence[tuple[Mode, AskedSession]]
) -> list[Resolution]:
    return [_resolution(_find(connection, mode, session)) for mode, session in asked]


def _resolution(found: _Found) -> Resolution:
    return Resolution(cbid=found.cbid, bound=found.bound, first_verified_at=found.first_verified_at)


def _find(connection: Connection, mode: Mode, asked: AskedSession) -> _Found:
    session = _session(connection, mode, asked.session)
    told = asked.told_reference or (session and session.reference)
    if asked.reference is not None and told is None:
        # Whether the session is about this reference will be told later: apart from others.
        return _undecided(connection, mode, asked)
    before = _session(connection, mode, asked.with_reference) if asked.with_reference else None
    provisional = before.cbid if before else None
    of_session = session.cbid if session else provisional
    of_document = _document(connection, mode, asked.fingerprint) if asked.fingerprint else None
    known = [cbid for cbid in (of_session, of_document, provisional) if cbid is not None]
    statuses = {cbid: buyer.status for cbid, buyer in buyers_by_cbid(connection, known).items()}
    # One session never makes two buyers, and a failed attempt takes nothing away.
    its_status = statuses.get(of_session or "")
    revoked = its_status is BuyerStatus.REVOKED
    stays = (session is not None and session.verified_at is not None) or (
        not asked.verifies and (revoked or its_status is BuyerStatus.VERIFIED)
    )
    cbid = of_session if stays else of_document or of_session
    # Nor does it revoke anybody: who is who, is known only of who is verified.
    apart = revoked and not asked.verifies
    return _Found(
        bound=asked.reference is None or told == asked.reference,
        kept_under=asked.session,
        kept=session is not None,
        cbid=cbid,
        others=() if apart else tuple(dict.fromkeys(other for other in known if other != cbid)),
        document_known=of_document is not None,
        revoked=BuyerStatus.REVOKED
        in (statuses.values() if asked.verifies else {statuses.get(cbid or "")}),
        first_verified_at=session.verified_at if session else None,
    )


def _undecided(connection: Connection, mode: Mode, asked: AskedSession) -> _Found:
    index = asked.with_reference or asked.session
    known = _session(connection, mode, index)
    return _Found(
        bound=True,
        kept_under=index,
        kept=known is not None,
        cbid=known.cbid if known else None,
        others=(),
        document_known=False,
        revoked=False,
        first_verified_at=None,
    )


def _session(connection: Connection, mode: Mode, index: bytes) -> _Session | None:
    key = {"mode": mode, "session_index": index}
    row = connection.execute(_SELECT_SESSION, key).one_or_none()
    if row is None:
        return None
    reference = row.reference_index
    return _Session(row.cbid, None if reference is None else bytes(reference), row.verified_at)


def _document(connection: Connection, mode: Mode, fingerprint: bytes) -> str | None:
    key = {"mode": mode, "fingerprint": fingerprint}
    found: str | None = connection.execute(_SELECT_DOCUMENT, key).scalar_one_or_none()
    return found


def _judge_one(
    connection: Connection,
    new: LiveVerification,
    tries: ZipTries,
    written: list[LiveVerification],
) -> Buyer | Resolution | CountersignError:
    if new.polled is not None and not is_followed(connection, new.polled):
        # Erased, or asked about anew, while the provider was being asked.
        return ProviderSessionNotFound()
    before = buyers_by_cbid(connection, [new.cbid], to_change=True).get(new.cbid)
    found = _find(connection, new.mode, new.session)
    if not found.bound or found.cbid not in {None, new.cbid}:
        return _resolution(found)
    refusal = _refusal(before, new, tries)
    if refusal is not None:
        return refusal
    buyer = _after(before, new, revoked=found.revoked)
    write_buyer(connection, before, buyer)
    if buyer != before or not _told_already(connection, new, found.kept_under):
        written.append(new)
        write_verification(connection, new, session_index=found.kept_under)
    if before is None or buyer != msgspec.structs.replace(before, attempted_by=buyer.attempted_by):
        # The same verdict for another account is no news.
        tell_of_buyer(connection, buyer, new.at)
    # After that, so that nobody is told twice: by this name, and by one that becomes another.
    _link(connection, new, found, buyer)
    if new.attempt.status is BuyerStatus.VERIFIED:
        connection.execute(
            _FIRST_VERIFIED,
            {"key_mode": new.mode, "key_index": found.kept_under, "at": new.at},
        )
    if found.kept_under == new.session.session and new.session.with_reference is not None:
        # The provider has told whom it is about: what was asked before that is settled.
        unfollow(connection, new.account_id, new.mode, new.session.with_reference)
    if new.following is None:
        unfollow(connection, new.account_id, new.mode, found.kept_under)
    else:
        follow(connection, new, new.following, found.kept_under)
    if new.remember is not None:
        keep_answers(connection, [new.remember(buyer)])
    return buyer


def _refusal(
    before: Buyer | None, new: LiveVerification, tries: ZipTries
) -> CountersignError | None:
    if before is None and new.audit is not None:  # an operator's act is about a known buyer
        return UnknownSubject("The buyer was erased meanwhile. Nothing was changed.")
    return tries.count_of(new)


def _after(before: Buyer | None, new: LiveVerification, *, revoked: bool) -> Buyer:
    if before is None:
        buyer = first_verification(
            cbid=new.cbid,
            account_id=new.account_id,
            mode=new.mode,
            simulated=False,
            attempt=new.attempt,
        )
    else:
        buyer = after_attempt(before, new.attempt)
    # Nobody gets away from a revocation by another document or another session.
    return after_revocation(buyer) if revoked else buyer


def _link(connection: Connection, new: LiveVerification, found: _Found, buyer: Buyer) -> None:
    """Remember session and document of the buyer, and that two turned out to be one."""
    if not found.kept:
        connection.execute(
            insert(provider_sessions),
            {"mode": new.mode, "session_index": found.kept_under, "cbid": new.cbid},
        )
    if new.session.told_reference is not None:
        connection.execute(
            _TOLD,
            {
                "key_mode": new.mode,
                "key_index": found.kept_under,
                "reference": new.session.told_reference,
            },
        )
    for other in found.others:
        _join(connection, other, buyer, new.at, revoked=found.revoked)
    if new.session.fingerprint is not None and not found.document_known:
        connection.execute(
            insert(buyer_documents),
            {"mode": new.mode, "fingerprint": new.session.fingerprint, "cbid": new.cbid},
        )


def _join(connection: Connection, other: str, buyer: Buyer, at: datetime, *, revoked: bool) -> None:
    """The buyer `other` goes on as this one, unless it has a document, and so an identity, too."""
    if connection.execute(_SELECT_HAS_DOCUMENT, {"cbid": other}).first() is not None:
        if revoked:
            _revoke(connection, other, at)
        return
    # Whoever knows it by this name is told by this name.
    tell_of_buyer(connection, msgspec.structs.replace(buyer, cbid=other), at)
    names = or_(buyers.c.cbid == other, buyers.c.same_as == other)
    connection.execute(update(buyers).where(names).values(same_as=buyer.cbid))
    for table in (provider_sessions, pending_sessions, verifications):
        connection.execute(update(table).where(table.c.cbid == other).values(cbid=buyer.cbid))


def _revoke(connection: Connection, cbid: str, at: datetime) -> None:
    before = buyers_by_cbid(connection, [cbid], to_change=True).get(cbid)
    if before is not None and before.status is not BuyerStatus.REVOKED:
        after = after_revocation(before)
        write_buyer(connection, before, after)
        tell_of_buyer(connection, after, at)


def _told_already(connection: Connection, new: LiveVerification, index: bytes) -> bool:
    """Whether the last verdict on this session for this account was the same."""
    last = connection.execute(
        _SELECT_LAST,
        {
            "cbid": new.cbid,
            "account_id": new.account_id,
            "session_index": index,
        },
    ).one_or_none()
    return last is not None and tuple(last) == (
        new.attempt.status,
        encoded_reasons(new.attempt),
        new.zip_index,
    )
