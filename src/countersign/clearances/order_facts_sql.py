"""What the database knows about orders that are to be decided: a few statements for many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from countersign.buyers.model import Buyer
from countersign.clearances.model import Acknowledged, ClearanceRules, Earlier, Use
from countersign.db.bulk import SelectAmong
from countersign.instant import from_ms
from countersign.log.record import RecordType
from countersign.mode import Mode

_MODES: Final = {mode.value: mode for mode in Mode}


class _Notice(msgspec.Struct):
    notice_version: str
    test_clock: datetime | None = None


class _Judged(msgspec.Struct):
    test_clock: datetime | None = None


_read_notice: Final = msgspec.json.Decoder(_Notice).decode
_read_judged: Final = msgspec.json.Decoder(_Judged).decode

_select_acknowledgments: Final = SelectAmong(
    "SELECT r.id, r.account_id, r.mode, r.at, r.notice_id, r.body, d.record_id, d.session_index,"  # noqa: S608 - our own names
    " d.cbid_index FROM records r LEFT JOIN disclosures d ON d.record_id = r.id"
    f" WHERE r.type = '{RecordType.ACKNOWLEDGMENT.value}' AND r.id {{}}"
)
# Two servers that clear with one acknowledgment take turns (PostgreSQL; the embedded database has
# one writer), in one order.
_select_uses: Final = SelectAmong(
    "SELECT ack_id, account_id, mode, cbid, cbid_index, order_index, clearance_id, closed_at"
    " FROM acknowledgment_uses WHERE ack_id {} ORDER BY ack_id",
    for_update=True,
)
_select_earlier: Final = SelectAmong(
    "SELECT c.id, c.kid, c.at, c.expires_at, r.body FROM clearances c"
    " JOIN records r ON r.id = c.id WHERE c.id {}"
)
_select_simulated: Final = SelectAmong(
    "SELECT cbid, subject_index, zip_index FROM verifications WHERE cbid {}"
)
_select_rules: Final = SelectAmong(
    "SELECT account_id, acknowledgment_max_age, lifetime, product_class_required"
    " FROM clearance_settings WHERE account_id {}"
)


class Simulated(NamedTuple):
    """Of a simulated buyer: its session's keyed hash, and those of the ZIP codes it was given."""

    subject_index: bytes | None
    zips: frozenset[bytes]


def uses_of(connection: Connection, ack_ids: Iterable[str]) -> dict[str, Use]:
    """What these acknowledgments are bound to, those that are; locked where there are rows."""
    return {
        ack_id: Use(
            ack_id=ack_id,
            account_id=account_id,
            mode=_MODES[mode],
            cbid=cbid,
            cbid_index=cbid_index,
            order_index=order_index,
            clearance_id=clearance_id,
            closed_at=None if closed_at is None else from_ms(closed_at),
        )
        for (
            ack_id,
            account_id,
            mode,
            cbid,
            cbid_index,
            order_index,
            clearance_id,
            closed_at,
        ) in _select_uses(connection, ack_ids)
    }


def acknowledgments_of(
    connection: Connection, ack_ids: Iterable[str]
) -> dict[tuple[str, Mode, str], Acknowledged]:
    """Those that there are of these acknowledgments, by account, mode and identifier."""
    found = {}
    for row in _select_acknowledgments(connection, ack_ids):
        id_, account_id, mode, at, notice_id, body, kept, session_index, cbid_index = row
        notice = _read_notice(body)
        found[account_id, _MODES[mode], id_] = Acknowledged(
            # By the clock by which its age is judged.
            accepted_at=notice.test_clock or from_ms(at),
            notice_id=notice_id,
            notice_version=notice.notice_version,
            session_index=session_index,
            cbid_index=cbid_index,
            erased=kept is None,
        )
    return found


def earlier_of(connection: Connection, uses: Mapping[str, Use]) -> dict[str, Earlier]:
    """The newest clearances that were granted for these orders, by identifier."""
    ids = [use.clearance_id for use in uses.values() if use.clearance_id]
    if not ids:
        return {}
    return {
        id_: Earlier(
            clearance_id=id_,
            kid=kid,
            at=from_ms(at),
            judged_at=_read_judged(body).test_clock or from_ms(at),
            expires_at=from_ms(expires_at),
        )
        for id_, kid, at, expires_at, body in _select_earlier(connection, ids)
    }


def simulated_of(connection: Connection, buyers: Mapping[str, Buyer]) -> dict[str, Simulated]:
    """What the sandbox was given of these buyers, of those that are its own."""
    cbids = {buyer.cbid for buyer in buyers.values() if buyer.simulated and not buyer.proofs}
    found: dict[str, Simulated] = {}
    if cbids:
        for cbid, subject, zip_index in _select_simulated(connection, cbids):
            known = found.get(cbid)
            zips = known.zips if known else frozenset[bytes]()
            found[cbid] = Simulated(subject, zips | {zip_index} if zip_index else zips)
    return found


def rules_of(connection: Connection, account_ids: Iterable[str]) -> dict[str, ClearanceRules]:
    """What these accounts ask of their clearances; those that have said something."""
    return {
        account_id: ClearanceRules(
            acknowledgment_max_age=timedelta(seconds=max_age),
            lifetime=timedelta(seconds=lifetime),
            product_class_required=bool(class_required),
        )
        for account_id, max_age, lifetime, class_required in _select_rules(connection, account_ids)
    }
