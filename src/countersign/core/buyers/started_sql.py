"""The provider sessions that this service started, and the newest decision about each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, exists, select, update

from countersign.base.db.statements import DriverStatement
from countersign.base.db.tables import checkout_sessions, pending_sessions, started_checks
from countersign.base.values import Reason
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.identity_check import UNDECIDED, IdentityCheck, state_of
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sql import encoded_reasons
from countersign.core.events.sql import decoded_reasons
from countersign.core.orders.sql import write_act_with

_COLUMNS: Final = (
    *("reference", "session_index", "zip_index", "attempt", "provider", "cbid", "status"),
    *("reasons", "verification_id", "revision"),
)
_of_reference: Final = DriverStatement(
    f"SELECT {', '.join(f's.{name}' for name in _COLUMNS)}, b.status, b.expiry_due_at"  # noqa: S608 - our own names
    " FROM started_checks s LEFT JOIN buyers b ON b.cbid = s.cbid WHERE s.reference = ?"
    " ORDER BY s.attempt, s.started_at"
)


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
    query = select(*(started_checks.c[name] for name in _COLUMNS))
    query = query.where(reach.rows(started_checks), own)
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    return None if row is None else _stored(row)


def of_reference(connection: Connection, reference: str) -> Sequence[StartedCheck]:
    """The checks started for a reference, oldest first.

    A buyer who was verified, and is revoked or reported as expired, is so here too.
    """
    found = []
    for *columns, buyer_status, expiry_due_at in _of_reference(connection, reference):
        stored = _stored(columns)
        check = stored.check
        if buyer_status == BuyerStatus.REVOKED:
            check = replace(check, status=BuyerStatus.REVOKED, reasons=())
        elif check.status is BuyerStatus.VERIFIED and expiry_due_at is None:
            check = replace(check, status=BuyerStatus.EXPIRED)
        found.append(stored._replace(check=check))
    return found


def _stored(row: Sequence[Any]) -> StartedCheck:
    """A check from its columns as the driver returns them."""
    *named, attempt, provider, cbid, status, reasons, verification, revision = row
    check = IdentityCheck(
        attempt=attempt,
        provider=provider,
        cbid=cbid,
        status=None if status is None else BuyerStatus(status),
        reasons=decoded_reasons(reasons) if reasons else (),
        verification=verification,
    )
    return StartedCheck(named[0], named[1], named[2], check, revision)


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


def outdated(before: datetime) -> ColumnElement[bool]:
    """The condition that a check began before this time and that nothing refers to it any more."""
    s, p = started_checks.c, pending_sessions.c
    followed = exists().where(p.account_id == s.account_id, p.session_index == s.session_index)
    wanted = exists().where(checkout_sessions.c.id == s.reference)
    return and_(s.started_at < before, ~followed, ~wanted)
