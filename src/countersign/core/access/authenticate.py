"""Authentication: from a Bearer token to a principal.

A working key is remembered for KEY_CACHE_SECONDS, so a revocation lags by no more. A token that is
not cached is looked up, so a new key works at once. Tokens themselves are not kept in memory: the
cache is keyed by a hash under a key of this process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, bindparam, select, update

from countersign.base.db.database import Database
from countersign.base.db.statements import of_row
from countersign.base.db.tables import accounts, api_keys
from countersign.base.deadline import detached
from countersign.base.errors import AccountDisabled, CountersignError, InvalidApiKey
from countersign.base.values import Clock, from_ns, to_ms
from countersign.core.access.audit import Audit, AuditAction, write_audit
from countersign.core.access.key import (
    MACHINE_SCOPES,
    VENDOR_SCOPES,
    ApiKey,
    Principal,
    Scope,
    well_formed,
)
from countersign.core.access.secrets import DeploymentSecret

KEY_CACHE_SECONDS: Final = 3.0
_LAST_USED_GRAIN: Final = timedelta(hours=1)
_CACHE_MAX: Final = 10_000
_TOKEN_LENGTH_MAX: Final = 200
_BY_DIGEST: Final = (
    select(api_keys, accounts.c.disabled_at)
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .where(api_keys.c.digest.in_(bindparam("digests", expanding=True)))
)
_notes: Final = set[asyncio.Task[None]]()
_decode_scopes: Final = msgspec.json.Decoder(frozenset[Scope]).decode


class _Known(NamedTuple):
    principal: Principal
    read_at: float
    expires_ns: int | None


class Authenticate(Struct, eq=False):
    """Turns tokens into principals."""

    find: Callable[[bytes], Awaitable[ApiKey | None]]
    """Looks up a key by its keyed hash."""
    note_use: Callable[[str, datetime], Awaitable[None]]
    """Stores when a key was last used."""
    secret: DeploymentSecret
    clock: Clock
    place: Callable[[bytes], Any]
    """Where a token is remembered: a hash under a key that only this process knows."""
    _known: dict[bytes, _Known] = {}
    # That of a Struct would show the key of `place`.
    __repr__ = object.__repr__

    async def __call__(self, token: bytes) -> Principal:
        """The principal of a working key.

        Raises:
            InvalidApiKey: the token is mistyped, unknown, revoked or expired.
            AccountDisabled: the operator has disabled its account.
        """
        if len(token) > _TOKEN_LENGTH_MAX:
            raise InvalidApiKey
        return self.known(b"Bearer " + token) or await self._look_up(token)

    def known(self, authorization: bytes) -> Principal | None:
        """The principal of the key in such a header, if it is remembered; None: ask for it."""
        # Of a longer one, enough to differ from all that are remembered.
        known = self._known.get(self.place(authorization[: _TOKEN_LENGTH_MAX + 8]).digest())
        if (
            known is not None
            and self.clock.monotonic() - known.read_at < KEY_CACHE_SECONDS
            and (known.expires_ns is None or self.clock.time_ns() < known.expires_ns)
        ):
            return known.principal
        return None

    async def _look_up(self, token: bytes) -> Principal:
        place = self.place(b"Bearer " + token).digest()
        began = self.clock.monotonic()
        text = token.decode("ascii", "replace")
        key = None
        if well_formed(text):
            key = await self.find(self.secret.key_digest(text))
        now = from_ns(self.clock.time_ns())
        if key is None or not key.works_at(now):
            self._known.pop(place, None)
            raise InvalidApiKey
        if len(self._known) >= _CACHE_MAX:
            self._known.clear()
        principal = Principal(
            key_id=key.id,
            account_id=key.account_id,
            mode=key.mode,
            scopes=key.scopes,
            credential=key.kind.credential,
            made_by=key.made_by,
        )
        expires_ns = None if key.expires_at is None else to_ms(key.expires_at) * 1_000_000
        self._known[place] = _Known(principal, began, expires_ns)
        if key.last_used_at is None or now - key.last_used_at > _LAST_USED_GRAIN:
            note_later(self.note_use(key.id, now))
        return principal


def note_later(write: Awaitable[None]) -> None:
    """In a separate task: bookkeeping must not delay the request or make it fail."""

    async def note() -> None:
        with suppress(CountersignError):
            await write

    task = detached(note())
    _notes.add(task)
    task.add_done_callback(_notes.discard)


def keys_by_digest(
    connection: Connection, digests: Sequence[bytes]
) -> list[ApiKey | AccountDisabled | None]:
    """An act for `read_batched`: the key with each of these keyed hashes."""
    rows = connection.execute(_BY_DIGEST, {"digests": list(set(digests))})
    found = {row.digest: row for row in rows}
    return [_usable(found.get(digest)) for digest in digests]


def _usable(row: Row[Any] | None) -> ApiKey | AccountDisabled | None:
    # A revoked key is not answered with the state of the account that it was of.
    if row is not None and row.disabled_at is not None and row.revoked_at is None:
        return AccountDisabled()
    return None if row is None else stored_key(row)


def touch_key(connection: Connection, key_id: str, at: datetime) -> None:
    of_key = api_keys.c.id == key_id
    connection.execute(update(api_keys).where(of_key).values(last_used_at=at))


def stored_key(row: Row[Any]) -> ApiKey:
    """A key from its columns, without scopes of the machine if a person made it."""
    scopes = VENDOR_SCOPES if row.scopes is None else _decode_scopes(row.scopes)
    return of_row(
        row,
        ApiKey,
        scopes=scopes - MACHINE_SCOPES if row.made_by else scopes,
        lifetime=None if row.lifetime_seconds is None else timedelta(seconds=row.lifetime_seconds),
    )


# How often keys that people made read personal data: one entry of the audit for a key and day.
#
# A person states a reason for each read. A key that the person made reads on without one, so what
# it reads is counted, in memory and within a second on the row of the key; the first write of a
# later day, or housekeeping, puts the sum into the audit.

_PAUSE_SECONDS: Final = 1.0
"""Between two writes of a process, however many reads: a kill loses the counts of this period."""
_k: Final = api_keys.c


class KeyReads:
    """Counts the reads of this process."""

    def __init__(self, database: Database, clock: Clock, audit: Audit) -> None:
        self._database, self._clock, self._audit = database, clock, audit
        self._counts: Counter[tuple[str, datetime]] = Counter()
        self._storing: asyncio.Task[None] | None = None

    def __call__(self, key_id: str) -> None:
        """Count a read, in a separate task: bookkeeping can neither delay it nor fail it."""
        self._counts[key_id, self._today()] += 1
        if self._storing is None or self._storing.done():
            self._storing = detached(self._store())

    async def settle(self) -> None:
        """Write the audit entries of past days."""
        await self._database.write(_settle, self._audit, _k.read_on < self._today())

    async def _store(self) -> None:
        while counts := self._counts:
            self._counts = Counter()
            try:
                await self._database.write(_add, self._audit, counts)
            except CountersignError:
                self._counts.update(counts)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _today(self) -> datetime:
        """The day of UTC."""
        now = from_ns(self._clock.time_ns())
        return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _add(connection: Connection, audit: Audit, counts: Mapping[tuple[str, datetime], int]) -> None:
    for (key_id, day), number in sorted(counts.items()):
        _settle(connection, audit, (_k.id == key_id) & (_k.read_on < day))
        # Another server may have stored the next day already: a minute's reads then count for it.
        known = update(api_keys).where(_k.id == key_id, _k.read_on >= day)
        if not connection.execute(known.values(reads=_k.reads + number)).rowcount:
            first = update(api_keys).where(_k.id == key_id)
            connection.execute(first.values(read_on=day, reads=number))


def _settle(connection: Connection, audit: Audit, which: ColumnElement[bool]) -> None:
    over = select(_k.id, _k.account_id, _k.mode, _k.read_on, _k.reads).where(which)
    for key in connection.execute(over.with_for_update()).all():
        said = {"key_id": key.id, "mode": key.mode, "day": f"{key.read_on:%F}", "reads": key.reads}
        by_key = replace(audit, actor=key.id)
        write_audit(connection, by_key.entry(AuditAction.KEY_READS, key.account_id, **said))
        done = update(api_keys).where(_k.id == key.id)
        connection.execute(done.values(read_on=None, reads=None))
