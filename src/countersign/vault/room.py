"""The room of the vault: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from countersign.access.room import Access
from countersign.ports import Clock, Entropy
from countersign.vault.data_keys_sql import DataKeys
from countersign.vault.key_encryption import KeyRing
from countersign.vault.key_file import KeyFile
from countersign.vault.rotate_key import RotateKeyEncryption
from countersign.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRoom:
    """Envelopes, and the keys around their keys."""

    access: Access
    vault: Vault
    encryption: KeyRing
    data_keys: DataKeys
    rotate_key: RotateKeyEncryption


def open_vault(
    access: Access, encryption: KeyRing, own_file: Path | None, clock: Clock, entropy: Entropy
) -> VaultRoom:
    """The room; `own_file` contains the current key-encryption key, where it is in a file."""
    data_keys = DataKeys(access.database)
    vault = Vault(data_keys, encryption, clock, entropy)
    return VaultRoom(
        access=access,
        vault=vault,
        encryption=encryption,
        data_keys=data_keys,
        rotate_key=RotateKeyEncryption(
            file=None if own_file is None else KeyFile(own_file),
            encryption=encryption,
            vault=vault,
            data_keys=data_keys,
            entropy=entropy,
        ),
    )
