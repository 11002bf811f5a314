"""The vault: envelopes for personal and secret data (AES-256-GCM).

A key-encryption key, which the database never sees, wraps one data key per account and month. The
key of a single row is derived from the data key and from 32 random bytes in a separate table, the
row's shred key: without it the row cannot be decrypted, even with all the other keys.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypedDict, Unpack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.base.db.database import Database
from countersign.base.deadline import shared, within_deadline
from countersign.base.errors import DamagedValue
from countersign.base.ids import base32, base32_value, uuid7
from countersign.base.values import Clock, Entropy, from_ns
from countersign.core.access.secrets import HmacSha256
from countersign.core.vault import data_keys_sql
from countersign.core.vault.data_keys_sql import WrappedKey
from countersign.core.vault.key_encryption import KeyRing

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
_NS_PER_DAY: Final = 86_400 * 10**9
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
        """Decrypt what `seal` gave; DamagedValue if not with this key for this place."""
        nonce, sealed = ciphertext[_HEADER:_NONCE_END], ciphertext[_NONCE_END:]
        try:
            row_key = AESGCM(self._derive(shred_key + b"\x01"))
            return row_key.decrypt(nonce, sealed, _CONTEXT.format(**place, key=self._name).encode())
        except (InvalidTag, ValueError) as error:
            column = f"{place['table']}.{place['column']}"
            raise DamagedValue(f"A value of {column} cannot be decrypted with its key.") from error


class Vault:
    """Creates data keys as they are needed, and caches them unwrapped."""

    def __init__(
        self, database: Database, encryption: KeyRing, clock: Clock, entropy: Entropy
    ) -> None:
        self._database = database
        self._encryption = encryption
        self._clock = clock
        self._entropy = entropy
        self._current: dict[str, tuple[int, DataKey]] = {}
        self._by_id: OrderedDict[bytes, DataKey] = OrderedDict()
        self._under_way: dict[tuple[str, int], asyncio.Task[DataKey]] = {}

    async def data_key(self, scope: str, time_ns: int) -> DataKey:
        """The data key of a scope (an account, or DEPLOYMENT) for the month of this time.

        It is stored before its first use. WrongKeyEncryptionKey if it does not
        open, StorageUnavailable if the key-encryption key cannot be had at the moment.
        """
        month, known = _month(time_ns // _NS_PER_DAY), self._current.get(scope)
        if known is not None and known[0] == month:
            return known[1]
        # Once for all that ask for it now; and for the others, if one of them is cancelled.
        place = scope, month
        task = self._under_way.get(place)
        if task is None:
            task = self._under_way[place] = shared(self._fetched(*place, time_ns))
            task.add_done_callback(lambda _: self._under_way.pop(place))
        return await within_deadline(asyncio.shield(task))

    async def _fetched(self, scope: str, month: int, time_ns: int) -> DataKey:
        wrapped = await self._database.read(data_keys_sql.for_month, scope, month)
        if wrapped is None:
            entropy = self._entropy(8 + _KEY_BYTES)
            id_ = uuid7(time_ns, entropy[:8]).to_bytes(_ID_BYTES, "big")
            made = WrappedKey(
                id=_id_text(id_), scope=scope, month=month, wrapped=b"", created_at=from_ns(time_ns)
            )
            made = replace(made, wrapped=await self._wrap(made, entropy[8:]))
            # Another process may have been first: then its key is the one.
            wrapped = await self._database.write(data_keys_sql.add, made)
        data_key = await self._unwrap(wrapped)
        if len(self._current) >= _CACHED_MAX:
            self._current.clear()
        self._current[scope] = (month, data_key)
        return data_key

    async def open(self, ciphertext: bytes, *, shred_key: bytes, **place: Unpack[Place]) -> bytes:
        """Decrypt a value wherever its data key has to be found.

        DamagedValue if there is no such key, or it does not open the value.
        """
        id_ = ciphertext[len(_FORMAT) : _HEADER]
        data_key = self._by_id.get(id_)
        if data_key is None:
            wrapped = None
            if ciphertext[:1] == _FORMAT and len(id_) == _ID_BYTES:
                wrapped = await self._database.read(data_keys_sql.with_id, _id_text(id_))
            if wrapped is None:
                column = f"{place['table']}.{place['column']}"
                raise DamagedValue(f"A value of {column} refers to an unknown data key.")
            data_key = await self._unwrap(wrapped)
        return data_key.open(ciphertext, shred_key=shred_key, **place)

    async def rewrap(self, limit: int) -> int:
        """Wrap at most `limit` data keys with the current key-encryption key; their number."""
        current = self._encryption.current_id
        outdated = await self._database.scan(data_keys_sql.not_wrapped_with, current, limit)
        for wrapped in outdated:
            await self._database.write(
                data_keys_sql.replace, wrapped, await self._wrap(wrapped, await self._key(wrapped))
            )
        return len(outdated)

    # In threads: the key-encryption key may have to come from a slow command.

    async def _wrap(self, of: WrappedKey, key: bytes) -> bytes:
        return await asyncio.to_thread(self._encryption.wrap, key, _wrap_context(of))

    async def _key(self, of: WrappedKey) -> bytes:
        return await asyncio.to_thread(self._encryption.unwrap, of.wrapped, _wrap_context(of))

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
    at = from_ns(day * _NS_PER_DAY)
    return at.year * 100 + at.month


def _id_text(id_: bytes) -> str:
    return f"dk_{base32(int.from_bytes(id_, 'big'))}"


def _wrap_context(key: WrappedKey) -> bytes:
    return f"countersign/v1/data-key|{key.id}|{key.scope}|{key.month}".encode()
