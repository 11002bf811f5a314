"""Change the key-encryption key while servers run: no data key is ever without a key that is kept.

At each moment the file holds every key that wraps something, so that a rotation can be interrupted
anywhere and run again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from countersign.errors import InvalidArgument, KeyRotationFailed
from countersign.ports import DataKeyStore, Entropy, KeyEncryption, KeyEncryptionFile
from countersign.vault.vault import Vault

_KEY_BYTES: Final = 32
_CHUNK: Final = 200
_SETTLE_SECONDS: Final = 2.0
"""A server that read the file just before it changed has stored what it wrapped by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """The id of the key that wraps now, and how many data keys were wrapped anew."""

    current: bytes
    rewrapped: int


class RotateKeyEncryption:
    """Replaces the key-encryption key in its file. `file` is None where it is in no file."""

    def __init__(
        self,
        *,
        file: KeyEncryptionFile | None,
        encryption: KeyEncryption,
        vault: Vault,
        data_keys: DataKeyStore,
        entropy: Entropy,
    ) -> None:
        self._file = file
        self._encryption = encryption
        self._vault = vault
        self._data_keys = data_keys
        self._entropy = entropy

    async def rewrap(self, progress: Callable[[int], None]) -> int:
        """Wrap every data key with the first key-encryption key; gives how many were not.

        `progress` is told how many so far.

        Raises:
            WrongKeyEncryptionKey: a key opens with none of the key-encryption keys.
        """
        total = 0
        while number := await self._vault.rewrap(_CHUNK):
            total += number
            progress(total)
        return total

    async def __call__(self, progress: Callable[[int], None]) -> Rotated:
        """Make a new key, wrap every data key with it, and forget those that wrap nothing more.

        Raises:
            InvalidArgument: the key is in no file.
            KeyRotationFailed: another process is at it, or still wraps with an older key. Nothing
                is lost: the file holds the older key too.
            WrongKeyEncryptionKey: a data key opens with none of the keys in the file.
        """
        if self._file is None:
            msg = (
                "The key-encryption key is not in a file. Put the new key first in the source "
                "of COUNTERSIGN_KEY_ENCRYPTION_KEY, and run `countersign vault rewrap`."
            )
            raise InvalidArgument(msg)
        with self._file.alone():
            new, old = self._entropy(_KEY_BYTES), self._file.read()
            self._file.replace([new, *old.values()])
            written = self._file.read()
            current = next(iter(written))
            self._encryption.read_again()
            rewrapped = await self.rewrap(progress)
            await asyncio.sleep(_SETTLE_SECONDS)
            rewrapped += await self.rewrap(progress)
            await self._forget_unused(self._file, written)
        return Rotated(current=current, rewrapped=rewrapped)

    async def _forget_unused(self, file: KeyEncryptionFile, written: Mapping[bytes, bytes]) -> None:
        """Take the keys out of the file that wrap nothing, whatever else was done to it meanwhile.

        By hand, say, or by a release that knew no lock: then a key that is needed comes back.
        """
        now = file.read()
        current, first = next(iter(written)), next(iter(now))
        used = await self._data_keys.counts()
        known = {**now, **written}
        kept = [id_ for id_ in known if id_ == first or used.get(id_)]
        file.replace([known[id_] for id_ in kept])
        if kept != [current]:
            msg = (
                f"The file holds the keys {', '.join(id_.hex() for id_ in kept)}: another "
                "process changed the file, or one of the old keys still wraps data keys. "
                "Nothing is lost; run `countersign vault rotate` again."
            )
            raise KeyRotationFailed(msg)
