"""The keys that sign the tokens of clearances: kept sealed in the vault, opened where they sign.

Test and live have keys of their own, and what a token says of itself differs in three ways (key
id, type and issuer), so that none of the sandbox passes for a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate, zip_longest
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select

from countersign.base.db.statements import rows
from countersign.base.db.tables import clearance_keys
from countersign.base.errors import CountersignError, InvalidArgument, UnknownKey
from countersign.base.snapshot import Snapshot
from countersign.base.values import Mode, from_ns
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.room import Access
from countersign.core.clearances.model import LIFETIME_MAX
from countersign.core.clearances.token import SEED_BYTES, TokenSigner, jwk, public_key, thumbprint
from countersign.core.vault.vault import DEPLOYMENT, SealedColumn, Vault

TOKEN_TYPES: Final = {Mode.LIVE: "clearance+jwt", Mode.TEST: "test-clearance+jwt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceKey:
    """One key of a mode; `seed` is sealed by the vault."""

    mode: Mode
    number: int
    """Its place in the row of keys, from 1."""
    kid: str
    """The key id: `live-` or `test-`, and the thumbprint of the public key (RFC 7638)."""
    public_key: bytes
    seed: bytes
    created_at: datetime
    signs_from: datetime
    """It signs from then until the next key's start."""


@dataclass(frozen=True, slots=True)
class Signers:
    """The keys that sign in one mode."""

    keys: Sequence[ClearanceKey]
    """The oldest first."""
    by_kid: dict[str, TokenSigner]

    def at(self, now: datetime) -> TokenSigner:
        """The newest key whose time to sign has come; the first if the clock went back."""
        ready = (key for key in reversed(self.keys) if key.signs_from <= now)
        return self.by_kid[next(ready, self.keys[0]).kid]

    def of(self, kid: str, now: datetime) -> TokenSigner:
        """The key with this id, so that the same claims give the same token again."""
        return self.by_kid.get(kid) or self.at(now)


class ClearanceKeys:
    """Makes, opens and publishes the signing keys."""

    def __init__(self, access: Access, vault: Vault) -> None:
        self._access = access
        self._seeds = SealedColumn(vault, access.entropy, "clearance_keys", "seed")
        self._opened: dict[str, TokenSigner] = {}
        self._signers = {mode: Snapshot(partial(self._read, mode), access.clock) for mode in Mode}

    async def begin(self) -> None:
        """Make the first key of each mode, if there is none."""
        for mode in Mode:
            if not await self.list(mode):
                await self.rotate(mode, timedelta(0))

    async def signers(self, mode: Mode) -> Signers:
        """The signing keys of this mode, at most STALENESS_SECONDS old."""
        return await self._signers[mode].get()

    async def published(self, modes: Sequence[Mode]) -> dict[str, Any]:
        """The public keys as a JWK Set (RFC 7517 §5): all that a valid token can be signed with.

        A key is there from when it is made until what it has signed has expired.
        """
        now = from_ns(self._access.clock.time_ns())
        keys = [key for mode in modes for key in _valid(await self.list(mode), now)]
        return {
            "keys": [jwk(k.kid, k.public_key) | {"livemode": k.mode is Mode.LIVE} for k in keys]
        }

    async def list(self, mode: Mode) -> Sequence[ClearanceKey]:
        """Every key of a mode, oldest first."""
        return await self._access.database.read(_keys, mode)

    async def withdraw(self, kid: str) -> ClearanceKey:
        """Take a key back, and with it every token that it has signed: someone else has it."""
        access, of_key = self._access, clearance_keys.c.kid == kid
        audit = access.audit.entry(AuditAction.CLEARANCE_KEY_WITHDRAWN, kid)
        now = from_ns(access.clock.time_ns())

        def remove(connection: Connection) -> ClearanceKey | CountersignError:
            mode = connection.execute(select(clearance_keys.c.mode).where(of_key)).scalar()
            if mode is None:
                return UnknownKey(
                    f"The key {kid!r} does not exist; `countersign clearances keys` shows all keys."
                )
            keys = _keys(connection, Mode(mode))
            if not any(other.kid != kid and other.signs_from <= now for other in keys):
                return InvalidArgument(
                    "No other key is ready to sign. Make one: `countersign clearances rotate-key "
                    "--at-once`."
                )
            connection.execute(delete(clearance_keys).where(of_key))
            write_audit(connection, audit)
            return next(key for key in keys if key.kid == kid)

        return await access.database.write(remove)

    async def rotate(self, mode: Mode, overlap: timedelta) -> ClearanceKey:
        """Add a key that is published now and signs when `overlap` is over.

        Those who check tokens have read it by then.
        """
        time_ns = self._access.clock.time_ns()
        seed = self._access.entropy(SEED_BYTES)
        public = public_key(seed)
        kid = f"{mode.value}-{thumbprint(public)}"
        sealed = await self._seeds.seal(seed, account=DEPLOYMENT, row_id=kid, time_ns=time_ns)
        before = await self.list(mode)
        key = ClearanceKey(
            mode=mode,
            number=before[-1].number + 1 if before else 1,
            kid=kid,
            public_key=public,
            seed=sealed,
            created_at=from_ns(time_ns),
            signs_from=from_ns(time_ns) + overlap,
        )
        audit = self._access.audit.entry(AuditAction.CLEARANCE_KEY_ADDED, kid, mode=mode.value)

        def add(connection: Connection) -> ClearanceKey:
            # Where another process adds a key with this number at this moment, its row makes this
            # transaction fail, and the call is done again by itself: then that row is seen.
            if other := next((k for k in _keys(connection, mode) if k.number == key.number), None):
                return other
            connection.execute(insert(clearance_keys), asdict(key))
            write_audit(connection, audit)
            return key

        return await self._access.database.write(add)

    async def _read(self, mode: Mode) -> Signers:
        keys = await self.list(mode)
        for key in keys:
            if key.kid not in self._opened:
                seed = await self._seeds.open(key.seed, account=DEPLOYMENT, row_id=key.kid)
                self._opened[key.kid] = TokenSigner(key.kid, seed, TOKEN_TYPES[mode])
        return Signers(keys, {key.kid: self._opened[key.kid] for key in keys})


def _valid(keys: Sequence[ClearanceKey], now: datetime) -> list[ClearanceKey]:
    """Keys that sign, will sign, or signed clearances that may still be valid."""
    ends = [*accumulate((key.signs_from for key in reversed(keys[1:])), min)][::-1]
    return [k for k, end in zip_longest(keys, ends) if end is None or now < end + LIFETIME_MAX]


def _keys(connection: Connection, mode: Mode) -> list[ClearanceKey]:
    own = select(clearance_keys).where(clearance_keys.c.mode == mode)
    return rows(connection, own.order_by(clearance_keys.c.number), ClearanceKey)
