"""Buyers, and their verifications in the sandbox; `live_verifications` has those in truth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import Connection, bindparam, insert, select, update

from countersign.access.idempotency import keep_answers
from countersign.buyers.events_sql import write_buyer_events
from countersign.buyers.model import Attempt, Buyer, BuyerStatus, Proof, status_at
from countersign.buyers.rules import VerificationRules
from countersign.buyers.verification import Known, LiveVerification, NewVerification
from countersign.buyers.zip_attempts_sql import ZipTries, tries_of
from countersign.db.bulk import SelectAmong
from countersign.db.database import Database
from countersign.db.tables import buyers, verification_settings, verifications
from countersign.errors import CountersignError
from countersign.events.model import EventType
from countersign.instant import from_ms
from countersign.log.journal import Journal
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.reason import Reason

_encode: Final = msgspec.json.Encoder().encode
_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode
_decode_proofs: Final = msgspec.json.Decoder(tuple[Proof, ...]).decode
_decode_rules: Final = msgspec.json.Decoder(VerificationRules).decode

_MODES: Final = {mode.value: mode for mode in Mode}
_STATUSES: Final = {status.value: status for status in BuyerStatus}
_EVENTS: Final = {
    BuyerStatus.VERIFIED: EventType.BUYER_VERIFIED,
    BuyerStatus.REQUIRES_INPUT: EventType.BUYER_REQUIRES_INPUT,
    BuyerStatus.FAILED: EventType.BUYER_FAILED,
    BuyerStatus.EXPIRED: EventType.BUYER_EXPIRED,
    BuyerStatus.REVOKED: EventType.BUYER_REVOKED,
}

_COLUMNS: Final = (
    "cbid, account_id, mode, status, reasons, verified_at, expires_at, simulated, proofs, same_as,"
    " attempted_by"
)
_TEXT: Final = f"SELECT {_COLUMNS} FROM buyers WHERE cbid {{}}"  # noqa: S608 - our own names
_select: Final = SelectAmong(_TEXT)
# Two servers that change one buyer take turns (PostgreSQL; the embedded database has one writer).
_select_to_change: Final = SelectAmong(_TEXT, for_update=True)
_SELECT_RULES: Final = select(
    verification_settings.c.account_id, verification_settings.c.rules
).where(verification_settings.c.account_id.in_(bindparam("account_ids", expanding=True)))
_INSERT: Final = insert(buyers)
_UPDATE: Final = (
    update(buyers)
    .where(buyers.c.cbid == bindparam("key"))
    .values(
        {c.name: bindparam(c.name) for c in buyers.c if c.name not in {"cbid", "expiry_due_at"}}
    )
)
_SET_EXPIRY: Final = (
    update(buyers)
    .where(buyers.c.cbid == bindparam("key"))
    .values(expiry_due_at=bindparam("due_at"))
)
_INSERT_VERIFICATION: Final = insert(verifications)


class Buyers:
    """See `ports.BuyerStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def get(self, account_id: str, mode: Mode, cbid: str) -> Known | None:
        """A buyer of this mode, whichever account verified it, and the asking account's rules."""
        known = await self._database.read_batched(_get, (account_id, cbid))
        return known if known is not None and known.buyer.mode is mode else None

    async def verify(self, new: NewVerification) -> Buyer:
        """Write a verification and the buyer that it makes."""
        return await self._database.write_batched(self._verify, new)

    def _verify(
        self, connection: Connection, items: Sequence[NewVerification]
    ) -> Sequence[Buyer | CountersignError]:
        written: list[NewRecord] = []
        tries = tries_of(connection, items)
        outcomes = [_verify_one(connection, new, tries, written) for new in items]
        tries.write()
        self._journal.write(connection, written)
        return outcomes


def _get(
    connection: Connection, asked: Sequence[tuple[str, str]]
) -> Sequence[Known | CountersignError | None]:
    found = followed_buyers(connection, [cbid for _, cbid in asked])
    # Rules judge real verifications only: the sandbox does without this query.
    accounts = {a for a, cbid in asked if (buyer := found.get(cbid)) and not buyer.simulated}
    rules = verification_rules_of(connection, accounts) if accounts else {}
    return [
        Known(buyer=found[cbid], rules=rules.get(account_id)) if cbid in found else None
        for account_id, cbid in asked
    ]


def followed_buyers(connection: Connection, cbids: Sequence[str]) -> dict[str, Buyer]:
    """By identifier, the buyers that there are of these, each as it goes on."""
    found = buyers_by_cbid(connection, cbids)
    others = [buyer.same_as for buyer in found.values() if buyer.same_as]
    if not others:
        return found
    later = buyers_by_cbid(connection, others)
    return {cbid: later.get(buyer.same_as or "", buyer) for cbid, buyer in found.items()}


def verification_rules_of(
    connection: Connection, account_ids: Collection[str]
) -> dict[str, VerificationRules]:
    """How these accounts verify; those that have rules of their own."""
    rows = connection.execute(_SELECT_RULES, {"account_ids": list(account_ids)})
    return {row.account_id: _decode_rules(row.rules) for row in rows}


def buyers_by_cbid(
    connection: Connection, cbids: Sequence[str], *, to_change: bool = False
) -> dict[str, Buyer]:
    """The buyers that there are of these, by identifier."""
    select_ = _select_to_change if to_change else _select
    return {row[0]: _from_row(*row) for row in select_(connection, set(cbids))}


def write_buyer(connection: Connection, before: Buyer | None, after: Buyer) -> None:
    """Write the buyer if it is new or has changed."""
    if before is None:
        connection.execute(_INSERT, _to_row(after) | {"expiry_due_at": _expiry(after)})
    elif after != before:
        connection.execute(_UPDATE, {"key": after.cbid} | _to_row(after))
        if _expiry(after) != _expiry(before):  # an expiry that was told stays told
            _set_expiry(connection, after, _expiry(after))


def write_verification(
    connection: Connection,
    new: NewVerification | LiveVerification,
    *,
    session_index: bytes | None,
) -> None:
    """Write that a session was judged."""
    connection.execute(
        _INSERT_VERIFICATION,
        {
            "id": new.record.id,
            "account_id": new.account_id,
            "mode": new.mode,
            "cbid": new.cbid,
            "provider": new.provider,
            "subject_index": new.subject_index,
            "zip_index": new.zip_index,
            "status": new.attempt.status,
            "reasons": encoded_reasons(new.attempt),
            "at": new.at,
            "session_index": session_index,
        },
    )


def tell_of_buyer(
    connection: Connection, buyer: Buyer, at: datetime, *, by: datetime | None = None
) -> None:
    """Write the event of a buyer's new status; that one is pending is no news.

    `by` is what a test clock shows; None: it goes by real time.
    """
    status = status_at(buyer, by or at)
    if status is BuyerStatus.EXPIRED:
        _set_expiry(connection, buyer, None)  # told here and now
    type_ = _EVENTS.get(status)
    if type_ is not None:
        write_buyer_events(connection, type_, buyer.mode, buyer.cbid, at, buyer)


def encoded_reasons(attempt: Attempt) -> str:
    """The reasons as they are stored."""
    return _encode(attempt.reasons).decode()


def _verify_one(
    connection: Connection, new: NewVerification, tries: ZipTries, written: list[NewRecord]
) -> Buyer | CountersignError:
    refusal = tries.count_of(new)
    if refusal is not None:
        return refusal
    before = buyers_by_cbid(connection, [new.cbid], to_change=True).get(new.cbid)
    buyer = new.decide(before)
    write_buyer(connection, before, buyer)
    if buyer != before:
        written.append(new.record)
        write_verification(connection, new, session_index=None)
        tell_of_buyer(connection, buyer, new.at, by=new.judged_at)
    if new.remember is not None:
        keep_answers(connection, [new.remember(buyer)])
    return buyer


def _expiry(buyer: Buyer) -> datetime | None:
    """When time takes away what was verified."""
    return buyer.expires_at if buyer.status is BuyerStatus.VERIFIED else None


def _set_expiry(connection: Connection, buyer: Buyer, due_at: datetime | None) -> None:
    connection.execute(_SET_EXPIRY, {"key": buyer.cbid, "due_at": due_at})


def _to_row(buyer: Buyer) -> dict[str, object]:
    return {
        "cbid": buyer.cbid,
        "account_id": buyer.account_id,
        "mode": buyer.mode,
        "status": buyer.status,
        "reasons": _encode(buyer.reasons).decode(),
        "verified_at": buyer.verified_at,
        "expires_at": buyer.expires_at,
        "simulated": buyer.simulated,
        "proofs": _encode(buyer.proofs).decode(),
        "same_as": buyer.same_as,
        "attempted_by": buyer.attempted_by,
    }


def _from_row(  # noqa: PLR0917 - the columns
    cbid: str,
    account_id: str,
    mode: str,
    status: str,
    reasons: str,
    verified_at: int | None,
    expires_at: int | None,
    simulated: bool | int,  # noqa: FBT001 - as the driver gives it
    proofs: str,
    same_as: str | None,
    attempted_by: str | None,
) -> Buyer:
    return Buyer(
        cbid=cbid,
        account_id=account_id,
        mode=_MODES[mode],
        status=_STATUSES[status],
        reasons=_decode_reasons(reasons) if reasons != "[]" else (),
        verified_at=None if verified_at is None else from_ms(verified_at),
        expires_at=None if expires_at is None else from_ms(expires_at),
        simulated=bool(simulated),
        proofs=_decode_proofs(proofs) if proofs != "[]" else (),
        same_as=same_as,
        attempted_by=attempted_by,
    )
