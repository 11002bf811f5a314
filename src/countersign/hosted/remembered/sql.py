"""Remembered buyers in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from countersign.base.db import statements
from countersign.base.db.tables import remembered, remembered_uses
from countersign.base.values import Mode
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.hosted.remembered.model import KEPT_MAX, Kind, KnownBy, Use

_c: Final = remembered.c


def find(
    connection: Connection, mode: Mode | None, kind: Kind, lookup: bytes, now: datetime
) -> Row[*tuple[Any, ...]] | None:
    """The row of what is presented, of this mode if one is named; None: unknown, or expired."""
    found = select(remembered).where(_c.lookup == lookup, _c.kind == kind, _c.expires_at > now)
    if mode is not None:
        found = found.where(_c.mode == mode)
    return connection.execute(found).one_or_none()


def signed_in(connection: Connection, id_: str, since: datetime, now: datetime) -> KnownBy | None:
    """The passkey that was used to sign in, unless it expired or its owner has signed out since."""
    stays = or_(_c.signed_out_at.is_(None), _c.signed_out_at < since)
    found = select(remembered).where(_c.id == id_, _c.expires_at > now, stays)
    return statements.row(connection, found, KnownBy)


def sign_out(connection: Connection, id_: str, now: datetime) -> None:
    """End the sign-ins with this passkey in every browser."""
    connection.execute(update(remembered).where(_c.id == id_).values(signed_out_at=now))


def add(connection: Connection, row: dict[str, object]) -> bool:
    """Write a passkey or a cookie of a buyer who is to be changed by no one else meanwhile.

    False: its digest exists already, or the buyer was erased.
    """
    cbid = str(row["cbid"])
    if cbid not in buyers_by_cbid(connection, [cbid], to_change=True):
        return False
    same = select(_c.id).where(_c.lookup == row["lookup"])
    if connection.execute(same).first() is not None:
        return False
    own = _c.cbid == cbid
    newest = select(_c.id).where(own).order_by(_c.last_used_at.desc(), _c.id.desc())
    kept = [*connection.execute(newest.limit(KEPT_MAX - 1)).scalars()]
    connection.execute(delete(remembered).where(own, _c.id.not_in(kept)))
    connection.execute(insert(remembered), row)
    return True


def use(connection: Connection, id_: str, before: Row[*tuple[Any, ...]], **values: object) -> bool:
    """Note a use; False if it was used or removed since `before` was read."""
    same = update(remembered).where(
        _c.id == id_, _c.last_used_at == before.last_used_at, _c.sign_count == before.sign_count
    )
    return connection.execute(same.values(values)).rowcount == 1


def touch(connection: Connection, id_: str, now: datetime) -> None:
    """Note a use of a passkey or reusable cookie."""
    connection.execute(update(remembered).where(_c.id == id_).values(last_used_at=now))


def remove(connection: Connection, cbids: Sequence[str], id_: str) -> None:
    """Remove one of what these buyers are remembered by."""
    connection.execute(delete(remembered).where(_c.cbid.in_(cbids), _c.id == id_))


def remove_by(connection: Connection, lookup: bytes) -> None:
    """Remove what is found by this."""
    connection.execute(delete(remembered).where(_c.lookup == lookup))


def all_of(connection: Connection, cbids: Sequence[str], now: datetime) -> list[KnownBy]:
    """The passkeys and cookies of these buyers, newest first."""
    own = select(remembered).where(_c.cbid.in_(cbids), _c.expires_at > now)
    return statements.rows(connection, own.order_by(_c.id.desc()), KnownBy)


def uses_of(connection: Connection, cbids: Sequence[str], limit: int) -> list[Use]:
    """Uses of these buyers' verification, newest first."""
    u = remembered_uses.c
    columns = select(u.account_id, u.kind, u.verified, u.at).where(u.cbid.in_(cbids))
    return statements.rows(connection, columns.order_by(u.id.desc()).limit(limit), Use)


def delete_outdated(
    connection: Connection, now: datetime, uses_before: datetime, limit: int
) -> int:
    """Delete at most `limit` of each that has served its time; returns the larger number."""
    numbers = []
    for table, outdated in (
        (remembered, _c.expires_at <= now),
        (remembered_uses, remembered_uses.c.at < uses_before),
    ):
        some = select(table.c.id).where(outdated).limit(limit)
        numbers.append(connection.execute(delete(table).where(table.c.id.in_(some))).rowcount)
    return max(numbers)
