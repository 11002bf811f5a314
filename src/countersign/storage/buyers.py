"""Buyers, their verifications, and the count of ZIP codes tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from countersign.domain.buyer import ZIP_WINDOW, ZIPS_PER_DAY, Buyer, BuyerStatus, Reason
from countersign.domain.mode import Mode
from countersign.domain.record import NewRecord
from countersign.domain.verification import NewVerification
from countersign.errors import CountersignError, RateLimited
from countersign.storage.database import Database
from countersign.storage.idempotency import keep_answers
from countersign.storage.journal import Journal
from countersign.storage.tables import buyers, verifications, zip_attempts

_encode_reasons: Final = msgspec.json.Encoder().encode
_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode

_MODES: Final = {mode.value: mode for mode in Mode}
_STATUSES: Final = {status.value: status for status in BuyerStatus}

_SELECT: Final = select(
    buyers.c.cbid,
    buyers.c.account_id,
    buyers.c.mode,
    buyers.c.status,
    buyers.c.reasons,
    buyers.c.verified_at,
    buyers.c.expires_at,
    buyers.c.simulated,
).where(buyers.c.cbid.in_(bindparam("cbids", expanding=True)))
_INSERT: Final = insert(buyers)
_UPDATE: Final = (
    update(buyers)
    .where(buyers.c.cbid == bindparam("key"))
    .values({c.name: bindparam(c.name) for c in buyers.c if c.name != "cbid"})
)
_INSERT_VERIFICATION: Final = insert(verifications)
_SELECT_ZIPS: Final = select(zip_attempts.c.zip_index, zip_attempts.c.at).where(
    zip_attempts.c.account_id == bindparam("account_id"),
    zip_attempts.c.mode == bindparam("mode"),
    zip_attempts.c.subject_index == bindparam("subject_index"),
)
_DELETE_ZIP: Final = delete(zip_attempts).where(
    zip_attempts.c.account_id == bindparam("account_id"),
    zip_attempts.c.mode == bindparam("mode"),
    zip_attempts.c.subject_index == bindparam("subject_index"),
    zip_attempts.c.zip_index == bindparam("zip_index"),
)
_INSERT_ZIP: Final = insert(zip_attempts)


class Buyers:
    """See `ports.BuyerStore`."""

    def __init__(self, database: Database, journal: Journal) -> None:
        self._database = database
        self._journal = journal

    async def get(self, mode: Mode, cbid: str) -> Buyer | None:
        """A buyer of this mode, whichever account verified it."""
        buyer = await self._database.read(_get, cbid)
        return buyer if buyer is not None and buyer.mode is mode else None

    async def verify(self, new: NewVerification) -> Buyer:
        """Write a verification and the buyer that it makes."""
        return await self._database.write(self._verify, new)

    def _verify(
        self, connection: Connection, items: Sequence[NewVerification]
    ) -> Sequence[Buyer | CountersignError]:
        written: list[NewRecord] = []
        outcomes = [_verify_one(connection, new, written) for new in items]
        self._journal.write(connection, written)
        return outcomes


def _get(connection: Connection, cbids: Sequence[str]) -> Sequence[Buyer | CountersignError | None]:
    found = _by_cbid(connection, cbids)
    return [found.get(cbid) for cbid in cbids]


def _by_cbid(connection: Connection, cbids: Sequence[str]) -> dict[str, Buyer]:
    rows = connection.execute(_SELECT, {"cbids": list(set(cbids))})
    return {row[0]: _from_row(row) for row in rows}


def _verify_one(
    connection: Connection, new: NewVerification, written: list[NewRecord]
) -> Buyer | CountersignError:
    refusal = _count_zip(connection, new)
    if refusal is not None:
        return refusal
    before = _by_cbid(connection, [new.cbid]).get(new.cbid)
    buyer = new.decide(before)
    if before is None:
        connection.execute(_INSERT, _to_row(buyer))
    elif buyer != before:
        connection.execute(_UPDATE, {"key": buyer.cbid} | _to_row(buyer))
    if buyer != before:
        written.append(new.record)
        connection.execute(
            _INSERT_VERIFICATION,
            {
                "id": new.record.id,
                "account_id": new.account_id,
                "mode": new.mode,
                "cbid": buyer.cbid,
                "provider": new.provider,
                "subject_index": new.subject_index,
                "zip_index": new.zip_index,
                "status": new.attempt.status,
                "reasons": _encode_reasons(new.attempt.reasons).decode(),
                "at": new.at,
            },
        )
    if new.remember is not None:
        keep_answers(connection, [new.remember(buyer)])
    return buyer


def _count_zip(connection: Connection, new: NewVerification) -> RateLimited | None:
    """Note the ZIP code that this call tries, unless that would be one too many."""
    if new.subject_index is None or new.zip_index is None:
        return None
    key = {"account_id": new.account_id, "mode": new.mode, "subject_index": new.subject_index}
    since = new.at - ZIP_WINDOW
    tried = {
        row.zip_index: row.at for row in connection.execute(_SELECT_ZIPS, key) if row.at > since
    }
    if new.zip_index in tried:
        return None
    if len(tried) >= ZIPS_PER_DAY:
        wait = min(tried.values()) - since
        return RateLimited(
            f"This account has tried {ZIPS_PER_DAY} different ZIP codes for this buyer within "
            "24 hours.",
            retry_after=max(1, int(wait.total_seconds()) + 1),
        )
    entry = key | {"zip_index": new.zip_index}
    connection.execute(_DELETE_ZIP, entry)
    connection.execute(_INSERT_ZIP, entry | {"at": new.at})
    return None


def _to_row(buyer: Buyer) -> dict[str, object]:
    return {
        "cbid": buyer.cbid,
        "account_id": buyer.account_id,
        "mode": buyer.mode,
        "status": buyer.status,
        "reasons": _encode_reasons(buyer.reasons).decode(),
        "verified_at": buyer.verified_at,
        "expires_at": buyer.expires_at,
        "simulated": buyer.simulated,
    }


def _from_row(row: Row[*tuple[Any, ...]]) -> Buyer:
    cbid, account_id, mode, status, reasons, verified_at, expires_at, simulated = row
    return Buyer(
        cbid=cbid,
        account_id=account_id,
        mode=_MODES[mode],
        status=_STATUSES[status],
        reasons=_decode_reasons(reasons) if reasons != "[]" else (),
        verified_at=verified_at,
        expires_at=expires_at,
        simulated=simulated,
    )
