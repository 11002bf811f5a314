"""The provider sessions that this service started, and the newest decision about each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection, Row, Select, delete, exists, select, update

from countersign.base.db.statements import of_row
from countersign.base.db.tables import buyers, checkout_sessions, pending_sessions, started_checks
from countersign.base.values import Reason
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.identity_check import UNDECIDED, IdentityCheck, state_of
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sql import decoded_reasons, encoded_reasons
from countersign.core.orders.sql import write_act_with


class StartedCheck(NamedTuple):
    """A check as a row has it, without its address: found by the keyed hash of its session."""

    reference: str
    session_index: bytes
    zip_index: bytes
    """The keyed hash of the ZIP code that it was started for."""
    check: IdentityCheck
    """The provider's last result, even if it withdraws an earlier one."""
    revision: int = 0
    """How many decisions there were."""


def add(connection: Connection, new: StartedCheck, reach: AccountReach, at: datetime) -> bool:
    """Write that a session was started; False if that was written before, by whatever attempt."""
    row = {
        "reference": new.reference,
        "attempt": new.check.attempt,
        "account_id": reach.account_id,
        "mode": reach.mode,
        "provider": new.check.provider,
        "session_index": new.session_index,
        "zip_index": new.zip_index,
        "revision": new.revision,
        "started_at": at,
        "changed_at": at,
    }
    return connection.execute(_insert(connection.dialect.name), row).first() is not None


@cache
def _insert(engine: str) -> Any:  # noqa: ANN401 - each engine has a type of its own
    """Two servers that start or evaluate one session take turns, and neither fails."""
    # Import the dialect of this engine alone: the other one is slow to import.
    new = import_module(f"sqlalchemy.dialects.{engine}").insert(started_checks)
    return new.on_conflict_do_nothing().returning(started_checks.c.attempt)


def is_erased(connection: Connection, reference: str) -> bool:
    """Whether the content of the reference's session was erased; locks it against erasure."""
    held = select(checkout_sessions.c.content).where(checkout_sessions.c.id == reference)
    row = connection.execute(held.with_for_update()).one_or_none()
    return row is not None and row.content is None


def of_session(
    connection: Connection, reach: AccountReach, session_index: bytes, *, to_change: bool = False
) -> StartedCheck | None:
    """The check that this session was started for, if this account did."""
    own = started_checks.c.session_index == session_index
    query = select(started_checks).where(reach.rows(started_checks), own)
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    return None if row is None else _stored(row)


def of_reference(connection: Connection, reference: str) -> Sequence[StartedCheck]:
    """The checks started for a reference, oldest first.

    A buyer who was verified, and is revoked or reported as expired, is so here too.
    """
    query: Select[*tuple[object, ...]] = (
        select(started_checks, buyers.c.status.label("buyer_status"), buyers.c.expiry_due_at)
        .outerjoin(buyers, buyers.c.cbid == started_checks.c.cbid)
        .where(started_checks.c.reference == reference)
        .order_by(started_checks.c.attempt, started_checks.c.started_at)
    )
    found = []
    for row in connection.execute(query):
        stored = _stored(row)
        check = stored.check
        if row.buyer_status == BuyerStatus.REVOKED:
            check = replace(check, status=BuyerStatus.REVOKED, reasons=())
        elif check.status is BuyerStatus.VERIFIED and row.expiry_due_at is None:
            check = replace(check, status=BuyerStatus.EXPIRED)
        found.append(stored._replace(check=check))
    return found


def _stored(row: Row[*tuple[object, ...]]) -> StartedCheck:
    reasons = decoded_reasons(row.reasons) if row.reasons else ()
    check = of_row(row, IdentityCheck, reasons=reasons, verification=row.verification_id)
    return StartedCheck(row.reference, row.session_index, row.zip_index, check, row.revision)


def settle(
    connection: Connection, known: StartedCheck, outcome: IdentityCheck, at: datetime
) -> None:
    """Write the newest decision about a check that was started, if it differs from the last.

    Another record of the same decision is no news.
    """
    if outcome == known.check:
        return
    is_news = replace(outcome, verification=known.check.verification) != known.check
    connection.execute(
        update(started_checks)
        .filter_by(reference=known.reference, session_index=known.session_index)
        .filter_by(attempt=known.check.attempt)
        .values(
            revision=started_checks.c.revision + int(is_news),
            cbid=outcome.cbid,
            verification_id=outcome.verification,
            status=outcome.status,
            reasons=encoded_reasons(outcome.reasons),
            changed_at=at,
        )
    )
    if outcome.verification is not None:
        write_act_with(connection, known.reference, outcome.verification, at)


def give_up(
    connection: Connection, reach: AccountReach, session_index: bytes, at: datetime
) -> None:
    """Note that an undecided session, if it was started here, is followed no longer."""
    known = of_session(connection, reach, session_index, to_change=True)
    if known is not None and state_of(known.check.status, known.check.reasons) in UNDECIDED:
        ended, reasons = BuyerStatus.REQUIRES_INPUT, (Reason.SESSION_UNDECIDED,)
        settle(connection, known, replace(known.check, status=ended, reasons=reasons), at)


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
