"""The vault: envelopes for what is personal or secret (AES-256-GCM).

A key-encryption key, which the database never sees, wraps one data key per account and month. The
key of a single row is derived from the data key and from 32 random bytes in a separate table, the
row's shred key: without it the row cannot be decrypted, even with all the other keys.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.access.secrets import HmacSha256
from countersign.clock import Clock, Entropy
from countersign.db.database import Database
from countersign.errors import DamagedValue
from countersign.ids import base32, base32_value, uuid7
from countersign.instant import from_ns
from countersign.vault import data_keys_sql
from countersign.vault.data_keys_sql import WrappedKey
from countersign.vault.key_encryption import KeyRing

DEPLOYMENT: Final = "deployment"
"""The scope of the deployment's own secrets, which belong to no account."""
SHRED_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_ID_BYTES: Final = 16
_FORMAT: Final = b"\x01"
_HEADER: Final = len(_FORMAT) + _ID_BYTES
_CACHED_MAX: Final = 4096


class DataKey:
    """One data key, unwrapped."""

    def __init__(self, id_: bytes, key: bytes) -> None:
        self.id = id_
        self._name = id_.hex()
        self._derive = HmacSha256(key)

    def __repr__(self) -> str:
        return f"DataKey({self._name})"

    def seal(
        self,
        *,
        shred_key: bytes,
        nonce: bytes,
        table: str,
        column: str,
        account: str,
        row_id: str,
        plaintext: bytes,
    ) -> bytes:
        """Encrypt the value of one row: 0x01 ‖ id of the data key ‖ nonce ‖ ciphertext and tag.

        Args:
            shred_key: the row's own 32 random bytes.
            nonce: 12 random bytes.
            table: with the other names, where the value stands; it opens nowhere else.
            column: as above.
            account: as above.
            row_id: as above.
            plaintext: the value.
        """
        context = self._context(table, column, account, row_id)
        sealed = self._row_key(shred_key).encrypt(nonce, plaintext, context)
        return _FORMAT + self.id + nonce + sealed

    def open(
        self,
        ciphertext: bytes,
        *,
        shred_key: bytes,
        table: str,
        column: str,
        account: str,
        row_id: str,
    ) -> bytes:
        """Decrypt what `seal` gave.

        Raises:
            DamagedValue: it was not encrypted with this key for this place.
        """
        start = _HEADER + NONCE_BYTES
        context = self._context(table, column, account, row_id)
        try:
            return self._row_key(shred_key).decrypt(
                ciphertext[_HEADER:start], ciphertext[start:], context
            )
        except (InvalidTag, ValueError) as error:
            msg = f"A value of {table}.{column} cannot be decrypted with its key."
            raise DamagedValue(msg) from error

    def _row_key(self, shred_key: bytes) -> AESGCM:
        # HKDF-Expand, one block (RFC 5869 §2.3). The data key is uniformly random, so extracting
        # from it first is not needed (§3.3).
        return AESGCM(self._derive(shred_key + b"\x01"))

    def _context(self, table: str, column: str, account: str, row_id: str) -> bytes:
        return f"v1|{table}|{column}|{account}|{row_id}|{self._name}".encode()


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

    def cached(self, scope: str, time_ns: int) -> DataKey | None:
        """The data key for this scope and time, if it is cached."""
        known = self._current.get(scope)
        return known[1] if known is not None and known[0] == _month(time_ns) else None

    async def data_key(self, scope: str, time_ns: int) -> DataKey:
        """The data key of a scope (an account, or DEPLOYMENT) for the month of this time.

        It is stored before it is given out for the first time.

        Raises:
            WrongKeyEncryptionKey: the stored key does not open with the key-encryption key.
            StorageUnavailable: the key-encryption key cannot be had at the moment.
        """
        known = self.cached(scope, time_ns)
        if known is not None:
            return known
        # Once for all that ask for it now; and for the others, if one of them is cancelled.
        place = scope, _month(time_ns)
        task = self._under_way.get(place)
        if task is None:
            task = self._under_way[place] = asyncio.create_task(self._fetched(*place, time_ns))
            task.add_done_callback(lambda _: self._under_way.pop(place))
        return await asyncio.shield(task)

    async def _fetched(self, scope: str, month: int, time_ns: int) -> DataKey:
        wrapped = await self._database.read(data_keys_sql.for_month, scope, month)
        if wrapped is None:
            entropy = self._entropy(8 + _KEY_BYTES)
            id_ = uuid7(time_ns, entropy[:8]).to_bytes(_ID_BYTES, "big")
            made = WrappedKey(
                id=_id_text(id_), scope=scope, month=month, wrapped=b"", created_at=from_ns(time_ns)
            )
            context = _wrap_context(made)
            key = await asyncio.to_thread(self._encryption.wrap, entropy[8:], context)
            # Another process may have been first: then its key is the one.
            made = replace(made, wrapped=key)
            wrapped = await self._database.write(data_keys_sql.add, made)
        data_key = await self._unwrap(wrapped)
        if len(self._current) >= _CACHED_MAX:
            self._current.clear()
        self._current[scope] = (month, data_key)
        return data_key

    async def open(
        self,
        ciphertext: bytes,
        *,
        shred_key: bytes,
        table: str,
        column: str,
        account: str,
        row_id: str,
    ) -> bytes:
        """Decrypt a value wherever its data key has to be found.

        Raises:
            DamagedValue: there is no such key, or it does not open the value.
            WrongKeyEncryptionKey: the data key does not open with the key-encryption key.
        """
        id_ = ciphertext[len(_FORMAT) : _HEADER]
        data_key = self._by_id.get(id_)
        if data_key is None:
            wrapped = None
            if ciphertext[:1] == _FORMAT and len(id_) == _ID_BYTES:
                wrapped = await self._database.read(data_keys_sql.with_id, _id_text(id_))
            if wrapped is None:
                msg = f"A value of {table}.{column} refers to an unknown data key."
                raise DamagedValue(msg)
            data_key = await self._unwrap(wrapped)
        return data_key.open(
            ciphertext,
            shred_key=shred_key,
            table=table,
            column=column,
            account=account,
            row_id=row_id,
        )

    async def rewrap(self, limit: int) -> int:
        """Wrap data keys with the current key-encryption key; the number of them, at most `limit`.

        Raises:
            WrongKeyEncryptionKey: a key opens with none of the key-encryption keys.
        """
        current = self._encryption.current_id
        outdated = await self._database.scan(data_keys_sql.not_wrapped_with, current, limit)
        for wrapped in outdated:
            context = _wrap_context(wrapped)
            key = await asyncio.to_thread(self._encryption.unwrap, wrapped.wrapped, context)
            rewrapped = await asyncio.to_thread(self._encryption.wrap, key, context)
            await self._database.write(data_keys_sql.replace, wrapped, rewrapped)
        return len(outdated)

    async def _unwrap(self, wrapped: WrappedKey) -> DataKey:
        id_ = _id_bytes(wrapped.id)
        known = self._by_id.get(id_)
        if known is None:
            # In a thread: the key-encryption key may have to come from a slow command.
            context = _wrap_context(wrapped)
            key = await asyncio.to_thread(self._encryption.unwrap, wrapped.wrapped, context)
            known = self._by_id[id_] = DataKey(id_, key)
            if len(self._by_id) > _CACHED_MAX:
                self._by_id.popitem(last=False)
        return known


def _month(time_ns: int) -> int:
    """`202611`: the month in UTC."""
    at = from_ns(time_ns)
    return at.year * 100 + at.month


def _id_text(id_: bytes) -> str:
    return f"dk_{base32(int.from_bytes(id_, 'big'))}"


def _id_bytes(text: str) -> bytes:
    return base32_value(text.removeprefix("dk_")).to_bytes(_ID_BYTES, "big")


def _wrap_context(key: WrappedKey) -> bytes:
    return f"countersign/v1/data-key|{key.id}|{key.scope}|{key.month}".encode()
