"""A column of secrets: kept sealed by the vault, each opened only in its own row."""

from __future__ import annotations

from hashlib import sha256

from countersign.clock import Entropy
from countersign.vault.vault import NONCE_BYTES, Vault


class SealedColumn:
    """Seals and opens the values of one column. They go with their row: nothing is shredded."""

    def __init__(self, vault: Vault, entropy: Entropy, table: str, column: str) -> None:
        self._vault = vault
        self._entropy = entropy
        self._table = table
        self._column = column

    async def seal(self, secret: bytes, *, account: str, row_id: str, time_ns: int) -> bytes:
        """Encrypt the secret of a row with the data key of this time.

        Args:
            secret: the value.
            account: whose it is, or `vault.DEPLOYMENT`.
            row_id: what identifies the row in its table.
            time_ns: the time, Unix nanoseconds.

        Raises:
            WrongKeyEncryptionKey, StorageUnavailable: see `Vault.data_key`.
        """
        data_key = await self._vault.data_key(account, time_ns)
        return data_key.seal(
            shred_key=self._row_key(row_id),
            nonce=self._entropy(NONCE_BYTES),
            table=self._table,
            column=self._column,
            account=account,
            row_id=row_id,
            plaintext=secret,
        )

    async def open(self, sealed: bytes, *, account: str, row_id: str) -> bytes:
        """Decrypt what `seal` returned for this row.

        Raises:
            DamagedValue, WrongKeyEncryptionKey: see `Vault.open`.
        """
        return await self._vault.open(
            sealed,
            shred_key=self._row_key(row_id),
            table=self._table,
            column=self._column,
            account=account,
            row_id=row_id,
        )

    def _row_key(self, row_id: str) -> bytes:
        """What stands in for a shred key: no secret, and different for each row."""
        place = f"countersign/v1/{self._table}.{self._column}\x00{row_id}"
        return sha256(place.encode()).digest()
