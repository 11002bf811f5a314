"""Legal holds in the database, and what they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, insert, select, text, update

from countersign.access.secrets import DeploymentSecret
from countersign.acknowledgments.acknowledge import CBID_FIELD
from countersign.db.tables import (
    accounts,
    buyers,
    disclosures,
    legal_holds,
    records,
    verifications,
)
from countersign.ids import BUYER
from countersign.privacy.erase_sql import chunks, identifiers_of
from countersign.privacy.model import Hold

_HOLDS_LOCK: Final = 0x636F756E68


def take_turn(connection: Connection) -> None:
    """Wait until no other server places a hold or erases: each must see what the other did.

    The embedded database has one writer in any case.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _HOLDS_LOCK})


def exists(connection: Connection, subject: str) -> bool:
    """Whether there is a record, a buyer or an account with this identifier."""
    return any(
        connection.execute(select(column).where(column == subject)).first() is not None
        for column in (records.c.id, buyers.c.cbid, accounts.c.id)
    )


def insert_hold(connection: Connection, hold: Hold) -> None:
    """Insert a hold that has not ended."""
    row = {
        "id": hold.id,
        "subject": hold.subject,
        "reason": hold.reason,
        "placed_at": hold.placed_at,
    }
    connection.execute(insert(legal_holds), row)


def release_hold(connection: Connection, hold_id: str, at: datetime) -> bool:
    """End a hold; False: it has ended already."""
    statement = update(legal_holds).where(
        legal_holds.c.id == hold_id, legal_holds.c.released_at.is_(None)
    )
    return connection.execute(statement.values(released_at=at)).rowcount > 0


def list_holds(connection: Connection) -> Sequence[Hold]:
    """Every hold, oldest first, including ended ones."""
    rows = connection.execute(select(legal_holds).order_by(legal_holds.c.id))
    return [Hold(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name


def active_holds(connection: Connection) -> dict[str, str]:
    """The id of the hold on each subject; the oldest, if there are several."""
    rows = connection.execute(
        select(legal_holds.c.subject, legal_holds.c.id)
        .where(legal_holds.c.released_at.is_(None))
        .order_by(legal_holds.c.id.desc())
    )
    active = {row.subject: row.id for row in rows}
    for subject in [subject for subject in active if subject.startswith(f"{BUYER}_")]:
        # A person may be known by several identifiers.
        for other in identifiers_of(connection, subject):
            active.setdefault(other, active[subject])
    return active


def find_holding(
    connection: Connection,
    secret: DeploymentSecret,
    active: Mapping[str, str],
    record_ids: Sequence[str],
) -> dict[str, tuple[str, str]]:
    """Of those of these records that one of the active holds keeps: its id, and its subject.

    A hold on a record, on its account, or on the buyer that it names. That name is encrypted, so
    it is found by its blind index, which differs from account to account.
    """
    held_buyers = [subject for subject in active if subject.startswith(f"{BUYER}_")]
    indexes: dict[str, dict[bytes, str]] = {}
    found = {}
    for chunk in chunks(record_ids if active else ()):
        rows = connection.execute(
            select(
                records.c.id, records.c.account_id, disclosures.c.cbid_index, verifications.c.cbid
            )
            .outerjoin(disclosures, disclosures.c.record_id == records.c.id)
            .outerjoin(verifications, verifications.c.id == records.c.id)
            .where(records.c.id.in_(chunk))
        )
        for row in rows:
            if row.account_id not in indexes:
                indexes[row.account_id] = {
                    secret.blind_index(row.account_id, CBID_FIELD, cbid): cbid
                    for cbid in held_buyers
                }
            named = row.cbid_index and indexes[row.account_id].get(bytes(row.cbid_index))
            subjects = (row.id, row.account_id, row.cbid, named)
            subject = next((s for s in subjects if s in active), None)
            if subject is not None:
                found[row.id] = (active[subject], subject)
    return found
