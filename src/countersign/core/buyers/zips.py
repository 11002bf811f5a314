"""ZIP codes: those that were proved for a buyer, and those that accounts try; as keyed hashes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from countersign.base.db.statements import BulkInsert, DriverStatement
from countersign.base.db.tables import zip_attempts
from countersign.base.errors import RateLimited
from countersign.base.values import MODES, Mode, from_ms, to_ms
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import ZIP_WINDOW, ZIPS_PER_DAY, ProvedSession
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
    "sqlite": "SELECT z.account_id, z.mode, z.subject_index, z.zip_index, z.at"
    " FROM json_each(?) s CROSS JOIN zip_attempts z ON z.account_id = s.value ->> 0"
    " AND z.mode = s.value ->> 1 AND z.subject_index = unhex(s.value ->> 2)",
    "postgresql": "SELECT account_id, mode, subject_index, z.zip_index, z.at"
    " FROM unnest(?::text[], ?::text[], ?::bytea[]) AS s (account_id, mode, subject_index)"
    " JOIN zip_attempts z USING (account_id, mode, subject_index)",
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
        self._tried: dict[ZipSubject, dict[bytes, datetime]] = {subject: {} for subject in subjects}
        self._old: list[tuple[object, ...]] = []
        self._new: list[tuple[object, ...]] = []
        if not subjects:
            return
        _lock(connection, subjects)
        for account_id, mode, index, zip_index, at in _tried(connection, [*self._tried]):
            subject = ZipSubject(account_id, MODES[mode], bytes(index))
            self._tried[subject][bytes(zip_index)] = from_ms(at)

    def count(self, subject: ZipSubject, zip_index: bytes, at: datetime) -> RateLimited | None:
        """Note a tried ZIP code; returns the refusal if it is one too many."""
        known = self._tried[subject]
        since = at - ZIP_WINDOW
        tried = {index: then for index, then in known.items() if then > since}
        if zip_index in tried:
            return None
        if len(tried) >= ZIPS_PER_DAY:
            wait = min(tried.values()) - since
            return RateLimited(
                f"This account has tried {ZIPS_PER_DAY} different ZIP codes for this buyer within "
                "24 hours.",
                retry_after=max(1, int(wait.total_seconds()) + 1),
            )
        key = (subject.account_id, subject.mode.value, subject.subject_index, zip_index)
        if zip_index in known:
            self._old.append(key)
        known[zip_index] = at
        self._new.append((*key, to_ms(at)))
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


def _tried(connection: Connection, subjects: Sequence[ZipSubject]) -> Any:  # noqa: ANN401 - a cursor
    """The rows of these subjects, in the driver's own types."""
    engine = connection.dialect.name
    accounts, modes, indexes = zip(*subjects, strict=True)
    given: list[object] = [[*accounts], [mode.value for mode in modes], [*indexes]]
    if engine == "sqlite":
        subject_rows = zip(accounts, modes, (index.hex() for index in indexes), strict=True)
        given = [msgspec.json.encode([*subject_rows]).decode()]
    return _select[engine](connection, *given)
