"""The vault: envelopes for personal and secret data (AES-256-GCM).

A key-encryption key, which the database never sees, wraps one data key per account and month. The
key of a single row is derived from the data key and 32 random bytes in a separate table, the row's
shred key: without it the row cannot be decrypted, even with all other keys.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Final, TypedDict, Unpack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct, field
from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from countersign.base.db.database import Database
from countersign.base.db.statements import row, rows
from countersign.base.db.tables import data_keys
from countersign.base.errors import DamagedValue
from countersign.base.snapshot import SingleFlight
from countersign.base.values import Clock, Entropy, base32, base32_value, from_ns, uuid7
from countersign.core.access.idempotency import NS_PER_DAY
from countersign.core.access.room import Access
from countersign.core.access.secrets import HmacSha256
from countersign.core.vault.key_encryption import KeyRing

COPIES_REMAIN: Final = "erased_copies"
"""Name of the deployment's value that exists while the write-ahead log may hold erased data."""

# The wrapped form begins with 0x01 and the four bytes of the key-encryption key's id.
_WRAPPED_WITH: Final[ColumnElement[bytes]] = func.substr(data_keys.c.wrapped, 2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedKey:
    """The data key of a scope (an account, or the deployment itself) for a month, as yyyymm."""

    id: str
    scope: str
    month: int
    wrapped: bytes
    created_at: datetime


def _find_key(connection: Connection, /, **of: object) -> WrappedKey | None:
    """The one key with these columns."""
    return row(connection, select(data_keys).filter_by(**of), WrappedKey)


def _add_key(connection: Connection, key: WrappedKey) -> WrappedKey:
    """Write a key, unless its scope and month have one; the result is the one stored then."""
    # If another server writes the same month's key at the same moment, its row makes this
    # transaction fail; each call is retried and then sees the row.
    stored = _find_key(connection, scope=key.scope, month=key.month)
    if stored is None:
        connection.execute(insert(data_keys), asdict(key))
    return stored or key


def _not_wrapped_with(
    connection: Connection, key_encryption_id: bytes, limit: int
) -> Sequence[WrappedKey]:
    """Keys that are wrapped with another key-encryption key than this."""
    others = select(data_keys).where(_WRAPPED_WITH.is_distinct_from(key_encryption_id))
    return rows(connection, others.limit(limit), WrappedKey)


def _store_rewrapped(connection: Connection, key: WrappedKey, wrapped: bytes) -> None:
    """Store the key in another wrapping, unless another process has done so."""
    same = update(data_keys).filter_by(id=key.id, wrapped=key.wrapped)
    connection.execute(same.values(wrapped=wrapped))


def count_keys(connection: Connection) -> Mapping[bytes, int]:
    """The number of keys wrapped with each key-encryption key."""
    rows = connection.execute(select(_WRAPPED_WITH, func.count()).group_by(_WRAPPED_WITH))
    return {bytes(row[0]): row[1] for row in rows}


DEPLOYMENT: Final = "deployment"
"""The scope of the deployment's own secrets, which belong to no account."""
SHRED_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_ID_BYTES: Final = 16
_FORMAT: Final = b"\x01"
_HEADER: Final = len(_FORMAT) + _ID_BYTES
_NONCE_END: Final = _HEADER + NONCE_BYTES
_CACHED_MAX: Final = 4096
_CONTEXT: Final = "v1|{table}|{column}|{account}|{row_id}|{key}"


class Place(TypedDict):
    """The place of a sealed value."""

    table: str
    column: str
    account: str
    row_id: str


class DataKey:
    """One data key, unwrapped."""

    def __init__(self, id_: bytes, key: bytes) -> None:
        self.id = id_
        self._name = id_.hex()
        self._derive = HmacSha256(key)

    def __repr__(self) -> str:
        return f"DataKey({self._name})"

    def seal(
        self, *, shred_key: bytes, nonce: bytes, plaintext: bytes, **place: Unpack[Place]
    ) -> bytes:
        """Encrypt the value of one row: 0x01 ‖ id of the data key ‖ nonce ‖ ciphertext and tag.

        `shred_key` is the row's own 32 random bytes, `nonce` 12; it opens at its place alone.
        """
        # HKDF-Expand, one block (RFC 5869 §2.3). The data key is uniformly random, so extracting
        # from it first is not needed (§3.3).
        row_key = AESGCM(self._derive(shred_key + b"\x01"))
        context = _CONTEXT.format(**place, key=self._name).encode()
        return _FORMAT + self.id + nonce + row_key.encrypt(nonce, plaintext, context)

    def open(self, ciphertext: bytes, *, shred_key: bytes, **place: Unpack[Place]) -> bytes:
        """Decrypt the result of `seal`; DamagedValue if not with this key for this place."""
        nonce, sealed = ciphertext[_HEADER:_NONCE_END], ciphertext[_NONCE_END:]
        try:
            row_key = AESGCM(self._derive(shred_key + b"\x01"))
            return row_key.decrypt(nonce, sealed, _CONTEXT.format(**place, key=self._name).encode())
        except (InvalidTag, ValueError) as error:
            column = f"{place['table']}.{place['column']}"
            raise DamagedValue(f"A value of {column} cannot be decrypted with its key.") from error


class Vault(Struct, eq=False):
    """Creates data keys as they are needed, and caches them unwrapped."""

    database: Database
    encryption: KeyRing
    clock: Clock
    entropy: Entropy
    _current: dict[str, tuple[int, DataKey]] = {}
    _by_id: OrderedDict[bytes, DataKey] = field(default_factory=OrderedDict)
    _under_way: SingleFlight = field(default_factory=SingleFlight)

    async def data_key(self, scope: str, time_ns: int) -> DataKey:
        """The data key of a scope (an account, or DEPLOYMENT) for the month of this time.

        It is stored before its first use. WrongKeyEncryptionKey if it does not
        open, StorageUnavailable if the key-encryption key cannot be had at the moment.
        """
        month, known = _month(time_ns // NS_PER_DAY), self._current.get(scope)
        if known is not None and known[0] == month:
            return known[1]
        fetch = partial(self._fetched, scope, month, time_ns)
        return await self._under_way.join((scope, month), fetch)

    async def _fetched(self, scope: str, month: int, time_ns: int) -> DataKey:
        wrapped = await self.database.read(_find_key, scope=scope, month=month)
        if wrapped is None:
            entropy = self.entropy(8 + _KEY_BYTES)
            id_ = uuid7(time_ns, entropy[:8]).to_bytes(_ID_BYTES, "big")
            made = WrappedKey(
                id=_id_text(id_), scope=scope, month=month, wrapped=b"", created_at=from_ns(time_ns)
            )
            made = replace(made, wrapped=await self._wrap(made, entropy[8:]))
            # Another process may have been first: then its key is the one.
            wrapped = await self.database.write(_add_key, made)
        data_key = await self._unwrap(wrapped)
        if len(self._current) >= _CACHED_MAX:
            self._current.clear()
        self._current[scope] = (month, data_key)
        return data_key

    async def open(self, ciphertext: bytes, *, shred_key: bytes, **place: Unpack[Place]) -> bytes:
        """Decrypt a value, looking up its data key where needed.

        DamagedValue if there is no such key, or it does not open the value.
        """
        id_ = ciphertext[len(_FORMAT) : _HEADER]
        data_key = self._by_id.get(id_)
        if data_key is None:
            wrapped = None
            if ciphertext[:1] == _FORMAT and len(id_) == _ID_BYTES:
                wrapped = await self.database.read(_find_key, id=_id_text(id_))
            if wrapped is None:
                column = f"{place['table']}.{place['column']}"
                raise DamagedValue(f"A value of {column} refers to an unknown data key.")
            data_key = await self._unwrap(wrapped)
        return data_key.open(ciphertext, shred_key=shred_key, **place)

    async def rewrap(self, limit: int) -> int:
        """Wrap at most `limit` data keys with the current key-encryption key; their number."""
        outdated = await self.database.scan(_not_wrapped_with, self.encryption.ids[0], limit)
        for wrapped in outdated:
            await self.database.write(
                _store_rewrapped, wrapped, await self._wrap(wrapped, await self._key(wrapped))
            )
        return len(outdated)

    # In threads: the key-encryption key may come from a slow command.

    async def _wrap(self, of: WrappedKey, key: bytes) -> bytes:
        return await asyncio.to_thread(self.encryption.wrap, key, _wrap_context(of))

    async def _key(self, of: WrappedKey) -> bytes:
        return await asyncio.to_thread(self.encryption.unwrap, of.wrapped, _wrap_context(of))

    async def _unwrap(self, wrapped: WrappedKey) -> DataKey:
        id_ = base32_value(wrapped.id.removeprefix("dk_")).to_bytes(_ID_BYTES, "big")
        known = self._by_id.get(id_)
        if known is None:
            known = self._by_id[id_] = DataKey(id_, await self._key(wrapped))
            if len(self._by_id) > _CACHED_MAX:
                self._by_id.popitem(last=False)
        return known


@lru_cache(maxsize=2)
def _month(day: int) -> int:
    """`202611`: the month of a day since 1970, in UTC."""
    at = from_ns(day * NS_PER_DAY)
    return at.year * 100 + at.month


def _id_text(id_: bytes) -> str:
    return f"dk_{base32(int.from_bytes(id_, 'big'))}"


def _wrap_context(key: WrappedKey) -> bytes:
    return f"countersign/v1/data-key|{key.id}|{key.scope}|{key.month}".encode()


class SealedColumn(Struct, frozen=True, eq=False):
    """Seals and opens the values of one column. They go with their row: nothing is shredded."""

    vault: Vault
    entropy: Entropy
    table: str
    column: str

    async def seal(self, secret: bytes, *, account: str, row_id: str, time_ns: int) -> bytes:
        """Encrypt the secret of a row with the data key of this time, Unix nanoseconds.

        `account` is whose it is, or `vault.DEPLOYMENT`; `row_id` names the row in its table.
        """
        data_key = await self.vault.data_key(account, time_ns)
        nonce, place = self.entropy(NONCE_BYTES), self._place(account, row_id)
        return data_key.seal(
            shred_key=self._row_key(row_id), nonce=nonce, plaintext=secret, **place
        )

    async def open(self, sealed: bytes, *, account: str, row_id: str) -> bytes:
        """Decrypt what `seal` returned for this row."""
        place = self._place(account, row_id)
        return await self.vault.open(sealed, shred_key=self._row_key(row_id), **place)

    def _place(self, account: str, row_id: str) -> Place:
        return Place(table=self.table, column=self.column, account=account, row_id=row_id)

    def _row_key(self, row_id: str) -> bytes:
        """Replaces a shred key: not secret, and different for each row."""
        place = f"countersign/v1/{self.table}.{self.column}\x00{row_id}"
        return sha256(place.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRoom:
    """Envelopes, and the keys around their keys.

    `key_file` contains the current key-encryption key, if it is in a file.
    """

    access: Access
    vault: Vault
    encryption: KeyRing
    key_file: Path | None


def open_vault(access: Access, encryption: KeyRing, key_file: Path | None) -> VaultRoom:
    """The room, with the vault over the database of `access`."""
    vault = Vault(access.database, encryption, access.clock, access.entropy)
    return VaultRoom(access=access, vault=vault, encryption=encryption, key_file=key_file)
