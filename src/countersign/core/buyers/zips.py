"""ZIP codes: those that were proved for a buyer, and those that accounts try; as keyed hashes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from countersign.base.db.statements import BulkInsert, DriverStatement
from countersign.base.db.tables import zip_attempts
from countersign.base.errors import RateLimited
from countersign.base.values import Mode, from_ms, to_ms
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import (
    STRANGE_ZIPS_PER_DAY,
    ZIP_WINDOW,
    ZIPS_PER_DAY,
    ProvedSession,
)
from countersign.core.buyers.rules import AbsentCountry, VerificationRules, zip5
from countersign.identity.model import FactSource


def proves_zip(  # noqa: PLR0917 - what is known
    secret: DeploymentSecret,
    account_id: str,
    cbid: str,
    proof: ProvedSession,
    rules: VerificationRules,
    zip_: str,
    now: datetime,
) -> bool:
    """Whether this proof proves the ZIP code for the buyer, as the account's rules ask for it."""
    countries = (False, True) if rules.absent_country is AbsentCountry.US else (False,)
    accepted = {
        proved_zip_index(secret, cbid, zip_, source, country_assumed=assumed)
        for source in rules.zip_sources
        for assumed in countries
    }
    if FactSource.OPERATOR in rules.zip_sources:
        operator = FactSource.OPERATOR
        accepted.add(proved_zip_index(secret, cbid, zip_, operator, account_id=account_id))
    shown = [proof.zip_days.get(index) for index in accepted.intersection(proof.zips)]
    return any(rules.within_document(now, last) == now for last in shown)


def own_zip_subject(secret: DeploymentSecret, account_id: str, mode: Mode, cbid: str) -> ZipSubject:
    """The subject that counts ZIP codes compared in the buyer's own browser.

    Separate from those of clearances: otherwise the account could see there who is known in a
    browser.
    """
    return ZipSubject(account_id, mode, secret.blind_index(account_id, "remembered_buyer", cbid))


def proved_zip_index(
    secret: DeploymentSecret,
    cbid: str,
    zip_: str,
    source: FactSource,
    *,
    country_assumed: bool = False,
    account_id: str | None = None,
) -> str:
    """The keyed hash of a ZIP code that this source has proved for a buyer, in hexadecimal.

    With `account_id` it counts for this account alone, because its reviewer accepted it.
    """
    more = f"_{source.value}{'_assumed_us' if country_assumed else ''}"
    if account_id is not None:
        more = f"{more}_{account_id}"
    return secret.blind_index(cbid, "proved_zip", zip5(zip_), more).hex()


# Driven by the list of subjects on both engines, whatever statistics a planner may have.
_TRIED: Final = {
    "sqlite": "SELECT z.subject_index, z.account_id, z.mode, z.zip_index, z.at"
    " FROM json_each(?) s CROSS JOIN zip_attempts z ON z.subject_index = unhex(s.value)",
    "postgresql": "SELECT z.subject_index, z.account_id, z.mode, z.zip_index, z.at"
    " FROM unnest(?::bytea[]) AS s (subject_index) JOIN zip_attempts z USING (subject_index)",
}
_select: Final = {engine: DriverStatement(text) for engine, text in _TRIED.items()}
_LOCK_TRIED: Final = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"
_delete: Final = DriverStatement(
    "DELETE FROM zip_attempts"
    " WHERE account_id = ? AND mode = ? AND subject_index = ? AND zip_index = ?"
)
_insert: Final = BulkInsert(zip_attempts, "account_id", "mode", "subject_index", "zip_index", "at")


class ZipSubject(NamedTuple):
    """Whom the ZIP codes that an account tries are counted for; the index is a keyed hash."""

    account_id: str
    mode: Mode
    subject_index: bytes


class ZipTries:
    """The ZIP codes tried earlier for some subjects, and those tried now."""

    def __init__(self, connection: Connection, subjects: Collection[ZipSubject]) -> None:
        """Read the earlier tries, in the transaction of the act."""
        self._connection = connection
        self._tried: dict[bytes, dict[tuple[str, str, bytes], datetime]] = {}
        self._old: list[tuple[object, ...]] = []
        self._new: list[tuple[object, ...]] = []
        if not subjects:
            return
        _lock(connection, subjects)
        for index, account_id, mode, zip_index, at in _tried(connection, subjects):
            key = account_id, mode, bytes(zip_index)
            self._tried.setdefault(bytes(index), {})[key] = from_ms(at)

    def count(
        self, subject: ZipSubject, zip_index: bytes, at: datetime, *, counts: bool = True
    ) -> RateLimited | None:
        """Note a tried ZIP code if it `counts`; returns the refusal if it is one too many."""
        account_id, mode, index = subject.account_id, subject.mode.value, subject.subject_index
        known, since = self._tried.setdefault(index, {}), at - ZIP_WINDOW
        tried = {key: then for key, then in known.items() if then > since}
        own = {key: then for key, then in tried.items() if key[:2] == (account_id, mode)}
        key, row = (account_id, mode, zip_index), (account_id, mode, index, zip_index)
        if key in tried:
            return None
        limits = (own, ZIPS_PER_DAY), (tried, STRANGE_ZIPS_PER_DAY)
        full = [min(some.values()) for some, most in limits if len(some) >= most]
        if full:
            wait = max(full) - since
            return RateLimited(
                "Too many different ZIP codes were tried for this buyer within 24 hours.",
                retry_after=max(1, int(wait.total_seconds()) + 1),
            )
        if counts and key in known:
            self._old.append(row)
        if counts:
            known[key] = at
            self._new.append((*row, to_ms(at)))
        return None

    def write(self) -> None:
        """Write the counts."""
        if self._old:
            _delete.for_each(self._connection, self._old)
        if self._new:
            _insert(self._connection, self._new)


def count_zip(
    connection: Connection, subject: ZipSubject, zip_index: bytes, at: datetime
) -> RateLimited | None:
    """Count one tried ZIP code; returns the refusal if it is one too many."""
    tries = ZipTries(connection, [subject])
    refusal = tries.count(subject, zip_index, at)
    tries.write()
    return refusal


def _lock(connection: Connection, subjects: Collection[ZipSubject]) -> None:
    """Make other servers that count for one of these subjects wait until this transaction ends.

    The embedded database has one writer. Locks are taken in one order, and before any buyer is
    locked, so that no deadlock is possible.
    """
    if connection.dialect.name == "postgresql":
        keys = {int.from_bytes(s.subject_index[:8], signed=True) for s in subjects}
        connection.exec_driver_sql(_LOCK_TRIED, (sorted(keys),))


def _tried(connection: Connection, subjects: Collection[ZipSubject]) -> Any:  # noqa: ANN401 - a cursor
    """The rows of these subjects, in the driver's own types."""
    given: object = [*{one.subject_index for one in subjects}]
    if connection.dialect.name == "sqlite":
        given = msgspec.json.encode([one.subject_index.hex() for one in subjects]).decode()
    return _select[connection.dialect.name](connection, given)
