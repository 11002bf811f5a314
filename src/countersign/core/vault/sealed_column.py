"""A column of secrets: kept sealed by the vault, each opened only in its own row."""

from __future__ import annotations

from hashlib import sha256

from countersign.base.values import Entropy
from countersign.core.vault.vault import NONCE_BYTES, Place, Vault


class SealedColumn:
    """Seals and opens the values of one column. They go with their row: nothing is shredded."""

    def __init__(self, vault: Vault, entropy: Entropy, table: str, column: str) -> None:
        self._vault = vault
        self._entropy = entropy
        self._table = table
        self._column = column

    async def seal(self, secret: bytes, *, account: str, row_id: str, time_ns: int) -> bytes:
        """Encrypt the secret of a row with the data key of this time, Unix nanoseconds.

        `account` is whose it is, or `vault.DEPLOYMENT`; `row_id` names the row in its table.
        """
        data_key = await self._vault.data_key(account, time_ns)
        nonce, place = self._entropy(NONCE_BYTES), self._place(account, row_id)
        return data_key.seal(
            shred_key=self._row_key(row_id), nonce=nonce, plaintext=secret, **place
        )

    async def open(self, sealed: bytes, *, account: str, row_id: str) -> bytes:
        """Decrypt what `seal` returned for this row."""
        place = self._place(account, row_id)
        return await self._vault.open(sealed, shred_key=self._row_key(row_id), **place)

    def _place(self, account: str, row_id: str) -> Place:
        return Place(table=self._table, column=self._column, account=account, row_id=row_id)

    def _row_key(self, row_id: str) -> bytes:
        """Replaces a shred key: not secret, and different for each row."""
        place = f"countersign/v1/{self._table}.{self._column}\x00{row_id}"
        return sha256(place.encode()).digest()
