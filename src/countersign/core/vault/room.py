"""The room of the vault: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from countersign.core.access.room import Access
from countersign.core.vault.key_encryption import KeyRing
from countersign.core.vault.vault import Vault


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
