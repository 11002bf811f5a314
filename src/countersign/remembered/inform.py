"""Informing an account about a remembered buyer who has agreed to it, and writing that down."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, insert, select

from countersign.buyers.model import BuyerStatus
from countersign.buyers.rules import zip5
from countersign.buyers.sql import write_verification
from countersign.buyers.started import REMEMBERED as PROVIDER
from countersign.buyers.started import Check, judge_known
from countersign.db.tables import remembered_uses, verifications
from countersign.ids import VERIFICATION, timed_id
from countersign.instant import from_ns
from countersign.log.append_record import account_fact
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.remembered.model import KnownBy
from countersign.remembered.room import Remembered

_USE: Final = "use"


async def inform(
    room: Remembered, account_id: str, known: KnownBy, shipping_zip: str | None
) -> Check:
    """Whether this buyer is verified for this account now; durable when this returns.

    If so, a record of it is written, which `verification` names. The buyer sees both outcomes.

    Raises:
        RateLimited: too many ZIP codes tried for one buyer.
    """
    check = await judge_known(room.buyers, account_id, known.mode, known.cbid, shipping_zip)
    access = room.buyers.access
    clock = await access.test_clocks.of(account_id, known.mode)
    time_ns = access.clock.time_ns()
    at = from_ns(time_ns)
    record = None
    if check.status is BuyerStatus.VERIFIED and check.cbid is not None:
        key = await room.buyers.vault.data_key(account_id, time_ns)
        simulated = known.mode is Mode.TEST
        record = account_fact(
            key,
            access.entropy,
            RecordType.VERIFICATION,
            record_id=timed_id(VERIFICATION, time_ns, access.entropy(8)),
            account_id=account_id,
            mode=known.mode,
            time_ns=time_ns,
            members={
                "provider": PROVIDER,
                "simulated": simulated,
                "binding": known.kind.binding.value,
                **clock.member(at),
            },
            personal=(
                ("cbid", check.cbid),
                ("provider_identity_session_id", None),
                ("result", {"status": check.status.value, "reasons": []}),
                *(() if simulated else (("evidence_sha256", None),)),
            ),
            cbid_index=access.secret.blind_index(account_id, "cbid", check.cbid),
        )
        check = replace(check, verification=record.id)
    use = {
        "id": timed_id(_USE, time_ns, access.entropy(8)),
        "mode": known.mode,
        "cbid": known.cbid,
        "account_id": account_id,
        "kind": known.kind,
        "verified": record is not None,
        "at": at,
    }
    await access.database.write(_write, room, check, record, use, shipping_zip)
    return check


def _write(  # noqa: PLR0917 - see `Database.write`
    connection: Connection,
    room: Remembered,
    check: Check,
    record: NewRecord | None,
    use: dict[str, object],
    shipping_zip: str | None,
) -> None:
    connection.execute(insert(remembered_uses), use)
    if record is None or record.account_id is None or check.cbid is None:
        return
    index, account_id, subject = room.buyers.access.secret.blind_index, record.account_id, None
    if record.mode is Mode.TEST:
        # In the sandbox the guesses of a session count: see `buyers.sandbox`.
        first = select(verifications.c.subject_index).where(verifications.c.cbid == check.cbid)
        subject = connection.execute(first.order_by(verifications.c.id).limit(1)).scalar()
    write_verification(
        connection,
        record,
        cbid=check.cbid,
        provider=PROVIDER,
        result=(BuyerStatus.VERIFIED, ()),
        subject_index=subject or index(account_id, "buyer", check.cbid),
        zip_index=None if shipping_zip is None else index(account_id, "zip", zip5(shipping_zip)),
    )
    room.buyers.journal.write(connection, [record])
