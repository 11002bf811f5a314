"""The room of access: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b

from countersign.base.db.database import Database
from countersign.base.generics import R
from countersign.base.values import Clock, Entropy
from countersign.core.access.audit import Audit
from countersign.core.access.authenticate import Authenticate, KeyReads, keys_by_digest, touch_key
from countersign.core.access.clocks import TestClocks
from countersign.core.access.idempotency import Idempotency, kept_entries
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.access.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Accounts and keys, and what operators did."""

    database: Database
    secret: DeploymentSecret
    clock: Clock
    entropy: Entropy
    authenticate: Authenticate
    sessions: Sessions
    idempotency: Idempotency
    audit: Audit
    key_reads: KeyReads
    test_clocks: TestClocks

    @property
    def access(self) -> Access:
        """The room itself: commands made from routes ask each room for it."""
        return self


def open_access(
    database: Database, secret: DeploymentSecret, *, operator: str, clock: Clock, entropy: Entropy
) -> Access:
    """The room over an open database; `operator` is the user at the command line."""

    async def note_use(key_id: str, at: datetime) -> None:
        await database.write(touch_key, key_id, at)

    hidden = partial(blake2b, digest_size=16, key=entropy(32))
    find_key = partial(database.read_batched, keys_by_digest)
    find_entry = partial(database.read_batched, kept_entries)
    audit = Audit(database, clock, entropy, operator)
    return Access(
        database=database,
        secret=secret,
        clock=clock,
        entropy=entropy,
        authenticate=Authenticate(find_key, note_use, secret, clock, hidden),
        sessions=Sessions(database, secret, clock),
        idempotency=Idempotency(find_entry, database.covered, secret, clock, entropy),
        audit=audit,
        key_reads=KeyReads(database, clock, audit),
        test_clocks=TestClocks(database, clock),
    )


def acting(room: R, audit: Audit) -> R:
    """The same room with another audit: that of a person, over the API."""
    if isinstance(room, Access):
        return replace(room, audit=audit)
    if not is_dataclass(room) or isinstance(room, type):
        return room
    parts = {one.name: getattr(room, one.name) for one in fields(room) if one.init}
    changed = {name: acting(part, audit) for name, part in parts.items()}
    own = {name: part for name, part in changed.items() if part is not parts[name]}
    return replace(room, **own) if own else room
