"""The provider sessions that this service started, and the newest decision about each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, Select, delete, exists, select, update

from countersign.buyers.model import BuyerStatus
from countersign.buyers.sql import encoded_reasons
from countersign.db.tables import buyers, checkout_sessions, pending_sessions, started_checks
from countersign.mode import Mode
from countersign.reason import Reason

_decode_reasons: Final = msgspec.json.Decoder(tuple[Reason, ...]).decode


class CheckRow(NamedTuple):
    """The row of an `IdentityCheck`: its provider's session, found by its keyed hash."""

    reference: str
    attempt: int
    provider: str
    session_index: bytes
    zip_index: bytes
    """The keyed hash of the ZIP code that it was started for."""
    revision: int
    cbid: str | None
    verification_id: str | None
    status: BuyerStatus | None
    """None: there is no decision."""
    reasons: tuple[Reason, ...]


_COLUMNS: Final = tuple(started_checks.c[name] for name in CheckRow._fields)


def add(connection: Connection, new: CheckRow, account_id: str, mode: Mode, at: datetime) -> bool:
    """Write that a session was started; False if that was written before, by whatever attempt."""
    row = new._asdict() | {
        "account_id": account_id,
        "mode": mode,
        "status": None,
        "reasons": None,
        "started_at": at,
        "changed_at": at,
    }
    return connection.execute(_insert(connection.dialect.name), row).first() is not None


@cache
def _insert(engine: str) -> Any:  # noqa: ANN401 - each engine has a type of its own
    """Two servers that start or evaluate one session take turns, and neither fails."""
    # The dialect of the engine alone: that of the other takes long to import.
    new = import_module(f"sqlalchemy.dialects.{engine}").insert(started_checks)
    return new.on_conflict_do_nothing().returning(started_checks.c.attempt)


def is_erased(connection: Connection, reference: str) -> bool:
    """Whether what the session of a reference held was destroyed; locks it against that."""
    held = select(checkout_sessions.c.content).where(checkout_sessions.c.id == reference)
    row = connection.execute(held.with_for_update()).one_or_none()
    return row is not None and row.content is None


def of_session(
    connection: Connection,
    account_id: str,
    mode: Mode,
    session_index: bytes,
    *,
    to_change: bool = False,
) -> CheckRow | None:
    """The check that this session was started for, if this account did."""
    query = select(*_COLUMNS).where(
        started_checks.c.account_id == account_id,
        started_checks.c.mode == mode,
        started_checks.c.session_index == session_index,
    )
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    return None if row is None else _stored(row)


def of_reference(connection: Connection, reference: str) -> Sequence[CheckRow]:
    """What was started for a reference, oldest first.

    A buyer who was verified, and is revoked or reported as expired, is so here too.
    """
    query: Select[*tuple[object, ...]] = (
        select(*_COLUMNS, buyers.c.status.label("buyer_status"), buyers.c.expiry_due_at)
        .outerjoin(buyers, buyers.c.cbid == started_checks.c.cbid)
        .where(started_checks.c.reference == reference)
        .order_by(started_checks.c.attempt, started_checks.c.started_at)
    )
    found = []
    for row in connection.execute(query):
        stored = _stored(row)
        if row.buyer_status == BuyerStatus.REVOKED:
            stored = stored._replace(status=BuyerStatus.REVOKED, reasons=())
        elif stored.status is BuyerStatus.VERIFIED and row.expiry_due_at is None:
            stored = stored._replace(status=BuyerStatus.EXPIRED)
        found.append(stored)
    return found


def _stored(row: Row[*tuple[object, ...]]) -> CheckRow:
    found = {name: getattr(row, name) for name in CheckRow._fields}
    found["status"] = None if row.status is None else BuyerStatus(row.status)
    found["reasons"] = _decode_reasons(row.reasons) if row.reasons else ()
    return CheckRow(**found)


def settle(
    connection: Connection,
    known: CheckRow,
    outcome: tuple[str | None, BuyerStatus, tuple[Reason, ...]],
    verification_id: str | None,
    at: datetime,
) -> None:
    """Write the newest decision about a session that was started, if it differs from the last.

    `outcome` is the buyer, status and reasons; `verification_id` is None where no new verification
    was written.
    """
    cbid, status, reasons = outcome
    changed = (known.cbid, known.status, known.reasons) != outcome
    if not changed and verification_id is None:
        return
    connection.execute(
        update(started_checks)
        .where(
            started_checks.c.reference == known.reference,
            started_checks.c.attempt == known.attempt,
            started_checks.c.session_index == known.session_index,
        )
        .values(
            revision=started_checks.c.revision + int(changed),
            cbid=cbid,
            verification_id=verification_id or known.verification_id,
            status=status,
            reasons=encoded_reasons(reasons),
            changed_at=at,
        )
    )


def give_up(
    connection: Connection, account_id: str, mode: Mode, session_index: bytes, at: datetime
) -> None:
    """Note that an undecided session, if it was started here, is followed no longer."""
    known = of_session(connection, account_id, mode, session_index, to_change=True)
    if known is None or known.status not in {None, BuyerStatus.PENDING, BuyerStatus.REQUIRES_INPUT}:
        return
    undecided = (known.cbid, BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_UNDECIDED,))
    settle(connection, known, undecided, None, at)


def delete_old(connection: Connection, before: datetime, limit: int) -> int:
    """Delete at most `limit` checks begun before this time that nothing refers to any more."""
    followed = exists().where(
        pending_sessions.c.account_id == started_checks.c.account_id,
        pending_sessions.c.session_index == started_checks.c.session_index,
    )
    wanted = exists().where(checkout_sessions.c.id == started_checks.c.reference)
    old = (
        select(started_checks.c.session_index)
        .where(started_checks.c.started_at < before, ~followed, ~wanted)
        .limit(limit)
    )
    gone = delete(started_checks).where(
        started_checks.c.started_at < before, started_checks.c.session_index.in_(old)
    )
    return connection.execute(gone).rowcount
