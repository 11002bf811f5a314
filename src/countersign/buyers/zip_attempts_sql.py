"""The count of ZIP codes that an account has tried for a buyer: a ZIP must not become an oracle."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete

from countersign.buyers.model import ZIP_WINDOW, ZIPS_PER_DAY
from countersign.db.bulk import BulkInsert
from countersign.db.tables import zip_attempts
from countersign.errors import RateLimited
from countersign.instant import from_ms, to_ms
from countersign.mode import Mode

# Driven by the list of subjects on both engines, whatever statistics a planner may have.
_SELECT: Final = {
    "sqlite": "SELECT z.account_id, z.mode, z.subject_index, z.zip_index, z.at"
    " FROM json_each(?) s CROSS JOIN zip_attempts z ON z.account_id = s.value ->> 0"
    " AND z.mode = s.value ->> 1 AND z.subject_index = unhex(s.value ->> 2)",
    "postgresql": "SELECT account_id, mode, subject_index, z.zip_index, z.at"
    " FROM unnest(%s::text[], %s::text[], %s::bytea[]) AS s (account_id, mode, subject_index)"
    " JOIN zip_attempts z USING (account_id, mode, subject_index)",
}
_LOCK: Final = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"
_encode: Final = msgspec.json.Encoder().encode
_MODES: Final = {mode.value: mode for mode in Mode}
_DELETE: Final = delete(zip_attempts).where(
    zip_attempts.c.account_id == bindparam("account_id"),
    zip_attempts.c.mode == bindparam("mode"),
    zip_attempts.c.subject_index == bindparam("subject_index"),
    zip_attempts.c.zip_index == bindparam("zip_index"),
)
_insert: Final = BulkInsert(zip_attempts, "account_id", "mode", "subject_index", "zip_index", "at")


class ZipSubject(NamedTuple):
    """For whom an account tries ZIP codes; the index is a keyed hash."""

    account_id: str
    mode: Mode
    subject_index: bytes


class ZipTries:
    """The ZIP codes that were tried for some subjects, and those that are tried now."""

    def __init__(self, connection: Connection, subjects: Collection[ZipSubject]) -> None:
        """Read what was tried, in the transaction of the act."""
        self._connection = connection
        self._tried: dict[ZipSubject, dict[bytes, datetime]] = {subject: {} for subject in subjects}
        self._old: list[dict[str, object]] = []
        self._new: list[tuple[object, ...]] = []
        if not subjects:
            return
        _lock(connection, subjects)
        for account_id, mode, index, zip_index, at in _tried(connection, [*self._tried]):
            known = self._tried.get(ZipSubject(account_id, _MODES[mode], bytes(index)))
            if known is not None:
                known[bytes(zip_index)] = from_ms(at)

    def count(self, subject: ZipSubject, zip_index: bytes, at: datetime) -> RateLimited | None:
        """Note a ZIP code that is tried; the refusal if that would be one too many."""
        known = self._tried[subject]
        since = at - ZIP_WINDOW
        tried = {index: then for index, then in known.items() if then > since}
        if zip_index in tried:
            return None
        if len(tried) >= ZIPS_PER_DAY:
            return _refusal(min(tried.values()) - since)
        account_id, mode, index = subject
        if zip_index in known:
            self._old.append(
                {
                    "account_id": account_id,
                    "mode": mode,
                    "subject_index": index,
                    "zip_index": zip_index,
                }
            )
        known[zip_index] = at
        self._new.append((account_id, mode.value, index, zip_index, to_ms(at)))
        return None

    def write(self) -> None:
        """Write what was counted."""
        if self._old:
            self._connection.execute(_DELETE, self._old)
        if self._new:
            _insert(self._connection, self._new)


def count_zip(
    connection: Connection, subject: ZipSubject, zip_index: bytes, at: datetime
) -> RateLimited | None:
    """Count one ZIP code that is tried; the refusal if that would be one too many."""
    tries = ZipTries(connection, [subject])
    refusal = tries.count(subject, zip_index, at)
    tries.write()
    return refusal


def _lock(connection: Connection, subjects: Collection[ZipSubject]) -> None:
    """Have other servers wait who count for one of these subjects, until this transaction ends.

    The embedded database has one writer. Always in the same order, and before any buyer is locked,
    so that no two transactions wait for each other.
    """
    if connection.dialect.name == "postgresql":
        keys = {int.from_bytes(s.subject_index[:8], signed=True) for s in subjects}
        connection.exec_driver_sql(_LOCK, (sorted(keys),))


def _tried(
    connection: Connection, subjects: Sequence[ZipSubject]
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The rows of these subjects, in the driver's own types."""
    triples = [(account_id, mode.value, index) for account_id, mode, index in subjects]
    given: tuple[object, ...]
    if connection.dialect.name == "sqlite":
        given = (_encode([(a, mode, index.hex()) for a, mode, index in triples]).decode(),)
    else:
        given = tuple([*column] for column in zip(*triples, strict=True))
    return connection.exec_driver_sql(_SELECT[connection.dialect.name], given).fetchall()


def _refusal(wait: timedelta) -> RateLimited:
    return RateLimited(
        f"This account has tried {ZIPS_PER_DAY} different ZIP codes for this buyer within "
        "24 hours.",
        retry_after=max(1, int(wait.total_seconds()) + 1),
    )
