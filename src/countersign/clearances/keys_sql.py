"""The keys that sign the tokens of clearances, and how accounts clear."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, select

from countersign.access.audit import AuditEntry, write_audit
from countersign.clearances.key import ClearanceKey
from countersign.clearances.model import ClearanceRules
from countersign.clearances.order_facts_sql import rules_of
from countersign.db.database import Database
from countersign.db.tables import clearance_keys, clearance_settings
from countersign.errors import CountersignError, InvalidArgument
from countersign.mode import Mode


class ClearanceKeyRows:
    """See `ports.ClearanceKeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, mode: Mode) -> Sequence[ClearanceKey]:
        """The keys of a mode, oldest first."""
        return await self._database.read(_of, mode)

    async def add(self, key: ClearanceKey, audit: AuditEntry) -> ClearanceKey:
        """Write a key; gives the one that has its place in the row then."""
        return await self._database.write(_add, (key, audit))

    async def remove(self, kid: str, now: datetime, audit: AuditEntry) -> ClearanceKey | None:
        """Remove a key that is not needed to sign; gives None if there is no such key.

        Raises:
            InvalidArgument: no other key of its mode signs by now.
        """
        return await self._database.write(_remove, (kid, now, audit))


class ClearanceSettings:
    """See `ports.ClearanceSettingsStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, account_id: str) -> ClearanceRules | None:
        """What an account asks of its clearances; None if it has said nothing."""
        return await self._database.read(_get_settings, account_id)

    async def put(self, account_id: str, rules: ClearanceRules, audit: AuditEntry) -> None:
        """Write what an account asks, and who changed it."""
        await self._database.write(_put_settings, (account_id, rules, audit))


def _of(connection: Connection, mode: Mode) -> Sequence[ClearanceKey]:
    return _keys(connection, mode)


def _keys(connection: Connection, mode: Mode) -> list[ClearanceKey]:
    rows = connection.execute(
        select(clearance_keys)
        .where(clearance_keys.c.mode == mode)
        .order_by(clearance_keys.c.number)
    )
    return [
        ClearanceKey(
            mode=Mode(row.mode),
            number=row.number,
            kid=row.kid,
            public_key=row.public_key,
            seed=row.seed,
            created_at=row.created_at,
            signs_from=row.signs_from,
        )
        for row in rows
    ]


def _add(connection: Connection, item: tuple[ClearanceKey, AuditEntry]) -> ClearanceKey:
    # Where another process adds a key with this number at this moment, its row makes this
    # transaction fail, and the call is done again by itself: then that row is seen.
    key, audit = item
    for other in _keys(connection, key.mode):
        if other.number == key.number:
            return other
    connection.execute(
        insert(clearance_keys),
        {
            "mode": key.mode,
            "number": key.number,
            "kid": key.kid,
            "public_key": key.public_key,
            "seed": key.seed,
            "created_at": key.created_at,
            "signs_from": key.signs_from,
        },
    )
    write_audit(connection, audit)
    return key


def _remove(
    connection: Connection, item: tuple[str, datetime, AuditEntry]
) -> ClearanceKey | CountersignError | None:
    kid, now, audit = item
    mode = connection.execute(
        select(clearance_keys.c.mode).where(clearance_keys.c.kid == kid)
    ).scalar()
    if mode is None:
        return None
    keys = _keys(connection, Mode(mode))
    if not any(other.kid != kid and other.signs_from <= now for other in keys):
        return InvalidArgument(
            "No other key is ready to sign. Make one: `countersign clearances rotate-key "
            "--at-once`."
        )
    connection.execute(delete(clearance_keys).where(clearance_keys.c.kid == kid))
    write_audit(connection, audit)
    return next(key for key in keys if key.kid == kid)


def _get_settings(connection: Connection, account_id: str) -> ClearanceRules | None:
    return rules_of(connection, [account_id]).get(account_id)


def _put_settings(connection: Connection, item: tuple[str, ClearanceRules, AuditEntry]) -> None:
    account_id, rules, audit = item
    own = clearance_settings.c.account_id == account_id
    connection.execute(delete(clearance_settings).where(own))
    connection.execute(
        insert(clearance_settings),
        {
            "account_id": account_id,
            "acknowledgment_max_age": rules.acknowledgment_max_age // timedelta(seconds=1),
            "lifetime": rules.lifetime // timedelta(seconds=1),
            "product_class_required": rules.product_class_required,
            "changed_at": audit.at,
        },
    )
    write_audit(connection, audit)
