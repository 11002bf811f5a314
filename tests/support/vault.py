"""Opening values sealed by the vault, from the rows of a database and its key file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from countersign.base.values import base32_value
from countersign.core.vault.key_encryption import KeyRing, key_source
from countersign.core.vault.vault import DataKey
from countersign_evidence.disclosure import b64url_each
from tests.support.service import Deployment


class StoredVault:
    """The data keys of a deployment, unwrapped."""

    def __init__(self, deployment: Deployment, data_keys: Sequence[Row[Any]]) -> None:
        file = deployment.data_dir / "key-encryption.key"
        ring = KeyRing(key_source(f"file:{file}"), os.urandom)
        self._keys = {}
        for row in data_keys:
            context = f"countersign/v1/data-key|{row.id}|{row.scope}|{row.month}".encode()
            id_ = base32_value(row.id.removeprefix("dk_")).to_bytes(16, "big")
            self._keys[id_] = DataKey(id_, ring.unwrap(row.wrapped, context))

    def open(self, row: Row[Any], shred_key: bytes) -> list[str]:
        """The disclosures in a row of that table."""
        opened = self._keys[row.payload[1:17]].open(
            row.payload,
            shred_key=shred_key,
            table="disclosures",
            column="payload",
            account=row.account_id,
            row_id=row.record_id,
        )
        return b64url_each(opened.split(b"\n")[1:])
