"""Buyers, the list of their verifications, and the events of their status."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, bindparam, insert, select, update

from countersign.buyers.events_sql import write_buyer_events
from countersign.buyers.model import (
    Buyer,
    BuyerStatus,
    ProvedSession,
    VerificationAttempt,
    status_at,
)
from countersign.buyers.rules import VerificationRules
from countersign.db.bulk import SelectAmong
from countersign.db.tables import buyers, verification_settings, verifications
from countersign.events.model import EventType
from countersign.instant import from_ms
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.reason import Reason

BuyerAndRules: TypeAlias = tuple[Buyer, VerificationRules | None]
"""A buyer, and the rules of the account that asks; None where it has none of its own."""

_encode: Final = msgspec.json.Encoder().encode
_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode
_decode_proofs: Final = msgspec.json.Decoder(tuple[ProvedSession, ...]).decode
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


class StatusQuery(NamedTuple):
    """Which buyer an account asks about."""

    account_id: str
    mode: Mode
    cbid: str


def buyers_and_rules(
    connection: Connection, queries: Sequence[StatusQuery]
) -> list[BuyerAndRules | None]:
    """Buyers of these modes, whichever account verified them; None where there is none."""
    found = followed_buyers(connection, [query.cbid for query in queries])
    # Rules apply to real verifications only: the sandbox does without this query.
    accounts = {q.account_id for q in queries if q.cbid in found and not found[q.cbid].simulated}
    rules = verification_rules_of(connection, accounts) if accounts else {}
    return [
        (buyer, rules.get(query.account_id))
        if (buyer := found.get(query.cbid)) is not None and buyer.mode is query.mode
        else None
        for query in queries
    ]


def followed_buyers(connection: Connection, cbids: Sequence[str]) -> dict[str, Buyer]:
    """By identifier, the buyers that there are of these, each as the buyer it was joined to."""
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
        if _expiry(after) != _expiry(before):  # an expiry that has its event keeps it
            _set_expiry(connection, after, _expiry(after))


def write_verification(
    connection: Connection,
    record: NewRecord,
    attempt: VerificationAttempt,
    *,
    cbid: str,
    provider: str,
    subject_index: bytes | None = None,
    zip_index: bytes | None = None,
    session_index: bytes | None = None,
) -> None:
    """Write that a session was evaluated; the record has the same identifier and time.

    Args:
        connection: in the transaction of the act.
        record: what the log keeps of it.
        attempt: its result.
        cbid: the buyer.
        provider: the identity provider, or the sandbox.
        subject_index: the keyed hash of the buyer or session for the count of ZIP codes tried.
        zip_index: the keyed hash of the ZIP code; None where it was not compared.
        session_index: the keyed hash of the provider session; None in the sandbox.
    """
    connection.execute(
        _INSERT_VERIFICATION,
        {
            "id": record.id,
            "account_id": record.account_id,
            "mode": record.mode,
            "cbid": cbid,
            "provider": provider,
            "subject_index": subject_index,
            "zip_index": zip_index,
            "status": attempt.status,
            "reasons": encoded_reasons(attempt.reasons),
            "at": record.at,
            "session_index": session_index,
        },
    )


def write_status_event(
    connection: Connection, buyer: Buyer, at: datetime, *, shown: datetime | None = None
) -> None:
    """Write the event of a buyer's new status; `pending` has none.

    `shown` is what a test clock shows; None: the sandbox goes by real time.
    """
    status = status_at(buyer, shown or at)
    if status is BuyerStatus.EXPIRED:
        _set_expiry(connection, buyer, None)  # its event is written here and now
    type_ = _EVENTS.get(status)
    if type_ is not None:
        write_buyer_events(connection, type_, buyer.mode, buyer.cbid, at, buyer)


def encoded_reasons(reasons: tuple[Reason, ...]) -> str:
    """The reasons as they are stored."""
    return _encode(reasons).decode()


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
        "reasons": encoded_reasons(buyer.reasons),
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
